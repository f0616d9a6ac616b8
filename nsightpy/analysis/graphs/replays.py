"""Replays of CUDA graphs: from the launch call to the operations of each, and their busy time.

Where nodes were traced (`nsys --cuda-graph-trace=node`, PyTorch's profiler), a graph's operations
share the correlation id of its launch call. Where graphs were traced as a whole there is one
interval for each launch, and what ran inside it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import measure_before, union
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.projection import launched
from nsightpy.frames import Frame, Ints, Labels, distinct

OPERATION_COLUMNS = ("start_ns", "end_ns", "pid", "device", "correlation_id", "graph_node_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")
UNKNOWN = -1
_GRAPH_OF_NODE = 32  # newer versions of CUPTI hold the graph in the upper half of a node's id
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Replays:
    """One row per replay, by launch: times in ns, of the report's own clock.

    `call` is the row of the launching call. From `start_ns` (first) to `end_ns` (last) operations
    ran for `busy_ns`. `chain_ns` is the work of the critical chain: back from the last operation,
    of those that had ended when it began the one that ended last, and so on. `graph` tells graphs
    of a process apart. Traced as a whole (`whole`), `operations`, busy and chain are UNKNOWN.
    """

    call: Ints
    pid: Ints
    device: Ints
    graph: Ints
    start_ns: Ints
    end_ns: Ints
    busy_ns: Ints
    chain_ns: Ints
    operations: Ints
    whole: bool

    def __len__(self) -> int:
        return len(self.call)


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of replays, by replay and start: `rows` of the work, the `replay` of each."""

    rows: NDArray[np.int32]
    replay: Ints


def replays_of_nodes(work: Frame, calls: Frame) -> tuple[Replays, Operations]:
    """The replays whose operations were recorded one by one.

    `work` has OPERATION_COLUMNS and name, `calls` are the graph launches, by start.
    """
    done = launched(work, calls)
    order = np.lexsort((done.call_start,))
    count = np.diff(done.first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    replay = np.repeat(rank, count)
    by_replay = np.lexsort((work.ints("start_ns")[done.rows], replay))
    rows, replay = done.rows[by_replay], replay[by_replay]
    first = np.searchsorted(replay, np.arange(len(order)))
    start, end = work.ints("start_ns")[rows], work.ints("end_ns")[rows]
    call = launch_rows(work.take(rows[first]), calls)
    begin = start[first] if len(first) else start
    last = np.maximum.reduceat(end, first) if len(first) else end
    width = int((last - begin).max(initial=0)) + 2
    busy, chain = (
        _covered(start, end, replay, begin, width),
        _chain(start, end, replay, begin, width),
    )
    replays = Replays(
        call.astype(np.int64),
        work.ints("pid")[rows][first],
        work.ints("device")[rows][first],
        _graph_numbers(work.take(rows), replay, first),
        begin,
        last,
        busy,
        chain,
        count[order],
        whole=False,
    )
    return replays, Operations(rows, replay)


def replays_as_a_whole(launches: Frame, calls: Frame) -> Replays:
    """The replays that were traced as one interval each (frame graph_launches), with their calls.

    `call` is UNKNOWN where the launch call was not recorded.
    """
    launches = launches.take(np.lexsort((launches.ints("end_ns"), launches.ints("start_ns"))))
    call = launch_rows(launches, calls)
    unknown = np.full(launches.rows, UNKNOWN, dtype=np.int64)
    return Replays(
        np.where(call == NO_LAUNCH, UNKNOWN, call),
        launches.ints("pid"),
        launches.ints("device"),
        launches.ints("graph_exec_id"),
        launches.ints("start_ns"),
        launches.ints("end_ns"),
        unknown,
        unknown,
        unknown,
        whole=True,
    )


def _graph_numbers(operations: Frame, replay: Ints, first: Ints) -> Ints:
    """The graph of each replay: as its nodes name it, else 1, 2, ... by what the replays ran."""
    node = operations.ints("graph_node_id")
    named = node[first] >> _GRAPH_OF_NODE
    if len(named) and (named > 0).all():
        return named
    names: Labels = operations.labels("name").merged()
    distinct_nodes = np.where(node > 0, node, names.codes.astype(np.int64) + 1)
    mixed = distinct_nodes.astype(np.uint64) * _MIX
    mixed ^= mixed >> np.uint64(29)
    sums = np.add.reduceat(mixed * _MIX, first) if len(first) else mixed
    _, code = distinct(sums.view(np.int64) ^ operations.ints("pid")[first])
    seen, begun = np.unique(code, return_index=True)
    number = np.empty(len(seen), dtype=np.int64)
    number[np.argsort(begun, kind="stable")] = np.arange(1, len(seen) + 1)
    return number[np.searchsorted(seen, code)]


def _covered(start: Ints, end: Ints, replay: Ints, base: Ints, width: int) -> Ints:
    """For how long any operation of each replay ran."""
    shift = replay * width - base[replay]
    edges = np.arange(len(base) + 1) * width
    return np.diff(measure_before(union(start + shift, end + shift), edges))


def _chain(start: Ints, end: Ints, replay: Ints, base: Ints, width: int) -> Ints:
    """The work on the critical chain of each replay; operations by replay and start."""
    if not len(start):
        return base
    shift = replay * width - base[replay]
    begins, ends = start + shift, np.maximum(end, start + 1) + shift
    by_end = np.argsort(ends, kind="stable")
    place = np.searchsorted(ends[by_end], begins, side="right") - 1
    before = np.where(place >= 0, by_end[np.maximum(place, 0)], UNKNOWN)
    before = np.where((before != UNKNOWN) & (replay[before] == replay), before, UNKNOWN)
    total, after = end - start, before
    while (after != UNKNOWN).any():
        going = np.flatnonzero(after != UNKNOWN)
        total = total.copy()
        total[going] += total[after[going]]
        after = after.copy()
        after[going] = after[after[going]]
    last = by_end[np.searchsorted(ends[by_end], (np.arange(len(base)) + 1) * width) - 1]
    return total[last]
