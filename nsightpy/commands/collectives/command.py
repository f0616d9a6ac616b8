"""collectives: NCCL operations by size and group: transfer and wait, bandwidth, who is late."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import GroupedCollective, grouped_collectives
from nsightpy.analysis.ranks.collectives_by_node import UNKNOWN_PLACE, traffic_by_node
from nsightpy.commands.collectives import pairs
from nsightpy.commands.collectives.notes import doubtful_note, notes_on, unmatched_note
from nsightpy.errors import require_choice
from nsightpy.query.rank_alignment import UnitNames, align_parts, once, rank_part
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.results import Abstention, Field, Table, Value, fields_in

FIELDS = (
    Field("operation", "text"),
    Field("group", "text"),
    Field("ranks"),
    Field("instances"),
    Field("bytes", "bytes"),
    *fields_in("ns", "duration_med_ns", "transfer_med_ns", "jitter_med_ns", decimals=1),
    Field("algbw_gb_per_s", "GB/s", 3),
    Field("busbw_gb_per_s", "GB/s", 3),
    Field("last_rank", "id"),
    Field("last_share", "ratio", 4),
    Field("abnormal"),
    Field("busbw_with_wait_gb_per_s", "GB/s", 3),
)
NODE_FIELDS = (
    Field("place", "text", own=True),
    Field("operation", "text"),
    *fields_in("count", "groups", "nodes", "instances"),
    Field("bytes", "bytes", heading="total size"),
    Field("transfer_ns", "ns", heading="total transfer"),
    Field("busbw_gb_per_s", "GB/s", 3),
    Field("wait_ns", "ns", heading="total wait"),
    Field("wait_share", "ratio", 4),
)
LAYOUTS = (FIELDS, NODE_FIELDS, pairs.FIELDS)
SPLITS = ("group", "node", "pair")
NO_SHARED = Abstention(
    "No collectives were found on two ranks: where groups are is known of several ranks only.",
    "Give the reports of all ranks.",
)
UNPLACED = (
    "Of some groups not all ranks were captured, or the exports do not name their hosts: whether "
    "they cross nodes is not known."
)


@command_function
def collectives(
    reports: Paths, *, by: str = "group", top: int | None = None, **common: Unpack[Common]
) -> Table:
    """One row per operation, size and group of ranks, most time first.

    bytes is S, the size of the whole operation (AllGather, ReduceScatter, AllToAll: n times what
    one rank passes); transfer the shortest participant's duration, jitter what a rank waits beyond
    it; algbw = S / transfer, busbw as nccl-tests counts it, both in GB/s of 10^9 bytes.
    busbw_with_wait is that of the whole duration; it is known for one rank alone, too. `by` node:
    operations in groups within a node and across nodes, all sizes; transfer sums the shortest
    participant of each instance, busbw is over that, wait adds all ranks, wait_share is its part
    of their time in these operations. `by` pair: what each rank sent to each other one, where
    sends or splits say; over_mean is over the mean of the group's pairs. Raises UsageError.
    """
    require_choice("split", by, SPLITS)
    request = Request.of(reports, **common)
    if by == "pair":
        sent, said = pairs.pair_traffic(request)
        return request.finish(Table("collectives", pairs.FIELDS, tuple(sent)).first(top), *said)
    mapped = request.map(partial(rank_part, scope=request.scope), identified=True)
    results = once(request.ranks, mapped.results)
    alignment = align_parts(results)
    names = UnitNames.of(alignment)
    if by == "node":
        table, notes = _by_node(alignment, request.scope, names)
        return request.finish(table.first(top), *notes, *alignment.notes)
    seen = grouped_collectives(alignment, arrivals_of(alignment))
    shown = [
        collective for collective in seen if _wanted(request.scope, alignment, collective.units)
    ]
    rows = tuple(_row(collective, names) for collective in shown)
    notes = [*notes_on(shown, alignment, names), *alignment.notes]
    return request.finish(Table("collectives", FIELDS, rows).first(top), *notes)


def _by_node(alignment: Alignment, scope: Scope, names: UnitNames) -> tuple[Table, list[str]]:
    """The table of groups within a node and across nodes."""
    wanted = (n for n in range(len(alignment.ledger.units)) if _wanted(scope, alignment, (n,)))
    by_node = traffic_by_node(alignment, arrivals_of(alignment), frozenset(wanted))
    rows = tuple(
        (
            traffic.place,
            traffic.operation,
            traffic.groups,
            traffic.nodes,
            traffic.instances,
            traffic.bytes,
            traffic.transfer_ns,
            traffic.busbw,
            traffic.wait_ns,
            traffic.wait_share,
        )
        for traffic in by_node
    )
    notes = [UNPLACED] if any(traffic.place == UNKNOWN_PLACE for traffic in by_node) else []
    notes += [] if by_node else [NO_SHARED]
    notes += [*doubtful_note(alignment, names), *unmatched_note(alignment)]
    return Table("collectives", NODE_FIELDS, rows), notes


def _wanted(scope: Scope, alignment: Alignment, places: Sequence[int]) -> bool:
    units = [alignment.ledger.units[place] for place in places]
    ranks = {alignment.clocks[unit.clock].rank for unit in units}
    devices = {unit.device for unit in units}
    return (scope.ranks is None or bool(ranks & scope.ranks)) and (
        scope.devices is None or bool(devices & scope.devices)
    )


def _row(collective: GroupedCollective, names: UnitNames) -> tuple[Value, ...]:
    return (
        collective.signature.operation,
        names.group(collective.units, collective.size),
        collective.ranks,
        collective.instances,
        collective.total_bytes,
        collective.duration_ns,
        collective.transfer_ns,
        collective.jitter_ns,
        collective.algbw,
        collective.busbw,
        None if collective.last_unit is None else names.names[collective.last_unit],
        collective.last_share,
        len(collective.abnormal),
        collective.busbw_with_wait,
    )
