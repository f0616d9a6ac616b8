"""The iterations of all ranks on the clock of a picture: their stretch of time, their marks."""

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
from nsightpy.results.tracks import ITERATION, Mark, Place
from nsightpy.units import format_time, listed

# What a list of marks can be read with.
MOST = 5_000


def iteration_window(
    request: Request, clocks: Clocks, places: Sequence[Place], chosen: Chosen
) -> tuple[int, int]:
    """First start and last end of the chosen iterations, in ns on the clock of the picture.

    Raises UsageError when the ranks have fewer iterations, MissingDataError when they have none.
    """
    by_process = iterations_by_process(request)
    most = max((len(iterations) for iterations in by_process.values()), default=0)
    if most == 0:
        notes = dict.fromkeys(note for part in by_process.values() for note in part.notes)
        what, why = listed(request.ranks.inputs), " ".join(map(request.worded, notes))
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


def iteration_marks(
    request: Request,
    clocks: Clocks,
    places: Sequence[Place],
    window: tuple[int | None, int | None],
) -> tuple[Mark, ...]:
    """Each iteration from its first start to its last end over the ranks, as --iteration has it."""
    by_process = iterations_by_process(request)
    spans: dict[int, list[tuple[int, int, str]]] = {}
    seen: dict[tuple[str, int], Iterations] = {}
    for place in places:
        unit = (place.report, place.pid)
        iterations = by_process.get(unit)
        if iterations is None or unit in seen:
            continue
        seen[unit] = iterations
        starts, ends = (
            clocks.move(place, iterations.start).tolist(),
            clocks.move(place, iterations.end).tolist(),
        )
        for number, span in enumerate(zip(starts, ends, iterations.phase, strict=True)):
            spans.setdefault(number, []).append(span)
    sources = sorted({iterations.source for iterations in seen.values() if iterations.source})
    marks = (_mark(number, spans[number], sources) for number in sorted(spans)[:MOST])
    return tuple(mark for mark in marks if _in(mark, window))


def _mark(number: int, spans: Sequence[tuple[int, int, str]], sources: Sequence[str]) -> Mark:
    lengths = sorted(end - start for start, end, _ in spans)
    low, high = format_time(lengths[0]), format_time(lengths[-1])
    ranks = f" on {len(spans)} ranks" if len(spans) > 1 else ""
    length = low if low == high else f"{low} to {high}"
    phases = "/".join(dict.fromkeys(phase for _, _, phase in spans))
    return Mark(
        ITERATION,
        f"iteration {number}",
        f"{phases}, {length}{ranks}; by {', '.join(sources)}",
        min(start for start, _, _ in spans),
        max(end for _, end, _ in spans),
    )


def _in(mark: Mark, window: tuple[int | None, int | None]) -> bool:
    """Whether a mark overlaps the window of the picture."""
    low, high = window
    after = low is None or mark.end_ns is None or mark.end_ns > low
    return after and (high is None or mark.start_ns is None or mark.start_ns < high)
