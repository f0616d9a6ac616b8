"""Who allocated memory: the innermost operator of PyTorch that was open on the thread, else the
innermost NVTX range around the call, else the API function."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.memory.allocations import innermost
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.ranges import plain_name
from nsightpy.analysis.operators.device_time import innermost as operator_at
from nsightpy.frames import Frame
from nsightpy.reports.system import SystemReport

CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")
RANGE_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "domain", "style")


def allocators(report: SystemReport, events: Frame) -> list[str]:
    """A name for each allocation or free; empty where the capture has none.

    The call has the event's correlation id; without one it is the call that was in progress.
    Events of PyTorch's allocators name their thread, and are no calls of the CUDA API.
    """
    if (events.ints("tid") != 0).any():
        return _operators(report, events)
    calls = report.frame("api_calls", CALL_COLUMNS)
    rows = launch_rows(events, calls)
    missing = np.flatnonzero(rows == NO_LAUNCH)
    rows[missing] = _in_progress(events.take(missing), calls)
    names = calls.labels("name")
    callers = [names[row] if row != NO_LAUNCH else "" for row in rows.tolist()]
    known = np.flatnonzero(rows != NO_LAUNCH)
    for place, name in zip(known.tolist(), _ranges(report, calls, rows[known]), strict=True):
        callers[place] = name or callers[place]
    variables = events.labels("variable")
    return [variables[place] or name for place, name in enumerate(callers)]


def _operators(report: SystemReport, events: Frame) -> list[str]:
    """The innermost operator, else annotated range, that was open on the thread at each event."""
    operators = [""] * events.rows
    for name in ("nvtx_ranges", "operators"):
        frame = report.frame(name)
        if name == "nvtx_ranges":
            frame = Frame({**frame, "parent": nest(frame).parent})
        labels = frame.labels("name")
        for place, row in enumerate(operator_at(frame, events).tolist()):
            operators[place] = labels[row] if row >= 0 else operators[place]
    return operators


def _in_progress(events: Frame, calls: Frame) -> np.ndarray:
    """The last call of the process that began before each event and had not ended."""
    open_calls = np.full(events.rows, NO_LAUNCH, dtype=np.int64)
    for pid in np.unique(events.ints("pid")).tolist():
        of_process = np.flatnonzero(calls.ints("pid") == pid)
        mine = np.flatnonzero(events.ints("pid") == pid)
        time = events.ints("start_ns")[mine]
        at = np.searchsorted(calls.ints("start_ns")[of_process], time, side="right") - 1
        call = (
            of_process[np.maximum(at, 0)]
            if len(of_process)
            else np.zeros(len(mine), dtype=np.int64)
        )
        if len(of_process):
            fits = (at >= 0) & (calls.ints("end_ns")[call] >= time)
            open_calls[mine[fits]] = call[fits]
    return open_calls


def _ranges(report: SystemReport, calls: Frame, rows: np.ndarray) -> list[str]:
    """The innermost range of the calling thread around each call; empty for none."""
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    nested = ranges.take(ranges.labels("style").equals(["PushPop"]))
    range_names = [""] * len(rows)
    pid, tid = calls.ints("pid")[rows], calls.ints("tid")[rows]
    time = calls.ints("start_ns")[rows]
    names = nested.labels("name")
    for process, thread in sorted(set(zip(pid.tolist(), tid.tolist(), strict=True))):
        mine = np.flatnonzero((nested.ints("pid") == process) & (nested.ints("tid") == thread))
        thread_ranges = nested.take(mine)
        parent = nest(thread_ranges).parent
        calls_here = np.flatnonzero((pid == process) & (tid == thread))
        start, end = thread_ranges.ints("start_ns"), thread_ranges.ints("end_ns")
        if not len(mine):
            continue
        around = innermost(start, end, parent, time[calls_here])
        for call, row in zip(calls_here.tolist(), around.tolist(), strict=True):
            range_names[call] = plain_name(names[int(mine[row])]) if row >= 0 else ""
    return range_names
