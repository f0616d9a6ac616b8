"""collectives: NCCL operations by size and group: transfer and wait, bandwidth, who is late; those
within and across nodes; what pairs of ranks send each other."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import numpy as np

from nsightpy.analysis.ranks import traffic
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import (
    Abnormal,
    GroupedCollective,
    grouped_collectives,
)
from nsightpy.query import Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.rank_alignment import RankPart, UnitNames, align_parts, once, rank_part
from nsightpy.results import Field, Note, Said, Table, fields_in, rows_of
from nsightpy.results.keys import COLLECTIVE, row_keys
from nsightpy.units import format_bytes, format_time, significant

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
    *fields_in("count", "groups", "nodes"),
    Field("instances", "count", heading="count", importance=4),
    Field("bytes", "bytes", heading="total size", importance=7),
    Field("transfer_ns", "time", heading="total transfer", importance=6),
    Field("busbw_gb_per_s", "GB/s", 3, heading="bus GB/s", importance=5),
    Field("wait_ns", "time", heading="total wait", importance=8),
    Field("wait_share", "share", 4, importance=3),
)
PAIR_FIELDS = (
    *fields_in("id", "source_rank", "target_rank"),
    Field("operation", "name", importance=1),
    Field("group", "text", importance=2),
    Field("instances", heading="count", importance=4),
    Field("bytes", "bytes", heading="total size"),
    Field("largest_bytes", "bytes", heading="largest"),
    Field("over_mean", "ratio", 3),
)
NO_SIZES = Note(
    "No bandwidth where bytes is empty: the captures lack these sizes (kernels of other "
    "libraries than NCCL never have them).",
    "They are in NCCL's NVTX payload: NCCL 2.16 and `nsys profile -t cuda,nvtx`, and an "
    "export with `--include-json true` (nsys 2025 on).",
    "They are arguments of NCCL's kernels, which PyTorch 2.3 and later write.",
)
TORN = Note(
    "Of groups with a question mark not all ranks were captured: their arrivals are unknown.",
    "Profile every rank of the job and give all reports.",
)
DOUBTFUL = Note(
    "Some groups are not known: their collectives end as those of one group and of several would, "
    "and are shown as one group's.",
    "NCCL's NVTX payload names the groups.",
    "PyTorch 2.3 and later write the groups as arguments of NCCL's kernels.",
)
UNPLACED = "Not all ranks of some groups were captured, or no host is named: they may cross nodes."
NOTHING_SENT = Note(
    "What one rank sent to another is not recorded: it takes the receiver and the size of every "
    "NCCL send, or the splits of an all-to-all.",
    NO_SIZES.what_would_help,
    "Traces have the splits of all_to_all_single in groups of at most 30 ranks.",
)
ALONE = "{:,} collectives have no counterpart in another rank."
UNCAPTURED = "?3 stands for rank 3 of a group that was not captured."
UNEVEN, MOST_NOTES = 1.25, 3  # receivers of this much more than the mean are named, the worst


@command(
    layouts=(FIELDS, NODE_FIELDS, PAIR_FIELDS),
    keys=row_keys(COLLECTIVE, "operation", "bytes", "ranks"),
    picture="nsightpy.render.plots.collectives_plot:collectives_figure",
)
def collectives(
    *,
    by: Annotated[
        str,
        Option(
            "A row per group and size, per place of groups (within a node, across), or for what "
            "each rank sent to each other one (experts, pipelines).",
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
        return Question(_messages, _by_pair, identified=True)
    return Question(rank_part, partial(_table, by=by), identified=True)


def _table(parts: Parts[RankPart], by: str) -> Table:
    alignment = align_parts(once(parts.ranks, parts.results))
    names = UnitNames.of(alignment)
    units = {
        place
        for place, unit in enumerate(alignment.ledger.units)
        if parts.scope.includes(alignment.clocks[unit.clock].rank, unit.device)
    }
    found = grouped_collectives(alignment, arrivals_of(alignment))
    shown = [collective for collective in found if units.intersection(collective.units)]
    if by == "group":
        rows = rows_of(
            FIELDS,
            shown,
            operation=lambda collective: collective.signature.operation,
            group=lambda collective: names.group(collective.units, collective.size),
            last_rank=lambda c: None if c.last_unit is None else names.names[c.last_unit],
            abnormal=lambda collective: len(collective.abnormal),
        )
    else:
        hosts = [alignment.clocks[unit.clock].host for unit in alignment.ledger.units]
        rows = tuple(traffic.traffic_by_node(shown, hosts))
    alone = np.count_nonzero(alignment.ledger.shown & ~alignment.instances.matched)
    notes: tuple[tuple[Said, object], ...] = (
        (NO_SIZES, any(collective.signature.bytes < 0 for collective in shown)),
        (TORN, by == "group" and any(c.size > len(c.units) for c in shown)),
        (UNPLACED, any(row[0] == traffic.UNKNOWN_PLACE for row in rows)),
        (Note(ALONE.format(alone), "" if rows else TORN.what_would_help), by == "node" and alone),
        (DOUBTFUL, any(group.doubtful for group in alignment.ledger.communicators)),
    )
    told = [note for note, holds in notes if holds]
    if by == "group":
        told[:0] = _abnormal_notes(shown, names)
    fields = FIELDS if by == "group" else NODE_FIELDS
    return Table("collectives", fields, rows, notes=(*told, *alignment.notes))


def _messages(report: SystemReport, scope: Scope) -> traffic.Sent:
    """What the processes of a report sent."""
    columns = ("start_ns", "end_ns", "device", "correlation_id", *traffic.SENT)
    return traffic.sent_by(scope.everybody.narrow(report, report.frame("collectives", columns)))


def _by_pair(parts: Parts[traffic.Sent]) -> Table:
    messages = []
    for report, sent in once(parts.ranks, parts.results):
        for (pid, *group), figures in sent.items():
            number = report.rank_of(pid)[0]
            name = f"{report.path.stem}:{pid}" if number is None else number
            messages.append((name, *group, *figures))
    pairs, ranks = traffic.pairs_of(messages), parts.scope.ranks
    notes: list[Said] = [] if pairs else [NOTHING_SENT]
    for over, (operation, ranks_of, rank) in traffic.receivers_of_most(pairs)[:MOST_NOTES]:
        if over >= UNEVEN:
            much = f"{significant(over)} times the mean of its group"
            notes.append(f"{operation} in {ranks_of}: rank {rank} receives {much}.")
    notes += [UNCAPTURED] if any(str(pair[1]).startswith("?") for pair in pairs) else []
    rows = [pair for pair in pairs if ranks is None or ranks.intersection(pair[:2])]
    return Table("collectives", PAIR_FIELDS, rows, notes=tuple(notes))


def _abnormal_notes(shown: Sequence[GroupedCollective], names: UnitNames) -> list[Said]:
    """The worst instances, each with its ratio and whether somebody was waited for."""
    every = ((bad, collective) for collective in shown for bad in collective.abnormal)
    return [
        f"abnormal: {called(collective, names)} once took {format_time(bad.duration_ns)}, "
        f"{significant(bad.ratio)} times its median; {cause_of(bad, names)}."
        for bad, collective in sorted(every, key=lambda case: -case[0].ratio)[:MOST_NOTES]
    ]


def called(collective: GroupedCollective, names: UnitNames) -> str:
    """A collective as notes call it: operation, size and group."""
    size = "" if collective.bytes is None else f" of {format_bytes(collective.bytes)}"
    group = names.group(collective.units, collective.size)
    return f"{collective.signature.operation}{size} in {group}"


def cause_of(bad: Abnormal, names: UnitNames) -> str:
    """Why an instance was slow, as far as it is known."""
    if bad.late_unit is not None:
        return f"it waited for rank {names.names[bad.late_unit]}"
    if not bad.whole:
        return "whether it waited is not known, since no other rank was captured"
    return "the transfer itself was slow"
