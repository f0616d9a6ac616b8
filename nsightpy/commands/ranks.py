"""ranks: every rank on one clock, how much it waits, and which one the others wait for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Unpack

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.clock_alignment.clocks import MPI, ClockFit
from nsightpy.analysis.collectives.log import Participant
from nsightpy.analysis.ranks.arrivals import Arrivals, UnitWaits, arrivals_of, unit_waits
from nsightpy.analysis.ranks.peers import peer_rows
from nsightpy.analysis.ranks.stragglers import Straggler, late_once, straggler_of
from nsightpy.query.rank_alignment import (
    RankPart,
    UnitNames,
    align_parts,
    once,
    rank_part,
)
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Abstention, Field, Table, Value, fields_in
from nsightpy.units import format_time

FIELDS = (
    Field("rank", "id"),
    Field("report", "text"),
    Field("host", "text"),
    Field("device", "id"),
    Field("rank_source", "text"),
    Field("offset_ns", "ns"),
    Field("drift_ppm", "ppm", 3),
    Field("alignment", "text", own=True),
    Field("instances"),
    *fields_in("ns", "residual_p05_ns", "residual_p50_ns", "residual_p95_ns", decimals=1),
    Field("compute_ns", "ns"),
    Field("wait_ns", "ns"),
    Field("arrived_last_share", "ratio", 4),
    Field("straggler", "bool"),
)
MOST_NOTES = 3
NO_PEERS = Abstention(
    "Whether a rank is a straggler is not known: no ranks with the same work meet in synchronising "
    "collectives, and stages of a pipeline differ in their work.",
    "Give the reports of more ranks: of the same stage, of the same data-parallel group.",
)
NO_COLLECTIVES = Abstention(
    "No collectives were found on two ranks: who waits for whom is not known.",
    "Profile every rank of the job over the same time and give all reports.",
)
ONE_RANK = Abstention(
    "Who waits for whom takes at least two ranks.", "Give their reports, or their folder."
)
BY_MPI = Abstention(
    "No collectives of NCCL were found on two ranks: who waits for whom in them is not known.",
    "`nsightpy mpi-waits` shows who waited for whom in MPI.",
)


@command_function
def ranks(
    reports: Paths,
    *,
    top: int | None = None,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """One row per rank: its clock's error and how well that is known, its compute and its waits.

    offset_ns is how far the rank's clock was ahead of the first rank's when its session began,
    beyond what the report itself corrects; drift_ppm what it gains from then on, empty where the
    capture is too short for one (offset_ns then is that of its middle). Where alignment is MPI, the
    first and last residual are the ends of the interval that MPI calls leave. Processes of one
    session share its clock. wait_ns the time in collectives before the last rank came.
    """
    request = Request.of(reports, **common)
    work = partial(rank_part, scope=request.scope, communication=tuple(communication), compute=True)
    mapped = request.map(work, identified=True)
    results = once(request.ranks, mapped.results)
    alignment = align_parts(results)
    arrivals = arrivals_of(alignment)
    waits = unit_waits(arrivals, len(alignment.ledger.units))
    straggler = straggler_of(alignment, arrivals)
    rows = _rows(results, alignment, waits, straggler, request.scope)
    notes = [*_notes(alignment, arrivals, straggler), *alignment.notes]
    return request.finish(Table("ranks", FIELDS, tuple(rows)).first(top), *notes)


def _rows(
    results: Sequence[tuple[SystemReport, RankPart]],
    alignment: Alignment,
    waits: UnitWaits,
    straggler: Straggler | None,
    scope: Scope,
) -> list[tuple[Value, ...]]:
    """The rows in the order of ranks; one for each process and device."""
    units = {unit: place for place, unit in enumerate(alignment.ledger.units)}
    clocks = {(fit.report, fit.pid): place for place, fit in enumerate(alignment.fits)}
    keyed: list[tuple[int, int, tuple[Value, ...]]] = []
    for report, part in results:
        compute = {(pid, device): busy for pid, device, busy in part.compute}
        places = {(kind.pid, kind.device) for kind in part.log.kinds} | set(compute)
        for pid, device in sorted(places):
            clock = clocks.get((str(report.path), pid))
            rank, source = report.rank_of(pid)
            if clock is None or not _wanted(scope, rank, device):
                continue
            unit = units.get(Participant(clock, pid, device))
            head = (rank, str(report.path), report.session.host or None, device, source or None)
            fit = alignment.fits[clock]
            row = (*head, *_clock_values(fit), compute.get((pid, device)))
            keyed.append((clock, device, (*row, *_wait_values(waits, unit, straggler))))
    return [row for _, _, row in sorted(keyed, key=lambda entry: entry[:2])]


def _wanted(scope: Scope, rank: int | None, device: int) -> bool:
    return (scope.ranks is None or rank in scope.ranks) and (
        scope.devices is None or device in scope.devices
    )


def _clock_values(fit: ClockFit) -> tuple[Value, ...]:
    residuals = (fit.residual_p05_ns, fit.residual_p50_ns, fit.residual_p95_ns)
    return (fit.offset_ns, fit.drift_ppm, fit.method, fit.instances, *residuals)


def _wait_values(
    waits: UnitWaits, unit: int | None, straggler: Straggler | None
) -> tuple[Value, ...]:
    """Waits, share of late arrivals, straggler; unknown for ranks without common collectives."""
    if unit is None or not waits.instances[unit]:
        return (None, None, None)
    late = straggler is not None and straggler.unit == unit
    return (int(waits.wait_ns[unit]), waits.last_share(unit), late)


def _notes(alignment: Alignment, arrivals: Arrivals, straggler: Straggler | None) -> list[str]:
    if len(alignment.clocks) < 2 and len(alignment.ledger.units) < 2:
        return [ONE_RANK] if alignment.fits else []
    if len(arrivals.rows) == 0:
        return [BY_MPI if any(fit.method == MPI for fit in alignment.fits) else NO_COLLECTIVES]
    names = UnitNames.of(alignment).names
    notes = [
        f"Rank {names[once.unit]} came late {_times(once.times)} and the others waited "
        f"{format_time(once.cost_ns)} for it: a late start, warm-up or one delay, no straggling."
        for once in late_once(alignment, arrivals)[:MOST_NOTES]
    ]
    if straggler is None and not peer_rows(alignment, arrivals).any():
        return [NO_PEERS, *notes]
    if straggler is None:
        none = (
            "No rank is late as a rule: none is last beyond chance and waits less than the others."
        )
        return [none, *notes]
    late = (
        f"Rank {names[straggler.unit]} is a straggler: it comes last to "
        f"{100 * straggler.last_share:.0f} % of the collectives in which ranks wait; "
        "`nsightpy findings` says what that costs."
    )
    return [late, *notes]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
