"""Who allocated memory: the innermost operator of PyTorch that was open on the thread, else the
innermost NVTX range around the call, else the API function."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.nesting import PUSH_POP, innermost, nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.operators.device_time import NONE
from nsightpy.frames import Frame, Ints
from nsightpy.reports.system import SystemReport

CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class", "name")
RANGE_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "domain", "style")


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
    known = np.flatnonzero(rows != NO_LAUNCH)
    names = list(events.labels("variable"))
    around = _names_around(_ranges(report), calls.take(rows[known]))
    functions = calls.labels("name").take(rows[known])
    for place, name, function in zip(known.tolist(), around, functions, strict=True):
        names[place] = names[place] or name or function
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
    open_calls = np.full(events.rows, NO_LAUNCH, dtype=np.int64)
    for pid in np.unique(events.ints("pid")).tolist():
        of_process = np.flatnonzero(calls.ints("pid") == pid)
        rows = np.flatnonzero(events.ints("pid") == pid)
        time = events.ints("start_ns")[rows]
        at = np.searchsorted(calls.ints("start_ns")[of_process], time, side="right") - 1
        rows, time, call = rows[at >= 0], time[at >= 0], of_process[at[at >= 0]]
        fits = calls.ints("end_ns")[call] >= time
        open_calls[rows[fits]] = call[fits]
    return open_calls
