"""The iterations of each process of a report: what has to be read for them, and where it is."""

from __future__ import annotations

from collections.abc import Callable

from nsightpy.analysis.idle.gpu_work import Work
from nsightpy.analysis.iterations.steady import Iterations, find_iterations
from nsightpy.analysis.launches import launch_starts
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.frames import Frame, Labels, distinct
from nsightpy.query.nvtx_filter import named_ranges
from nsightpy.readers.host_calls import KERNEL_LAUNCHES
from nsightpy.reports.system import SystemReport

PLACED = ("start_ns", "end_ns", "pid", "device", "correlation_id")


def search(
    report: SystemReport,
    narrow: Callable[[Frame], Frame] = lambda frame: frame,
    nvtx: str | None = None,
    level: int | None = None,
) -> dict[int, Iterations]:
    """The iterations of each process of a report, in the work that `narrow` leaves.

    `nvtx`: the range that the user called an iteration; `level`: that which the user chose.
    """
    kernels, operations, graphs = map(narrow, work_to_search(report))
    named_graphs = narrow(_named_graphs(report)) if graphs.rows else graphs
    launches, waits = report.calls.launching(KERNEL_LAUNCHES), report.calls.synchronising()
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    named = None if nvtx is None else named_ranges(report, nvtx).ranges
    pids = {pid for frame in (kernels, graphs) for pid in distinct(frame.ints("pid"))[0].tolist()}
    found = {}
    for pid in sorted(pids):
        begun = [frame.at(pid=pid).ints("start_ns") for frame in (kernels, operations, graphs)]
        searched = (kernels.at(pid=pid), named_graphs.at(pid=pid), ranges.at(pid=pid))
        chosen = None if named is None else named.at(pid=pid)
        if chosen is not None and len(distinct(chosen.ints("tid"))[0]) == chosen.rows > 0:
            searched, chosen = _launched_inside(*searched, launches, chosen), None
        found[pid] = find_iterations(
            *(searched[0], searched[1], launches, searched[2], waits.at(pid=pid)),
            named=chosen,
            text=nvtx or "",
            first_ns=min((int(starts.min()) for starts in begun if len(starts)), default=None),
            level=level,
        )
    return found


def work_to_search(report: SystemReport) -> Work:
    """All GPU work of a report, with the names of kernels."""
    others = (report.frame(name, PLACED) for name in ("memory_operations", "graph_launches"))
    return Work(report.frame("kernels", (*PLACED, "name")), *others)


def _named_graphs(report: SystemReport) -> Frame:
    """Graph launches traced as a whole, each graph under a name."""
    graphs = report.frame("graph_launches", (*PLACED, "graph_id"))
    names = Labels.of(f"CUDA graph {number}" for number in graphs.ints("graph_id").tolist())
    return Frame({**graphs.select(PLACED), "name": names})


def _launched_inside(
    kernels: Frame, graphs: Frame, ranges: Frame, calls: Frame, named: Frame
) -> tuple[Frame, Frame, Frame]:
    """Kernels, graphs and ranges of one process while one of the named ranges was open."""
    low, high = int(named.ints("start_ns").min()), int(named.ints("end_ns").max())
    starts = [launch_starts(frame, calls) for frame in (kernels, graphs)]
    kept = [(start >= low) & (start <= high) for start in starts]
    within = inside(ranges, named)
    for row in range(named.rows):
        within &= ~ranges.rows_at(
            **{column: int(named.ints(column)[row]) for column in ("start_ns", "end_ns", "tid")}
        )
    return kernels.take(kept[0]), graphs.take(kept[1]), ranges.take(within)
