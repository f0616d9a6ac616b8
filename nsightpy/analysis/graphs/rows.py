"""Rows of a table of CUDA graphs: by graph, by replay, by node; each with its process."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nsightpy.analysis.graphs.replays import UNKNOWN, Operations, Replays
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.operators.modules import path_around
from nsightpy.analysis.tally import tally
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.results import Row, Value


def launch_ns(replays: Replays, calls: Frame) -> Ints:
    """The length of each replay's launch call; UNKNOWN where none was recorded."""
    if not calls.rows:
        return np.full(len(replays), UNKNOWN, dtype=np.int64)
    lengths = calls.ints("end_ns") - calls.ints("start_ns")
    return np.where(replays.call == UNKNOWN, UNKNOWN, lengths[np.maximum(replays.call, 0)])


def _launched_in(replays: Replays, calls: Frame, ranges: Frame) -> list[str]:
    known = np.flatnonzero(replays.call != UNKNOWN)
    opened = path_around(ranges, calls.take(replays.call[known]))
    names = [""] * len(replays)
    for row, code in zip(known.tolist(), opened.codes.tolist(), strict=True):
        names[row] = opened.values[code]
    return names


def _gaps(replays: Replays) -> Ints:
    return replays.end_ns - replays.start_ns - replays.busy_ns


def by_replay(replays: Replays, calls: Frame, ranges: Frame) -> list[tuple[int, Row]]:
    launch = launch_ns(replays, calls).tolist()
    inside = _launched_in(replays, calls, ranges)
    rows: list[tuple[int, Row]] = []
    for place, pid in enumerate(replays.pid.tolist()):
        detail: tuple[Value, ...] = (None,) * 4
        if not replays.whole:
            figures = (replays.operations, replays.busy_ns, _gaps(replays), replays.chain_ns)
            detail = tuple(int(figure[place]) for figure in figures)
        start, end = int(replays.start_ns[place]), int(replays.end_ns[place])
        rows.append(
            (
                pid,
                (
                    int(replays.device[place]),
                    int(replays.graph[place]),
                    place + 1,
                    start,
                    end - start,
                    None if launch[place] == UNKNOWN else launch[place],
                    *detail,
                    inside[place],
                ),
            )
        )
    return rows


def by_graph(replays: Replays, calls: Frame, ranges: Frame) -> list[tuple[int, Row]]:
    if not len(replays):
        return []
    launch, inside = launch_ns(replays, calls), _launched_in(replays, calls, ranges)
    placed = {"pid": replays.pid, "device": replays.device, "graph": replays.graph}
    groups = group_by(Frame(placed), tuple(placed))
    lasted = replays.end_ns - replays.start_ns
    rows: list[tuple[int, Row]] = []
    for code, (pid, device, graph) in enumerate(groups.keys):
        mine = np.flatnonzero(groups.codes == code)
        made = launch[mine][launch[mine] != UNKNOWN]
        detail: list[Value] = [None] * 4
        if not replays.whole:
            figures = (replays.operations, replays.busy_ns, _gaps(replays), replays.chain_ns)
            detail = [float(np.median(figure[mine])) for figure in figures]
            detail[0] = round(float(detail[0] or 0))
        times = lasted[mine]
        rows.append(
            (
                int(pid or 0),
                (
                    device,
                    graph,
                    "as a whole" if replays.whole else "nodes",
                    len(mine),
                    detail[0],
                    float(np.median(made)) if len(made) else None,
                    float(np.median(times)),
                    int(times.min()),
                    int(times.max()),
                    *detail[1:],
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
