"""What a timeline says beside its events: how ranks came together on one clock, which collectives
they share, and marks: iterations, findings and the critical path."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from nsightpy.analysis.clock_alignment import clocks
from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.frames import Ints
from nsightpy.results import Table, Value
from nsightpy.results.tracks import (
    COMMUNICATION,
    CRITICAL,
    FINDING,
    ITERATION,
    NO_COLLECTIVE,
    Lane,
    Mark,
    Owner,
)
from nsightpy.units import counted, format_count, format_time

# By report, process, device and stream: when collectives began, in the report's own time and
# ascending, and which instance each was.
Collectives: TypeAlias = Mapping[tuple[str, int, int, int], tuple[Ints, Ints]]

# With the operations that were compared, and how well they agree.
METHODS = {
    clocks.COLLECTIVES: "aligned by the ends of {} collectives, within {}",
    clocks.MPI: "aligned by {} MPI operations, within {}",
    clocks.ONE_SESSION: "one session, one clock",
    clocks.SYSTEM_CLOCK: "ranks placed by their host's system clock",
    clocks.WALL_CLOCK: "ranks placed by UTC, as good as their hosts keep time",
    clocks.UNKNOWN: "not aligned: no common clock",
}


def collectives_of(alignment: Alignment) -> Collectives:
    """When each stream's matched collectives began, and their instances."""
    ledger, numbers = alignment.ledger, alignment.instances.number
    found: dict[tuple[str, int, int, int], tuple[Ints, Ints]] = {}
    for number, unit in enumerate(ledger.units):
        fit = alignment.fits[unit.clock]
        of_unit = np.flatnonzero((ledger.unit == number) & (numbers >= 0))
        starts = ledger.starts[of_unit] - alignment.ledger_ahead_ns(number)
        for stream in np.unique(ledger.stream[of_unit]).tolist():
            on_stream = ledger.stream[of_unit] == stream
            key = (fit.report, unit.pid, unit.device, int(stream))
            found[key] = (starts[on_stream], numbers[of_unit][on_stream])
    return found


def with_collectives(lane: Lane, owner: Owner, collectives: Collectives) -> Lane:
    """A stream's lane, in the report's own time, with the instances of its collectives."""
    instances = collectives.get((owner.report, owner.pid, owner.device, lane.number))
    if instances is None:
        return lane
    starts, numbers = instances
    rows = np.minimum(np.searchsorted(starts, lane.starts), len(starts) - 1)
    hits = (starts[rows] == lane.starts) & (lane.categories == COMMUNICATION)
    return replace(lane, collectives=np.where(hits, numbers[rows], NO_COLLECTIVE))


def caption_of(fits: Sequence[clocks.ClockFit]) -> str:
    """How the ranks came together, in one sentence with its error bar."""
    parts = []
    for method, words in METHODS.items():
        if own := [fit for fit in fits if fit.method == method]:
            count = format_count(max(fit.instances for fit in own))
            residuals = (r for fit in own for r in (fit.residual_p05_ns, fit.residual_p95_ns))
            within = format_time(max(abs(residual or 0) for residual in residuals))
            some = f"{len(own)} of {len(fits)} " if len(own) < len(fits) else ""
            parts.append(f"{some}{words.format(count, within)}")
    return "; ".join(parts)


# (report, process, device)
Unit = tuple[str, int, int]
# What a list of marks can be read with.
MOST = 5_000


def iteration_marks(processes: Sequence[Iterations]) -> list[Mark]:
    """Each iteration from its first start to its last end over the processes.

    Their times are on the clock of the timeline.
    """
    spans: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    for each in processes:
        times = zip(each.start.tolist(), each.end.tolist(), each.phase, strict=True)
        for number, span in enumerate(times):
            spans[number].append(span)
    marks = []
    for number, parts in sorted(spans.items())[:MOST]:
        starts, ends, phases = zip(*parts, strict=True)
        longest = format_time(max(end - start for start, end, _ in parts))
        on = counted(len(parts), "rank")
        text = f"{'/'.join(dict.fromkeys(phases))}, {longest} on {on}"
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
    for record in cast(list[dict[str, Any]], findings.records()):
        owner = _owner(owners, record["rank"], record["device"])
        start, text = record["start_ns"], record["evidence"]
        end = None if start is None else start + (record["duration_ns"] or 0)
        if record["recoverable_ns"]:
            text += f"; at most {format_time(record['recoverable_ns'])} to gain"
        if record["next_command"]:
            text += f". Next: {record['next_command']}"
        marks.append(Mark(FINDING, record["finding"], text, start, end, owner, record["severity"]))
    return marks


def _owner(owners: Sequence[Owner], rank: Value, device: Value) -> Owner | None:
    """Whose finding it is; None where that is not one owner."""
    fitting = [
        owner
        for owner in owners
        if (rank is None or owner.rank == rank) and (device is None or owner.device == device)
    ]
    return fitting[0] if len(fitting) == 1 or (fitting and rank is not None) else None
