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
    return [_iteration(number, spans[number], sources) for number in sorted(spans)[:MOST]]


def _iteration(number: int, spans: Sequence[tuple[int, int, str]], sources: Sequence[str]) -> Mark:
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
    return [_finding(owners, record) for record in findings.records()]


def _finding(owners: Sequence[Owner], record: dict[str, Value]) -> Mark:
    owner = _owner(owners, record["rank"], record["device"])
    start, length = record["start_ns"], record["duration_ns"]
    span: tuple[int | None, int | None] = (None, None)
    if isinstance(start, int):
        span = (start, start + (length if isinstance(length, int) else 0))
    bound = record["recoverable_ns"]
    gain = f"; at most {format_time(bound)} to gain" if isinstance(bound, int) and bound else ""
    text = f"{record['evidence']}{gain}"
    if record["next_command"]:
        text = f"{text}. Next: {record['next_command']}"
    return Mark(FINDING, str(record["finding"]), text, *span, owner, str(record["severity"]))


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
