"""breakdown: how each device's time divides into compute, communication, copies and idle."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from nsightpy.analysis.communication import doubtful_names
from nsightpy.analysis.intervals import NOTHING, Spans
from nsightpy.analysis.ranks.arrivals import arrivals_of, exposed_waits
from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.analysis.time_budget import TimeBudget, activity_at
from nsightpy.analysis.work_graph.idle_intervals import CAUSES as IDLE_CAUSES, stream_waits
from nsightpy.commands.breakdown.over_time import MOST_BINS, OVER_TIME, by_device, over_time
from nsightpy.output.cells import cause_words
from nsightpy.query import Communication, Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.device_time import (
    NOT_ATTRIBUTED,
    IdleReport,
    RankedBudget,
    idle_report,
    suspect_note,
)
from nsightpy.query.rank_alignment import alignment_of
from nsightpy.results import Field, Said, Table, Value, View, fields_in, number, rank_order

BUDGET = (
    Field("window_ns", "time", importance=3),
    Field("busy_ns", "time", importance=4),
    Field("compute_ns", "time", importance=6),
    Field("communication_ns", "time", heading="comm."),
    Field("memory_ns", "time", heading="copies"),
    Field("overlap_ns", "time"),
    Field("exposed_communication_ns", "time", heading="exposed comm.", importance=7),
    Field("copy_only_ns", "time", heading="copies alone", importance=8),
    Field("opaque_graph_ns", "time", heading="opaque graphs"),
    Field("idle_ns", "time", importance=5),
)
# Idle time in MPI is that of the finding exposed-communication, whose name a column has already.
CAUSES = tuple(
    Field(
        "exposed_communication_idle_ns"
        if cause == "exposed-communication"
        else f"{cause.replace('-', '_')}_ns",
        "time",
        heading=cause_words(cause),
    )
    for cause in IDLE_CAUSES
)
WAITS = fields_in("time", "host_wait_ns", "kernel_wait_ns", "other_wait_ns")
EXPOSED = fields_in("time", "exposed_wait_ns", "exposed_transfer_ns")
PLACE = (Field("rank", "id", importance=1), Field("device", "id", importance=2))
FIELDS = (*PLACE, *BUDGET, *CAUSES, *WAITS, *EXPOSED)


@dataclass(frozen=True, slots=True)
class _Device:
    """A device, its row without the last two columns, and when it communicated and did nothing
    else, in the report's own time."""

    budget: RankedBudget
    row: tuple[Value, ...]
    exposed: Spans


def _for_people(table: Table) -> Table:
    """The table without the causes that hardly matter, and without HTA's; over time one row a
    device."""
    if table.fields == OVER_TIME:
        return by_device(table)
    records = table.records()
    matter = [
        cause.name
        for cause in CAUSES
        if any(number(r[cause.name]) > MATERIAL * number(r["window_ns"]) for r in records)
    ]
    matter.sort(key=lambda name: -sum(number(record[name]) for record in records))
    shown = [field for field in table.fields if field not in (*CAUSES, *WAITS)]
    shown += [replace(c, importance=9 + matter.index(c.name)) for c in CAUSES if c.name in matter]
    rows = tuple(tuple(record[field.name] for field in shown) for record in records)
    return replace(table, fields=tuple(shown), rows=rows)


@command(
    layouts=(FIELDS, OVER_TIME),
    view=View(rows=64),
    people=_for_people,
    picture="nsightpy.render.plots.breakdown_plot:breakdown_figure",
    beside=("iterations",),
)
def breakdown(
    *,
    bins: Annotated[
        int | None,
        Option(
            "Shares of so many equal stretches of time instead, on the clock of all ranks.",
            "N",
            least=1,
            most=MOST_BINS,
        ),
    ] = None,
    communication: Communication = (),
) -> Question[Table]:
    """Every figure is the measure of a union over all streams, clipped to the window: from the
    first start to the last end on the device, or --from to --to, or with --nvtx the projected
    intervals of those ranges on the device, whoever launched what ran in them. Idle time is divided
    by cause, as `nsightpy gaps` counts it; the causes add up. host_wait, kernel_wait and other_wait
    are the gaps on single streams, added over a device's streams, as HTA has them. exposed_wait is
    the part of exposed communication in which a rank waited for later ones, exposed_transfer the
    rest. What the capture does not show is empty, with a note.

    --bins: busy is compute, communication and copies (memory) together. sm_active, tensor_active,
    dram (read and write) and nvlink (received and sent) are means of sampled GPU metrics, 1 being
    the peak. A terminal shows one row a device with busy over time.

    -o FILE.png, .svg or .pdf draws the time of each device and of each iteration, or with --bins
    heat maps of rank over time.
    """
    names = tuple(communication)
    if bins is not None:
        return over_time(bins, names)
    return Question(partial(_devices, communication=names), _table, ranked=True, clock=True)


def _devices(
    report: SystemReport, scope: Scope, *, communication: tuple[str, ...]
) -> tuple[list[_Device], list[str], bool]:
    """The devices, kernels that may be communication, and whether calls were recorded."""
    idle = idle_report(report, scope, communication)
    work, recorded = idle.launched, report.calls.recorded
    windows = {work.places.index(row.place): row.budget.window for row in idle.budgets}
    waits = stream_waits(work, windows) if recorded else {}
    devices = []
    for place, (row, gaps) in zip(windows, idle.devices(), strict=True):
        causes = gaps.totals if recorded else None
        cells = budget_row(row.rank, row.device, row.budget, causes, waits.get(place))
        devices.append(_Device(row, cells[: -len(EXPOSED)], _exposed(idle, row)))
    kernels = scope.within(report, idle.work.kernels)
    return devices, doubtful_names(kernels, communication), recorded


def _exposed(idle: IdleReport, row: RankedBudget) -> Spans:
    """When a device communicated and did nothing else."""
    if not row.budget.exposed_communication_ns:
        return NOTHING
    active = activity_at(row.place, idle.work.kernels, idle.communicates, *idle.work[1:])
    did = active.inside(row.budget.window)
    return did.communication - (did.compute | did.memory)


def _table(parts: Parts[tuple[list[_Device], list[str], bool]]) -> Table:
    placed = [(str(report.path), each) for report, part in parts.results for each in part[0]]
    placed.sort(key=lambda pair: (*rank_order(pair[1].budget.rank), *pair[1].budget.place))
    waits = _waits(parts, placed)
    rows = []
    for path, each in placed:
        waited = waits.get((path, *each.budget.place))
        moved = None if waited is None else each.exposed.total - waited
        rows.append((*each.row, waited, moved))
    doubtful = dict.fromkeys(name for part in parts.values for name in part[1])
    silent = any(devices and not recorded for devices, _, recorded in parts.values)
    notes: list[Said] = [*map(suspect_note, doubtful), *([NOT_ATTRIBUTED] if silent else [])]
    return Table("breakdown", FIELDS, tuple(rows), notes=tuple(notes))


def _waits(
    parts: Parts[tuple[list[_Device], list[str], bool]], placed: list[tuple[str, _Device]]
) -> dict[tuple[str, int, int], int]:
    """How much of their exposed communication devices waited for others, where that is known."""
    exposed = {(path, *each.budget.place): each.exposed for path, each in placed}
    alone = len(placed) < 2 and len(parts.ranks) < 2
    if alone or not any(map(len, exposed.values())) or not parts.ranks.one_job:
        return {}
    alignment = alignment_of(parts.ranks)
    return exposed_waits(alignment, arrivals_of(alignment), exposed)


def budget_row(
    rank: int | None,
    device: int,
    budget: TimeBudget,
    causes: Mapping[str, int] | None,
    waits: tuple[int, ...] | None = None,
) -> tuple[Value, ...]:
    """A row of FIELDS; None for what is not known, and for EXPOSED."""
    figures = (getattr(budget, field.name) for field in BUDGET)
    by_cause = (None if causes is None else causes.get(cause, 0) for cause in IDLE_CAUSES)
    unknown = (None,) * len(EXPOSED)
    return (rank, device, *figures, *by_cause, *(waits or (None,) * len(WAITS)), *unknown)
