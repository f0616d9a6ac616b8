"""The NVTX range that narrows a job: which launches lie in it, and the option of ncu for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.nvtx.membership import belongs, call_keys, launch_key, named
from nsightpy.errors import MissingDataError, UsageError
from nsightpy.frames import Frame
from nsightpy.ncu_command.filters import nvtx_filter
from nsightpy.reports.system import SystemReport

CALLS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class")
RANGES = ("start_ns", "end_ns", "pid", "tid", "end_tid", "name", "domain", "style")
START_END = "StartEnd"
MOST_RANGES = 100


def range_filter(
    report: SystemReport, kernels: Frame, text: str | None
) -> tuple[tuple[str, ...], NDArray[np.bool_] | None]:
    """What --nvtx-include takes for RANGE[@DOMAIN], and which kernels ncu then sees.

    A launch is inside when its API call is: push/pop ranges hold the launches of their own thread,
    start/end ranges those of the process. Nothing, and None for all of them, without a text.
    Raises MissingDataError when there is no such range.
    """
    if text is None:
        return (), None
    ranges = report.frame("nvtx_ranges", RANGES)
    meant = named(text, ranges)
    if meant is None:
        raise MissingDataError(
            report.path,
            f"has no range {text!r}",
            "see `nsightpy nvtx` for the ranges there are.",
        )
    ranges = ranges.take(meant.matches(ranges))
    kinds = group_by(ranges, ("name", "domain", "style")).keys
    if len(kinds) > MOST_RANGES:
        raise UsageError(f"--nvtx {text!r} means {len(kinds)} different ranges: too many for ncu")
    include = [
        nvtx_filter(str(name), str(domain), style=str(style)) for name, domain, style in kinds
    ]
    calls = report.frame("api_calls", CALLS)
    is_open = ranges.labels("style").equals([START_END])
    seen = belongs(kernels, call_keys(calls, ranges.take(~is_open)))
    for row in np.flatnonzero(is_open).tolist():
        seen |= belongs(kernels, _started_in(calls, ranges, row))
    return tuple(sorted(set(include))), seen


def _started_in(calls: Frame, ranges: Frame, row: int) -> NDArray[np.int64]:
    """Keys of the calls of a process that began while one of its start/end ranges was open."""
    begin, end = (int(ranges.ints(name)[row]) for name in ("start_ns", "end_ns"))
    start = calls.ints("start_ns")
    of_process = (calls.ints("pid") == ranges.ints("pid")[row]) & (calls.ints("correlation_id") > 0)
    return np.unique(launch_key(calls.take(of_process & (start >= begin) & (start <= end))))
