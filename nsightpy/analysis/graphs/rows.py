"""Rows of a table of CUDA graphs: by graph, by replay, by node; each with its process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from nsightpy.analysis.graphs.replays import UNKNOWN, Operations, Replays
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.launches import matched
from nsightpy.analysis.operators.device_time import NONE, path_around
from nsightpy.analysis.tally import tally
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.results import Row, Value

# A node is cloned when its graph is instantiated, or put into another graph: seldom more often.
_MOST_CLONES = 8


def launch_ns(replays: Replays, calls: Frame) -> Ints:
    """The length of each replay's launch call; UNKNOWN where none was recorded."""
    if not calls.rows:
        return np.full(len(replays), UNKNOWN, dtype=np.int64)
    lengths = calls.ints("end_ns") - calls.ints("start_ns")
    return np.where(replays.call == UNKNOWN, UNKNOWN, lengths[np.maximum(replays.call, 0)])


def _launched_in(replays: Replays, calls: Frame, ranges: Frame) -> list[str]:
    known = np.flatnonzero(replays.call != UNKNOWN)
    opened = path_around(ranges, calls.take(replays.call[known]))
    names = dict(zip(known.tolist(), opened, strict=True))
    return [names.get(row, "") for row in range(len(replays))]


def _figures(replays: Replays) -> tuple[Ints, ...]:
    """Operations, busy time, gaps and critical chain of each replay; none of whole graphs."""
    gaps = replays.end_ns - replays.start_ns - replays.busy_ns
    return () if replays.whole else (replays.operations, replays.busy_ns, gaps, replays.chain_ns)


def by_replay(replays: Replays, calls: Frame, ranges: Frame) -> list[tuple[int, Row]]:
    nothing = [None] * len(replays)
    launch = [None if ns == UNKNOWN else ns for ns in launch_ns(replays, calls).tolist()]
    columns: tuple[Iterable[Value], ...] = (
        replays.device.tolist(),
        replays.graph.tolist(),
        range(1, len(replays) + 1),
        replays.start_ns.tolist(),
        (replays.end_ns - replays.start_ns).tolist(),
        launch,
        *([figure.tolist() for figure in _figures(replays)] or [nothing] * 4),
        _launched_in(replays, calls, ranges),
    )
    return list(zip(replays.pid.tolist(), zip(*columns, strict=True), strict=True))


def by_graph(replays: Replays, calls: Frame, ranges: Frame) -> list[tuple[int, Row]]:
    if not len(replays):
        return []
    launch, inside = launch_ns(replays, calls), _launched_in(replays, calls, ranges)
    placed = {"pid": replays.pid, "device": replays.device, "graph": replays.graph}
    groups = group_by(Frame(placed), tuple(placed))
    lasted, figures = replays.end_ns - replays.start_ns, _figures(replays)
    rows: list[tuple[int, Row]] = []
    for code, (pid, device, graph) in enumerate(groups.keys):
        mine = np.flatnonzero(groups.codes == code)
        made = launch[mine][launch[mine] != UNKNOWN]
        medians: list[float | None] = [float(np.median(figure[mine])) for figure in figures]
        operations, *detail = medians or [None] * 4
        times = lasted[mine]
        rows.append(
            (
                int(pid or 0),
                (
                    device,
                    graph,
                    "as a whole" if replays.whole else "nodes",
                    len(mine),
                    None if operations is None else round(operations),
                    float(np.median(made)) if len(made) else None,
                    float(np.median(times)),
                    int(times.min()),
                    int(times.max()),
                    *detail,
                    int(times.sum()),
                    Counter(inside[place] for place in mine.tolist()).most_common(1)[0][0],
                ),
            )
        )
    return rows


def by_node(
    work: Frame, replays: Replays, operations: Operations, created: Labels
) -> list[tuple[int, Row]]:
    """A row for each node that ran; where nodes have no ids, for each place in the replay.

    `created` says for each operation of the work where its node was created.
    """
    if not len(replays):
        return []
    ran = work.take(operations.rows)
    ids = ran.ints("graph_node_id")
    first = np.searchsorted(operations.replay, np.arange(len(replays)))
    place = np.arange(len(ids)) - first[operations.replay] + 1
    by = Frame(
        {
            "pid": ran["pid"],
            "device": ran["device"],
            "graph": replays.graph[operations.replay],
            "node": np.where(ids > 0, ids, place),
            "name": ran.labels("name").merged(),
            "created": created.take(operations.rows),
        }
    )
    groups = group_by(by, tuple(by))
    statistics = tally(groups.codes, ran.ints("end_ns") - ran.ints("start_ns"), groups.keys)
    totals = statistics.statistics()
    whole: dict[tuple[Value, ...], int] = {}
    for key, total in zip(totals.keys, totals.total.tolist(), strict=True):
        whole[key[:3]] = whole.get(key[:3], 0) + total
    rows: list[tuple[int, Row]] = []
    for at, key in enumerate(totals.keys):
        pid, device, graph, node, name, made_in = key
        total = int(totals.total[at])
        figures = (
            int(totals.instances[at]),
            total,
            float(totals.mean[at]),
            float(totals.median[at]),
            int(totals.minimum[at]),
            int(totals.maximum[at]),
            total / whole[key[:3]] if whole[key[:3]] else None,
        )
        rows.append((int(pid or 0), (device, graph, node, name, *figures, made_in)))
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
