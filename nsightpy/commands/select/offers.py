"""What each report has to offer: its variants with representative launches, and their weight."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.iterations.steady import SteadyState
from nsightpy.analysis.nvtx.membership import belongs, call_keys, launch_key
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.selection.launch_places import COLUMNS, Portion, portions
from nsightpy.errors import UsageError
from nsightpy.frames import Frame
from nsightpy.names import measured_by_ncu
from nsightpy.ncu_command import nvtx_filter
from nsightpy.query import Scope, SystemReport
from nsightpy.query.nvtx_filter import ranges_called
from nsightpy.query.steps import PLACED, is_steady
from nsightpy.readers.nsys.capture import CaptureStart

START_END = "StartEnd"
MOST_RANGES = 100


@dataclass(frozen=True, slots=True)
class Offers:
    """What one report has to offer; times in ns. `ncu`: ncu measures its GPUs."""

    portions: list[Portion]
    communication_ns: int
    kernels_ns: int
    opaque_ns: int
    nvtx: tuple[str, ...]
    processes: int
    host: str
    steady: list[SteadyState]
    start: CaptureStart
    ncu: bool


def offers_of(
    report: SystemReport,
    scope: Scope,
    *,
    communication: tuple[str, ...],
    with_communication: bool,
) -> Offers:
    """The variants of one report, each process's with the launch that represents them."""
    states = scope.steady_states(report)
    frame = report.frame("kernels", tuple(dict.fromkeys((*PLACED, *COLUMNS))))
    include, visible = range_filter(report, frame, scope.nvtx)
    inside = replace(scope, nvtx=None).mask(report, frame)
    weighed = inside & visible & is_steady(frame, states)
    talking = is_communication(frame.labels("name"), communication) & weighed
    graphs = scope.read(report, "graph_launches", PLACED)
    return Offers(
        portions(frame, visible, weighed if with_communication else weighed & ~talking),
        int(durations(frame)[talking].sum()),
        int(durations(frame)[weighed].sum()),
        int(durations(graphs).sum()),
        include,
        len(report.pids),
        report.session.host,
        list(states.values()),
        report.capture.start,
        measured_by_ncu(report.tool_version, *report.frame("devices").labels("name").values),
    )


def range_filter(
    report: SystemReport, kernels: Frame, text: str | None
) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """What --nvtx-include takes for RANGE[@DOMAIN], and which kernels ncu then sees.

    A launch is inside when its API call is: push/pop ranges hold the launches of their own thread,
    start/end ranges those of the process. Nothing, and all of them, without a text. Raises
    MissingDataError when there is no such range.
    """
    if text is None:
        return (), np.ones(kernels.rows, dtype=np.bool_)
    ranges = ranges_called(report, text)
    kinds = group_by(ranges, ("name", "domain", "style")).keys
    if len(kinds) > MOST_RANGES:
        raise UsageError(f"--nvtx {text!r} means {len(kinds)} different ranges: too many for ncu")
    include = [
        nvtx_filter(str(name), str(domain), style=str(style)) for name, domain, style in kinds
    ]
    calls = report.frame("api_calls", CALL_COLUMNS)
    is_open = ranges.labels("style").equals([START_END])
    seen = belongs(kernels, call_keys(calls, ranges.take(~is_open)))
    start, launches = calls.ints("start_ns"), calls.ints("correlation_id") > 0
    for begin, end, pid in ranges.take(is_open).tuples("start_ns", "end_ns", "pid"):
        inside = (calls.ints("pid") == pid) & (start >= begin) & (start <= end)
        seen |= belongs(kernels, np.unique(launch_key(calls.take(launches & inside))))
    return tuple(sorted(set(include))), seen
