"""The steady state of a report's processes, where it can be found in no time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.iterations.steady import steady_state
from nsightpy.analysis.time_budget import places_of
from nsightpy.reports import NsysReport
from nsightpy.verbs.asking.scope import Scope
from nsightpy.verbs.gathering.idleness import Work
from nsightpy.verbs.iterations import find_in_report

# Beyond so many kernels the search takes longer than all the rest of `findings` together.
MOST_KERNELS = 200_000


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady iterations of one process: their time, and how many they are."""

    window: Spans
    count: int


def steady_places(
    report: NsysReport, scope: Scope, work: Work
) -> Mapping[tuple[int, int], Steady] | None:
    """The steady state of each place (process, device); None unless all processes have one.

    None, too, when the user chose a stretch of time, or when the report is very large.
    """
    chosen = scope.from_ns is not None or scope.to_ns is not None or scope.nvtx is not None
    if chosen or not work.kernels.rows or work.kernels.rows > MOST_KERNELS:
        return None
    found = {}
    for pid, (iterations, _) in find_in_report(report, scope).items():
        state = steady_state(iterations)
        if state is None:
            return None
        window = union(np.asarray([state.start_ns]), np.asarray([state.end_ns]))
        found[pid] = Steady(window, state.count)
    places = {place for frame in work for place in places_of(frame)}
    if not places <= {place for place in places if place[0] in found}:
        return None
    return {place: found[place[0]] for place in places}
