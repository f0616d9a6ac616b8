"""The line of the program that launched each kernel."""

import numpy as np

from nsightpy.analysis.iterations.vocabulary import LIBRARY_DOMAINS
from nsightpy.analysis.launches import GRAPH_LAUNCH, NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.membership import NO_THREAD, waiting_threads
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, RANGE_COLUMNS
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.operators.device_time import FUNCTION_COLUMNS, OPERATOR_COLUMNS
from nsightpy.analysis.operators.source_lines import python_lines, range_lines
from nsightpy.frames import Frame, Labels
from nsightpy.query.capture_advice import holds_no
from nsightpy.reports.system import SystemReport

REPLAY = " (graph replay)"
# What a line is, by where it comes from.
SOURCES = {
    "python": "the innermost Python function outside torch, at the line where it begins",
    "ranges": "the innermost code range, operators last, for want of Python stacks",
}
LINES = holds_no(
    "lines of the program",
    "NVTX ranges stand for them: `nsys profile -t cuda,nvtx` records them.",
    "Record them with_stack.",
)
_CALLS = (*CALL_COLUMNS, "name", "event_class")
_KERNELS = ("start_ns", "end_ns", "pid", "correlation_id", "name")
_OPERATORS = (*OPERATOR_COLUMNS, "sequence", "direction")


def source_of_lines(report: SystemReport) -> str:
    """Where the lines of a report come from, one of SOURCES; empty where there are none."""
    if report.frame("python_functions", FUNCTION_COLUMNS).rows:
        return "python"
    return "ranges" if report.frame("nvtx_ranges", RANGE_COLUMNS).rows else ""


def usual_line(report: SystemReport, name: str) -> str:
    """The Python line that launched most of a kernel's time; empty: none, or not known."""
    if source_of_lines(report) != "python":
        return ""
    kernels = report.frame("kernels", _KERNELS)
    kernels = kernels.take(kernels.labels("name").equals([name]))
    lines = launching_lines(report, kernels)
    spent = np.bincount(lines.codes, kernels.ints("end_ns") - kernels.ints("start_ns"), minlength=1)
    longest = int(spent.argmax())
    return lines.values[longest] if 2 * spent[longest] > spent.sum() else ""


def launching_lines(report: SystemReport, kernels: Frame) -> Labels:
    """For each kernel (pid, correlation_id) the line that launched it; empty: not known.

    In traces with stacks the innermost Python line of the program, else the innermost NVTX range
    around the launching call. Of the kernels of a CUDA graph it is that of the replay.
    """
    calls = report.frame("api_calls", _CALLS)
    rows = launch_rows(kernels, calls)
    launches, place = np.unique(rows, return_inverse=True)
    # the first is NO_LAUNCH where there is any
    calls = calls.take(launches[launches != NO_LAUNCH])
    replays = calls.labels("name").where(lambda name: GRAPH_LAUNCH in name).tolist()
    lines = [
        line + REPLAY if line and replay else line
        for line, replay in zip(_lines(report, calls), replays, strict=True)
    ]
    labels = Labels.of(["", *lines])
    return labels.take(place + (len(lines) == len(launches))).merged()


def _lines(report: SystemReport, calls: Frame) -> Labels:
    if source_of_lines(report) == "python":
        functions = report.frame("python_functions", FUNCTION_COLUMNS)
        return python_lines(functions, report.frame("operators", _OPERATORS), calls)
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(~ranges.labels("domain").where(LIBRARY_DOMAINS.__contains__))
    ranges = Frame({**ranges, "name": folded(ranges.labels("name"))})
    waiting = waiting_threads(calls, ranges)
    waited = np.where(waiting == NO_THREAD, calls.ints("tid"), waiting)
    return range_lines(ranges, calls, Frame({**calls, "tid": waited}))
