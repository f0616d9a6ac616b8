"""What `--iteration 4|2-5|steady` leaves of a report: what began in those iterations.

Iterations are those that the whole report has, numbered from 0 as `iterations` counts them; each
process has its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, union, union_of
from nsightpy.analysis.iterations.steady import STEADY, Chosen, Iterations
from nsightpy.analysis.time_budget import places_of
from nsightpy.errors import MissingDataError
from nsightpy.frames import Frame, Ints
from nsightpy.query.iteration_search import search, work_to_search
from nsightpy.reports.system import SystemReport
from nsightpy.results.notes import as_note


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
        raise _missing(report, every.values(), chosen)
    return ChosenIterations(windows, tuple(places_of(*work_to_search(report))))


def _missing(
    report: SystemReport, searched: Collection[Iterations], chosen: Chosen
) -> MissingDataError:
    """Why none of the chosen iterations is there, and what is."""
    most = max((len(iterations) for iterations in searched), default=0)
    if most == 0:
        notes = dict.fromkeys(note for iterations in searched for note in iterations.notes)
        why = " ".join(as_note(note).text(report.kind) for note in notes)
        return MissingDataError(report.path, "has no iterations to choose from", why)
    if chosen == STEADY:
        return MissingDataError(report.path, "has no steady iterations", "choose one by number.")
    text = f"has no such iteration: they run from 0 to {most - 1}"
    return MissingDataError(report.path, text, "`nsightpy iterations` lists them.")
