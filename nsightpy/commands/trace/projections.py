"""trace --nvtx-ranges: NVTX ranges by projected start (nsys stats nvtx_gpu_proj_trace)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.nvtx.nesting import MOST_LISTED, PUSH_POP, ROOT, Nesting, nest
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    Projection,
    launched,
    project,
)
from nsightpy.commands.trace.cells import Place, listed, rows_of, texts
from nsightpy.errors import TooMuchError
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Value

FIELDS = (
    Field("Name", "text"),
    *(
        Field(f"{what} {how} (ns)", "ns")
        for what in ("Projected", "Orig")
        for how in ("Start", "Duration")
    ),
    Field("Style", "text"),
    Field("PID", "id"),
    Field("TID", "id"),
    Field("NumGPUOps"),
    Field("Lvl", "id"),
    Field("NumChild"),
    Field("RangeId", "id"),
    Field("ParentId", "id"),
    Field("RangeStack", "text"),
)
_BATCH = 1 << 16


def listing(place: Place, scope: Scope, _: str = "") -> Iterator[Row]:
    """The rows of a report: ranges that end on their thread and launched something."""
    report = place.report
    ranges, projected, nesting, children = projected_ranges(report, scope)
    rows = numbered(report, ranges, scope)
    rows = rows[projected.found[rows]]
    order = rows[np.lexsort((-projected.length[rows], projected.start[rows]))]
    for low in range(0, len(order), _BATCH):
        mine = order[low : low + _BATCH]
        some = ranges.take(mine)
        yield from rows_of(
            [
                range_names(some),
                place.times(some, projected.start[mine]),
                listed(projected.length[mine]),
                place.times(some, some.ints("start_ns")),
                listed(some.ints("end_ns") - some.ints("start_ns")),
                texts(some.labels("style")),
                listed(some.ints("pid")),
                listed(some.ints("tid")),
                listed(projected.high[mine] - projected.low[mine]),
                listed(nesting.level[mine]),
                listed(children[mine]),
                listed(mine + 1),
                [row + 1 if row != ROOT else None for row in nesting.parent[mine].tolist()],
                stacks(mine, nesting.parent),
            ]
        )


def projected_ranges(
    report: SystemReport, scope: Scope
) -> tuple[Frame, Projection, Nesting, NDArray[np.intp]]:
    """The ranges that end on their thread, what they launched in scope, their nesting, children.

    For nsys the innermost range around another is its parent, whatever their domains and styles;
    children are those that launched something.
    """
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(ranges.ints("tid") == ranges.ints("end_tid"))
    parts = [report.frame(f, OPERATION_COLUMNS) for f in ("kernels", "memory_operations")]
    operations = Frame.concatenate([scope.narrow(report, part) for part in parts])
    projected = project(ranges, launched(operations, report.frame("api_calls", CALL_COLUMNS)))
    whole = Labels.constant("", ranges.rows), Labels.constant(PUSH_POP, ranges.rows)
    nesting = nest(Frame({**ranges, "domain": whole[0], "style": whole[1]}))
    above = nesting.parent[np.flatnonzero(projected.found)]
    return ranges, projected, nesting, np.bincount(above[above != ROOT], minlength=ranges.rows)


def numbered(report: SystemReport, ranges: Frame, scope: Scope) -> Ints:
    """The rows of the ranges in scope."""
    numbered = Frame({**ranges, "row": np.arange(ranges.rows, dtype=np.int64)})
    return scope.narrow(report, numbered).ints("row")


def range_names(ranges: Frame) -> list[Value]:
    """domain:name, as nsys writes it."""
    domains, names = ranges.labels("domain"), ranges.labels("name")
    pairs = zip(domains.codes.tolist(), names.codes.tolist(), strict=True)
    return [f"{domains.values[domain]}:{names.values[name]}" for domain, name in pairs]


def stacks(rows: Ints, parent: Ints) -> list[Value]:
    """The ids of each range and of those around it, outermost first: :1:2."""
    ids: list[Value] = []
    for row in rows.tolist():
        stack = [row + 1]
        while (row := int(parent[row])) != ROOT:
            stack.append(row + 1)
        if len(stack) > MOST_LISTED:
            raise TooMuchError(f"nests ranges more than {MOST_LISTED:,} deep: too many to list")
        ids.append("".join(f":{range_id}" for range_id in reversed(stack)))
    return ids
