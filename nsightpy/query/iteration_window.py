"""The stretch of time of one iteration, over all ranks, on the clock of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.errors import MissingDataError, UsageError
from nsightpy.query.request import Request
from nsightpy.query.scope import Scope
from nsightpy.query.steady_state import find_in_report
from nsightpy.query.timeline_clock import Clocks
from nsightpy.reports.system import SystemReport
from nsightpy.results.tracks import Place


def iteration_window(
    request: Request, clocks: Clocks, places: Sequence[Place], number: int
) -> tuple[int, int]:
    """First start and last end of iteration `number`, in ns on the clock of the picture.

    Raises UsageError when the ranks have fewer iterations, MissingDataError when they have none.
    """
    scope = replace(request.scope, from_ns=None, to_ns=None)
    found = {
        (str(report.path), pid): iterations
        for report, by_pid in request.map(partial(_found, scope=scope)).results
        for pid, iterations in by_pid.items()
    }
    most = max((len(iterations) for iterations in found.values()), default=0)
    if most == 0:
        why = " ".join(dict.fromkeys(note for one in found.values() for note in one.notes))
        what = ", ".join(request.ranks.inputs)
        raise MissingDataError(what, "has no iterations to choose from", why)
    if number >= most:
        raise UsageError(f"there is no iteration {number}: they run from 0 to {most - 1}")
    windows = [
        clocks.aligned(place, int(one.start[number]), int(one.end[number]))
        for place in places
        if (one := found.get((place.report, place.pid))) is not None and number < len(one)
    ]
    return min(start for start, _ in windows), max(end for _, end in windows)


def _found(report: SystemReport, *, scope: Scope) -> dict[int, Iterations]:
    """The iterations of each process."""
    return {pid: found for pid, (found, _) in find_in_report(report, scope).items()}
