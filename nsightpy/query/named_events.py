"""Events under a name: kernels, ranges and what they launched, collectives, idle time, launches.

The frame has start_ns, end_ns, pid, device (-1 for ranges on the host) and name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import difference, spans_of, union_of
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.membership import alike, named
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
)
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import GPU_FRAMES, Frame, Labels, constant
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
KINDS = ("kernel", "collective", "range", "projection", IDLE, LAUNCH_DELAY)
COLUMNS = ("start_ns", "end_ns", "pid", "device", "name")
_ON_HOST = -1
_NOTHING = Frame({**dict.fromkeys(COLUMNS[:4], constant(0, 0)), "name": Labels.of(())})


def named_events(
    report: SystemReport, scope: Scope, kind: str, of: str | None = None, name: str = "demangled"
) -> Frame:
    """The events of a kind in scope, by start; with `of` those of that name, * for anything.

    A kernel may be called by its demangled, base or mangled name, a collective by its operation or
    with its size, a range as RANGE[@DOMAIN]. `name` says which name of a kernel the rows carry.
    """
    events = _READERS[kind](report, scope, of, name)
    return events.ordered()


def _kernels(report: SystemReport, scope: Scope, of: str | None, name: str) -> Frame:
    label = NAME_COLUMNS[name]
    names = tuple(NAME_COLUMNS.values()) if of is not None else (label,)
    frame = scope.read(report, "kernels", ("pid", "device", *names))
    if of is not None:
        hits = np.zeros(frame.rows, dtype=np.bool_)
        for column in names:
            hits |= alike(frame.labels(column), of)
        functions = frame.labels("name").renamed(function_name)
        frame = frame.take(hits | alike(functions, of))
    return _framed(frame, frame.labels(label))


def _collectives(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    frame = scope.read(report, "collectives", ("pid", "device", "operation", "bytes"))
    groups = group_by(frame, ("operation", "bytes"))
    sizes = ((str(operation), int(size or 0)) for operation, size in groups.keys if frame.rows)
    texts = Labels(
        groups.codes,
        tuple(
            operation if size < 0 else f"{operation} of {format_bytes(size)}"
            for operation, size in sizes
        ),
    ).merged()
    if of is not None:
        hits = alike(frame.labels("operation"), of) | alike(texts, of)
        return _framed(frame.take(hits), texts.take(hits))
    return _framed(frame, texts)


def _ranges(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    ranges = _chosen_ranges(report, scope, of)
    host = np.full(ranges.rows, _ON_HOST, dtype=np.int64)
    return _framed(Frame({**ranges, "device": host}), folded(ranges.labels("name")))


def _projections(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    """The intervals in which what a range launched ran, a row for each range and device."""
    ranges = _chosen_ranges(report, scope, of)
    parts = [scope.read(report, kind, OPERATION_COLUMNS) for kind in GPU_FRAMES]
    operations, calls = Frame.concatenate(parts), report.frame("api_calls", CALL_COLUMNS)
    projected = [_NOTHING]
    for pid, device in places_of(operations):
        done = project(ranges, launched(operations.at(pid=pid, device=device), calls))
        some = done.found & (ranges.ints("pid") == pid)
        columns = {
            "start_ns": done.start[some],
            "end_ns": done.end[some],
            "pid": np.full(int(some.sum()), pid, dtype=np.int64),
            "device": np.full(int(some.sum()), device, dtype=np.int64),
        }
        projected.append(Frame({**columns, "name": folded(ranges.labels("name")).take(some)}))
    return Frame.concatenate(projected)


def _idle(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    """The stretches in which a device did nothing inside its window."""
    found = [_NOTHING.select(COLUMNS[:4])]
    if _is_called(IDLE, of):
        work = read_work(report, scope)
        for row in rank_budgets(report, scope, work):
            ran = union_of(spans_of(frame.at(pid=row.pid, device=row.device)) for frame in work)
            idle = difference(row.budget.window, ran)
            place = (constant(row.pid, len(idle)), constant(row.device, len(idle)))
            found.append(Frame(dict(zip(COLUMNS, (idle.starts, idle.ends, *place), strict=False))))
    frame = Frame.concatenate(found)
    return _framed(frame, Labels.constant(IDLE, frame.rows))


def _launch_delays(report: SystemReport, scope: Scope, of: str | None, _: str) -> Frame:
    """From the begin of a launching call to that of the first kernel it launched, by the call."""
    kernels = scope.read(report, "kernels", ("pid", "device", "correlation_id"))
    if not _is_called(LAUNCH_DELAY, of):
        kernels = kernels.take(_none(kernels))
    kernels = kernels.ordered()
    calls = report.frame("api_calls", (*CALL_COLUMNS, "name", "event_class"))
    launches, first = np.unique(launch_rows(kernels, calls), return_index=True)
    known = launches != NO_LAUNCH
    call, kernels = calls.take(launches[known]), kernels.take(first[known])
    begun = call.ints("start_ns")
    ended = np.maximum(kernels.ints("start_ns"), begun)
    return _framed(Frame({**kernels, "start_ns": begun, "end_ns": ended}), call.labels("name"))


def _is_called(name: str, of: str | None) -> bool:
    return of is None or bool(alike(Labels.constant(name, 1), of)[0])


def _chosen_ranges(report: SystemReport, scope: Scope, of: str | None) -> Frame:
    ranges = scope.read(report, "nvtx_ranges", RANGE_COLUMNS)
    if of is None:
        return ranges
    meant = named(of, ranges)
    return ranges.take(_none(ranges) if meant is None else meant.matches(ranges))


def _none(frame: Frame) -> np.typing.NDArray[np.bool_]:
    return np.zeros(frame.rows, dtype=np.bool_)


def _framed(frame: Frame, names: Labels) -> Frame:
    columns = {name: frame[name] for name in COLUMNS[:4] if name in frame}
    columns.setdefault("device", np.full(frame.rows, _ON_HOST, dtype=np.int64))
    return Frame({**columns, "name": names})


_READERS: dict[str, Callable[[SystemReport, Scope, str | None, str], Frame]] = {
    "kernel": _kernels,
    "collective": _collectives,
    "range": _ranges,
    "projection": _projections,
    IDLE: _idle,
    LAUNCH_DELAY: _launch_delays,
}
