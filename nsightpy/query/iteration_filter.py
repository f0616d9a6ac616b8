"""The iterations of each process of a report, and what `--iteration 4|2-5|steady` leaves of it.

Iterations are those that the whole report has, numbered from 0 as `iterations` counts them; each
process has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, union, union_of
from nsightpy.analysis.iterations.steady import STEADY, Chosen, Iterations, find_iterations
from nsightpy.analysis.launches import launch_starts
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.time_budget import places_of
from nsightpy.analysis.work_graph.launched_work import Work
from nsightpy.errors import MissingDataError
from nsightpy.frames import Frame, Ints, Labels, distinct
from nsightpy.query.nvtx_filter import named_ranges
from nsightpy.readers.host_calls import KERNEL_LAUNCHES
from nsightpy.reports.system import SystemReport
from nsightpy.results.notes import as_note

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


@dataclass(frozen=True)
class ChosenIterations:
    """The time of some iterations of each process, in ns, and the devices that it works on."""

    windows: dict[int, Spans]
    places: tuple[tuple[int, int], ...]

    def by_place(self) -> dict[tuple[int, int], Spans]:
        """Per process and device."""
        return {place: self.windows[place[0]] for place in self.places if place[0] in self.windows}

    def mask(self, frame: Frame) -> NDArray[np.bool_]:
        """Which rows began in the iterations of their process; of any where none was asked for."""
        start = frame.ints("start_ns")
        if "pid" not in frame:
            return union_of(self.windows.values()).holds(start)
        kept = np.zeros(frame.rows, dtype=np.bool_)
        for pid, time in self.windows.items():
            rows = frame.ints("pid") == pid
            kept[rows] = time.holds(start[rows])
        return kept


def chosen_iterations(report: SystemReport, chosen: Chosen) -> ChosenIterations:
    """The iterations of a report that a user chose; found once.

    Raises MissingDataError where no process has any of them.
    """
    return report.derived(("iterations", chosen), lambda: _find(report, chosen))


def places_in(iterations: Iterations, chosen: Chosen) -> Ints:
    """Which of a process's iterations are chosen, ascending."""
    if chosen == STEADY:
        return iterations.steady
    places = [place for place in sorted(chosen) if place < len(iterations)]  # type: ignore[operator]
    return np.asarray(places, dtype=np.int64)


def _find(report: SystemReport, chosen: Chosen) -> ChosenIterations:
    every = search(report)
    windows = {}
    for pid, iterations in every.items():
        rows = places_in(iterations, chosen)
        if len(rows):
            windows[pid] = union(iterations.start[rows], iterations.end[rows])
    if not windows:
        raise none_of(report.path, report.kind, every.values(), chosen)
    return ChosenIterations(windows, tuple(places_of(*work_to_search(report))))


def none_of(
    inputs: str | Path, tool: str, searched: Collection[Iterations], chosen: Chosen
) -> MissingDataError:
    """Why none of the chosen iterations is there, and what is."""
    most = max(map(len, searched), default=0)
    if most == 0:
        notes = dict.fromkeys(note for iterations in searched for note in iterations.notes)
        why = " ".join(as_note(note).text(tool) for note in notes)
        return MissingDataError(inputs, "has no iterations to choose from", why)
    if chosen == STEADY:
        return MissingDataError(inputs, "has no steady iterations", "choose one by number.")
    text = f"has no such iteration: they run from 0 to {most - 1}"
    return MissingDataError(inputs, text, "`nsightpy iterations` lists them.")
