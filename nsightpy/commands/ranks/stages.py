"""How the time of each pipeline stage divides, and how long it waits for its neighbours.

A bubble is time in which a rank waits in an exchange with a neighbour, from its own start until the
other side came, while its device does nothing else.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import spans_of, union, union_of
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.exchanges import Exchanges, by_unit, pipeline_stages
from nsightpy.query import Parts, Question, Scope, SystemReport
from nsightpy.query.device_time import rank_budgets, read_work
from nsightpy.query.rank_alignment import RankPart, UnitNames, align_parts, collective_part, once
from nsightpy.results import Field, Note, Row, Table

FIELDS = (
    Field("stage", "id", importance=1),
    Field("ranks", "text", importance=2),
    Field("window_ns", "time", importance=5),
    Field("compute_ns", "time", importance=4),
    Field("bubble_ns", "time", importance=6),
    Field("bubble_share", "share", 4, importance=3),
    Field("transfer_ns", "time", importance=7),
    Field("other_communication_ns", "time", heading="other comm.", importance=8),
    Field("copy_only_ns", "time", heading="copies alone"),
    Field("idle_ns", "time", importance=9),
    Field("exchanges"),
)
NONE = Note(
    "No pipeline: no chain of ranks exchanges anything with NCCL's Send and Recv, two by two "
    "(rings and branches are none).",
    "Give the reports of all stages. Where sends of several neighbours are grouped, NCCL's NVTX "
    "payload names the partners (an export with `--include-json true`).",
    "Give the traces of all stages.",
)
# Report, process and device.
Device: TypeAlias = tuple[str, int, int]
# Window, compute, bubbles, transfers, other communication, copies alone, idle (ns), and exchanges.
Times: TypeAlias = dict[Device, tuple[int, ...]]


def question(communication: tuple[str, ...]) -> Question[Table]:
    """One row per pipeline stage: compute, bubbles, transfers, other communication, idle."""
    return Question(
        collective_part, partial(_exchanging, communication=communication), identified=True
    )


def _exchanging(parts: Parts[RankPart], communication: tuple[str, ...]) -> Question[Table]:
    """What is asked of the devices that are part of a pipeline."""
    alignment = align_parts(once(parts.ranks, parts.results))
    arrivals = arrivals_of(alignment)
    stages = pipeline_stages(alignment, arrivals)
    devices = [
        (alignment.clocks[unit.clock].report, unit.pid, unit.device)
        for unit in alignment.ledger.units
    ]
    exchanges = {
        devices[unit]: exchanged
        for unit, exchanged in by_unit(alignment, arrivals).items()
        if unit in stages
    }
    names = UnitNames.of(alignment)

    def divided(parts: Parts[Times]) -> Table:
        times = {device: each for part in parts.values for device, each in part.items()}
        rows = _rows(stages, devices, times, names)
        notes = (*(() if rows else (NONE,)), *alignment.notes)
        return Table("ranks", FIELDS, tuple(rows), notes=notes)

    return Question(partial(_times, exchanges=exchanges, communication=communication), divided)


def _times(
    report: SystemReport,
    scope: Scope,
    *,
    exchanges: Mapping[Device, Exchanges],
    communication: tuple[str, ...],
) -> Times:
    """The time of the devices of a report that are part of a pipeline."""
    work = read_work(report, scope)
    communicates = is_communication(work.kernels.labels("name"), communication)
    times: Times = {}
    for row in rank_budgets(report, scope, work, communication):
        device = (str(report.path), row.pid, row.device)
        if device not in exchanges:
            continue
        budget, exchanged = row.budget, exchanges[device]
        at = {"pid": row.pid, "device": row.device}
        # what runs on an exchange's own stream is part of it, or waits for it
        own = communicates & np.isin(work.kernels.ints("stream"), exchanged.streams)
        frames = (work.operations, work.graphs, work.kernels.take(~own))
        others = union_of([spans_of(frame.at(**at)) for frame in frames])
        alone = union(exchanged.starts, exchanged.ends) - others
        waits = union(exchanged.starts, exchanged.starts + exchanged.waits)
        alone_ns = (alone & budget.window).total
        bubble_ns = (waits & alone & budget.window).total
        times[device] = (
            budget.window_ns,
            budget.compute_ns,
            bubble_ns,
            alone_ns - bubble_ns,
            budget.busy_ns - budget.compute_ns - budget.copy_only_ns - alone_ns,
            budget.copy_only_ns,
            budget.idle_ns,
            int(budget.window.holds(exchanged.starts).sum()),
        )
    return times


def _rows(
    stages: Mapping[int, int], devices: Sequence[Device], times: Times, names: UnitNames
) -> list[Row]:
    """The means of each stage's ranks; exchanges are counted."""
    by_stage: dict[int, list[int]] = {}
    for unit, stage in stages.items():
        if devices[unit] in times:
            by_stage.setdefault(stage, []).append(unit)
    rows: list[Row] = []
    for stage, units in sorted(by_stage.items()):
        *columns, exchanges = zip(*(times[devices[unit]] for unit in units), strict=True)
        window, compute, bubble, *rest = (round(sum(column) / len(units)) for column in columns)
        share = bubble / window if window else None
        named = names.group(units)
        rows.append((stage, named, window, compute, bubble, share, *rest, sum(exchanges)))
    return rows
