"""memory --usage: how much memory was allocated over time, the peak, and who allocated it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.memory.allocations import Usage, usage
from nsightpy.commands.memory_usage.allocating_ranges import allocators
from nsightpy.frames import Frame
from nsightpy.query.request import Common, Request, captures
from nsightpy.query.scope import Scope
from nsightpy.rank_set import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, MemorySeries, MemoryUsage, Value
from nsightpy.units import format_count

FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    Field("memory", "text"),
    Field("peak_bytes", "bytes"),
    Field("peak_ns", "ns"),
    Field("left_bytes", "bytes"),
    Field("at_peak_bytes", "bytes"),
    Field("at_peak_allocations"),
    Field("allocations"),
    Field("largest_bytes", "bytes"),
    Field("allocated_by", "text"),
)
NOT_CAPTURED = "{} recorded no allocations; `nsys profile --cuda-memory-usage=true` records them."


@dataclass(frozen=True, slots=True)
class _Part:
    """What one report contributes."""

    rows: list[tuple[Value, ...]]
    series: list[MemorySeries]
    unknown_frees: int = 0
    recorded: bool = True


def memory_usage(
    reports: Paths, *, top: int | None = None, **common: Unpack[Common]
) -> MemoryUsage:
    """Peaks of allocated memory per rank, device and kind of memory, and who allocated them.

    One row per allocator (NVTX range, else API function), the one with most live bytes at the
    peak first; bytes and ns. Memory allocated before the capture is not known.
    """
    request = Request.of(reports, **common)
    parts = request.map(partial(_usages, scope=request.scope), ranked=True).values
    rows = sorted((row for part in parts for row in part.rows), key=_order)
    series = sorted((one for part in parts for one in part.series), key=_series_order)
    table = MemoryUsage("memory", FIELDS, tuple(rows[:top]), series=tuple(series))
    finished = request.finish(table, *_notes(parts))
    return replace(table, inputs=finished.inputs, notes=finished.notes)


def _usages(report: SystemReport, *, scope: Scope) -> _Part:
    if not report.has_memory_usage:
        return _Part([], [], recorded=False)
    whole = report.frame("memory_usage")
    # events are moments; what was taken before a stretch of time is still live in it
    placed = Frame({**whole, "end_ns": whole["start_ns"]})
    events = replace(scope, from_ns=None, to_ns=None, nvtx=None).within(report, placed)
    names = allocators(report, events)
    groups = group_by(events, ("pid", "device", "memory"))
    rows: list[tuple[Value, ...]] = []
    series, unknown = [], 0
    for code, (pid, device, memory) in enumerate(groups.keys):
        mine = np.flatnonzero(groups.codes == code)
        if not isinstance(pid, int) or not isinstance(device, int) or not len(mine):
            continue
        found = usage(events.take(mine))
        unknown += found.unknown_frees
        who = [names[int(mine[row])] for row in found.rows.tolist()]
        own = _by_allocator(found, who)
        place = (report.rank_of(pid)[0], device, str(memory))
        rows += [(*place, *figures) for figures in own]
        first = str(own[0][-1] or "") if own else ""
        series.append(MemorySeries(*place, found.times.tolist(), found.live.tolist(), first))
    return _Part(rows, series, unknown)


def _notes(parts: Sequence[_Part]) -> list[str]:
    silent = sum(not part.recorded for part in parts)
    unknown = sum(part.unknown_frees for part in parts)
    said = [NOT_CAPTURED.format(captures(silent, len(parts)))] if silent else []
    freed = f"{format_count(unknown)} frees gave back memory from before the capture."
    return [*said, freed] if unknown else said


def _by_allocator(found: Usage, who: list[str]) -> list[tuple[Value, ...]]:
    """The figures of every allocator of one kind of memory, most live bytes at the peak first."""
    live = set(found.at_peak.tolist())
    rows = []
    for name in sorted(set(who)):
        mine = [place for place, one in enumerate(who) if one == name]
        at_peak = [place for place in mine if place in live]
        rows.append(
            (
                found.peak_bytes,
                found.peak_ns,
                found.left_bytes,
                int(found.bytes[at_peak].sum()),
                len(at_peak),
                len(mine),
                int(found.bytes[mine].max()),
                name or None,
            )
        )
    return sorted(rows, key=lambda row: (-int(row[3] or 0), -int(row[6] or 0), str(row[7])))


def _order(row: tuple[Value, ...]) -> tuple[object, ...]:
    rank, device, memory = row[:3]
    at_peak = row[6] if isinstance(row[6], int) else 0
    return (rank is None, rank or 0, device, memory, -at_peak, str(row[-1]))


def _series_order(one: MemorySeries) -> tuple[object, ...]:
    return (one.rank is None, one.rank or 0, one.device, one.memory)
