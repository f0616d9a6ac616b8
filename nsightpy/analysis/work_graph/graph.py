"""The graph of the work of all ranks, and what it says when its weights are changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.edges import (
    DEVICE,
    LAUNCH,
    ORIGIN,
    START,
    Edges,
    Host,
    Nodes,
    host_of,
    typical,
)
from nsightpy.analysis.work_graph.host_chain import changes
from nsightpy.analysis.work_graph.job_work import JobWork
from nsightpy.analysis.work_graph.launched_work import Mask
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

    work: JobWork
    nodes: Nodes
    host: Host
    edges: Edges
    recorded: Ints
    lasting: Ints
    binds: Ints
    residual: Ints

    @classmethod
    def of(cls, work: JobWork) -> WorkGraph:
        """The graph of work that is on one clock."""
        nodes = Nodes(work)
        host, into_host, host_times = host_of(work, nodes)
        recorded = np.concatenate([[0], work.start, nodes.met, host_times]).astype(np.int64)
        lasting, stay = work.end - work.start, nodes.members[nodes.waits]
        lasting[stay] = work.end[stay] - nodes.met[nodes.meeting[: len(nodes.members)][nodes.waits]]
        arrived, launched = _launches(work, host)
        edges = Edges.concatenate([into_host, launched, *_on_device(work, nodes, arrived)])
        graph = cls(work, nodes, host, edges, recorded, lasting, recorded, recorded)
        missing = _inferred(_fitted(graph))
        return _fitted(replace(graph, edges=Edges.concatenate([edges, missing])))

    def weights(self, lasting: Ints, increments: Ints) -> Ints:
        """The weight of each edge for durations of operations and increments of the host, in ns."""
        edges = self.edges
        lasted = np.where(edges.lasting >= 0, np.append(lasting, 0)[edges.lasting], 0)
        return edges.lag + self.host.way(increments, edges) + lasted


def _launches(work: JobWork, host: Host) -> tuple[Ints, Edges]:
    """From a launching call to its operation, after the usual latency of its kind; when that was.

    From the end of the call, or from its begin where the operation began within it. Usual is what
    was seen where the stream was empty.
    """
    rows, previous, chain = np.flatnonzero(work.launched_by >= 0), work.previous, work.chain
    call = work.launched_by[rows].astype(np.int64)
    after = work.start[rows] >= chain.end[call]
    since = np.where(after, chain.end[call], chain.start[call])
    late = work.start[rows] - since
    producer, consumer = work.events
    free = np.where(previous >= 0, work.end[previous], NO_TIME)
    np.maximum.at(free, consumer, work.end[producer])
    # what came before the first operation of a stream is not known
    idle = (since > free[rows]) & (previous[rows] >= 0)
    # nor whether one that began with another's end waited for it
    before, soon = _ended_before(work, rows)
    idle &= ~soon | (work.end[before] <= since)
    # a kind that never met an empty stream is as fast as any
    least = np.full(len(rows), late[idle].min() if idle.any() else 0)
    group = (chain.labels.codes[call].astype(np.int64) * 8 + work.kind[rows]) * 2 + after
    lag = np.minimum(typical(late, group, idle, least), late)
    # what a call took before its operation began is the call's own
    lag = np.where(idle & ~after, late, lag)
    arrived = np.full(len(work), np.iinfo(np.int64).max)
    arrived[rows] = since + lag
    at = 2 * call + after
    return arrived, host.edges(LAUNCH, at, at, rows + 1, lag=lag)


def _on_device(work: JobWork, nodes: Nodes, arrived: Ints) -> list[Edges]:
    """From the operation before on the stream, from what a stream waits for, and to meetings.

    `arrived` is when the launch of each operation had. In a collective all are there, and then the
    data moves to the end on each rank.
    """
    rows = np.flatnonzero(work.previous >= 0)
    previous, (producer, consumer) = work.previous[rows].astype(np.int64), work.events
    free = work.end[previous]
    late = work.start[rows] - free
    waits = np.zeros(len(work), dtype=np.bool_)
    waits[consumer] = True
    # what came to an empty stream began when its launch had arrived, not after another's end
    queued = (arrived[rows] <= free) & ~waits[rows]
    # nor is it known of what began with the end of an operation of another stream
    before, soon = _ended_before(work, rows)
    queued &= ~soon | (work.end[before] <= free)
    lag = np.minimum(typical(late, work.unit[rows], queued, np.zeros_like(late)), late)
    forward = work.end[producer] <= work.start[consumer]
    producer, consumer = producer[forward], consumer[forward]
    met = nodes.meetings_at + nodes.meeting[: len(nodes.members)]
    return [
        Edges.of(DEVICE, nodes.ends[previous], rows + 1, lag=lag, lasting=previous),
        Edges.of(DEVICE, nodes.ends[producer], consumer + 1, lasting=producer),
        Edges.of(DEVICE, nodes.members + 1, met),
    ]


def _inferred(graph: WorkGraph) -> Edges:
    """From the end of an operation to one that nothing recorded explains and that began with it.

    Streams without recorded waits, the legacy default stream, and full devices show so.
    """
    work, nodes = graph.work, graph.nodes
    rows = np.flatnonzero(graph.residual[1 : len(work) + 1] > SOON_NS)
    before, soon = _ended_before(work, rows)
    rows, before = rows[soon], before[soon]
    late = work.start[rows] - work.end[before]
    return Edges.of(DEVICE, nodes.ends[before], rows + 1, lag=late, lasting=before)


def _ended_before(work: JobWork, rows: Ints) -> tuple[Ints, Mask]:
    """The last operation of the unit that ended before each one began, and whether right before."""
    order = np.lexsort((work.end, work.unit))
    at = last_before((work.unit[order], work.end[order]), (work.unit[rows], work.start[rows]))
    before = order[at]
    return before, (at >= 0) & (work.start[rows] - work.end[before] <= SOON_NS)


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
    graph = replace(graph, edges=edges)
    weight = graph.weights(graph.lasting, graph.host.increments)
    room = recorded[edges.target] - recorded[edges.source] - weight
    lag = edges.lag + np.minimum(room, 0)
    left = np.maximum(room, 0)
    order = np.lexsort((left, edges.target))
    first = order[changes(edges.target[order])]
    binds, residual = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    binds[edges.target[first]], residual[edges.target[first]] = first, left[first]
    lag[first] += left[first]
    return replace(graph, edges=edges._replace(lag=lag), binds=binds, residual=residual)
