"""Where and when the GPU work of an export was, by queries that carry no rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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
        events = table.c.eventType.in_(tuple(STYLES)) if _is_nvtx(table) else sa.true()
        low, high = _extremes(export, table, [], events)
        if low is not None and high is not None:
            spans.append((int(low), int(high)))
    if not spans:
        return None
    return min(low for low, _ in spans), max(high for _, high in spans)


def _is_nvtx(table: sa.TableClause) -> bool:
    return table.name == NVTX and "eventType" in table.c


def _extremes(
    export: NsysExport, table: sa.TableClause, more: Sequence[Any], condition: Any
) -> tuple[Any, ...]:
    """What else is asked, the first start and the last end of the rows whose times can be: the
    others are in no frame."""
    for careful in (False, True):
        start, end = (whole(table, time, careful=careful) for time in ("start", "end"))
        # texts stand above all numbers
        possible = sa.and_(
            start.between(-GREATEST_TIME, GREATEST_TIME), end <= GREATEST_TIME, end >= start
        )
        query = sa.select(*more, sa.func.min(start), sa.func.max(end)).where(possible, condition)
        found = export.file.rows(query)[0]
        if all(isinstance(time, int) for time in found[-2:]):
            break
    return found


def _table_extent(
    export: NsysExport, table: sa.TableClause
) -> tuple[set[tuple[int, int]], list[tuple[int, int]]]:
    owner = number(table, "pid", process_of("globalPid"), 0)
    device = number(table, "device", column("deviceId"), 0)
    extremes = [
        function(value) for value in (owner, device) for function in (sa.func.min, sa.func.max)
    ]
    low_pid, high_pid, low, high, start, end = _extremes(export, table, extremes, sa.true())
    if start is None or end is None:
        return set(), []
    alone = (low_pid, low) == (high_pid, high)
    pairs = [(low_pid, low)] if alone else export.file.rows(sa.select(owner, device).distinct())
    return {(pid, ordinal) for pid, ordinal in numbered(pairs, 2)}, [(start, end)]
