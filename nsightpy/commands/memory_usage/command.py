"""memory-usage: how much memory was allocated over time, the peak, and who allocated it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.memory.allocation_places import BY
from nsightpy.analysis.memory.allocations import Holder, holders, usages
from nsightpy.analysis.nvtx.nesting import PUSH_POP, innermost, nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.operators.device_time import NONE
from nsightpy.commands.memory_usage.snapshot_usage import memory_of
from nsightpy.commands.memory_usage.table import (
    DIFFERENCE_FIELDS,
    FIELDS,
    DeviceMemory,
    difference_table,
    usage_table,
)
from nsightpy.errors import NsightpyError, ReportError, UsageError
from nsightpy.frames import Frame, Ints, Labels, last_before
from nsightpy.query import Common, Option, Parts, Question, Scope, SystemReport, Top, answer
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.command import command
from nsightpy.query.device_time import memory_events
from nsightpy.query.request import Request, captures, running_options
from nsightpy.report_sets.opening import Paths, find_snapshots, open_snapshots
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.one_file import MemorySnapshot
from nsightpy.reports.opening import natural
from nsightpy.results import Said, with_notes
from nsightpy.results.series import MemorySeries, MemoryUsage

BEFORE = "(before the capture)"
_OF_SNAPSHOTS = ("rank", "device", "from_time", "to_time")
_MIXED = "memory snapshots of PyTorch and other reports are not read together"
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")
RANGE_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "domain", "style")


@command(
    layouts=(FIELDS, DIFFERENCE_FIELDS),
    picture="nsightpy.render.plots.memory_plot:memory_figure",
)
def memory_usage(
    reports: Paths | Sequence[str | Path | MemorySnapshot] | MemorySnapshot,
    *,
    by: Annotated[str, Option("Of snapshots: what a row is about.", choices=BY)] = BY[0],
    diff: Annotated[bool, Option("Compare two snapshots, place by place.")] = False,
    top: Top = None,
    **common: Unpack[Common],
) -> MemoryUsage:
    """Reads nsys captures with --cuda-memory-usage=true, PyTorch traces with profile_memory, and
    memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot), in which nothing is ever run.

    One row per allocator (the innermost operator of PyTorch, else NVTX range, else API function),
    the one with most live bytes at the peak first. Memory allocated before a capture is not known,
    but of traces of PyTorch its sum. Of snapshots, allocators are the first frames of the user's
    own code (else the first outside torch), and memory from before the recording is known.
    """
    several = isinstance(reports, Iterable) and not isinstance(reports, str)
    given: list[Any] = list(reports) if several else [reports]  # type: ignore[arg-type]
    others = [each for each in given if not _is_snapshot(each)]
    if 0 < len(others) < len(given):
        path = getattr(others[0], "path", others[0])
        raise ReportError(path, _MIXED, "ask about each kind alone.")
    if given and not others:
        table = _of_snapshots(given, by, diff, common)
    elif by != BY[0] or diff:
        raise UsageError("--by and --diff are for memory snapshots of PyTorch")
    else:
        request = Request.of(reports, **common)  # type: ignore[arg-type]
        table = answer(request, of_systems())
    return table.first(top or None)


def _is_snapshot(report: object) -> bool:
    """Whether a report, or what a path stands for, is a memory snapshot."""
    if isinstance(report, str | Path):
        return bool(find_snapshots(report))
    return isinstance(report, MemorySnapshot)


def of_systems() -> Question[MemoryUsage]:
    """What is asked of reports of a whole system."""
    return Question(_of_report, _of_reports, ranked=True)


def _of_snapshots(given: Sequence[object], by: str, diff: bool, common: Common) -> MemoryUsage:
    """The same of memory snapshots; raises ReportError for one alone that cannot be read."""
    if common.get("nvtx") is not None:
        raise NsightpyError("--nvtx: memory snapshots hold no NVTX ranges; leave it out.")
    wanted_part: Any = {name: common.get(name) for name in _OF_SNAPSHOTS}
    scope = Scope.of(**wanted_part)
    opened = open_snapshots(given, rank_regex=common.get("rank_regex"))  # type: ignore[arg-type]
    if not diff:
        opened.sort(key=lambda snapshot: natural(str(snapshot.path)))
    wanted = [each for each in opened if scope.ranks is None or each.rank in scope.ranks]
    if not wanted:
        raise NsightpyError("--rank: no snapshot has it; a snapshot's rank is in its file name.")
    if diff and len(wanted) != 2:
        raise UsageError(f"--diff compares two snapshots, and {len(wanted)} are given")
    running = running_options(common)
    if diff:
        running["on_error"] = "raise"
    snapshots = ReportSet(wanted, **running)
    mapped = snapshots.map(partial(memory_of, by=by, scope=scope))
    notes: list[Said] = [*snapshots.failure_notes]
    for snapshot, (_, of_snapshot) in mapped.results:
        name = f"{snapshot.path.name}: " if len(mapped.results) > 1 else ""
        notes += [f"{name}{note}" for note in of_snapshot]
    parts = [devices for devices, _ in mapped.values]
    table = difference_table(*parts) if diff else usage_table([d for part in parts for d in part])
    return with_notes(table, snapshots.inputs, notes)


def _of_report(report: SystemReport, scope: Scope) -> list[DeviceMemory] | None:
    """The memory of each device; None where it was not recorded."""
    if not report.has_memory_usage:
        return None
    events = memory_events(report, scope)
    names = allocators(report, events)
    devices = []
    for pid, device, memory, rows, used in usages(events):
        # of a state that begins in the capture
        older, peak = used.source < 0, int(np.argmax(used.live[1:])) + 1 if used.moments else 0
        live = [used.alive(state) for state in (peak, used.moments)]
        by = Labels.of(names[row] for row in rows[used.source[~older]].tolist())
        at_peak, at_end = (alive[~older] for alive in live)
        codes = by.codes.astype(np.int64)
        held = holders(codes, by.values, used.bytes[~older], at_peak, at_end)
        if used.bytes[older].sum():
            before, after = (int(used.bytes[older & alive].sum()) for alive in live)
            held.append(Holder(BEFORE, before, None, None, None, after))
        live_bytes, reserved = (each[1:].tolist() for each in (used.live, used.reserved))
        whose = (report.rank_of(pid)[0], device, memory)
        series = MemorySeries(used.times.tolist(), live_bytes, reserved, *whose)
        peak_ns = int(used.times[peak - 1]) if used.moments else None
        figures = (int(used.live[peak]), peak_ns, int(used.live[-1]))
        devices.append(DeviceMemory(*figures, held, series))
    return devices


def _of_reports(parts: Parts[list[DeviceMemory] | None]) -> MemoryUsage:
    recorded = [part for part in parts.values if part is not None]
    notes: list[Said] = []
    if silent := len(parts.values) - len(recorded):
        which = captures(silent, len(parts.values))
        notes.append(not_recorded(f"{which} recorded no allocations.", "--cuda-memory-usage=true"))
    table = usage_table([device for devices in recorded for device in devices])
    return replace(table, notes=tuple(notes))


def allocators(report: SystemReport, events: Frame) -> list[str]:
    """A name for each allocation or free; empty where the capture has none.

    The call has the event's correlation id; without one it is the call that was in progress.
    Events of PyTorch's allocators name their thread, and are no calls of the CUDA API.
    """
    if (events.ints("tid") != 0).any():
        pairs = (
            _names_around(each, events) for each in (report.frame("operators"), _ranges(report))
        )
        return [operator or name for operator, name in zip(*pairs, strict=True)]
    calls = report.frame("api_calls", CALL_COLUMNS)
    rows = launch_rows(events, calls)
    missing = np.flatnonzero(rows == NO_LAUNCH)
    rows[missing] = _in_progress(events.take(missing), calls)
    called = np.flatnonzero(rows != NO_LAUNCH)
    names = list(events.labels("variable"))
    around = _names_around(_ranges(report), calls.take(rows[called]))
    functions = calls.labels("name").take(rows[called])
    for number, name, function in zip(called.tolist(), around, functions, strict=True):
        names[number] = names[number] or name or function
    return names


def _ranges(report: SystemReport) -> Frame:
    """The NVTX ranges that nest, with their parents."""
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(ranges.labels("style").equals([PUSH_POP]))
    return Frame({**ranges, "name": folded(ranges.labels("name")), "parent": nest(ranges).parent})


def _names_around(frame: Frame, moments: Frame) -> list[str]:
    """The innermost operator or range that was open on the thread at each start."""
    names = frame.labels("name")
    return [names[row] if row != NONE else "" for row in innermost(frame, moments).tolist()]


def _in_progress(events: Frame, calls: Frame) -> Ints:
    """The last call of the process that began before each event and had not ended."""
    start, pid, time = calls.ints("start_ns"), calls.ints("pid"), events.ints("start_ns")
    order = np.lexsort((start, pid))
    begun = last_before((pid[order], start[order]), (events.ints("pid"), time))
    call = np.append(order, NO_LAUNCH)[begun]
    ended = np.append(calls.ints("end_ns"), 0)[call] < time
    return np.where(ended, NO_LAUNCH, call)
