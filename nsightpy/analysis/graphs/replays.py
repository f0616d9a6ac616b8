"""Replays of CUDA graphs: from the launch call to the operations of each, by graph and by node.

Where nodes were traced (`nsys --cuda-graph-trace=node`, PyTorch's profiler), a graph's operations
share the correlation id of its launch call. Where graphs were traced as a whole there is one
interval for each launch, and what ran inside it is not known.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from nsightpy.analysis.grouping import group_by, labelled, rows_of_groups
from nsightpy.analysis.intervals import measure_before, union
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows, matched
from nsightpy.analysis.nvtx.projection import launched
from nsightpy.analysis.operators.device_time import NONE, path_around
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.tally import tally
from nsightpy.frames import Frame, Ints, Labels, constant
from nsightpy.results import Row, Value

OPERATION_COLUMNS = ("start_ns", "end_ns", "pid", "device", "correlation_id", "graph_node_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")
UNKNOWN = NO_LAUNCH
_GRAPH_OF_NODE = 32  # newer versions of CUPTI hold the graph in the upper half of a node's id
# A node is cloned when its graph is instantiated, or put into another graph: seldom more often.
_MOST_CLONES = 8


def _replays(call: Ints, calls: Frame, ranges: Frame, **columns: Ints) -> Frame:
    """A row per replay: times in ns of the report's own clock; UNKNOWN (-1) for what is not known.

    `call` is the row of the launching call. From `start_ns` (first) to `end_ns` (last) operations
    ran for `busy_ns`; `gap_ns` is the rest. `chain_ns` is the work of the critical chain: back from
    the last operation, of those that had ended when it began the one that ended last, and so on.
    `graph` tells graphs of a process apart.
    """
    lasted, busy = columns["end_ns"] - columns["start_ns"], columns["busy_ns"]
    return Frame(
        {
            **columns,
            "duration_ns": lasted,
            "gap_ns": np.where(busy == UNKNOWN, UNKNOWN, lasted - busy),
            "launch_ns": np.append(durations(calls), UNKNOWN)[call],
            "launched_in": labelled(path_around(ranges, calls), call),
        }
    )


def replays_of_nodes(work: Frame, calls: Frame, ranges: Frame) -> tuple[Frame, Ints, Ints]:
    """The replays whose operations were recorded one by one, by launch; and these operations.

    `work` has OPERATION_COLUMNS and name, `calls` are the graph launches, by start. Of operations,
    by replay and start, the rows of the work and of the replays.
    """
    of_calls = launched(work, calls)
    order = np.argsort(of_calls.call_start, kind="stable")
    count = np.diff(of_calls.first)
    replay = np.repeat(np.argsort(order), count)
    by_replay = np.lexsort((work.ints("start_ns")[of_calls.rows], replay))
    rows, replay = of_calls.rows[by_replay], replay[by_replay]
    first = np.searchsorted(replay, np.arange(len(order)))
    start, end = work.ints("start_ns")[rows], work.ints("end_ns")[rows]
    begin, last = start[first], np.maximum.reduceat(end, first)
    # replays one after the other on one axis
    width = int((last - begin).max(initial=0)) + 2
    shift, edges = replay * width - begin[replay], np.arange(len(begin) + 1) * width
    replays = _replays(
        launch_rows(work.take(rows[first]), calls).astype(np.int64),
        calls,
        ranges,
        pid=work.ints("pid")[rows][first],
        device=work.ints("device")[rows][first],
        graph=_graph_numbers(work.take(rows), replay, first),
        start_ns=begin,
        end_ns=last,
        busy_ns=np.diff(measure_before(union(start + shift, end + shift), edges)),
        chain_ns=_chain(start + shift, end + shift, replay, edges[1:]),
        operations=count[order],
    )
    return replays, rows.astype(np.int64), replay


def replays_as_a_whole(launches: Frame, calls: Frame, ranges: Frame) -> Frame:
    """The replays that were traced as one interval each (frame graph_launches)."""
    launches = launches.take(np.lexsort((launches.ints("end_ns"), launches.ints("start_ns"))))
    placed = {name: launches.ints(name) for name in ("pid", "device", "start_ns", "end_ns")}
    inside = ("busy_ns", "chain_ns", "operations")
    return _replays(
        launch_rows(launches, calls).astype(np.int64),
        calls,
        ranges,
        graph=launches.ints("graph_exec_id"),
        **placed,
        **dict.fromkeys(inside, constant(UNKNOWN, launches.rows)),
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


def by_replay(replays: Frame, _: str) -> Iterator[tuple[int, Row]]:
    """A row for each replay, behind its process."""
    placed = replays.tuples("pid", "device", "graph", "start_ns", "duration_ns", "launched_in")
    figures = replays.tuples("launch_ns", "operations", "busy_ns", "gap_ns", "chain_ns")
    rows = zip(placed, figures, strict=True)
    for number, ((pid, device, graph, *times, inside), about) in enumerate(rows, 1):
        known = (None if value == UNKNOWN else value for value in about)
        yield pid, (device, graph, number, *times, *known, inside)


def by_graph(replays: Frame, traced: str) -> Iterator[tuple[int, Row]]:
    """A row for each graph of a process on a device, behind the process."""
    groups = group_by(replays, ("pid", "device", "graph"))
    by_group = rows_of_groups(groups.codes, len(groups.keys))
    for (pid, *placed), rows in zip(groups.keys, by_group, strict=True):
        own = replays.take(rows)
        lasted, operations = own.ints("duration_ns"), _median(own.ints("operations"))
        row = (
            *placed,
            traced,
            own.rows,
            None if operations is None else round(operations),
            _median(own.ints("launch_ns")),
            _median(lasted),
            int(lasted.min()),
            int(lasted.max()),
            *(_median(own.ints(name)) for name in ("busy_ns", "gap_ns", "chain_ns")),
            int(lasted.sum()),
            Counter(own.labels("launched_in")).most_common(1)[0][0],
        )
        yield int(pid or 0), row


def _median(values: Ints) -> float | None:
    """The median of what is known; None where nothing is."""
    known = values[values != UNKNOWN]
    return float(np.median(known)) if len(known) else None


def by_node(ran: Frame, replay: Ints, replays: Frame, created: Labels) -> Iterator[tuple[int, Row]]:
    """A row for each node that ran; where nodes have no ids, for each place in the replay.

    `ran` are the operations, of which `replay` is the row of each one's replay, and `created` says
    where its node was.
    """
    ids = ran.ints("graph_node_id")
    first = np.searchsorted(replay, np.arange(replays.rows))
    position = np.arange(len(ids)) - first[replay] + 1
    by = Frame(
        {
            "pid": ran["pid"],
            "device": ran["device"],
            "graph": replays.ints("graph")[replay],
            "node": np.where(ids > 0, ids, position),
            "name": ran.labels("name").merged(),
            "created": created,
        }
    )
    groups = group_by(by, tuple(by))
    figures = ("instances", "total", "mean", "median", "minimum", "maximum")
    nodes = tally(groups.codes, durations(ran), groups.keys).statistics().rows(*figures)
    whole: Counter[tuple[Value, ...]] = Counter()
    for *key, _, total, _, _, _, _ in nodes:
        whole[tuple(key[:3])] += total
    for pid, device, graph, node, name, made_in, *row in nodes:
        of_graph = whole[pid, device, graph]
        share = row[1] / of_graph if of_graph else None
        yield pid, (device, graph, node, name, *row, share, made_in)


def created_in(work: Frame, nodes: Frame, ranges: Frame) -> Labels:
    """For each operation (pid, graph_node_id) the ranges in which its node was created.

    Of a cloned node those of the one that it was cloned from. `nodes` is the frame graph_nodes.
    """
    keys, numbers = (nodes.ints("pid"), nodes.ints("graph_node_id")), np.arange(nodes.rows)
    origin = numbers
    for _ in range(_MOST_CLONES):
        original = (keys[0][origin], nodes.ints("original_node_id")[origin])
        above = matched(keys, numbers, original, NONE)
        origin = np.where(above == NONE, origin, above)
    rows = matched(keys, numbers, (work.ints("pid"), work.ints("graph_node_id")), NONE)
    return labelled(path_around(ranges, nodes.take(origin)), rows)
