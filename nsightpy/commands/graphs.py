"""graphs: CUDA graphs by replay and by node, and what their launches cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.graphs.capture import created_in
from nsightpy.analysis.graphs.replays import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    replays_as_a_whole,
    replays_of_nodes,
)
from nsightpy.analysis.graphs.rows import by_graph, by_node, by_replay, launch_ns
from nsightpy.analysis.launches import graph_calls, launch_lengths
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.operators.modules import range_calls
from nsightpy.errors import require_choice
from nsightpy.frames import Frame
from nsightpy.query.common_clock import common_clock
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Abstention, Field, Row, Table, fields_in
from nsightpy.units import counted, format_time

_PLACED = (Field("rank", "id"), Field("device", "id"), Field("graph", "id"))
FIELDS = {
    "graph": (
        *_PLACED,
        Field("traced", "text", own=True),
        Field("replays"),
        Field("operations"),
        Field("launch_med_ns", "ns", 1),
        Field("replay_med_ns", "ns", 1),
        Field("replay_min_ns", "ns"),
        Field("replay_max_ns", "ns"),
        *fields_in("ns", "busy_med_ns", "gap_med_ns", "chain_med_ns", decimals=1),
        Field("total_ns", "ns"),
        Field("launched_in", "text"),
    ),
    "replay": (
        *_PLACED,
        Field("replay", "id"),
        *fields_in("ns", "start_ns", "duration_ns", "launch_ns"),
        Field("operations"),
        *fields_in("ns", "busy_ns", "gap_ns", "chain_ns"),
        Field("launched_in", "text"),
    ),
    "node": (
        *_PLACED,
        Field("node", "id"),
        Field("name", "text"),
        Field("instances"),
        Field("total_ns", "ns"),
        Field("avg_ns", "ns", 1),
        Field("med_ns", "ns", 1),
        Field("min_ns", "ns"),
        Field("max_ns", "ns"),
        Field("share_of_graph", "ratio", 4),
        Field("created_in", "text"),
    ),
}
LAYOUTS = tuple(FIELDS.values())
_WORK = {"kernels": "name", "memory_operations": "operation"}


@dataclass(frozen=True)
class _Part:
    """What one report contributes: rows by process; call time per operation, in graphs and not."""

    rows: list[tuple[int, Row]]
    in_graphs: tuple[int, int] = (0, 0)  # ns of calls, operations
    eager_ns: float | None = None
    whole: int = 0


@command_function
def graphs(
    reports: Paths, *, by: str = "graph", top: int | None = None, **common: Unpack[Common]
) -> Table:
    """CUDA graphs by the time of their replays; `by` replay or node: a row for each of those; ns.

    A replay lasts from its first operation's start to its last one's end; busy: for how long any
    ran, gap: the rest. chain: the work on the critical chain, back from the last operation, of
    those that had ended when it began the one that ended last. launch: the call. launched_in and
    created_in are the code ranges open at launch and at the node's creation. Where graphs were
    traced as a whole, operations, busy, gap and chain are not known.
    """
    require_choice("split", by, FIELDS)
    request = Request.of(reports, **common)
    results = request.map(partial(_graphs, by=by, scope=request.scope), ranked=True).results
    parts = [part for _, part in results]
    rows = [row for part in parts for _, row in part.rows]
    if by == "replay":
        clock = common_clock(request.ranks)
        rows = [
            (*row[:4], clock.moment(str(report.path), pid, int(row[4] or 0)), *row[5:])
            for report, part in results
            for pid, row in part.rows
        ]
        rows.sort(key=lambda row: (int(row[4] or 0), str(row[0]), str(row[1])))
    else:
        total = [field.name for field in FIELDS[by]].index("total_ns")
        rows.sort(key=lambda row: (-int(row[total] or 0), tuple(map(str, row))))
    return request.finish(Table("graphs", FIELDS[by], tuple(rows)).first(top), *_notes(parts, by))


def _graphs(report: SystemReport, *, by: str, scope: Scope) -> _Part:
    calls = report.frame("api_calls", CALL_COLUMNS)
    launching = graph_calls(calls)
    narrowed = {name: _narrowed(report, scope, name) for name in (*_WORK, "graph_launches")}
    work = Frame.concatenate([narrowed[name] for name in _WORK])
    nodes, operations = replays_of_nodes(work, launching)
    whole = replays_as_a_whole(narrowed["graph_launches"], launching)
    ranges = range_calls(report.frame("nvtx_ranges", RANGE_COLUMNS))
    if by == "node":
        created = created_in(work, report.frame("graph_nodes"), ranges)
        rows = by_node(work, nodes, operations, created)
    else:
        shown = by_graph if by == "graph" else by_replay
        rows = [*shown(nodes, launching, ranges), *shown(whole, launching, ranges)]
    eager = np.ones(work.rows, dtype=np.bool_)
    eager[operations.rows] = False
    lengths = launch_lengths(work.take(eager), calls)
    return _Part(
        [(pid, (report.rank_of(pid)[0], *row)) for pid, row in rows],
        (int(launch_ns(nodes, launching).sum()), len(operations.rows)),
        float(np.median(lengths[lengths > 0])) if (lengths > 0).any() else None,
        len(whole),
    )


def _narrowed(report: SystemReport, scope: Scope, name: str) -> Frame:
    if name == "graph_launches":
        columns = (*OPERATION_COLUMNS[:-1], "graph_exec_id")
        return scope.narrow(report, report.frame(name, columns))
    frame = scope.narrow(report, report.frame(name, (*OPERATION_COLUMNS, _WORK[name])))
    return Frame({**frame.select(OPERATION_COLUMNS), "name": frame[_WORK[name]]})


def _notes(parts: Sequence[_Part], by: str) -> list[str]:
    notes: list[str] = []
    calls, operations = (sum(part.in_graphs[place] for part in parts) for place in (0, 1))
    eager = [part.eager_ns for part in parts if part.eager_ns is not None]
    if operations:
        text = f"A launch call takes {format_time(calls / operations)} per operation in graphs"
        other = (
            f", {format_time(float(np.median(eager)))} (median) outside of them" if eager else ""
        )
        notes.append(f"{text}{other}.")
    whole = sum(part.whole for part in parts)
    if whole and by == "node":
        reason = f"{counted(whole, 'replay')} traced as a whole are in no row."
        notes.append(
            Abstention(reason, "`nsys profile --cuda-graph-trace=node` shows their nodes.")
        )
    return notes
