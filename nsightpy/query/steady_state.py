"""Iterations and the steady state of a report's processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.iterations.candidates import owner_of
from nsightpy.analysis.iterations.steady import (
    Iterations,
    SteadyState,
    steady_state,
)
from nsightpy.analysis.time_budget import UNUSED, places_of
from nsightpy.frames import Frame, Ints, distinct
from nsightpy.query.iteration_search import CallsRead, ProcessIterations, search
from nsightpy.query.launched_work import Work
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.units import format_time, listed


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady iterations of one process: their time, how many, found by what, how long each."""

    window: Spans
    count: int
    source: str = ""
    median_ns: float = 0.0


def steady_places(
    report: SystemReport, scope: Scope, work: Work, calls: CallsRead | None = None
) -> Mapping[tuple[int, int], Steady] | None:
    """The steady state of each place (process, device); None unless all processes have one.

    Processes that did next to nothing need none: theirs is that of the busiest. None, too, when the
    user chose a stretch of time. `work` and `calls` are what was read already.
    """
    if scope.is_part or not (work.kernels.rows or work.graphs.rows):
        return None
    steady = {}
    for pid, iterations in iterations_of(report, scope, work, calls).items():
        state = steady_state(iterations)
        # the iterations of damaged times may have no length
        if state is not None and state.end_ns > state.start_ns:
            window = Spans.of(state.start_ns, state.end_ns)
            steady[pid] = Steady(window, state.count, state.source, state.median_ns)
    busy = _work_of_processes(work)
    busiest = max(busy, key=lambda pid: busy[pid])
    if any(spent >= UNUSED * busy[busiest] for pid, spent in busy.items() if pid not in steady):
        return None
    return {place: steady.get(place[0], steady[busiest]) for place in places_of(*work)}


def _work_of_processes(work: Work) -> dict[int, int]:
    """The sum of the durations of each process's operations, in ns."""
    spent: dict[int, int] = {}
    for frame in work:
        length = frame.ints("end_ns") - frame.ints("start_ns")
        pids, process = distinct(frame.ints("pid"))
        for place, pid in enumerate(pids.tolist()):
            spent[pid] = spent.get(pid, 0) + int(length[process == place].sum())
    return spent


def in_steady(frame: Frame, steady: Mapping[tuple[int, int], Steady]) -> Frame:
    """The rows that began in the steady iterations of their process; all without any."""
    if not steady:
        return frame
    kept, start = np.zeros(frame.rows, dtype=np.bool_), frame.ints("start_ns")
    for (pid, device), state in steady.items():
        # code ranges are of no device
        place = {"pid": pid, "device": device} if "device" in frame else {"pid": pid}
        low, high = int(state.window.starts[0]), int(state.window.ends[-1])
        kept |= frame.rows_at(**place) & (start >= low) & (start < high)
    return frame.take(kept)


def steady_states(report: SystemReport, scope: Scope) -> dict[int, SteadyState]:
    """The steady state of each process that has one; none where the user gave a stretch of time."""
    if scope.is_timed or scope.iteration is not None:
        return {}
    every = iterations_of(report, scope).items()
    states = {pid: steady_state(iterations) for pid, iterations in every}
    return {pid: state for pid, state in states.items() if state is not None}


def is_steady(frame: Frame, states: Mapping[int, SteadyState]) -> NDArray[np.bool_]:
    """Mask of what began in the steady state of its process, where that has one with any of it."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    start = frame.ints("start_ns")
    for pid, state in states.items():
        of_process = frame.ints("pid") == pid
        within = of_process & (start >= state.start_ns) & (start < state.end_ns)
        if within.any():
            kept &= within | ~of_process
    return kept


def usual_time(states: Iterable[Steady | SteadyState]) -> str:
    """How long an iteration is, for people: the lower median of the processes' medians."""
    medians = sorted(state.median_ns for state in states)
    return format_time(medians[(len(medians) - 1) // 2])


def steady_notes(states: Iterable[SteadyState]) -> list[str]:
    """Which iterations figures are about."""
    known = list(states)
    if not known:
        return []
    counts = sorted({state.count for state in known})
    sources = listed(dict.fromkeys(state.source for state in known))
    count = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    usual = usual_time(known)
    each = "" if len(known) == 1 else f" in each of {len(known)} processes"
    text = (
        f"Only the steady state counts: {count} iterations of {usual}{each}, by {sources}; "
        "--whole counts warm-up and all else, too."
    )
    return [text]


def find_in_report(
    report: SystemReport,
    scope: Scope | None = None,
    work: Work | None = None,
    calls: CallsRead | None = None,
) -> dict[int, ProcessIterations]:
    """The iterations of each process of a report, of those in scope; see `search`."""
    scope = scope or Scope()
    return search(report, partial(scope.within, report), scope.nvtx, work, calls)


def iterations_of(
    report: SystemReport, scope: Scope, work: Work | None = None, calls: CallsRead | None = None
) -> dict[int, Iterations]:
    """The same without the work in them: searched once, whichever questions ask."""

    def searched() -> dict[int, Iterations]:
        every = find_in_report(report, scope, work, calls)
        return {pid: process.iterations for pid, process in every.items()}

    key = (iterations_of, scope.ranks, scope.devices, scope.bounds(report), scope.nvtx)
    return report.derived(key, searched)


def iteration_numbers(report: SystemReport, events: Frame) -> Ints:
    """The iteration of its process in which each event began, -1 for none."""
    numbers = np.full(events.rows, -1, dtype=np.int64)
    for pid, iterations in iterations_of(report, Scope()).items() if events.rows else ():
        rows = np.flatnonzero(events.ints("pid") == pid)
        starts = events.ints("start_ns")[rows]
        numbers[rows] = owner_of(iterations.start, iterations.end - 1, starts)
    return numbers
