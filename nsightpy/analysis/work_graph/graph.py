"""The graph of the work of all ranks, and what it says when its weights are changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.edges import (
    ARRIVAL,
    EVENT,
    INFERRED,
    LAUNCH,
    ORIGIN,
    START,
    STREAM,
    TRANSFER,
    Edges,
    Host,
    Nodes,
    typical,
)
from nsightpy.analysis.work_graph.host_edges import host_of
from nsightpy.analysis.work_graph.joined import HostMeetings, Joined, joined
from nsightpy.analysis.work_graph.launched_work import Mask
from nsightpy.analysis.work_graph.part import GraphPart
from nsightpy.analysis.work_graph.thresholds import MOST_TIED, SOON_NS
from nsightpy.frames import Ints, last_before


@dataclass(frozen=True)
class WorkGraph:
    """Nodes and edges of the work of all ranks; times in ns of the common clock.

    `recorded` is the time of each node, `edges` are sorted so that those into a node follow all
    those into its predecessors. `lasting` is how long each operation took: for members of a
    collective since all were there. `binds` is the row of the edge that binds each node (-1: none),
    `residual` what was left between its weight and the record.
    """

    work: Joined
    nodes: Nodes
    host: Host
    edges: Edges
    recorded: Ints
    lasting: Ints
    binds: Ints
    residual: Ints
    contradicted: int

    @classmethod
    def of(
        cls,
        parts: Sequence[GraphPart],
        alignment: Alignment | None = None,
        mpi: HostMeetings | None = None,
    ) -> WorkGraph:
        """The graph of the parts of all reports; their clocks and collectives by an alignment."""
        return cls.of_work(joined(parts, alignment, mpi))

    @classmethod
    def of_work(cls, work: Joined) -> WorkGraph:
        """The graph of work that is on one clock."""
        nodes = Nodes(work)
        host, into_host, host_times = host_of(work, nodes)
        recorded = np.concatenate(
            [[0], work.start, work.end[nodes.members], nodes.met, nodes.host_met, host_times]
        ).astype(np.int64)
        lasting = work.end - work.start
        lasting[nodes.members] = work.end[nodes.members] - np.where(
            nodes.waits, nodes.met[nodes.meeting], work.start[nodes.members]
        )
        launched = _launches(work, host)
        on_device = [*_streams(work, nodes, launched), *_collectives(work, nodes)]
        edges = Edges.concatenate([into_host, launched, *on_device])
        graph = cls(work, nodes, host, edges, recorded, lasting, recorded, recorded, 0)
        missing = _inferred(_fitted(graph))
        return _fitted(replace(graph, edges=Edges.concatenate([edges, missing])))

    def weights(self, lasting: Ints, increments: Ints) -> Ints:
        """The weight of each edge for durations of operations and increments of the host, in ns."""
        edges = self.edges
        lasted = np.where(edges.lasting >= 0, np.append(lasting, 0)[edges.lasting], 0)
        return edges.lag + self.host.way(increments, edges) + lasted


def _launches(work: Joined, host: Host) -> Edges:
    """From a launching call to its operation, after the usual latency of its kind.

    From the end of the call, or from its begin where the operation began within it. Usual is what
    was seen where the stream was empty.
    """
    rows = np.flatnonzero(work.launched_by >= 0)
    call = work.launched_by[rows]
    after = work.start[rows] >= work.call_end[call]
    since = np.where(after, work.call_end[call], work.call_start[call])
    late = work.start[rows] - since
    free = np.where(work.previous >= 0, work.end[work.previous], NO_TIME)
    np.maximum.at(free, work.consumer, work.end[work.producer])
    # what came before the first operation of a stream is not known
    idle = (since > free[rows]) & (work.previous[rows] >= 0)
    # nor whether one that began with another's end waited for it
    before, soon = _ended_before(work, rows)
    idle &= ~soon | (work.end[before] <= since)
    # a kind that never met an empty stream is as fast as any
    least = np.full(len(rows), late[idle].min() if idle.any() else 0)
    group = (work.call_name[call] * 8 + work.kind[rows]) * 2 + after
    lag = np.minimum(typical(late, group, idle, least), late)
    # what a call took before its operation began is the call's own
    lag = np.where(idle & ~after, late, lag)
    at = 2 * call + after
    return Edges.of(LAUNCH, host.node[at], rows + 1, lag=lag, near=host.anchor[at], far=at)


def _streams(work: Joined, nodes: Nodes, launched: Edges) -> list[Edges]:
    """From the operation before on the stream, and from what a stream waits for through events."""
    rows = np.flatnonzero(work.previous >= 0)
    source, lasting = nodes.end_of(work.previous[rows])
    late = work.start[rows] - work.end[work.previous[rows]]
    waits = np.zeros(len(work), dtype=np.bool_)
    waits[work.consumer] = True
    # what came to an empty stream began when its launch had arrived, not after another's end
    called = np.stack([work.call_start, work.call_end], axis=1).ravel()
    arrived = np.full(len(work), np.iinfo(np.int64).max)
    arrived[launched.target - 1] = called[launched.far] + launched.lag
    free = work.end[work.previous[rows]]
    queued = (arrived[rows] <= free) & ~waits[rows]
    # nor is it known of what began with the end of an operation of another stream
    before, soon = _ended_before(work, rows)
    queued &= ~soon | (work.end[before] <= free)
    lag = np.minimum(typical(late, work.unit[rows], queued, np.zeros_like(late)), late)
    stream = Edges.of(STREAM, source, rows + 1, lag=lag, lasting=lasting)
    forward = work.end[work.producer] <= work.start[work.consumer]
    source, lasting = nodes.end_of(work.producer[forward])
    event = Edges.of(EVENT, source, work.consumer[forward] + 1, lasting=lasting)
    return [stream, event]


def _inferred(graph: WorkGraph) -> Edges:
    """From the end of an operation to one that nothing recorded explains and that began with it.

    Streams without recorded waits, the legacy default stream, and full devices show so.
    """
    work, nodes = graph.work, graph.nodes
    rows = np.flatnonzero(graph.residual[1 : len(work) + 1] > SOON_NS)
    before, soon = _ended_before(work, rows)
    rows, before = rows[soon], before[soon]
    source, lasting = nodes.end_of(before)
    late = work.start[rows] - work.end[before]
    return Edges.of(INFERRED, source, rows + 1, lag=late, lasting=lasting)


def _ended_before(work: Joined, rows: Ints) -> tuple[Ints, Mask]:
    """The last operation of the unit that ended before each one began, and whether right before."""
    order = np.lexsort((work.end, work.unit))
    at = last_before((work.unit[order], work.end[order]), (work.unit[rows], work.start[rows]))
    before = order[at]
    return before, (at >= 0) & (work.start[rows] - work.end[before] <= SOON_NS)


def _collectives(work: Joined, nodes: Nodes) -> list[Edges]:
    """From the begin on each rank to the moment when all are there, and on to the end on each."""
    met = nodes.meetings_at + nodes.meeting
    arrival = Edges.of(ARRIVAL, nodes.members + 1, met)
    ends = 1 + len(work) + np.arange(len(nodes.members))
    stays = nodes.waits
    transfer = Edges.of(TRANSFER, met[stays], ends[stays], lasting=nodes.members[stays])
    return [arrival, transfer]


def _positions(recorded: Ints, edges: Edges) -> Ints:
    """Where each node comes in time; at one moment what follows another comes after it.

    Else the host's come last, before them collectives, ends, begins.
    """
    count = len(recorded)
    tied = edges.take(recorded[edges.source] == recorded[edges.target])
    level = np.zeros(count, dtype=np.int64)
    for _ in range(MOST_TIED):
        deeper = np.zeros_like(level)
        np.maximum.at(deeper, tied.target, level[tied.source] + 1)
        if (deeper == level).all():
            break
        level = deeper
    position = np.empty(count, dtype=np.int64)
    position[np.lexsort((np.arange(count), level, recorded))] = np.arange(count)
    return position


def _fitted(graph: WorkGraph) -> WorkGraph:
    """The graph with edges in an order that can be walked once, and weights that give the record.

    An edge that the record contradicts by its order is left out; one that is too long is as long
    as the record allows. What remains before a node is put on the edge that binds it.
    """
    recorded, count = graph.recorded, len(graph.recorded)
    position = _positions(recorded, graph.edges)
    forward = position[graph.edges.source] < position[graph.edges.target]
    edges = graph.edges.take(forward)
    lost = np.ones(count, dtype=np.bool_)
    lost[edges.target] = lost[ORIGIN] = False
    rows = np.flatnonzero(lost)
    rootless = Edges.of(START, np.full(len(rows), ORIGIN), rows, lag=recorded[rows])
    edges = Edges.concatenate([edges, rootless])
    edges = edges.take(np.argsort(position[edges.target], kind="stable"))
    graph = replace(graph, edges=edges, contradicted=int((~forward).sum()))
    weight = graph.weights(graph.lasting, graph.host.increments)
    room = recorded[edges.target] - recorded[edges.source] - weight
    lag = edges.lag + np.minimum(room, 0)
    left = np.maximum(room, 0)
    order = np.lexsort((left, edges.target))
    binds = np.full(count, -1, dtype=np.int64)
    # of several rows for one place the last one stays: the edge with the least left
    binds[edges.target[order[::-1]]] = order[::-1]
    residual = np.zeros(count, dtype=np.int64)
    bound = np.flatnonzero(binds >= 0)
    residual[bound] = left[binds[bound]]
    lag[binds[bound]] += residual[bound]
    return replace(graph, edges=replace(edges, lag=lag), binds=binds, residual=residual)
