"""Iterations, findings and the critical path as marks on a timeline."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.results import Table, Value
from nsightpy.results.tracks import CRITICAL, FINDING, ITERATION, Mark, Owner
from nsightpy.units import format_time

# (report, process, device)
Unit = tuple[str, int, int]
# What a list of marks can be read with.
MOST = 5_000


def iteration_marks(processes: Sequence[Iterations]) -> list[Mark]:
    """Each iteration from its first start to its last end over the processes.

    Their times are on the clock of the timeline.
    """
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for iterations in processes:
        each = zip(
            iterations.start.tolist(), iterations.end.tolist(), iterations.phase, strict=True
        )
        for number, span in enumerate(each):
            spans.setdefault(number, []).append(span)
    sources = sorted({iterations.source for iterations in processes if iterations.source})
    marks = []
    for number, parts in sorted(spans.items())[:MOST]:
        starts, ends, phases = zip(*parts, strict=True)
        lengths = [end - start for start, end in zip(starts, ends, strict=True)]
        low, high = format_time(min(lengths)), format_time(max(lengths))
        length = low if low == high else f"{low} to {high}"
        ranks = f" on {len(parts)} ranks" if len(parts) > 1 else ""
        text = f"{'/'.join(dict.fromkeys(phases))}, {length}{ranks}; by {', '.join(sources)}"
        marks.append(Mark(ITERATION, f"iteration {number}", text, min(starts), max(ends)))
    return marks


def path_marks(
    owners: Sequence[Owner], units: Sequence[Unit], legs: Sequence[tuple[int, int, int]], text: str
) -> list[Mark]:
    """The critical path as a whole, then each of its legs: over which unit from when to when."""
    by_unit = {(owner.report, owner.pid, owner.device): owner for owner in owners}
    drawn = [leg for leg in legs if units[leg[0]] in by_unit][:MOST]
    if not drawn:
        return []
    marks = [Mark(CRITICAL, "critical path", text, drawn[0][1], drawn[-1][2])]
    for unit, start, end in drawn:
        owner = by_unit[units[unit]]
        marks.append(Mark(CRITICAL, owner.label, format_time(end - start), start, end, owner))
    return marks


def finding_marks(owners: Sequence[Owner], findings: Table) -> list[Mark]:
    """The rows of the findings command, each at its worst place.

    Their times are on the common clock, as those of the timeline are.
    """
    marks = []
    for record in findings.records():
        owner = _owner(owners, record["rank"], record["device"])
        start, length = record["start_ns"], record["duration_ns"]
        span: tuple[int | None, int | None] = (None, None)
        if isinstance(start, int):
            span = (start, start + (length if isinstance(length, int) else 0))
        text, bound = str(record["evidence"]), record["recoverable_ns"]
        if isinstance(bound, int) and bound:
            text += f"; at most {format_time(bound)} to gain"
        text += f". Next: {record['next_command']}" if record["next_command"] else ""
        severity = str(record["severity"])
        marks.append(Mark(FINDING, str(record["finding"]), text, *span, owner, severity))
    return marks


def _owner(owners: Sequence[Owner], rank: Value, device: Value) -> Owner | None:
    """Whose finding it is; None where that is not one owner."""
    fitting = [
        owner
        for owner in owners
        if (rank is None or owner.rank == rank) and (device is None or owner.device == device)
    ]
    if rank is None and device is None and len(owners) > 1:
        return None
    return fitting[0] if len(fitting) == 1 or (fitting and rank is not None) else None
