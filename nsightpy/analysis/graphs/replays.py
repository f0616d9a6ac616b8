"""Replays of CUDA graphs: from the launch call to the operations of each, by graph and by node.

Where nodes were traced (`nsys --cuda-graph-trace=node`, PyTorch's profiler), a graph's operations
share the correlation id of its launch call. Where graphs were traced as a whole there is one
interval for each launch, and what ran inside it is not known.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by, rows_of_groups
from nsightpy.analysis.intervals import measure_before, union
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows, matched
from nsightpy.analysis.nvtx.projection import launched
from nsightpy.analysis.operators.device_time import NONE, path_around
from nsightpy.analysis.tally import tally
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.results import Row, Value

OPERATION_COLUMNS = ("start_ns", "end_ns", "pid", "device", "correlation_id", "graph_node_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")
UNKNOWN = NO_LAUNCH
_GRAPH_OF_NODE = 32  # newer versions of CUPTI hold the graph in the upper half of a node's id
# A node is cloned when its graph is instantiated, or put into another graph: seldom more often.
_MOST_CLONES = 8


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

    @property
    def gap_ns(self) -> Ints:
        """For how long nothing ran between the first operation and the last."""
        gaps = self.end_ns - self.start_ns - self.busy_ns
        return np.where(self.busy_ns == UNKNOWN, UNKNOWN, gaps)


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of replays, by replay and start: `rows` of the work, the `replay` of each."""

    rows: NDArray[np.int32]
    replay: Ints


def replays_of_nodes(work: Frame, calls: Frame) -> tuple[Replays, Operations]:
    """The replays whose operations were recorded one by one.

    `work` has OPERATION_COLUMNS and name, `calls` are the graph launches, by start.
    """
    of_calls = launched(work, calls)
    order = np.argsort(of_calls.call_start, kind="stable")
    count = np.diff(of_calls.first)
    replay = np.repeat(np.argsort(order), count)
    by_replay = np.lexsort((work.ints("start_ns")[of_calls.rows], replay))
    rows, replay = of_calls.rows[by_replay], replay[by_replay]
    first = np.searchsorted(replay, np.arange(len(order)))
    start, end = work.ints("start_ns")[rows], work.ints("end_ns")[rows]
    call = launch_rows(work.take(rows[first]), calls)
    begin, last = start[first], np.maximum.reduceat(end, first)
    # replays one after the other on one axis
    width = int((last - begin).max(initial=0)) + 2
    shift, edges = replay * width - begin[replay], np.arange(len(begin) + 1) * width
    busy = np.diff(measure_before(union(start + shift, end + shift), edges))
    chain = _chain(start + shift, end + shift, replay, edges[1:])
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
    unknown = np.full(launches.rows, UNKNOWN, dtype=np.int64)
    return Replays(
        launch_rows(launches, calls).astype(np.int64),
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
    ran = np.where(node > 0, node, names.codes.astype(np.int64) + 1)
    ran = ran[np.lexsort((ran, replay))]
    numbers: dict[tuple[int, bytes], int] = {}
    keys = zip(operations.ints("pid")[first].tolist(), np.split(ran, first[1:]), strict=False)
    found = [numbers.setdefault((pid, own.tobytes()), len(numbers) + 1) for pid, own in keys]
    return np.asarray(found[: len(first)], dtype=np.int64)


def _chain(start: Ints, end: Ints, replay: Ints, edges: Ints) -> Ints:
    """The work on the critical chain of each replay; operations by replay and start.

    The replays follow each other: each is over at its edge.
    """
    if not len(start):
        return edges
    ends = np.maximum(end, start + 1)
    by_end = np.argsort(ends, kind="stable")
    ended_before = np.searchsorted(ends[by_end], start, side="right") - 1
    before = np.where(ended_before >= 0, by_end[np.maximum(ended_before, 0)], UNKNOWN)
    before = np.where((before != UNKNOWN) & (replay[before] == replay), before, UNKNOWN)
    total, after = end - start, before
    while (after != UNKNOWN).any():
        going = np.flatnonzero(after != UNKNOWN)
        total, after = total.copy(), after.copy()
        total[going] += total[after[going]]
        after[going] = after[after[going]]
    return total[by_end[np.searchsorted(ends[by_end], edges) - 1]]


def launch_ns(replays: Replays, calls: Frame) -> Ints:
    """The length of each replay's launch call; UNKNOWN where none was recorded."""
    return np.append(calls.ints("end_ns") - calls.ints("start_ns"), UNKNOWN)[replays.call]


def _launched_in(replays: Replays, calls: Frame, ranges: Frame) -> list[str]:
    texts = [*path_around(ranges, calls), ""]  # the last is that of no call
    return [texts[call] for call in replays.call.tolist()]


def by_replay(replays: Replays, calls: Frame, ranges: Frame) -> list[tuple[int, Row]]:
    """A row for each replay."""
    placed = (replays.device, replays.graph, np.arange(1, len(replays) + 1), replays.start_ns)
    columns = [part.tolist() for part in (*placed, replays.end_ns - replays.start_ns)]
    detail = (replays.operations, replays.busy_ns, replays.gap_ns, replays.chain_ns)
    for figure in (launch_ns(replays, calls), *detail):
        columns.append([None if value == UNKNOWN else value for value in figure.tolist()])
    rows = zip(*columns, _launched_in(replays, calls, ranges), strict=True)
    return list(zip(replays.pid.tolist(), rows, strict=True))


def by_graph(replays: Replays, calls: Frame, ranges: Frame) -> list[tuple[int, Row]]:
    """A row for each graph of a process on a device."""
    launch, inside = launch_ns(replays, calls), _launched_in(replays, calls, ranges)
    placed = {"pid": replays.pid, "device": replays.device, "graph": replays.graph}
    groups = group_by(Frame(placed), tuple(placed))
    lasted = replays.end_ns - replays.start_ns
    rows: list[tuple[int, Row]] = []
    by_group = rows_of_groups(groups.codes, len(groups.keys))
    for (pid, device, graph), own in zip(groups.keys, by_group, strict=True):
        times, operations = lasted[own], _median(replays.operations[own])
        row = (
            device,
            graph,
            "as a whole" if replays.whole else "nodes",
            len(own),
            None if operations is None else round(operations),
            _median(launch[own]),
            _median(times),
            int(times.min()),
            int(times.max()),
            *(_median(ns[own]) for ns in (replays.busy_ns, replays.gap_ns, replays.chain_ns)),
            int(times.sum()),
            Counter(inside[replay] for replay in own.tolist()).most_common(1)[0][0],
        )
        rows.append((int(pid or 0), row))
    return rows


def _median(values: Ints) -> float | None:
    """The median of what is known; None where nothing is."""
    known = values[values != UNKNOWN]
    return float(np.median(known)) if len(known) else None


def by_node(
    work: Frame, replays: Replays, operations: Operations, created: Labels
) -> list[tuple[int, Row]]:
    """A row for each node that ran; where nodes have no ids, for each place in the replay.

    `created` says for each operation of the work where its node was created.
    """
    ran = work.take(operations.rows)
    ids = ran.ints("graph_node_id")
    first = np.searchsorted(operations.replay, np.arange(len(replays)))
    position = np.arange(len(ids)) - first[operations.replay] + 1
    by = Frame(
        {
            "pid": ran["pid"],
            "device": ran["device"],
            "graph": replays.graph[operations.replay],
            "node": np.where(ids > 0, ids, position),
            "name": ran.labels("name").merged(),
            "created": created.take(operations.rows),
        }
    )
    groups = group_by(by, tuple(by))
    lengths = ran.ints("end_ns") - ran.ints("start_ns")
    figures = ("instances", "total", "mean", "median", "minimum", "maximum")
    nodes = tally(groups.codes, lengths, groups.keys).statistics().rows(*figures)
    whole: Counter[tuple[Value, ...]] = Counter()
    for *key, _, total, _, _, _, _ in nodes:
        whole[tuple(key[:3])] += total
    rows: list[tuple[int, Row]] = []
    for pid, device, graph, node, name, made_in, *row in nodes:
        of_graph = whole[pid, device, graph]
        share = row[1] / of_graph if of_graph else None
        rows.append((pid, (device, graph, node, name, *row, share, made_in)))
    return rows


def created_in(work: Frame, nodes: Frame, ranges: Frame) -> Labels:
    """For each operation (pid, graph_node_id) the ranges in which its node was created.

    Of a cloned node those of the one that it was cloned from. `nodes` is the frame graph_nodes.
    """
    if not nodes.rows:
        return Labels.constant("", work.rows)
    keys, numbers = (nodes.ints("pid"), nodes.ints("graph_node_id")), np.arange(nodes.rows)
    origin = numbers
    for _ in range(_MOST_CLONES):
        original = (keys[0][origin], nodes.ints("original_node_id")[origin])
        above = matched(keys, numbers, original, NONE)
        if (above == NONE).all():
            break
        origin = np.where(above == NONE, origin, above)
    rows = matched(keys, numbers, (work.ints("pid"), work.ints("graph_node_id")), NONE)
    at = path_around(ranges, nodes.take(origin))
    codes = np.append(at.codes, NONE)[rows] + 1
    return Labels(codes.astype(np.int32), ("", *at.values)).merged()
