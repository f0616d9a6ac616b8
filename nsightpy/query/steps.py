"""The iterations of a report's processes, the steady ones, and what lies in those wanted.

Iterations are numbered from 0 in the whole report, as `iterations` counts them; each process has
its own.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, union, union_of
from nsightpy.analysis.iterations.levels import owner_of
from nsightpy.analysis.iterations.steady import (
    STEADY,
    Chosen,
    Iterations,
    SteadyState,
    find_iterations,
)
from nsightpy.analysis.launches import launch_starts
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.projection import RANGE_COLUMNS
from nsightpy.analysis.time_budget import places_of
from nsightpy.analysis.work_graph.launched_work import Work
from nsightpy.errors import MissingDataError
from nsightpy.frames import Frame, Ints, Labels, distinct
from nsightpy.query.nvtx_filter import named_ranges
from nsightpy.readers.activity import KERNEL_LAUNCHES
from nsightpy.reports.system import SystemReport
from nsightpy.results.notes import as_note
from nsightpy.units import format_time, listed

PLACED = ("start_ns", "end_ns", "pid", "device", "correlation_id")


def iterations_of(report: SystemReport) -> dict[int, Iterations]:
    """The iterations of each process of a whole report; searched once."""
    return report.derived((search, None), lambda: search(report))


def search(
    report: SystemReport,
    narrow: Callable[[Frame], Frame] = lambda frame: frame,
    nvtx: str | None = None,
    level: int | None = None,
) -> dict[int, Iterations]:
    """The iterations of each process of a report, in the work that `narrow` leaves.

    `nvtx`: the range that the user called an iteration; `level`: that which the user chose of the
    levels on which the work repeats.
    """
    kernels, operations, graphs = work_to_search(report)
    names = Labels.of(f"CUDA graph {number}" for number in graphs.ints("graph_id").tolist())
    replays = Frame({**graphs.select(PLACED), "name": names})
    every = narrow(Frame.concatenate([kernels, replays]) if replays.rows else kernels)
    operations = narrow(operations)
    named = None if nvtx is None else named_ranges(report, nvtx).ranges
    launches, waits = report.calls.launching(KERNEL_LAUNCHES), report.calls.synchronising()
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    found = {}
    for pid in np.unique(every.ints("pid")).tolist():
        launched, within = every.at(pid=pid), ranges.at(pid=pid)
        begun = (launched.ints("start_ns"), operations.at(pid=pid).ints("start_ns"))
        chosen = None if named is None else named.at(pid=pid)
        if chosen is not None and len(distinct(chosen.ints("tid"))[0]) == chosen.rows > 0:
            # of a range that comes once the inside
            start = launch_starts(launched, launches)
            opened, closed = chosen.ints("start_ns").min(), chosen.ints("end_ns").max()
            launched = launched.take((start >= opened) & (start <= closed))
            itself = np.isin(within.ints("start_ns"), chosen.ints("start_ns"))
            within, chosen = within.take(inside(within, chosen) & ~itself), None
        found[pid] = find_iterations(
            *(launched, launches, within, waits.at(pid=pid)),
            named=chosen,
            text=nvtx or "",
            first_ns=int(np.concatenate(begun).min()),
            level=level,
        )
    return found


def work_to_search(report: SystemReport) -> Work:
    """All GPU work of a report, with the names of kernels and the numbers of graphs."""
    return Work(
        report.frame("kernels", (*PLACED, "name")),
        report.frame("memory_operations", PLACED),
        report.frame("graph_launches", (*PLACED, "graph_id")),
    )


def iteration_numbers(report: SystemReport, events: Frame) -> Ints:
    """The iteration of its process in which each event began, -1 for none."""
    numbers = np.full(events.rows, -1, dtype=np.int64)
    for pid, iterations in iterations_of(report).items() if events.rows else ():
        rows = np.flatnonzero(events.ints("pid") == pid)
        starts = events.ints("start_ns")[rows]
        numbers[rows] = owner_of(iterations.start, iterations.end - 1, starts)
    return numbers


def places_in(iterations: Iterations, chosen: Chosen) -> Ints:
    """Which of a process's iterations are chosen, ascending."""
    if isinstance(chosen, str):
        return iterations.steady
    return np.asarray(sorted(n for n in chosen if n < len(iterations)), dtype=np.int64)


def chosen_time(report: SystemReport, chosen: Chosen) -> dict[tuple[int, int], Spans]:
    """The time of the iterations that a user chose, by process and device; found once.

    Raises MissingDataError where no process has any of them.
    """

    def found() -> dict[tuple[int, int], Spans]:
        every = iterations_of(report)
        rows = {pid: places_in(iterations, chosen) for pid, iterations in every.items()}
        if not any(map(len, rows.values())):
            raise none_of(report.path, report.kind, every.values(), chosen)
        return {
            (pid, device): union(every[pid].start[rows[pid]], every[pid].end[rows[pid]])
            for pid, device in places_of(*work_to_search(report))
            if len(rows[pid])
        }

    return report.derived((chosen_time, chosen), found)


def began_in(frame: Frame, time: Mapping[tuple[int, int], Spans]) -> NDArray[np.bool_]:
    """Which rows began in the time of their process, on any device; of any where none is known."""
    start = frame.ints("start_ns")
    if "pid" not in frame:
        return union_of(time.values()).holds(start)
    kept = np.zeros(frame.rows, dtype=np.bool_)
    for pid, spans in {pid: spans for (pid, _), spans in time.items()}.items():
        rows = frame.rows_at(pid=pid)
        kept[rows] = spans.holds(start[rows])
    return kept


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


def is_steady(frame: Frame, states: Mapping[int, SteadyState]) -> NDArray[np.bool_]:
    """Mask of what began in the steady state of its process, where that has one with any of it."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    for pid, state in states.items():
        rows = frame.rows_at(pid=pid)
        within = rows & state.window.holds(frame.ints("start_ns"))
        if within.any():
            kept &= within | ~rows
    return kept


def steady_text(states: Iterable[SteadyState]) -> str:
    """Which iterations figures are about, for people; empty without any."""
    states = list(states)
    if not states:
        return ""
    counts = sorted({state.count for state in states})
    count = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    medians = sorted(state.median_ns for state in states)
    usual = format_time(medians[(len(medians) - 1) // 2])
    sources = listed(dict.fromkeys(state.source for state in states))
    return f"{count} steady iterations, median {usual}, by {sources}"


def steady_notes(states: Iterable[SteadyState]) -> list[str]:
    """What is said where only the steady state counts."""
    text = steady_text(states)
    return [f"Only the steady state counts: {text}."] if text else []
