"""Every rank on one clock, how much it waits, and which one the others wait for."""

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Participant
from nsightpy.analysis.ranks.arrivals import Arrivals, arrivals_of, unit_waits
from nsightpy.analysis.ranks.exchanges import peer_rows
from nsightpy.analysis.ranks.stragglers import Straggler, late_once, straggler_of
from nsightpy.analysis.time_budget import device_budgets
from nsightpy.frames import MEMORY_OPERATIONS, Frame
from nsightpy.query import Parts, Question, Scope, SystemReport
from nsightpy.query.rank_alignment import RankPart, UnitNames, align_parts, once, rank_part
from nsightpy.results import Field, Note, Row, Said, Table
from nsightpy.units import counted, format_time

FIELDS = (
    Field("rank", "id", importance=1, place=1),
    Field("report", "text", importance=7),
    Field("host", "text", importance=9),
    Field("device", "id", importance=8),
    Field("rank_source", "text"),
    Field("offset_ns", "moment", heading="clock offset", importance=6),
    Field("drift_ppm", "ppm", 3, heading="drift ppm"),
    Field("alignment", "text", own=True, importance=12),
    Field("instances", heading="instances", importance=10),
    Field("residual_p05_ns", "time", 1, heading="clock error p05"),
    Field("residual_p50_ns", "time", 1, heading="clock error p50"),
    Field("residual_p95_ns", "time", 1, heading="clock error p95", importance=11),
    Field("compute_ns", "time", importance=5, place=5),
    Field("wait_ns", "time", heading="waits", importance=4, place=4),
    Field("arrived_last_share", "share", 4, heading="comes last %", importance=3, place=3),
    Field("straggler", "bool", importance=2, place=2),
)
MOST_NOTES = 3
# What is said of a clock.
_FIT = (
    *("offset_ns", "drift_ppm", "method", "instances"),
    *("residual_p05_ns", "residual_p50_ns", "residual_p95_ns"),
)
PLACED = ("start_ns", "end_ns", "pid", "device")
# By process and device.
Compute: TypeAlias = dict[tuple[int, int], int]
NO_PEERS = Note(
    "Whether a rank is a straggler is not known: no ranks with the same work meet in synchronising "
    "collectives, and stages of a pipeline differ in their work.",
    "Give the reports of more ranks: of the same stage, of the same data-parallel group.",
)
NO_COLLECTIVES = Note(
    "No collectives of NCCL were found on two ranks: who waits for whom is not known.",
    "Profile every rank of the job over the same time and give all reports; `nsightpy ranks --by "
    "call` shows who waited for whom in MPI.",
)
ONE_RANK = Note(
    "Who waits for whom takes at least two ranks.", "Give their reports, or their folder."
)


def question(communication: tuple[str, ...]) -> Question[Table]:
    """One row per rank: its clock's error and how well that is known, its compute, its waits."""
    return Question(partial(_part_of, communication=communication), _table, identified=True)


def _part_of(
    report: SystemReport, scope: Scope, *, communication: tuple[str, ...]
) -> tuple[RankPart, Compute]:
    """The clocks and collectives of a report, and how long its devices computed, ns."""
    everybody = scope.everybody
    low, high = scope.bounds(report)
    budgets = device_budgets(
        everybody.read(report, "kernels", ("pid", "device", "name")),
        Frame.empty(MEMORY_OPERATIONS, PLACED),
        everybody.read(report, "graph_launches", ("pid", "device")),
        communication=communication,
        start_ns=low,
        end_ns=high,
    )
    compute = {place: budget.compute_ns for place, budget in budgets.items()}
    return rank_part(report, scope), compute


def _table(parts: Parts[tuple[RankPart, Compute]]) -> Table:
    results = once(parts.ranks, [(report, part) for report, (part, _) in parts.results])
    alignment = align_parts(results)
    arrivals = arrivals_of(alignment)
    straggler = straggler_of(alignment, arrivals)
    rows = _rows(parts, alignment, unit_waits(arrivals), straggler)
    notes = (*_notes(alignment, arrivals, straggler), *alignment.notes)
    return Table("ranks", FIELDS, tuple(rows), notes=notes)


def _rows(
    parts: Parts[tuple[RankPart, Compute]],
    alignment: Alignment,
    waits: Mapping[int, tuple[int, float]],
    straggler: Straggler | None,
) -> list[Row]:
    """The rows in the order of ranks; one for each process and device."""
    units = {unit: place for place, unit in enumerate(alignment.ledger.units)}
    clocks = {(fit.report, fit.pid): place for place, fit in enumerate(alignment.fits)}
    keyed: list[tuple[int, int, Row]] = []
    for report, (part, compute) in parts.results:
        places = {(kind.pid, kind.device) for kind in part.log.kinds} | set(compute)
        for pid, device in sorted(places):
            clock = clocks.get((str(report.path), pid))
            rank, source = report.rank_of(pid)
            if clock is None or not parts.scope.includes(rank, device):
                continue
            unit = units.get(Participant(clock, pid, device), -1)
            head = (rank, str(report.path), report.session.host or None, device, source or None)
            # captures that cannot be of one job have no clock to share
            known = alignment.fits[clock] if parts.ranks.one_job else None
            fit = [None if known is None else getattr(known, name) for name in _FIT]
            times: Row = (None, None, None)  # of ranks without common collectives
            if unit in waits:
                times = (*waits[unit], straggler is not None and straggler.unit == unit)
            row = (*head, *fit, compute.get((pid, device)), *times)
            keyed.append((clock, device, row))
    return [row for _, _, row in sorted(keyed, key=lambda entry: entry[:2])]


def _notes(alignment: Alignment, arrivals: Arrivals, straggler: Straggler | None) -> list[Said]:
    if len(alignment.clocks) < 2 and len(alignment.ledger.units) < 2:
        return [ONE_RANK] if alignment.fits else []
    if len(arrivals.rows) == 0:
        return [NO_COLLECTIVES]
    names = UnitNames.of(alignment).names
    late: list[Said] = [
        f"Rank {names[each.unit]} came late {counted(each.times, 'time')} and the others waited "
        f"{format_time(each.cost_ns)} for it: a late start, warm-up or one delay, no straggling."
        for each in late_once(alignment, arrivals)[:MOST_NOTES]
    ]
    if straggler is None and not peer_rows(alignment, arrivals).any():
        late.insert(0, NO_PEERS)
    return late
