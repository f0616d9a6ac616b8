"""The iterations of each process of a report: what has to be read for them, and where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.idle.gap_causes import LONG_CALL_NS
from nsightpy.analysis.iterations.steady import (
    NONE,
    PROFILER_CALLS,
    Iterations,
    find_iterations,
)
from nsightpy.analysis.launches import launch_starts
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.frames import API_CALLS, Frame, Labels, distinct
from nsightpy.query.launched_work import FollowedWork, Work
from nsightpy.query.nvtx_filter import named_ranges
from nsightpy.readers.host_calls import CALL_COLUMNS, KERNEL_LAUNCHES
from nsightpy.reports.system import SystemReport

PLACED = ("start_ns", "end_ns", "pid", "device", "correlation_id")
_WORK = (("kernels", (*PLACED, "name")), ("memory_operations", PLACED), ("graph_launches", PLACED))


@dataclass(frozen=True)
class ProcessIterations:
    """The iterations of one process and its GPU work: PLACED and more; kernels have names."""

    iterations: Iterations
    kernels: Frame
    operations: Frame
    graphs: Frame


@dataclass(frozen=True)
class CallsRead:
    """Calls of a report: those that launch, by start; others with their names; NVTX ranges."""

    launches: Frame
    others: Frame
    ranges: Frame | None = None


def search(
    report: SystemReport,
    narrow: Callable[[Frame], Frame] | None = None,
    nvtx: str | None = None,
    work: Work | None = None,
    calls: CallsRead | None = None,
) -> dict[int, ProcessIterations]:
    """The iterations of each process of a report, in the work that `narrow` leaves.

    `nvtx`: the range that the user called an iteration. What was read already is given: all `work`
    of the ranks and devices that count, and the `calls`.
    """
    work = work or _work_of(report)
    kernels, operations, graphs = (narrow(frame) if narrow else frame for frame in work)
    named_graphs = graphs
    if graphs.rows:
        named_graphs = _named_graphs(report)
        named_graphs = narrow(named_graphs) if narrow else named_graphs
    calls = calls or calls_of(report)
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    named = None if nvtx is None else named_ranges(report, nvtx).ranges
    pids = np.unique([pid for work in (kernels, graphs) for pid in distinct(work.ints("pid"))[0]])
    processes = {}
    for pid in pids.tolist():
        process = ProcessIterations(
            NONE, *(frame.at(pid=pid) for frame in (kernels, operations, graphs))
        )
        mine = None if named is None else named.at(pid=pid)
        of_it = (process.kernels, named_graphs.at(pid=pid), ranges.at(pid=pid))
        if mine is not None and len(np.unique(mine.ints("tid"))) == mine.rows > 0:
            of_it = _launched_inside(*of_it, calls.launches, mine)
            mine = None
        result = find_iterations(
            of_it[0],
            of_it[1],
            calls.launches,
            of_it[2],
            calls.others.at(pid=pid),
            named=mine,
            text=nvtx or "",
            first_ns=_first(process.kernels, process.operations, process.graphs),
        )
        processes[pid] = replace(process, iterations=result)
    return processes


def _work_of(report: SystemReport) -> Work:
    return Work(*(report.frame(name, columns) for name, columns in _WORK))


def calls_of(report: SystemReport, launches: Frame | None = None) -> CallsRead:
    """The calls by which iterations are found; launches that were read already are given."""
    source = report.calls
    launches = source.launching(KERNEL_LAUNCHES) if launches is None else launches
    return CallsRead(
        launches, Frame.concatenate([source.synchronising(), source.named(*PROFILER_CALLS)])
    )


def followed_calls(
    report: SystemReport, followed: FollowedWork | None
) -> tuple[CallsRead | None, Frame]:
    """The same out of what was read for the idle time; and all calls that wait or last, by start.

    None and no calls where the capture holds none.
    """
    if followed is None:
        return None, Frame.empty(API_CALLS, CALL_COLUMNS)
    return calls_of(report, followed.calls), waiting_calls(report)


def waiting_calls(report: SystemReport) -> Frame:
    """The calls that wait for the GPU, allocate or last, by start."""
    return report.calls.holding(LONG_CALL_NS)


def _named_graphs(report: SystemReport) -> Frame:
    """Graph launches traced as a whole, each graph under a name."""
    graphs = report.frame("graph_launches", (*PLACED, "graph_id"))
    names = Labels.of(f"CUDA graph {number}" for number in graphs.ints("graph_id").tolist())
    return Frame({**{column: graphs[column] for column in PLACED}, "name": names})


def _first(*frames: Frame) -> int | None:
    """When the first of all operations began."""
    return min((int(frame.ints("start_ns").min()) for frame in frames if frame.rows), default=None)


def _launched_inside(
    kernels: Frame, graphs: Frame, ranges: Frame, calls: Frame, named: Frame
) -> tuple[Frame, Frame, Frame]:
    """Kernels, graphs and ranges of one process while one of the ranges was open."""
    low, high = int(named.ints("start_ns").min()), int(named.ints("end_ns").max())
    kept = []
    for frame in (kernels, graphs):
        start = launch_starts(frame, calls)
        kept.append(frame.take((start >= low) & (start <= high)))
    within = inside(ranges, named)
    for row in range(named.rows):
        same = [ranges.ints(c) == named.ints(c)[row] for c in ("start_ns", "end_ns", "tid")]
        within &= ~np.logical_and.reduce(same)
    return kept[0], kept[1], ranges.take(within)
