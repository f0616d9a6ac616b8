"""graphs: CUDA graphs by replay and by node, and what their launches cost."""

from functools import partial
from typing import Annotated, TypeAlias

from nsightpy.analysis.graphs.replays import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    by_graph,
    by_node,
    by_replay,
    created_in,
    replays_as_a_whole,
    replays_of_nodes,
)
from nsightpy.analysis.launches import GRAPH_LAUNCH
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.operators.device_time import range_calls
from nsightpy.frames import Frame
from nsightpy.query import Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.results import Field, Note, Row, Table, fields_in
from nsightpy.results.keys import KERNEL, row_keys
from nsightpy.units import counted

_PLACED = (
    Field("rank", "id", importance=16),
    Field("device", "id", importance=17),
    Field("graph", "id", importance=1),
)
FIELDS = {
    "graph": (
        *_PLACED,
        Field("traced", "text", own=True),
        Field("replays", importance=5),
        Field("operations", importance=15),
        Field("launch_med_ns", "time", 1, importance=13),
        Field("replay_med_ns", "time", 1, importance=6),
        *fields_in("time", "replay_min_ns", "replay_max_ns"),
        Field("busy_med_ns", "time", 1, importance=12),
        Field("gap_med_ns", "time", 1, importance=10),
        Field("chain_med_ns", "time", 1),
        Field("total_ns", "time", importance=9),
        Field("launched_in", "text"),
    ),
    "replay": (
        *_PLACED,
        Field("replay", "id", importance=4),
        Field("start_ns", "moment"),
        Field("duration_ns", "time", importance=7),
        Field("launch_ns", "time"),
        Field("operations", importance=15),
        Field("busy_ns", "time"),
        Field("gap_ns", "time", importance=11),
        Field("chain_ns", "time"),
        Field("launched_in", "text"),
    ),
    "node": (
        *_PLACED,
        Field("node", "id", importance=3),
        Field("name", "name", importance=2),
        Field("instances", heading="count", importance=8),
        Field("total_ns", "time", importance=9),
        *fields_in("time", "avg_ns", "med_ns", decimals=1),
        *fields_in("time", "min_ns", "max_ns"),
        Field("share_of_graph", "share", 4, heading="of graph %", importance=14),
        Field("created_in", "text"),
    ),
}
_WORK = {"kernels": "name", "memory_operations": "operation"}


# Rows by process; launches of graphs traced as a whole.
_Part: TypeAlias = tuple[list[tuple[int, Row]], int]


@command(layouts=tuple(FIELDS.values()), keys=row_keys(KERNEL, "name"))
def graphs(
    *,
    by: Annotated[
        str, Option("Rows of each graph, of each replay or of each node.", choices=tuple(FIELDS))
    ] = "graph",
) -> Question[Table]:
    """A replay lasts from its first operation's start to its last one's end; busy: for how long any
    ran, gap: the rest. chain: the work on the critical chain, back from the last operation, of
    those that had ended when it began the one that ended last. launch: the call. launched_in and
    created_in are the code ranges open at launch and at the node's creation. Where graphs were
    traced as a whole, operations, busy, gap and chain are not known.
    """

    def made(parts: Parts[_Part]) -> Table:
        rows: list[Row] = []
        for report, (own, _) in parts.results:
            for pid, figures in own:
                row = (report.rank_of(pid)[0], *figures)
                if by == "replay":
                    at = parts.clock.moment(str(report.path), pid, int(row[4] or 0))
                    row = (*row[:4], at, *row[5:])
                rows.append(row)
        if by == "replay":
            rows.sort(key=lambda row: (int(row[4] or 0), str(row[0]), str(row[1])))
        else:
            total = [field.name for field in FIELDS[by]].index("total_ns")
            rows.sort(key=lambda row: (-int(row[total] or 0), tuple(map(str, row))))
        whole = sum(launches for _, launches in parts.values)
        notes: tuple[Note, ...] = ()
        if whole and by == "node":
            reason = f"{counted(whole, 'replay')} traced as a whole are in no row."
            notes = (Note(reason, "`nsys profile --cuda-graph-trace=node` shows their nodes."),)
        return Table("graphs", FIELDS[by], tuple(rows), notes=notes)

    work = partial(_graphs, by=by)
    return Question(work, made, identified=True, clock=by == "replay")


def _graphs(report: SystemReport, scope: Scope, *, by: str) -> _Part:
    calls = report.frame("api_calls", CALL_COLUMNS)
    launching = calls.take(calls.labels("name").where(lambda name: GRAPH_LAUNCH in name))
    read = partial(scope.read, report)
    parts = ((read(name, (*OPERATION_COLUMNS, label)), label) for name, label in _WORK.items())
    work = Frame.concatenate(
        [Frame({**frame.select(OPERATION_COLUMNS), "name": frame[label]}) for frame, label in parts]
    )
    launches = read("graph_launches", (*OPERATION_COLUMNS[:-1], "graph_exec_id"))
    ranges = range_calls(report.frame("nvtx_ranges", RANGE_COLUMNS))
    nodes, operations, replay = replays_of_nodes(work, launching, ranges)
    whole = replays_as_a_whole(launches, launching, ranges)
    if by == "node":
        ran = work.take(operations)
        created = created_in(ran, report.frame("graph_nodes"), ranges)
        rows = [*by_node(ran, replay, nodes, created)]
    else:
        shown = by_graph if by == "graph" else by_replay
        rows = [*shown(nodes, "nodes"), *shown(whole, "as a whole")]
    return rows, whole.rows
