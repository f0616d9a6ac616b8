"""The steady state of a report's processes, and what lies in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.iterations.levels import owner_of
from nsightpy.analysis.iterations.steady import Iterations, SteadyState, steady_state
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.time_budget import UNUSED, places_of
from nsightpy.analysis.work_graph.launched_work import Work
from nsightpy.frames import Frame, Ints
from nsightpy.query.iteration_filter import search
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.units import format_time, listed


def iterations_of(
    report: SystemReport, scope: Scope | None = None, level: int | None = None
) -> dict[int, Iterations]:
    """The iterations of each process of a report, of those in scope; searched once."""
    scope = scope or Scope()
    key = (iterations_of, scope.ranks, scope.devices, scope.bounds(report), scope.nvtx, level)
    narrow = partial(scope.within, report)
    return report.derived(key, lambda: search(report, narrow, scope.nvtx, level))


def steady_states(report: SystemReport, scope: Scope) -> dict[int, SteadyState]:
    """The steady state of each process that has one; none where the user gave a stretch of time."""
    if scope.is_timed or scope.iteration is not None:
        return {}
    every = iterations_of(report, scope).items()
    states = {pid: steady_state(iterations) for pid, iterations in every}
    return {pid: state for pid, state in states.items() if state is not None}


def steady_places(
    report: SystemReport, scope: Scope, work: Work
) -> Mapping[tuple[int, int], SteadyState] | None:
    """The steady state of each place (process, device); None unless all processes have one.

    Processes that did next to nothing need none: theirs is that of the busiest. None, too, when the
    user chose a stretch of time.
    """
    places = places_of(*work)
    if scope.is_part or not (work.kernels.rows or work.graphs.rows):
        return None
    states = steady_states(report, scope)
    busy = {
        pid: sum(int(durations(frame.at(pid=pid)).sum()) for frame in work) for pid, _ in places
    }
    busiest = max(busy, key=lambda pid: busy[pid])
    if any(spent >= UNUSED * busy[busiest] for pid, spent in busy.items() if pid not in states):
        return None
    return {place: states.get(place[0], states[busiest]) for place in places}


def in_steady(frame: Frame, steady: Mapping[tuple[int, int], SteadyState]) -> Frame:
    """The rows that began in the steady iterations of their process; all without any."""
    if not steady:
        return frame
    kept = np.zeros(frame.rows, dtype=np.bool_)
    for (pid, device), state in steady.items():
        # code ranges are of no device
        place = {"pid": pid, "device": device} if "device" in frame else {"pid": pid}
        kept |= frame.rows_at(**place) & _began_in(frame, state)
    return frame.take(kept)


def is_steady(frame: Frame, states: Mapping[int, SteadyState]) -> NDArray[np.bool_]:
    """Mask of what began in the steady state of its process, where that has one with any of it."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    for pid, state in states.items():
        of_process = frame.rows_at(pid=pid)
        within = of_process & _began_in(frame, state)
        if within.any():
            kept &= within | ~of_process
    return kept


def _began_in(frame: Frame, state: SteadyState) -> NDArray[np.bool_]:
    start = frame.ints("start_ns")
    return (start >= state.start_ns) & (start < state.end_ns)


def usual_time(states: Iterable[SteadyState]) -> str:
    """How long an iteration is, for people: the lower median of the processes' medians."""
    medians = sorted(state.median_ns for state in states)
    return format_time(medians[(len(medians) - 1) // 2])


def steady_notes(states: Iterable[SteadyState]) -> list[str]:
    """Which iterations figures are about."""
    states = list(states)
    if not states:
        return []
    counts = sorted({state.count for state in states})
    sources = listed(dict.fromkeys(state.source for state in states))
    count = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    each = "" if len(states) == 1 else f" in each of {len(states)} processes"
    text = (
        f"Only the steady state counts: {count} iterations of {usual_time(states)}{each}, "
        f"by {sources}; --whole counts warm-up and all else, too."
    )
    return [text]


def iteration_numbers(report: SystemReport, events: Frame) -> Ints:
    """The iteration of its process in which each event began, -1 for none."""
    numbers = np.full(events.rows, -1, dtype=np.int64)
    for pid, iterations in iterations_of(report).items() if events.rows else ():
        rows = np.flatnonzero(events.ints("pid") == pid)
        starts = events.ints("start_ns")[rows]
        numbers[rows] = owner_of(iterations.start, iterations.end - 1, starts)
    return numbers
