"""What a change of the recorded work would be worth: the graph walked again with other weights."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.edges import BLOCKED, MET, typical
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.host_chain import COPY as COPYING, LAUNCH, OTHER
from nsightpy.analysis.work_graph.launched_work import COMPUTE, COPY, Mask
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS, MOST_LATENCY_NS
from nsightpy.frames import Ints

NEVER = -(2**62)
Weight = Literal["gap", "call", "operation", "wait"]


@dataclass(frozen=True)
class Edit:
    """A change of weights: of the gaps before calls, of calls, of operations, or of waits.

    `rows` are calls, or operations; `factor` multiplies what they take: a collective and an MPI
    call that meets others since all were there. Calls of `wait` return without waiting.
    """

    weight: Weight
    rows: Ints
    factor: float | NDArray[np.float64] = 0.0


@dataclass(frozen=True)
class Replay:
    """When each node would have been, in ns, and how long the blocks of the graph would last."""

    times: Ints
    gains: Ints
    length_ns: int

    @property
    def gain_ns(self) -> int:
        """What all blocks together would be shorter by."""
        return int(self.gains.sum())

    @property
    def gain_share(self) -> float:
        """The same as a share of their time."""
        return self.gain_ns / self.length_ns if self.length_ns else 0.0


def replay(graph: WorkGraph, edits: Iterable[Edit] = ()) -> Replay:
    """The graph with some weights changed; several edits are one replay."""
    lasting, increments = graph.lasting.copy(), graph.host.increments.copy()
    held = np.ones(len(graph.work.chain), dtype=np.bool_)
    kept = np.ones(len(graph.work.chain))
    for edit in edits:
        if edit.weight == "wait":
            held[edit.rows] = False
            continue
        if edit.weight == "call":
            kept[edit.rows] *= edit.factor
        changed = lasting if edit.weight == "operation" else increments
        rows = {"gap": 2 * edit.rows, "call": 2 * edit.rows + 1}.get(edit.weight, edit.rows)
        fixed = graph.host.beyond[rows] if edit.weight == "gap" else 0
        changed[rows] = fixed + np.rint((changed[rows] - fixed) * edit.factor).astype(np.int64)
    weights = graph.weights(lasting, increments)
    returns = np.flatnonzero(np.isin(graph.edges.kind, (BLOCKED, MET)))
    call = graph.host.positions[graph.edges.target[returns] - graph.nodes.host_at] // 2
    met = graph.edges.kind[returns] == MET
    weights[returns[met]] = np.rint(weights[returns[met]] * kept[call[met]])
    weights[returns[~met & ~held[call]]] = NEVER
    work, times = graph.work, walked(graph, weights)
    # how much shorter each block is, for the unit that ends it last; and how long all took
    before, after = _ends(graph, graph.recorded, graph.lasting), _ends(graph, times, lasting)
    if (work.call_low == NO_TIME).any():
        before, after = before - _begins(graph, graph.recorded), after - _begins(graph, times)
    opened, closed = (
        np.where(work.marker >= 0, when, NEVER).max(axis=1, initial=NEVER)
        for when in (work.opened, work.closed)
    )
    return Replay(times, before - after, int((closed - opened).sum()))


def _begins(graph: WorkGraph, times: Ints) -> Ints:
    """When each whole report begins: with the first operation of the unit that is last to begin."""
    work = graph.work
    begun = np.full(work.marker.shape, -NEVER)
    np.minimum.at(begun, (work.block, work.unit), times[1 : len(work) + 1])
    whole: Ints = np.where(work.marker >= 0, begun, NEVER).max(axis=1, initial=NEVER)
    return whole


def _ends(graph: WorkGraph, times: Ints, lasting: Ints) -> Ints:
    """When each block ends: with the last unit's marker, or where it has none with its last end."""
    work = graph.work
    ended = np.full(work.marker.shape, NEVER)
    np.maximum.at(ended, (work.block, work.unit), times[graph.nodes.ends] + lasting)
    at = np.where(work.last, ended, times[work.marker + 1])
    whole: Ints = np.where(work.marker >= 0, at, NEVER).max(axis=1, initial=NEVER)
    return whole


def walked(graph: WorkGraph, weights: Ints) -> Ints:
    """The longest path from the origin to each node, in one walk over the sorted edges."""
    times = [NEVER] * len(graph.recorded)
    times[0] = 0
    edges = graph.edges
    columns = (edges.source.tolist(), edges.target.tolist(), weights.tolist())
    for source, target, weight in zip(*columns, strict=True):
        time = times[source] + weight
        times[target] = max(times[target], time)
    return np.asarray(times, dtype=np.int64)


def like_peers(graph: WorkGraph, unit: int) -> list[Edit]:
    """A straggler's kernels take what the median of the other units' same kernels takes."""
    work = graph.work
    kernels = np.flatnonzero(work.kind == COMPUTE)
    name, length = work.names.codes[kernels].astype(np.int64), graph.lasting[kernels]
    own = work.unit[kernels] == unit
    usual, others = (typical(length, name, rows, length) for rows in (own, ~own))
    factor = np.minimum(others / np.maximum(usual, 1), 1.0)
    return [Edit("operation", kernels[own], np.where(np.isin(name, name[~own]), factor, 1.0)[own])]


def transfers(graph: WorkGraph, factor: float = 0.0, among: Mask | None = None) -> list[Edit]:
    """Moving the data of collectives takes that part of its time; waits for ranks stay.

    What the shortest one takes is latency, which no bandwidth mends. `among` marks operations,
    where only some of the collectives are meant.
    """
    rows = graph.nodes.members[graph.nodes.waits]
    length = graph.lasting[rows]
    latency = min(int(length.min(initial=MOST_LATENCY_NS)), MOST_LATENCY_NS)
    left = np.minimum(length, latency) + np.maximum(length - latency, 0) * factor
    if among is not None:
        rows, left, length = rows[among[rows]], left[among[rows]], length[among[rows]]
    return [Edit("operation", rows, left / np.maximum(length, 1))]


def network(graph: WorkGraph, factor: float = 0.0) -> list[Edit]:
    """Collectives and MPI calls move their data in that part of the time; waits for ranks stay."""
    met = np.unique(graph.work.meetings.ints("call"))
    return [*transfers(graph, factor), Edit("call", met, factor)]


def host_gaps(graph: WorkGraph, factor: float = 0.0) -> list[Edit]:
    """Long stretches outside of CUDA take that part of their time."""
    return [Edit("gap", np.flatnonzero(graph.host.increments[::2] >= HOST_GAP_NS), factor)]


def launches(graph: WorkGraph, factor: float = 0.0) -> list[Edit]:
    """Calls that enqueue, and the short gaps before them, take that part of their time."""
    calls = np.isin(graph.work.chain.kind, (LAUNCH, COPYING, OTHER))
    calls[graph.work.awaited[0]] = False
    short = np.flatnonzero(graph.host.increments[::2] < HOST_GAP_NS)
    return [Edit("call", np.flatnonzero(calls), factor), Edit("gap", short, factor)]


def calls_of(graph: WorkGraph, kind: int) -> list[Edit]:
    """Calls of a kind take no time: allocations."""
    return [Edit("call", np.flatnonzero(graph.work.chain.kind == kind))]


def waits(graph: WorkGraph) -> list[Edit]:
    """Calls that wait for the GPU return at once, blocking copies among them."""
    return [Edit("wait", np.unique(graph.work.awaited[0]))]


def copies(graph: WorkGraph, factor: float = 0.0, among: Mask | None = None) -> list[Edit]:
    """Copies take that part of their time, and calls that stage pageable memory for them.

    `among` marks operations where only some are meant.
    """
    work, copied = graph.work, graph.work.kind == COPY
    rows = np.flatnonzero(copied if among is None else copied & among)
    staged = work.launched_by[rows[work.pageable[rows]]]
    calls = np.unique(staged[staged >= 0]).astype(np.int64)
    return [Edit("operation", rows, factor), Edit("call", calls, factor)]


def operations(rows: Ints, factor: float) -> list[Edit]:
    """Some kernels take that part of their time."""
    return [Edit("operation", rows, factor)]
