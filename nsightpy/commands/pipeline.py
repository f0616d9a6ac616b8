"""pipeline: how the time of each pipeline stage divides, and how long it waits for its neighbours.

A bubble is time in which a rank waits in an exchange with a neighbour, from its own start until the
other side came, while its device does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans, intersection, spans_of, union, union_of
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.stages import Exchanges, Pipelines, by_unit, pipelines
from nsightpy.analysis.time_budget import TimeBudget
from nsightpy.frames import Frame, Ints
from nsightpy.query.device_time import rank_budgets, read_work
from nsightpy.query.rank_alignment import align_parts, group_text, once, rank_part
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Abstention, Field, Row, Table, fields_in

FIELDS = (
    Field("stage", "id"),
    Field("ranks", "text"),
    *fields_in("ns", "window_ns", "compute_ns", "bubble_ns"),
    Field("bubble_share", "ratio", 4),
    *fields_in("ns", "transfer_ns", "other_communication_ns", "copy_only_ns", "idle_ns"),
    Field("exchanges"),
)
NONE = Abstention(
    "No pipeline: no chain of ranks exchanges anything with NCCL's Send and Recv, two by two.",
    "Give the reports of all stages. Where sends of several neighbours are grouped, NCCL's NVTX "
    "payload names the partners (an export with `--include-json true`).",
    "Give the traces of all stages.",
)
RINGS = (
    "Exchanges of ranks {ranks} form a ring or branch, as in ring attention and in interleaved "
    "schedules: whose stages they are is not known, and they are left out."
)
PAIRS = "`nsightpy collectives --by pair` has what each sent to which, where the payload tells."
TWO = (
    "Only pairs exchange data: two stages look like that, and so do rings and experts of two ranks."
)
MEANS = (
    "Times are means of a stage's ranks over the window; stages are numbered from the end with the "
    "lowest rank. Idle time may be waiting for a neighbour, too: on the host."
)
Places = Mapping[tuple[str, int, int], Exchanges]


@dataclass(frozen=True, slots=True)
class _Rank:
    """One device's time, its exposed exchanges and its bubbles, in ns."""

    budget: TimeBudget
    exchanged_ns: int
    bubble_ns: int
    exchanges: int

    @property
    def other_ns(self) -> int:
        """Other communication, alone or beside copies."""
        budget = self.budget
        return budget.busy_ns - budget.compute_ns - budget.copy_only_ns - self.exchanged_ns


@command_function
def pipeline(
    reports: Paths,
    *,
    top: int | None = None,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """One row per pipeline stage: compute, bubbles, transfers, other communication, idle; in ns.

    Stages are chains of ranks that exchange data by NCCL's Send and Recv, two by two. bubble: a
    rank waits in an exchange, the other side has not come, and its device does nothing else;
    transfer: the rest of its exchanges that nothing hides; other communication: exposed, too. The
    times of a row add up to its window. Needs the reports of neighbouring stages.
    """
    request = Request.of(reports, **common)
    mapped = request.map(partial(rank_part, scope=Scope()), identified=True)
    alignment = align_parts(once(request.ranks, mapped.results))
    arrivals = arrivals_of(alignment)
    clocks = [alignment.clocks[unit.clock] for unit in alignment.ledger.units]
    ranks = {n: clock.rank for n, clock in enumerate(clocks) if clock.rank is not None}
    pipes = pipelines(alignment, arrivals, ranks)
    keys = [
        (clock.report, unit.pid, unit.device)
        for unit, clock in zip(alignment.ledger.units, clocks, strict=True)
    ]
    stage = pipes.stage
    places = {keys[n]: arrived for n, arrived in by_unit(alignment, arrivals).items() if n in stage}
    work = partial(_times, scope=request.scope, places=places, communication=tuple(communication))
    times = {
        key: rank_times for part in request.map(work).values for key, rank_times in part.items()
    }
    rows = _rows(pipes, keys, times, ranks)
    notes = [*_notes(pipes, ranks), *([MEANS] if rows else [NONE]), *alignment.notes]
    return request.finish(Table("pipeline", FIELDS, tuple(rows)).first(top), *notes)


def _times(
    report: SystemReport, *, scope: Scope, places: Places, communication: tuple[str, ...]
) -> dict[tuple[str, int, int], _Rank]:
    """The time of the devices of a report that are part of a pipeline."""
    work = read_work(report, scope)
    communicates = is_communication(work.kernels.labels("name"), communication)
    times = {}
    for row in rank_budgets(report, scope, *work, communication=communication):
        key = (str(report.path), row.pid, row.device)
        if key not in places:
            continue
        window = row.budget.window
        at = {"pid": row.pid, "device": row.device}
        exchanges = places[key]
        waits = union(exchanges.starts, exchanges.starts + exchanges.waits)
        exchanged = union(exchanges.starts, exchanges.ends)
        others = union_of(
            [
                *(spans_of(frame.at(**at)) for frame in (work.operations, work.graphs)),
                spans_of(work.kernels.take(~communicates).at(**at)),
                _others(work.kernels.take(communicates).at(**at), exchanges),
            ]
        )
        times[key] = _Rank(
            row.budget,
            intersection(exchanged - others, window).total,
            intersection((waits & exchanged) - others, window).total,
            _begun_in(window, exchanges.starts),
        )
    return times


def _begun_in(window: Spans, starts: Ints) -> int:
    """How many of these moments are in a window."""
    counts = np.searchsorted(starts, window.ends) - np.searchsorted(starts, window.starts)
    return int(counts.sum())


def _others(kernels: Frame, exchanges: Exchanges) -> Spans:
    """When communication kernels ran that are no exchange: those of one are inside its stream."""
    keep = np.ones(kernels.rows, dtype=np.bool_)
    for stream in np.unique(exchanges.streams).tolist():
        mine = exchanges.streams == stream
        starts, ends = exchanges.starts[mine], exchanges.ends[mine]
        place = np.searchsorted(starts, kernels.ints("start_ns"), side="right") - 1
        inside = (place >= 0) & (kernels.ints("end_ns") <= ends[np.maximum(place, 0)])
        keep &= ~(inside & (kernels.ints("stream") == stream))
    return spans_of(kernels.take(keep))


def _rows(
    pipes: Pipelines,
    keys: Sequence[tuple[str, int, int]],
    times: Mapping[tuple[str, int, int], _Rank],
    ranks: Mapping[int, int],
) -> list[Row]:
    stages: dict[int, list[int]] = {}
    for unit, stage in pipes.stage.items():
        if keys[unit] in times:
            stages.setdefault(stage, []).append(unit)
    rows: list[Row] = []
    for stage, units in sorted(stages.items()):
        names = [ranks.get(unit, f"{keys[unit][1]}/{keys[unit][2]}") for unit in units]
        rows.append((stage, group_text(names), *_figures([times[keys[unit]] for unit in units])))
    return rows


def _figures(stage_ranks: Sequence[_Rank]) -> Row:
    def mean(values: Iterable[int]) -> int:
        return round(sum(values) / len(stage_ranks))

    window = mean(rank.budget.window_ns for rank in stage_ranks)
    bubble = mean(rank.bubble_ns for rank in stage_ranks)
    return (
        window,
        mean(rank.budget.compute_ns for rank in stage_ranks),
        bubble,
        bubble / window if window else None,
        mean(rank.exchanged_ns - rank.bubble_ns for rank in stage_ranks),
        mean(rank.other_ns for rank in stage_ranks),
        mean(rank.budget.copy_only_ns for rank in stage_ranks),
        mean(rank.budget.idle_ns for rank in stage_ranks),
        sum(rank.exchanges for rank in stage_ranks),
    )


def _notes(pipes: Pipelines, ranks: Mapping[int, int]) -> list[str]:
    said: list[str] = (
        [TWO] if pipes.chains and all(len(chain) == 2 for chain in pipes.chains) else []
    )
    if pipes.torn:
        torn = group_text([ranks.get(unit, f"#{unit}") for unit in pipes.torn])
        said.append(Abstention(RINGS.format(ranks=torn), PAIRS))
    return said
