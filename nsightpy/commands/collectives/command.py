"""collectives: NCCL operations by size and group: transfer and wait, bandwidth, who is late."""

from __future__ import annotations

from typing import Annotated

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import grouped_collectives
from nsightpy.analysis.ranks.collectives_by_node import UNKNOWN_PLACE, traffic_by_node
from nsightpy.commands.collectives import pairs
from nsightpy.commands.collectives.notes import doubtful_note, notes_on, unmatched_note
from nsightpy.query.command import command
from nsightpy.query.engine import Parts, Question
from nsightpy.query.options import Option
from nsightpy.query.rank_alignment import RankPart, UnitNames, align_parts, once, rank_part
from nsightpy.query.scope import Scope
from nsightpy.results import Field, Note, Table, rows_of
from nsightpy.results.keys import COLLECTIVE, row_keys

FIELDS = (
    Field("operation", "name", importance=1),
    Field("group", "text", importance=2),
    Field("ranks", importance=10),
    Field("instances", heading="count", importance=4),
    Field("bytes", "bytes", heading="size", importance=3),
    Field("duration_med_ns", "time", 1, heading="median", importance=6),
    Field("transfer_med_ns", "time", 1, heading="median transfer", importance=7),
    Field("jitter_med_ns", "time", 1, heading="median jitter", importance=11),
    Field("algbw_gb_per_s", "GB/s", 3, heading="alg GB/s", importance=12),
    Field("busbw_gb_per_s", "GB/s", 3, heading="bus GB/s", importance=5),
    Field("last_rank", "id", heading="last rank", importance=8),
    Field("last_share", "share", 4, importance=9),
    Field("abnormal", importance=13),
    Field("busbw_with_wait_gb_per_s", "GB/s", 3, heading="bus GB/s with wait"),
)
NODE_FIELDS = (
    Field("place", "text", own=True, importance=2),
    Field("operation", "name", importance=1),
    Field("groups", "count"),
    Field("nodes", "count"),
    Field("instances", "count", heading="count", importance=4),
    Field("bytes", "bytes", heading="total size", importance=7),
    Field("transfer_ns", "time", heading="total transfer", importance=6),
    Field("busbw_gb_per_s", "GB/s", 3, heading="bus GB/s", importance=5),
    Field("wait_ns", "time", heading="total wait", importance=8),
    Field("wait_share", "share", 4, importance=3),
)
NO_SHARED = Note(
    "No collectives were found on two ranks: where groups are is known of several ranks only.",
    "Give the reports of all ranks.",
)
UNPLACED = (
    "Of some groups not all ranks were captured, or the exports do not name their hosts: whether "
    "they cross nodes is not known."
)


@command(
    layouts=(FIELDS, NODE_FIELDS, pairs.FIELDS),
    keys=row_keys(COLLECTIVE, "operation", "bytes", "ranks"),
    picture="nsightpy.render.plots.collectives_plot:collectives_figure",
)
def collectives(
    *,
    by: Annotated[
        str,
        Option(
            "A row per group of ranks and size; for groups within a node and across nodes; or for "
            "what each rank sent to each other one (experts, pipelines; a heat map as a picture).",
            choices=("group", "node", "pair"),
        ),
    ] = "group",
) -> Question[Table]:
    """Most time first. bytes is S, the size of the whole operation (AllGather, ReduceScatter,
    AllToAll: n times what one rank passes); transfer the shortest participant's duration, jitter
    what a rank waits beyond it, all of them medians; algbw = S / transfer, busbw as nccl-tests
    counts it, both in GB/s of 10^9 bytes. busbw_with_wait is that of the whole duration; it is
    known for one rank alone, too. abnormal counts the instances far beyond the median of their
    kind.

    By node: transfer sums the shortest participant of each instance, busbw is over that, wait adds
    all ranks, wait_share is its part of their time in these operations. By pair: over_mean is over
    the mean of the group's pairs.
    """
    if by == "pair":
        return pairs.question()
    return Question(rank_part, _by_node if by == "node" else _by_group, identified=True)


def _by_group(parts: Parts[RankPart]) -> Table:
    alignment = align_parts(once(parts.ranks, parts.results))
    names = UnitNames.of(alignment)
    found = grouped_collectives(alignment, arrivals_of(alignment))
    shown = [
        collective
        for collective in found
        if any(_is_shown(parts.scope, alignment, unit) for unit in collective.units)
    ]
    rows = rows_of(
        FIELDS,
        shown,
        operation=lambda collective: collective.signature.operation,
        group=lambda collective: names.group(collective.units, collective.size),
        last_rank=lambda c: None if c.last_unit is None else names.names[c.last_unit],
        abnormal=lambda collective: len(collective.abnormal),
    )
    notes = (*notes_on(shown, alignment, names), *alignment.notes)
    return Table("collectives", FIELDS, rows, notes=notes)


def _by_node(parts: Parts[RankPart]) -> Table:
    alignment = align_parts(once(parts.ranks, parts.results))
    units = range(len(alignment.ledger.units))
    shown = frozenset(unit for unit in units if _is_shown(parts.scope, alignment, unit))
    by_node = traffic_by_node(alignment, arrivals_of(alignment), shown)
    rows = rows_of(NODE_FIELDS, by_node)
    notes = (
        *([UNPLACED] if any(traffic.place == UNKNOWN_PLACE for traffic in by_node) else []),
        *([] if rows else [NO_SHARED]),
        *doubtful_note(alignment, UnitNames.of(alignment)),
        *unmatched_note(alignment),
        *alignment.notes,
    )
    return Table("collectives", NODE_FIELDS, rows, notes=notes)


def _is_shown(scope: Scope, alignment: Alignment, place: int) -> bool:
    unit = alignment.ledger.units[place]
    return scope.includes(alignment.clocks[unit.clock].rank, unit.device)
