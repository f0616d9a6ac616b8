"""The nodes and edges of the work of all ranks (shared/reference: Critical Path Method, dPRO).

A node is a moment: the begin of an operation, the moment at which all ranks of a collective, or all
hosts of an MPI call, are there, and on the host those moments that do not follow from the call
before alone: the begin of a thread, the return of a blocking call, the hand-over from another
thread. All calls between are lengths on the way from one of these to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.host_chain import changes, handed_over
from nsightpy.analysis.work_graph.job_work import JobWork
from nsightpy.analysis.work_graph.launched_work import Mask
from nsightpy.frames import Ints

# From the origin, over the host, out of what a call waited for or was met by, and to operations.
START, HOST, BLOCKED, MET, LAUNCH, DEVICE = range(6)
ORIGIN = 0


@dataclass(frozen=True)
class Host:
    """The host's calls as positions 2c (begin of call c) and 2c + 1 (its end).

    `positions` are those of the host's nodes, in their order; `anchor` is, for each position, the
    last one at or before it that is a node, and `node` that node.
    `increments` lead from each position to the next: gaps, and lengths of calls (ns); of a blocking
    call only what it takes by itself. `beyond` is what of a gap lies after its block.
    """

    positions: Ints
    anchor: Ints
    node: Ints
    increments: Ints
    beyond: Ints

    def way(self, increments: Ints, edges: Edges) -> Ints:
        """What leads over the host on each edge, with such increments, in ns."""
        reach = np.append(0, np.cumsum(increments))
        way: Ints = reach[edges.far + 1] - reach[edges.near + 1]
        return way

    def edges(self, kind: int, since: Ints, far: Ints, target: Ints, **columns: Ints) -> Edges:
        """Edges from the node at or before a position, on to a later one, and to other nodes."""
        return Edges.of(kind, self.node[since], target, near=self.anchor[since], far=far, **columns)


class Edges(NamedTuple):
    """Edges by columns: from `source` to `target`; the weight is lag + host way + duration.

    The host way leads from position `near` to `far` (equal: none), the duration is that of
    operation `lasting` (-1: none): its own, or after a collective was met the transfer.
    """

    source: Ints
    target: Ints
    kind: Ints
    lag: Ints
    near: Ints
    far: Ints
    lasting: Ints

    def take(self, rows: Ints | Mask) -> Edges:
        """Some of the edges."""
        return Edges(*(column[rows] for column in self))

    @classmethod
    def of(cls, kind: int, source: Ints, target: Ints, **columns: Ints) -> Edges:
        """Edges of one kind; columns that are not given are none."""
        count = len(source)
        none = {"lag": 0, "near": -1, "far": -1, "lasting": -1}
        filled = {name: columns.get(name, np.full(count, value)) for name, value in none.items()}
        return cls(source, target, np.full(count, kind), **filled)

    @classmethod
    def concatenate(cls, parts: list[Edges]) -> Edges:
        """All edges of several kinds."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True)
class Nodes:
    """Where the nodes of a graph stand: 0 is the origin, then the begins of operations.

    After these the meetings of collectives and of MPI calls, and the nodes of the host.
    """

    work: JobWork

    @cached_property
    def members(self) -> Ints:
        """The operations that take part in a collective of several."""
        instance = self.work.instance
        rows = np.flatnonzero(instance >= 0)
        _, code, count = np.unique(instance[rows], return_inverse=True, return_counts=True)
        return rows[count[code] > 1]

    @cached_property
    def meeting(self) -> Ints:
        """The meeting of each member, then of each row of the work's MPI calls, from 0 on."""
        of_members, of_calls = self.work.instance[self.members], self.work.meetings.ints("instance")
        beyond = 1 + int(of_members.max(initial=-1))
        return np.unique(np.append(of_members, of_calls + beyond), return_inverse=True)[1]

    @cached_property
    def met(self) -> Ints:
        """When all that enter each meeting were there, in ns; NO_TIME for none."""
        work, calls = self.work, self.work.meetings
        enters = np.append(np.ones(len(self.members), dtype=np.bool_), calls.ints("enters") > 0)
        begun = np.append(work.start[self.members], work.chain.start[calls.ints("call")])
        met = np.full(int(self.meeting.max(initial=-1)) + 1, NO_TIME)
        np.maximum.at(met, self.meeting[enters], begun[enters])
        return met

    @cached_property
    def waits(self) -> Mask:
        """Which members stayed until all were there: others of a Broadcast may have gone."""
        count = len(self.members)
        return self.work.end[self.members] >= self.met[self.meeting[:count]]

    @cached_property
    def leaves(self) -> Ints:
        """The rows of MPI calls that went on after all were there."""
        calls, met = self.work.meetings, self.met[self.meeting[len(self.members) :]]
        late = self.work.chain.end[calls.ints("call")] >= met
        return np.flatnonzero((calls.ints("exits") > 0) & (met != NO_TIME) & late)

    @cached_property
    def ends(self) -> Ints:
        """The node that each operation's end follows: its begin, or that all were there."""
        ends = np.arange(len(self.work)) + 1
        of_members = self.meeting[: len(self.members)]
        ends[self.members[self.waits]] = self.meetings_at + of_members[self.waits]
        return ends

    @property
    def meetings_at(self) -> int:
        """The node of the first meeting."""
        return 1 + len(self.work)

    @property
    def host_at(self) -> int:
        """The first node of the host."""
        return self.meetings_at + len(self.met)


def typical(
    values: Ints, group: NDArray[np.signedinteger], usable: NDArray[np.bool_], fallback: Ints
) -> Ints:
    """For each row the lower median of the usable values of its group; else its own fallback."""
    rows = np.flatnonzero(usable)
    rows = rows[np.lexsort((values[rows], group[rows]))]
    present, first, counts = np.unique(group[rows], return_index=True, return_counts=True)
    if not len(present):
        return fallback
    middle = values[rows[first + (counts - 1) // 2]]
    at = np.minimum(np.searchsorted(present, group), len(present) - 1)
    return np.where(present[at] == group, middle[at], fallback)


def host_of(work: JobWork, nodes: Nodes) -> tuple[Host, Edges, Ints]:
    """The host's positions, the edges into its nodes, and the recorded time of each node."""
    chain, rows = work.chain, work.meetings
    positions = np.arange(2 * len(chain))
    first = np.flatnonzero(changes(chain.thread))
    left = rows.ints("call")[nodes.leaves]
    blocking = np.unique(np.append(work.awaited[0], left))
    before, after = handed_over(chain)
    roots, goes_on = np.setdiff1d(first, after), np.setdiff1d(after, first)
    at = np.sort(np.concatenate([2 * roots, 2 * after, 2 * blocking + 1]))
    node_of = np.full(len(positions), -1, dtype=np.int64)
    node_of[at] = nodes.host_at + np.arange(len(at))
    anchor = np.maximum.accumulate(np.where(node_of >= 0, positions, 0))
    times = np.stack([chain.start, chain.end], axis=1).ravel()
    increments, beyond = _gaps(work, times, first)
    increments[2 * after] = beyond[2 * after] = 0
    increments[2 * blocking + 1] = _own_length(work, nodes)[blocking]
    host = Host(at, anchor, node_of[anchor], increments, beyond)
    met, enters = nodes.meetings_at + nodes.meeting[len(nodes.members) :], rows.ints("enters") > 0
    arrived = 2 * rows.ints("call")[enters]
    late = chain.end[left] - nodes.met[met[nodes.leaves] - nodes.meetings_at]
    parts = [
        Edges.of(
            START,
            np.full(len(roots), ORIGIN),
            node_of[2 * roots],
            lag=times[2 * roots] - increments[2 * roots],
            near=2 * roots - 1,
            far=2 * roots,
        ),
        host.edges(HOST, 2 * blocking, 2 * blocking + 1, node_of[2 * blocking + 1]),
        host.edges(HOST, 2 * goes_on - 1, 2 * goes_on - 1, node_of[2 * goes_on]),
        host.edges(HOST, 2 * before + 1, 2 * before + 1, node_of[2 * after]),
        _blocked(work, nodes, node_of),
        host.edges(HOST, arrived, arrived, met[enters]),
        Edges.of(MET, met[nodes.leaves], node_of[2 * left + 1], lag=late),
    ]
    return host, Edges.concatenate(parts), times[at]


def _gaps(work: JobWork, times: Ints, first: Ints) -> tuple[Ints, Ints]:
    """What leads to each position of the host, and what of it lies after the block, in ns.

    What a thread did before its first call in a block counts from the begin of that on.
    """
    increments, beyond = np.diff(times, prepend=times[:1]), np.zeros_like(times)
    bounded, start = work.call_low != NO_TIME, work.chain.start
    lead = np.maximum(start - work.call_low, 0)
    increments[2 * first] = np.where(bounded, lead, 0)[first]
    since = np.append(0, work.chain.end[:-1])[: len(start)]
    since[first] = work.call_low[first]
    late = start - np.maximum(work.call_high, since)
    beyond[::2] = np.where(bounded, np.clip(late, 0, increments[::2]), 0)
    return increments, beyond


def _own_length(work: JobWork, nodes: Nodes) -> Ints:
    """What each blocking call takes when it has nothing to wait for: as seen for its function."""
    chain, (call, row) = work.chain, work.awaited
    left = work.meetings.ints("call")[nodes.leaves]
    met = nodes.met[nodes.meeting[len(nodes.members) :][nodes.leaves]]
    length = chain.end - chain.start
    waited, blocking = (np.zeros(len(length), dtype=np.bool_) for _ in range(2))
    waited[call[work.end[row] > chain.start[call]]] = True
    waited[left[met > chain.start[left]]] = True
    blocking[call] = blocking[left] = True
    seen = typical(length, chain.labels.codes, blocking & ~waited, np.zeros_like(length))
    return np.where(waited, np.minimum(length, seen), length)


def _blocked(work: JobWork, nodes: Nodes, node_of: Ints) -> Edges:
    """From what a blocking call waited for to its return, after the usual time to wake up."""
    chain, (call, row) = work.chain, work.awaited
    ended = work.end[row]
    late = chain.end[call] - ended
    latest = np.full(len(chain), NO_TIME)
    np.maximum.at(latest, call, ended)
    # the last of all that a call waits for is what it wakes up after
    waited = (ended == latest[call]) & (ended > chain.start[call])
    lag = np.minimum(typical(late, chain.labels.codes[call], waited, np.zeros_like(late)), late)
    return Edges.of(BLOCKED, nodes.ends[row], node_of[2 * call + 1], lag=lag, lasting=row)
