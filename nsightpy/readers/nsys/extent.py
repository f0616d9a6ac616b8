"""Where and when the GPU work of an export was, by queries that carry no rows."""

from __future__ import annotations

from collections.abc import Iterable

from nsightpy.readers.extent import Extent
from nsightpy.readers.limits import GREATEST_TIME
from nsightpy.readers.nsys.columns import column, number, numbered, process_of, whole
from nsightpy.readers.nsys.events import KERNEL, RUNTIME
from nsightpy.readers.nsys.nvtx import NVTX, STYLES
from nsightpy.readers.nsys.tables import GPU_TABLES, NsysExport
from nsightpy.readers.sql import sa

HOST_TABLES = (RUNTIME, NVTX)


def extent_of(export: NsysExport) -> Extent:
    """The extent of an export's GPU work."""
    places: set[tuple[int, int]] = set()
    bounds: list[tuple[int, int]] = []
    for name in GPU_TABLES:
        table = export.file.tables.get(name)
        if table is not None and {"start", "end", "deviceId"} <= set(table.c.keys()):
            held, span = _table_extent(export, table)
            places |= held
            bounds += span
    return Extent(
        tuple(sorted(places)),
        min((start for start, _ in bounds), default=None),
        max((end for _, end in bounds), default=None),
        export.count(KERNEL),
    )


def bounds(export: NsysExport, names: Iterable[str]) -> tuple[int, int] | None:
    """The first start and the last end in some tables."""
    spans: list[tuple[int, int]] = []
    for name in names:
        table = export.file.tables.get(name)
        if table is None or not {"start", "end"} <= set(table.c.keys()):
            continue
        for careful in (False, True):
            start, end = (whole(table, time, careful=careful) for time in ("start", "end"))
            query = sa.select(sa.func.min(start), sa.func.max(end)).where(_possible(table))
            if name == NVTX and "eventType" in table.c:
                query = query.where(table.c.eventType.in_(tuple(STYLES)))
            low, high = export.file.rows(query)[0]
            # texts stand above all numbers: then each value is looked at
            if low is None or high is None or (isinstance(low, int) and isinstance(high, int)):
                break
        if low is not None and high is not None:
            spans.append((int(low), int(high)))
    if not spans:
        return None
    return min(low for low, _ in spans), max(high for _, high in spans)


def _possible(table: sa.TableClause) -> sa.ColumnElement[bool]:
    """Rows whose times can be: the others are in no frame."""
    start, end = (sa.cast(table.c[name], sa.Integer) for name in ("start", "end"))
    return sa.and_(start >= -GREATEST_TIME, end <= GREATEST_TIME, end >= start)


def _table_extent(
    export: NsysExport, table: sa.TableClause
) -> tuple[set[tuple[int, int]], list[tuple[int, int]]]:
    owner = number(table, "pid", process_of("globalPid"), 0)
    device = number(table, "device", column("deviceId"), 0)
    extremes = [
        function(value) for value in (owner, device) for function in (sa.func.min, sa.func.max)
    ]
    start_ns, end_ns = (sa.cast(table.c[name], sa.Integer) for name in ("start", "end"))
    ends = (sa.func.min(start_ns), sa.func.max(end_ns))
    rows = export.file.rows
    query = sa.select(*extremes, *ends).where(_possible(table))
    low_pid, high_pid, low, high, start, end = rows(query)[0]
    if start is None or end is None:
        return set(), []
    alone = (low_pid, low) == (high_pid, high)
    pairs = [(low_pid, low)] if alone else rows(sa.select(owner, device).distinct())
    return {(pid, ordinal) for pid, ordinal in numbered(pairs, 2)}, [(start, end)]
