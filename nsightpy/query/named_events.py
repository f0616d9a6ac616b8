"""Events under a name: kernels, ranges and what they launched, collectives, idle time, launches.

The frame has start_ns, end_ns, pid, device (-1 for ranges on the host) and name.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from nsightpy.analysis.grouping import named_by
from nsightpy.analysis.intervals import spans_of, union_of
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.membership import alike, named
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    projections,
)
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import GPU_FRAMES, Frame, Ints, Labels, constant
from nsightpy.names import function_name
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.device_time import rank_budgets, read_work
from nsightpy.query.options import NAME_COLUMNS
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Said
from nsightpy.units import format_bytes

# What has no name of its own in a report, and why there may be none.
IDLE, LAUNCH_DELAY = "idle", "launch-delay"
MEASURED: Mapping[str, Said] = {
    IDLE: "The capture holds no stretch in which a device was idle.",
    LAUNCH_DELAY: not_recorded("The capture holds no API calls that launch kernels."),
}
COLUMNS = ("start_ns", "end_ns", "pid", "device", "name")
_ON_HOST = -1


def named_events(
    report: SystemReport, scope: Scope, kind: str, of: str | None = None, name: str = "demangled"
) -> Frame:
    """The events of a kind in scope, by start; with `of` those of that name, * for anything.

    A kernel may be called by its demangled, base or mangled name, a collective by its operation or
    with its size, a range as RANGE[@DOMAIN]. `name` says which name of a kernel the rows carry.
    """
    if kind == "kernel":
        return _kernels(report, scope, of, NAME_COLUMNS[name]).ordered()
    if kind in MEASURED and of is not None and not alike(Labels.constant(kind, 1), of)[0]:
        return _events([])
    return _READERS[kind](report, scope, of).ordered()


def _kernels(report: SystemReport, scope: Scope, of: str | None, label: str) -> Frame:
    names = (label,) if of is None else tuple(NAME_COLUMNS.values())
    frame = scope.read(report, "kernels", ("pid", "device", *names))
    if of is not None:
        called = [*map(frame.labels, names), frame.labels("name").renamed(function_name)]
        frame = frame.take(np.any([alike(labels, of) for labels in called], axis=0))
    return Frame({**frame.select(COLUMNS[:4]), "name": frame[label]})


def _collectives(report: SystemReport, scope: Scope, of: str | None) -> Frame:
    frame = scope.read(report, "collectives", ("pid", "device", "operation", "bytes"))

    def text(operation: str, size: int) -> str:
        return operation if size < 0 else f"{operation} of {format_bytes(size)}"

    texts = named_by(frame, ("operation", "bytes"), text).merged()
    events = Frame({**frame.select(COLUMNS[:4]), "name": texts})
    if of is None:
        return events
    return events.take(alike(frame.labels("operation"), of) | alike(texts, of))


def _ranges(report: SystemReport, scope: Scope, of: str | None) -> Frame:
    """The ranges, on the host: without a device."""
    ranges = scope.read(report, "nvtx_ranges", RANGE_COLUMNS)
    if of is not None:
        meant = named(of, ranges)
        none = np.zeros(ranges.rows, dtype=np.bool_)
        ranges = ranges.take(none if meant is None else meant.matches(ranges))
    host, names = np.full(ranges.rows, _ON_HOST, dtype=np.int64), folded(ranges.labels("name"))
    return Frame({**ranges, "device": host, "name": names})


def _projections(report: SystemReport, scope: Scope, of: str | None) -> Frame:
    """The intervals in which what a range launched ran, a row for each range and device."""
    ranges = _ranges(report, scope, of)
    parts = [scope.read(report, kind, OPERATION_COLUMNS) for kind in GPU_FRAMES]
    operations, calls = Frame.concatenate(parts), report.frame("api_calls", CALL_COLUMNS)
    projected = []
    for (pid, device), each in projections(ranges, operations, calls):
        names = ranges.labels("name").take(each.found)
        projected.append((each.start[each.found], each.end[each.found], pid, device, names))
    return _events(projected)


def _idle(report: SystemReport, scope: Scope, _: str | None) -> Frame:
    """The stretches in which a device did nothing inside its window."""
    work, found = read_work(report, scope), []
    for row in rank_budgets(report, scope, work):
        ran = union_of(spans_of(frame.at(pid=row.pid, device=row.device)) for frame in work)
        idle = row.budget.window - ran
        names = Labels.constant(IDLE, len(idle))
        found.append((idle.starts, idle.ends, row.pid, row.device, names))
    return _events(found)


def _events(parts: Iterable[tuple[Ints, Ints, int, int, Labels]]) -> Frame:
    """Starts, ends and names of processes and devices in one."""
    none: Ints = np.empty(0, dtype=np.int64)
    frames = []
    for start, end, pid, device, names in ((none, none, 0, 0, Labels.of(())), *parts):
        places = {"pid": constant(pid, len(start)), "device": constant(device, len(start))}
        frames.append(Frame({"start_ns": start, "end_ns": end, "name": names, **places}))
    return Frame.concatenate(frames)


def _launch_delays(report: SystemReport, scope: Scope, _: str | None) -> Frame:
    """From the begin of a launching call to that of the first kernel it launched, by the call."""
    kernels = scope.read(report, "kernels", ("pid", "device", "correlation_id")).ordered()
    calls = report.frame("api_calls", (*CALL_COLUMNS, "name", "event_class"))
    launches, first = np.unique(launch_rows(kernels, calls), return_index=True)
    known = launches != NO_LAUNCH
    call, kernels = calls.take(launches[known]), kernels.take(first[known])
    begun = call.ints("start_ns")
    ended = np.maximum(kernels.ints("start_ns"), begun)
    return Frame({**kernels, "start_ns": begun, "end_ns": ended, "name": call["name"]})


_READERS: dict[str, Callable[[SystemReport, Scope, str | None], Frame]] = {
    "collective": _collectives,
    "range": _ranges,
    "projection": _projections,
    IDLE: _idle,
    LAUNCH_DELAY: _launch_delays,
}
KINDS = ("kernel", *_READERS)
