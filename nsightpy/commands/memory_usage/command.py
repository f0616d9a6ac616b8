"""memory-usage: how much memory was allocated over time, the peak, and who allocated it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Unpack

import numpy as np

from nsightpy.analysis.memory.allocation_places import BY
from nsightpy.analysis.memory.allocations import NEVER, usages
from nsightpy.analysis.memory.holders import Holder, holders
from nsightpy.commands.memory_usage.allocating_ranges import allocators
from nsightpy.commands.memory_usage.difference import FIELDS as DIFFERENCE_FIELDS, difference
from nsightpy.commands.memory_usage.snapshot_usage import MEMORY, notes_of, series_of, usage_of
from nsightpy.errors import NsightpyError, ReportError, UsageError
from nsightpy.frames import Labels
from nsightpy.query.device_time import memory_events
from nsightpy.query.request import Common, Request, captures, running_options
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.one_file_sets import open_snapshots
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.report_sets.report_files import find_snapshots, natural
from nsightpy.report_sets.report_set import FailureHandling, ReportSet
from nsightpy.reports.memory_snapshot import MemorySnapshot
from nsightpy.reports.system import SystemReport
from nsightpy.results import (
    Abstention,
    Field,
    Value,
    rank_order,
    with_notes,
)
from nsightpy.results.series import MemoryGrowth, MemorySeries, MemoryUsage
from nsightpy.units import format_count

FIELDS = (
    Field("device", "id"),
    Field("memory", "text", own=True),
    Field("peak_bytes", "bytes"),
    Field("peak_ns", "ns"),
    Field("left_bytes", "bytes"),
    Field("at_peak_bytes", "bytes"),
    Field("at_peak_allocations"),
    Field("allocations"),
    Field("largest_bytes", "bytes"),
    Field("allocated_by", "text"),
    Field("at_end_bytes", "bytes"),
    Field("rank", "id"),
)
# With `diff`, the columns are others.
LAYOUTS = (FIELDS, DIFFERENCE_FIELDS)
_RANK, _AT_PEAK, _NAME = len(FIELDS) - 1, 5, 9
COMMAND = "memory-usage"
BEFORE = "(before the capture)"
# What records allocations, by the kind of report.
RECORDING = {
    "nsys": "`nsys profile --cuda-memory-usage=true`",
    "torch": "`torch.profiler.profile(profile_memory=True)`",
}
_MIXED = "memory snapshots of PyTorch and other reports are not read together"


@dataclass(frozen=True, slots=True)
class _Part:
    """What one report contributes; `missing` is what would have recorded its allocations."""

    rows: list[tuple[Value, ...]]
    series: list[MemorySeries]
    notes: list[str]
    growth: list[MemoryGrowth]
    held: dict[int, list[Holder]] = field(default_factory=dict)
    unknown_frees: int = 0
    missing: str = ""


@command_function
def memory_usage(
    reports: Paths | Sequence[str | Path | MemorySnapshot] | MemorySnapshot,
    *,
    by: str | None = None,
    diff: bool = False,
    top: int | None = None,
    **common: Unpack[Common],
) -> MemoryUsage:
    """Peaks of allocated memory per device and kind of memory, and who allocated it.

    One row per allocator (the innermost operator of PyTorch, else NVTX range, else API function),
    the one with most live bytes at the peak first; bytes and ns. Memory allocated before the
    capture is not known, but of traces of PyTorch its sum.

    Of PyTorch memory snapshots, allocators are the first frames of the user's own code (else the
    first outside torch), and memory from before the recording is known. `by`: "function", "file" or
    "stack" instead of such a line.
    `diff`: compare two snapshots by these places.
    """
    if by is not None and by not in BY:
        raise UsageError(f"cannot group by {by}; there are {', '.join(BY[1:])}")
    given = _given(reports)
    snapshots = [
        report for report in given if isinstance(report, MemorySnapshot) or _is_snapshot(report)
    ]
    if snapshots and len(snapshots) < len(given):
        other = next(report for report in given if report not in snapshots)
        raise ReportError(getattr(other, "path", other), _MIXED, "ask about each kind alone.")
    if snapshots:
        return _of_snapshots(snapshots, by or BY[0], diff, top, common)
    if by is not None or diff:
        raise UsageError("--by and --diff are for memory snapshots of PyTorch")
    return _of_reports(reports, top, common)  # type: ignore[arg-type]


def _given(reports: object) -> list[object]:
    if isinstance(reports, str | Path | SystemReport | MemorySnapshot | RankSet):
        return [reports]
    return list(reports) if isinstance(reports, Iterable) else [reports]


def _is_snapshot(given: object) -> bool:
    return isinstance(given, str | Path) and bool(find_snapshots(given))


def _of_reports(reports: Paths, top: int | None, common: Common) -> MemoryUsage:
    request = Request.of(reports, **common)
    parts = request.map(partial(_usages, scope=request.scope), ranked=True).values
    return request.finish(_table(parts, top), *_notes(parts))


def _of_snapshots(
    given: Sequence[object], by: str, diff: bool, top: int | None, common: Common
) -> MemoryUsage:
    """The same of memory snapshots; raises ReportError for one alone that cannot be read."""
    if common.get("nvtx") is not None:
        raise NsightpyError("--nvtx: memory snapshots hold no NVTX ranges; leave it out.")
    scope = Scope.of(*(common.get(name) for name in ("rank", "device", "from_time", "to_time")))  # type: ignore[arg-type]
    opened = open_snapshots(given, rank_regex=common.get("rank_regex"))  # type: ignore[arg-type]
    if not diff:
        opened.sort(key=lambda snapshot: natural(str(snapshot.path)))
    wanted = [
        snapshot for snapshot in opened if scope.ranks is None or snapshot.rank in scope.ranks
    ]
    if not wanted:
        raise NsightpyError("--rank: no snapshot has it; a snapshot's rank is in its file name.")
    if diff and len(wanted) != 2:
        raise UsageError(f"--diff compares two snapshots, and {len(wanted)} are given")
    running = running_options(common)
    if diff:
        running["on_error"] = FailureHandling.RAISE
    snapshots = ReportSet(wanted, **running)
    mapped = snapshots.map(partial(_of_snapshot, by=by, scope=scope))
    said = snapshots.failure_notes
    for snapshot, part in mapped.results:
        name = f"{snapshot.path.name}: " if len(mapped.results) > 1 else ""
        said += [f"{name}{note}" for note in part.notes]
    parts = mapped.values
    table = difference(parts[0].held, parts[1].held, top) if diff else _table(parts, top)
    return with_notes(table, snapshots.inputs, said)


def _table(parts: Sequence[_Part], top: int | None) -> MemoryUsage:
    rows = sorted((row for part in parts for row in part.rows), key=_order)
    series = sorted(
        (series for part in parts for series in part.series),
        key=lambda series: (*rank_order(series.rank), series.device, series.memory),
    )
    growth = tuple(iteration for part in parts for iteration in part.growth)
    table = MemoryUsage(COMMAND, FIELDS, tuple(rows), series=tuple(series), iterations=growth)
    return table.first(top)


def _of_snapshot(snapshot: MemorySnapshot, *, by: str, scope: Scope) -> _Part:
    devices = usage_of(snapshot, by, scope)
    part = _Part([], [], list(snapshot.notes), [])
    for device in devices:
        figures = (device.peak_bytes, device.recorded.time_of(device.peak), device.left_bytes)
        part.rows.extend(
            _row(device.device, MEMORY, figures, holder, snapshot.rank) for holder in device.holders
        )
        part.series.append(series_of(snapshot, device))
        part.notes.extend(notes_of(device))
        part.growth.extend(device.growth)
        part.held[device.device] = device.holders
    return part


def _usages(report: SystemReport, *, scope: Scope) -> _Part:
    part = _Part([], [], [], [])
    if not report.has_memory_usage:
        return replace(part, missing=RECORDING[report.kind])
    events = memory_events(report, scope)
    names = allocators(report, events)
    unknown = 0
    for pid, device, memory, mine, used in usages(events):
        unknown += 0 if used.before else used.unknown_frees
        who = Labels.of(names[int(mine[row])] for row in used.rows.tolist())
        live = np.zeros(len(used.rows), dtype=np.bool_)
        live[used.at_peak] = True
        held = holders(
            who.codes.astype(np.int64), who.values, used.bytes, live, used.freed == NEVER
        )
        rank = report.rank_of(pid)[0]
        figures = (used.peak_bytes, used.peak_ns, used.left_bytes)
        part.rows.extend(_row(device, memory, figures, holder, rank) for holder in held)
        if used.before:
            row = (used.before_at_peak, None, None, None, BEFORE, used.before_at_end, rank)
            part.rows.append((device, memory, *figures, *row))
        first = str(held[0].name or "") if held else ""
        if used.before_at_peak > (held[0].at_peak_bytes if held else 0):
            first = BEFORE
        times, levels = used.times.tolist(), used.live.tolist()
        drawn = MemorySeries(rank, device, memory, times, levels, first)
        part.series.append(replace(drawn, reserved=used.reserved.tolist()))
    return replace(part, unknown_frees=unknown)


def _row(
    device: int,
    memory: str,
    figures: tuple[int, int | None, int],
    held: Holder,
    rank: int | None,
) -> tuple[Value, ...]:
    return (
        device,
        memory,
        *figures,
        held.at_peak_bytes,
        held.at_peak_allocations,
        held.allocations,
        held.largest_bytes,
        held.name,
        held.at_end_bytes,
        rank,
    )


def _notes(parts: Sequence[_Part]) -> list[str]:
    silent = [part.missing for part in parts if part.missing]
    unknown = sum(part.unknown_frees for part in parts)
    which = captures(len(silent), len(parts))
    said: list[str] = []
    if silent:
        said = [Abstention(f"{which} recorded no allocations.", f"{silent[0]} records them.")]
    freed = f"{format_count(unknown)} frees gave back memory from before the capture."
    return [*said, freed] if unknown else said


def _order(row: tuple[Value, ...]) -> tuple[object, ...]:
    rank, device, memory, at_peak = row[_RANK], row[0], row[1], row[_AT_PEAK]
    known = at_peak if isinstance(at_peak, int) else 0
    return (rank is None, rank or 0, device, memory, -known, str(row[_NAME]))
