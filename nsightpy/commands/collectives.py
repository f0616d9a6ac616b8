"""collectives: NCCL operations by size and group: transfer and wait, bandwidth, who is late."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.ranks.abnormal import Abnormal
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import GroupedCollective, grouped_collectives
from nsightpy.analysis.ranks.collectives_by_node import UNKNOWN_PLACE, traffic_by_node
from nsightpy.errors import require_choice
from nsightpy.query import pair_traffic
from nsightpy.query.rank_alignment import UnitNames, align_parts, once, rank_part
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.rank_opening import Paths
from nsightpy.results import Abstention, Field, Table, Value
from nsightpy.units import format_bytes, format_time, significant

FIELDS = (
    Field("operation", "text"),
    Field("group", "text"),
    Field("ranks"),
    Field("instances"),
    Field("bytes", "bytes"),
    Field("duration_med_ns", "ns", 1),
    Field("transfer_med_ns", "ns", 1),
    Field("jitter_med_ns", "ns", 1),
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
    Field("groups"),
    Field("nodes"),
    Field("instances"),
    Field("bytes", "bytes", heading="total size"),
    Field("transfer_ns", "ns", heading="total transfer"),
    Field("busbw_gb_per_s", "GB/s", 3),
    Field("wait_ns", "ns", heading="total wait"),
    Field("wait_share", "ratio", 4),
)
LAYOUTS = (FIELDS, NODE_FIELDS, pair_traffic.FIELDS)
SPLITS = ("group", "node", "pair")
NO_SHARED = Abstention(
    "No collectives were found on two ranks: where groups are is known of several ranks only.",
    "Give the reports of all ranks.",
)
UNPLACED = (
    "Of some groups not all ranks were captured, or the exports do not name their hosts: whether "
    "they cross nodes is not known."
)
# The same operation and size in another group is called slower from this ratio on.
SLOWER_GROUP = 3.0
MOST_NOTES = 3


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
        sent, said = pair_traffic.pair_traffic(request)
        return request.finish(
            Table("collectives", pair_traffic.FIELDS, tuple(sent)).first(top), *said
        )
    mapped = request.map(partial(rank_part, scope=request.scope), identified=True)
    results = once(request.ranks, mapped.results)
    alignment = align_parts(results)
    if by == "node":
        table, notes = _by_node(alignment, request.scope)
        return request.finish(table.first(top), *notes, *alignment.notes)
    names = UnitNames.of(alignment)
    seen = grouped_collectives(alignment, arrivals_of(alignment))
    shown = [
        collective for collective in seen if _wanted(request.scope, alignment, collective.units)
    ]
    rows = tuple(_row(collective, names) for collective in shown)
    notes = [*_notes(shown, alignment, names), *alignment.notes]
    return request.finish(Table("collectives", FIELDS, rows).first(top), *notes)


def _by_node(alignment: Alignment, scope: Scope) -> tuple[Table, list[str]]:
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


def _notes(seen: Sequence[GroupedCollective], alignment: Alignment, names: UnitNames) -> list[str]:
    return [
        *_abnormal_notes(seen, names),
        *_slower_groups(seen, names),
        *_size_notes(seen),
        *_missing_notes(seen, names),
        *doubtful_note(alignment, names),
        *_unmatched_note(alignment),
    ]


def called(collective: GroupedCollective, names: UnitNames) -> str:
    size = "" if collective.total_bytes is None else f" of {format_bytes(collective.total_bytes)}"
    group = names.group(collective.units, collective.size)
    return f"{collective.signature.operation}{size} in {group}"


def _abnormal_notes(seen: Sequence[GroupedCollective], names: UnitNames) -> list[str]:
    """The worst instances, each with its ratio and whether somebody was waited for."""
    worst = sorted(
        (
            (-bad.ratio, place, bad)
            for place, collective in enumerate(seen)
            for bad in collective.abnormal
        ),
        key=lambda case: (case[0], case[1], case[2].start_ns),
    )
    notes = []
    for _, place, bad in worst[:MOST_NOTES]:
        notes.append(
            f"abnormal: {called(seen[place], names)} once took {format_time(bad.duration_ns)}, "
            f"{significant(bad.ratio)} times its median; {cause_of(bad, names)}."
        )
    return notes


def cause_of(bad: Abnormal, names: UnitNames) -> str:
    """Why an instance was slow, as far as it is known."""
    if bad.late_unit is not None:
        return f"it waited for rank {names.names[bad.late_unit]}"
    if not bad.whole:
        return "whether it waited is not known, since no other rank was captured"
    return "the transfer itself was slow"


def _slower_groups(seen: Sequence[GroupedCollective], names: UnitNames) -> list[str]:
    """Groups in which the same operation of the same size takes much longer than in others."""
    alike: dict[tuple[object, int], list[GroupedCollective]] = {}
    for collective in seen:
        if collective.transfer_ns and collective.signature.bytes >= 0:
            alike.setdefault((collective.signature, collective.ranks), []).append(collective)
    notes = []
    for groups in alike.values():
        usual = float(np.median([group.transfer_ns or 0.0 for group in groups]))
        fastest = min(group.transfer_ns or 0.0 for group in groups)
        base = usual if len(groups) > 2 else fastest
        slow = max(groups, key=lambda group: group.transfer_ns or 0.0)
        if (slow.transfer_ns or 0.0) >= SLOWER_GROUP * base:
            notes.append(
                f"{called(slow, names)} takes {(slow.transfer_ns or 0.0) / base:.3g} times as "
                f"long as in other groups of {slow.ranks}."
            )
    return notes[:MOST_NOTES]


def _size_notes(seen: Sequence[GroupedCollective]) -> list[str]:
    if not any(collective.signature.bytes < 0 for collective in seen):
        return []
    return [
        Abstention(
            "No bandwidth where bytes is empty: sizes are in NCCL's NVTX payload, which these "
            "exports lack.",
            "It takes NCCL 2.16 and `nsys profile -t cuda,nvtx`, and an export with "
            "`--include-json true` (nsys 2025 on).",
        )
    ]


def _missing_notes(seen: Sequence[GroupedCollective], names: UnitNames) -> list[str]:
    torn = {
        names.group(collective.units, collective.size): collective.size - len(collective.units)
        for collective in seen
        if collective.size > len(collective.units)
    }
    if not torn:
        return []
    shown = "; ".join(
        f"{group}: {missing} missing" for group, missing in list(torn.items())[:MOST_NOTES]
    )
    reason = f"Not all ranks of every group were captured ({shown}): their arrivals are unknown."
    return [Abstention(reason, "Profile every rank of the job and give all reports.")]


def doubtful_note(alignment: Alignment, names: UnitNames) -> list[str]:
    """Which groups are not known."""
    ledger = alignment.ledger
    shown = np.unique(ledger.communicator[ledger.shown & alignment.instances.matched]).tolist()
    seen = [ledger.communicators[place] for place in shown]
    several = list(
        dict.fromkeys(
            names.group(communicator.ranks, 0) for communicator in seen if communicator.doubtful
        )
    )
    if not several:
        return []
    listed = "; ".join(several[:MOST_NOTES])
    reason = (
        f"Groups are not known in {listed}: their collectives end as those of one group and of "
        "several would, and are shown as one group's."
    )
    return [Abstention(reason, "NCCL's NVTX payload names the groups.")]


def _unmatched_note(alignment: Alignment) -> list[str]:
    matched = alignment.instances.matched[alignment.ledger.shown]
    alone = int(np.count_nonzero(~matched))
    if not alone:
        return []
    return [f"{alone:,} of {len(matched):,} collectives have no counterpart in another rank."]
