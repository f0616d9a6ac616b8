"""The stretch of time of some iterations, over all ranks, on the clock of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from nsightpy.analysis.iterations.steady import STEADY, Chosen, Iterations
from nsightpy.errors import MissingDataError, UsageError
from nsightpy.query.iteration_filter import places_in
from nsightpy.query.request import Request
from nsightpy.query.steady_state import iterations_of
from nsightpy.query.timeline_clock import Clocks
from nsightpy.results.tracks import Place
from nsightpy.units import listed


def iteration_window(
    request: Request, clocks: Clocks, places: Sequence[Place], chosen: Chosen
) -> tuple[int, int]:
    """First start and last end of the chosen iterations, in ns on the clock of the picture.

    Raises UsageError when the ranks have fewer iterations, MissingDataError when they have none.
    """
    by_process = iterations_by_process(request)
    most = max((len(iterations) for iterations in by_process.values()), default=0)
    if most == 0:
        why = " ".join(
            dict.fromkeys(note for iterations in by_process.values() for note in iterations.notes)
        )
        what, why = listed(request.ranks.inputs), request.worded(why)
        raise MissingDataError(what, "has no iterations to choose from", why)
    windows = []
    for place in places:
        iterations = by_process.get((place.report, place.pid))
        if iterations is not None and len(rows := places_in(iterations, chosen)):
            first, last = int(rows[0]), int(rows[-1])
            windows.append(
                clocks.aligned(place, int(iterations.start[first]), int(iterations.end[last]))
            )
    if not windows:
        named = STEADY if isinstance(chosen, str) else str(min(chosen))
        raise UsageError(f"there is no iteration {named}: they run from 0 to {most - 1}")
    return min(start for start, _ in windows), max(end for _, end in windows)


def iterations_by_process(request: Request) -> dict[tuple[str, int], Iterations]:
    """The iterations of each process (report, pid), in its own time, of the whole capture."""
    scope = replace(request.scope, from_ns=None, to_ns=None, iteration=None)
    return {
        (str(report.path), pid): iterations
        for report, by_pid in request.map(partial(iterations_of, scope=scope)).results
        for pid, iterations in by_pid.items()
    }
