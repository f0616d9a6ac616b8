"""The iterations of all ranks as marks on a timeline."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.query.iteration_window import iterations_by_process
from nsightpy.query.request import Request
from nsightpy.query.timeline_clock import Clocks
from nsightpy.results.tracks import ITERATION, Mark, Place
from nsightpy.units import format_time

# What a list of marks can be read with.
MOST = 5_000


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
