"""Iterations and the steady state of a report's processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.iterations.steady import (
    Iterations,
    SteadyState,
    find_iterations,
    steady_state,
)
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, RANGE_COLUMNS
from nsightpy.analysis.selection.launch_places import Mask
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import Frame, Labels
from nsightpy.query.idle_time import Work
from nsightpy.query.nvtx_filter import named_ranges
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.units import format_time

PLACED = ("start_ns", "end_ns", "pid", "device", "correlation_id")
# Beyond so many kernels the search takes longer than all the rest of `findings` together.
MOST_KERNELS = 200_000


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady iterations of one process: their time, and how many they are."""

    window: Spans
    count: int


def steady_places(
    report: SystemReport, scope: Scope, work: Work
) -> Mapping[tuple[int, int], Steady] | None:
    """The steady state of each place (process, device); None unless all processes have one.

    None, too, when the user chose a stretch of time, or when the report is very large.
    """
    chosen = scope.from_ns is not None or scope.to_ns is not None or scope.nvtx is not None
    if chosen or not is_searched(work):
        return None
    found = {}
    for pid, (iterations, _) in find_in_report(report, scope, work.kernels).items():
        state = steady_state(iterations)
        if state is None:
            return None
        window = Spans.of(state.start_ns, state.end_ns)
        found[pid] = Steady(window, state.count)
    places = {place for frame in work for place in places_of(frame)}
    if not places <= {place for place in places if place[0] in found}:
        return None
    return {place: found[place[0]] for place in places}


def is_searched(work: Work) -> bool:
    """Whether the steady state of a report's work is looked for, where nothing else was chosen."""
    return 0 < work.kernels.rows <= MOST_KERNELS


def steady_states(
    report: SystemReport, scope: Scope, kernels: Frame | None = None
) -> dict[int, SteadyState]:
    """The steady state of each process that has one; none where the user gave a stretch of time.

    `kernels`: those of the scope, where they were read before.
    """
    if scope.from_ns is not None or scope.to_ns is not None:
        return {}
    found = find_in_report(report, scope, kernels)
    states = {pid: steady_state(iterations) for pid, (iterations, _) in found.items()}
    return {pid: state for pid, state in states.items() if state is not None}


def is_steady(frame: Frame, states: Mapping[int, SteadyState]) -> Mask:
    """Mask of what began in the steady state of its process, where that has one with any of it."""
    kept = np.ones(frame.rows, dtype=np.bool_)
    start = frame.ints("start_ns")
    for pid, state in states.items():
        own = frame.ints("pid") == pid
        within = own & (start >= state.start_ns) & (start < state.end_ns)
        if within.any():
            kept &= within | ~own
    return kept


def steady_notes(states: Iterable[SteadyState]) -> list[str]:
    """Which iterations figures are about."""
    found = list(states)
    if not found:
        return []
    counts = sorted({state.count for state in found})
    sources = ", ".join(dict.fromkeys(state.source for state in found))
    count = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    medians = sorted(state.median_ns for state in found)
    usual = format_time(medians[(len(medians) - 1) // 2])
    each = "" if len(found) == 1 else f" in each of {len(found)} processes"
    text = (
        f"Only the steady state counts: {count} iterations of {usual}{each}, by {sources}; "
        "--whole counts warm-up and all else, too."
    )
    return [text]


def find_in_report(
    report: SystemReport, scope: Scope | None = None, kernels: Frame | None = None
) -> dict[int, tuple[Iterations, Frame]]:
    """The iterations of each process of a report (those in scope), and its kernels.

    The kernels carry start_ns, end_ns, pid, device, correlation_id and name; give them where they
    were read before.
    """
    scope = scope or Scope()
    if kernels is None:
        kernels = scope.within(report, report.frame("kernels", (*PLACED, "name")))
    kernels = kernels.select((*PLACED, "name"))
    graphs = scope.within(report, _named_graphs(report))
    calls = report.frame("api_calls", (*CALL_COLUMNS, "name"))
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    named = None if scope.nvtx is None else named_ranges(report, scope.nvtx).ranges
    pids = np.unique(np.concatenate([kernels.ints("pid"), graphs.ints("pid")])).tolist()
    found = {}
    for pid in pids:
        own = [frame.at(pid=pid) for frame in (kernels, graphs, calls, ranges)]
        mine = None if named is None else named.at(pid=pid)
        if mine is not None and _once(mine):
            own = _launched_inside(own, mine)
            mine = None
        result = find_iterations(own[0], own[1], own[2], own[3], named=mine, text=scope.nvtx or "")
        found[pid] = (result, own[0])
    return found


def _named_graphs(report: SystemReport) -> Frame:
    """Graph launches traced as a whole, each graph under a name."""
    graphs = report.frame("graph_launches", (*PLACED, "graph_id"))
    names = Labels.of(f"CUDA graph {number}" for number in graphs.ints("graph_id").tolist())
    return Frame({**{column: graphs[column] for column in PLACED}, "name": names})


def _once(named: Frame) -> bool:
    """Whether no thread has more than one of the ranges."""
    return len(np.unique(named.ints("tid"))) == named.rows > 0


def _launched_inside(frames: list[Frame], named: Frame) -> list[Frame]:
    """Kernels, graphs, calls and ranges of one process while one of the ranges was open."""
    kernels, graphs, calls, ranges = frames
    low, high = int(named.ints("start_ns").min()), int(named.ints("end_ns").max())
    kept = []
    for frame in (kernels, graphs):
        call = launch_rows(frame, calls)
        start = calls.ints("start_ns")[call] if calls.rows else call
        kept.append(frame.take((call != NO_LAUNCH) & (start >= low) & (start <= high)))
    within = inside(ranges, named)
    for row in range(named.rows):
        same = [ranges.ints(c) == named.ints(c)[row] for c in ("start_ns", "end_ns", "tid")]
        within &= ~np.logical_and.reduce(same)
    return [kept[0], kept[1], calls, ranges.take(within)]
