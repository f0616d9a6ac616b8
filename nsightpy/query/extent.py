"""Where and when the GPU work of a report was, by queries that carry no rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import Frame
from nsightpy.readers.nsys.events import KERNEL
from nsightpy.readers.nsys.session import GPU_TABLES
from nsightpy.readers.nsys.tables import column, number, process_of
from nsightpy.reports.nsys import NsysReport


@dataclass(frozen=True, slots=True)
class Extent:
    """Where and when a report's GPU work was: (pid, device) places, ns, number of kernels."""

    places: tuple[tuple[int, int], ...]
    start_ns: int | None
    end_ns: int | None
    kernels: int


def extent_of(report: NsysReport) -> Extent:
    """The extent of a report's GPU work, by queries that carry no rows."""
    places: set[tuple[int, int]] = set()
    bounds: list[tuple[int, int]] = []
    for name in GPU_TABLES:
        table = report.export.file.tables.get(name)
        if table is not None and {"start", "end", "deviceId"} <= set(table.c.keys()):
            found, span = _table_extent(report, table)
            places |= found
            bounds += span
    return Extent(
        tuple(sorted(places)),
        min((start for start, _ in bounds), default=None),
        max((end for _, end in bounds), default=None),
        report.export.count(KERNEL),
    )


def extent_of_frames(kernels: Frame, frames: Sequence[Frame]) -> Extent:
    """The same extent, from frames that are loaded anyway (columns pid, device, start, end)."""
    filled = [frame for frame in frames if frame.rows]
    places = {place for frame in filled for place in places_of(frame)}
    return Extent(
        tuple(sorted(places)),
        min((int(frame.ints("start_ns").min()) for frame in filled), default=None),
        max((int(frame.ints("end_ns").max()) for frame in filled), default=None),
        kernels.rows,
    )


def _table_extent(
    report: NsysReport, table: sa.TableClause
) -> tuple[set[tuple[int, int]], list[tuple[int, int]]]:
    owner = number(table, "pid", process_of("globalPid"), 0)
    device = number(table, "device", column("deviceId"), 0)
    extremes = [
        function(value) for value in (owner, device) for function in (sa.func.min, sa.func.max)
    ]
    start_ns, end_ns = (sa.cast(table.c[name], sa.Integer) for name in ("start", "end"))
    ends = (sa.func.min(start_ns), sa.func.max(end_ns))
    rows = report.export.file.rows
    low_pid, high_pid, low, high, start, end = rows(sa.select(*extremes, *ends))[0]
    if start is None or end is None:
        return set(), []
    alone = (low_pid, low) == (high_pid, high)
    pairs = [(low_pid, low)] if alone else rows(sa.select(owner, device).distinct())
    return {(pid, ordinal) for pid, ordinal in pairs}, [(start, end)]


def devices_of(report: NsysReport) -> set[int]:
    """The CUDA devices that did anything."""
    return {device for _, device in extent_of(report).places}
