"""The steady state of a report: its iterations without warm-up and the profiler's edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from nsightpy.analysis.iterations.steady import SteadyState, steady_state
from nsightpy.analysis.selection.launch_places import Mask
from nsightpy.frames import Frame
from nsightpy.reports import NsysReport
from nsightpy.units import format_time
from nsightpy.verbs.asking.scope import Scope
from nsightpy.verbs.iterations import find_in_report


def steady_states(report: NsysReport, scope: Scope) -> dict[int, SteadyState]:
    """The steady state of each process that has one; none where the user gave a stretch of time."""
    if scope.from_ns is not None or scope.to_ns is not None:
        return {}
    states = {pid: steady_state(found) for pid, (found, _) in find_in_report(report, scope).items()}
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
