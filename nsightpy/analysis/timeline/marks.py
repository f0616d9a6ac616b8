"""Findings as marks on a timeline."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.results import Table, Value
from nsightpy.results.tracks import FINDING, Mark, Place, Timeline
from nsightpy.units import format_time


def finding_marks(timeline: Timeline, findings: Table) -> tuple[Mark, ...]:
    """The rows of the findings command, each at its worst place.

    Their times are on the common clock, as those of the timeline are.
    """
    return tuple(_mark(timeline, record) for record in findings.records())


def _mark(timeline: Timeline, record: dict[str, Value]) -> Mark:
    place = _place(timeline.places, record["rank"], record["device"])
    start, length = record["start_ns"], record["duration_ns"]
    span: tuple[int | None, int | None] = (None, None)
    if isinstance(start, int):
        span = (start, start + (length if isinstance(length, int) else 0))
    bound = record["recoverable_ns"]
    gain = f"; at most {format_time(bound)} to gain" if isinstance(bound, int) and bound else ""
    text = f"{record['evidence']}{gain}"
    if record["next_command"]:
        text = f"{text}. Next: {record['next_command']}"
    return Mark(FINDING, str(record["finding"]), text, *span, place, str(record["severity"]))


def _place(places: Sequence[Place], rank: Value, device: Value) -> Place | None:
    """Whose finding it is; None where that is not one place."""
    fitting = [
        place
        for place in places
        if (rank is None or place.rank == rank) and (device is None or place.device == device)
    ]
    if rank is None and device is None and len(places) > 1:
        return None
    return fitting[0] if len(fitting) == 1 or (fitting and rank is not None) else None
