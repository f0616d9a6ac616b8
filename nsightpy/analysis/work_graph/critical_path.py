"""The critical path: what the end of each block follows from, back to where it began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.work_graph.edges import LAUNCH, ORIGIN, START
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.host_chain import changes
from nsightpy.analysis.work_graph.replay import NEVER
from nsightpy.frames import Ints

SHARES = ("compute", "transfer", "host", "copies", "wait", "unexplained")
(ON_DEVICE, IN_TRANSFER, ON_HOST, IN_COPIES, WAITS, UNEXPLAINED) = range(len(SHARES))
_SHARE_OF_KIND = (ON_DEVICE, IN_TRANSFER, IN_COPIES, IN_COPIES, ON_DEVICE)


@dataclass(frozen=True)
class CriticalPath:
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
            nodes, operations = graph.nodes.end_of(marker[at : at + 1])
            node, lasting = int(nodes[0]), int(operations[0])
        path, begin = [], int(begins[block])
        while node != ORIGIN and recorded[node] > begin:
            path.append(binds[node])
            node = source[binds[node]]
        paths.append(_divided(graph, np.asarray(path[::-1], dtype=np.int64), begin, lasting))
    columns = (
        [getattr(path, name) for path in paths] for name in CriticalPath.__dataclass_fields__
    )
    return CriticalPath(*(np.concatenate(column) for column in columns)) if paths else NO_PATH


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
    for share, time in enumerate(times[0].tolist()):
        cut = max(min(early, time), 0)
        times[0, share] -= cut
        early -= cut
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
