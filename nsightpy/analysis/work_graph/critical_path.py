"""The critical path: what the end of each block follows from, back to where it began.

And how far a graph explains what was recorded, and which stretches of a job it is made of.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nsightpy.analysis.work_graph.edges import LAUNCH, ORIGIN, START
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.host_chain import changes
from nsightpy.analysis.work_graph.launched_work import COMMUNICATION, GRAPH
from nsightpy.analysis.work_graph.replay import NEVER, replay
from nsightpy.analysis.work_graph.thresholds import (
    MOST_APART,
    MOST_BLOCKS,
    MOST_IDENTITY_ERROR,
    MOST_OPERATIONS,
    MOST_UNEXPLAINED,
)
from nsightpy.frames import Ints

SHARES = ("compute", "transfer", "host", "copies", "wait", "unexplained")
(ON_DEVICE, IN_TRANSFER, ON_HOST, IN_COPIES, WAITS, UNEXPLAINED) = range(len(SHARES))
_SHARE_OF_KIND = (ON_DEVICE, IN_TRANSFER, IN_COPIES, IN_COPIES, ON_DEVICE)


class CriticalPath(NamedTuple):
    """The edges of the path of all blocks, in time order, and the time on each (ns) by SHARES.

    The last of each block is no edge (-1): the operation with which it ends, if it does.
    `unit` is whose each edge is (-1: not known), `operation` the row of the work that runs on it,
    -1 for none. `wait` is the usual latency between what follows on each other, `unexplained` what
    none of the recorded edges accounts for.
    """

    edges: Ints
    times: Ints
    unit: Ints
    operation: Ints

    @property
    def totals(self) -> dict[str, int]:
        """The time on the path, in ns, by SHARES."""
        return dict(zip(SHARES, self.times.sum(axis=0).tolist(), strict=True))

    @property
    def length_ns(self) -> int:
        return int(self.times.sum())


_NONE = np.empty(0, dtype=np.int64)
NO_PATH = CriticalPath(_NONE, np.empty((0, len(SHARES)), dtype=np.int64), _NONE, _NONE)


def critical_path(graph: WorkGraph) -> CriticalPath:
    """The path to the end of the unit that ends each block last, of the recorded times."""
    work, binds = graph.work, graph.binds.tolist()
    source, recorded = graph.edges.source.tolist(), graph.recorded.tolist()
    begins = work.opened.max(axis=1, initial=NEVER)
    paths = []
    for block, (marker, last) in enumerate(zip(work.marker, work.last, strict=True)):
        there = marker >= 0
        if not there.any():
            continue
        end = np.where(there, np.where(last, work.end[marker], work.start[marker]), NEVER)
        at = int(np.argmax(end))
        node, lasting = int(marker[at]) + 1, -1
        if last[at]:
            node, lasting = int(graph.nodes.ends[marker[at]]), int(marker[at])
        path, begin = [], int(begins[block])
        while node != ORIGIN and recorded[node] > begin:
            path.append(binds[node])
            node = source[binds[node]]
        paths.append(_divided(graph, np.asarray(path[::-1], dtype=np.int64), begin, lasting))
    return CriticalPath(*map(np.concatenate, zip(*(paths or [NO_PATH]), strict=True)))


def legs(graph: WorkGraph, path: CriticalPath) -> list[tuple[int, int, int]]:
    """Whose work the path runs over from when to when: unit and two times (ns), in time order."""
    work, spent = graph.work, path.times.sum(axis=1)
    rows = np.flatnonzero((spent > 0) & (np.maximum.accumulate(path.unit) >= 0))
    if not len(rows):
        return []
    edge, operation = path.edges[rows], np.maximum(path.operation[rows], 0)
    end = np.where(edge >= 0, graph.recorded[graph.edges.target[edge]], work.end[operation])
    start = end - spent[rows]
    # what is nobody's is of who came before
    known = np.maximum.accumulate(np.where(path.unit >= 0, np.arange(len(spent)), 0))
    unit = path.unit[known[rows]]
    first = np.flatnonzero(changes(unit) | (start != np.append(-1, end[:-1])))
    last = np.append(first[1:], len(rows)) - 1
    return list(zip(unit[first].tolist(), start[first].tolist(), end[last].tolist(), strict=True))


def _divided(graph: WorkGraph, rows: Ints, begin: int, lasting: int) -> CriticalPath:
    """The time on each edge of a path, from a moment on; last the operation that it ends with."""
    work, edges = graph.work, graph.edges.take(rows)
    left = graph.residual[edges.target]
    lag = np.where(edges.kind == START, 0, edges.lag - left)
    in_call = (edges.kind == LAUNCH) & (edges.far % 2 == 0)
    operation = np.append(edges.lasting, lasting)
    times = np.zeros((len(operation), len(SHARES)), dtype=np.int64)
    lasted = np.where(operation >= 0, graph.lasting[operation], 0)
    # what follows before its predecessor has ended cuts that short
    lasted[:-1] += np.minimum(lag, 0)
    kind = np.where(operation >= 0, work.kind[operation], 0)
    times[np.arange(len(times)), np.asarray(_SHARE_OF_KIND)[kind]] = lasted
    times[:-1, ON_HOST] += graph.host.way(graph.host.increments, edges)
    times[np.arange(len(rows)), np.where(in_call, ON_HOST, WAITS)] += np.maximum(lag, 0)
    times[:-1, UNEXPLAINED] += left
    # the first edge may come from before that moment: what runs first is taken away first
    early = begin - int(graph.recorded[edges.target[0]] - times[0].sum()) if len(rows) else 0
    if early > 0:
        times[0] = np.diff(np.maximum(np.append(0, np.cumsum(times[0])) - early, 0))
    leads_to = np.where(edges.target <= len(work), edges.target - 1, -1)
    whose = np.append(np.where(edges.lasting >= 0, edges.lasting, leads_to), lasting)
    unit = np.where(whose >= 0, work.unit[whose], -1)
    at_host = edges.target - graph.nodes.host_at
    position = np.where(
        at_host >= 0, np.append(graph.host.positions, 0)[np.maximum(at_host, 0)], edges.far
    )
    of_host = np.flatnonzero((whose[:-1] < 0) & ((at_host >= 0) | (edges.far > edges.near)))
    unit[of_host] = work.call_unit[position[of_host] // 2]
    return CriticalPath(np.append(rows, -1), times, unit, operation)


@dataclass(frozen=True)
class Trust:
    """What a replay rests on, as shares.

    `identity`: how wrong the replay without an edit is, of the time; `unexplained`: what no edge
    accounts for, of the critical path; `unlaunched`: operations whose call is not known; `alone`:
    communication of which no other rank is known, and `opaque`: CUDA graphs of which no node is,
    of the time of all devices.
    """

    identity: float
    unexplained: float
    unlaunched: float
    alone: float
    opaque: float

    @property
    def reason(self) -> str:
        """Why no gain is given, by the name of the share that is too large; empty where one is."""
        if self.identity > MOST_IDENTITY_ERROR:
            return "identity"
        missing = ("unlaunched", "alone", "unexplained")
        return next((name for name in missing if getattr(self, name) > MOST_UNEXPLAINED), "")


def trust_of(graph: WorkGraph, path: CriticalPath) -> Trust:
    """How far a graph explains what was recorded."""
    work = graph.work
    same = replay(graph)
    wrong = int(np.abs(same.gains).sum())
    of_one = work.kind == COMMUNICATION
    of_one[graph.nodes.members] = False
    time = max(same.length_ns * len(work.units), 1)
    alone, opaque = (
        int((work.end - work.start)[rows].sum()) for rows in (of_one, work.kind == GRAPH)
    )
    return Trust(
        wrong / same.length_ns if same.length_ns else 0.0,
        path.totals["unexplained"] / path.length_ns if path.length_ns else 0.0,
        float(np.mean(work.launched_by < 0)) if len(work) else 0.0,
        alone / time,
        opaque / time,
    )


def chosen(iterations: int, operations: int, *, apart: bool = False) -> list[tuple[int, int]]:
    """Which of some iterations to look at, as (first, last + 1): all, or even stretches.

    `operations` are those of all ranks in one iteration; together at most MOST_OPERATIONS, but for
    one iteration. Those that are `apart` are looked at one by one.
    """
    affordable = max(MOST_OPERATIONS // max(operations, 1), 1)
    if iterations <= affordable and not apart:
        return [(0, iterations)] if iterations else []
    blocks = min(MOST_APART if apart else MOST_BLOCKS, affordable, iterations)
    each = 1 if apart else affordable // blocks
    return [(first, first + each) for first in (n * iterations // blocks for n in range(blocks))]
