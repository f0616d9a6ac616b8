"""collectives: NCCL operations by size and group: transfer and wait, bandwidth, who is late; those
within and across nodes; what pairs of ranks send each other."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.ranks.arrivals import arrivals_of
from nsightpy.analysis.ranks.collective_groups import (
    Abnormal,
    GroupedCollective,
    grouped_collectives,
)
from nsightpy.analysis.ranks.exchanges import SENT, Name, Pair, Sender, Sent, pairs_of, sent_by
from nsightpy.analysis.ranks.links import UNKNOWN_PLACE, traffic_by_node
from nsightpy.query import Option, Parts, Question, Scope, SystemReport
from nsightpy.query.command import command
from nsightpy.query.rank_alignment import RankPart, UnitNames, align_parts, once, rank_part
from nsightpy.results import Field, Note, Said, Table, rows_of
from nsightpy.results.keys import COLLECTIVE, row_keys
from nsightpy.units import format_bytes, format_time, group_text, listed, significant

PAIR_FIELDS = (
    Field("source_rank", "id"),
    Field("target_rank", "id"),
    Field("operation", "name", importance=1),
    Field("group", "text", importance=2),
    Field("instances", heading="count", importance=4),
    Field("bytes", "bytes", heading="total size"),
    Field("largest_bytes", "bytes", heading="largest"),
    Field("over_mean", "ratio", 3),
)
NOTHING = Note(
    "What one rank sent to another is not recorded: it takes the receiver and the size of every "
    "NCCL send, or the splits of an all-to-all.",
    "NCCL 2.16 and `nsys profile -t cuda,nvtx`, and an export with `--include-json true` (nsys "
    "2025 on), have both.",
    "Traces have the splits of all_to_all_single in groups of at most 30 ranks.",
)
UNCAPTURED = "?3 stands for rank 3 of a group that was not captured."
# Receivers that get this much more than the mean are named.
UNEVEN = 1.25

Part: TypeAlias = dict[tuple[int, Sender], Sent]


def _pair_table(parts: Parts[Part]) -> Table:
    repeated = parts.ranks.repeated
    senders: list[tuple[Name, Sender, Sent]] = []
    for report, part in parts.results:
        for (pid, sender), sent in part.items() if report.path not in repeated else ():
            rank = report.rank_of(pid)[0]
            senders.append((f"{report.path.stem}:{pid}" if rank is None else rank, sender, sent))
    pairs, groups, ranks = pairs_of(senders), _groups(senders), parts.scope.ranks
    shown = [p for p in pairs if ranks is None or {p.source_rank, p.target_rank} & ranks]
    rows = rows_of(PAIR_FIELDS, shown, group=lambda pair: groups[pair.communicator])
    return Table("collectives", PAIR_FIELDS, rows, notes=tuple(_pair_notes(pairs, groups)))


def _sent(report: SystemReport, scope: Scope) -> Part:
    """What the processes of a report sent, by process and communicator."""
    columns = ("start_ns", "end_ns", "device", "correlation_id", *SENT)
    return sent_by(scope.everybody.narrow(report, report.frame("collectives", columns)))


def _groups(senders: Sequence[tuple[Name, Sender, Sent]]) -> dict[str, str]:
    """The ranks of each communicator in short; a question mark for those not captured."""
    members: dict[str, set[Name]] = defaultdict(set)
    sizes: dict[str, int] = defaultdict(int)
    for name, sender, _ in senders:
        members[sender.communicator].add(name)
        sizes[sender.communicator] = max(sizes[sender.communicator], sender.size)
    return {
        which: group_text(list(names)) + (",?" if sizes[which] > len(names) else "")
        for which, names in members.items()
    }


def _pair_notes(pairs: Sequence[Pair], groups: Mapping[str, str]) -> list[Said]:
    if not pairs:
        return [NOTHING]
    received: dict[tuple[str, str], Counter[Name]] = defaultdict(Counter)
    for pair in pairs:
        received[pair.operation, pair.communicator][pair.target_rank] += pair.bytes
    uneven: list[tuple[float, str]] = []
    for (operation, communicator), by_rank in received.items():
        rank, most = by_rank.most_common(1)[0]
        over = most * len(by_rank) / max(by_rank.total(), 1)
        if len(by_rank) > 2 and over >= UNEVEN:
            where = f"{operation} in {groups[communicator]}: rank {rank} receives"
            uneven.append((over, f"{where} {significant(over)} times the mean of its group."))
    uneven.sort(key=lambda entry: -entry[0])
    lost = [UNCAPTURED] if any(str(pair.target_rank).startswith("?") for pair in pairs) else []
    return [*(note for _, note in uneven[:MOST_NOTES]), *lost]


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
NO_SIZES = Note(
    "No bandwidth where bytes is empty: the captures lack these sizes (kernels of other "
    "libraries than NCCL never have them).",
    "They are in NCCL's NVTX payload: NCCL 2.16 and `nsys profile -t cuda,nvtx`, and an "
    "export with `--include-json true` (nsys 2025 on).",
    "They are arguments of NCCL's kernels, which PyTorch 2.3 and later write.",
)
MOST_NOTES = 3


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
        return Question(_sent, _pair_table, identified=True)
    return Question(rank_part, _by_node if by == "node" else _by_group, identified=True)


def _by_group(parts: Parts[RankPart]) -> Table:
    alignment = align_parts(once(parts.ranks, parts.results))
    names = UnitNames.of(alignment)
    units = _shown_units(parts.scope, alignment)
    found = grouped_collectives(alignment, arrivals_of(alignment))
    shown = [collective for collective in found if units.intersection(collective.units)]
    rows = rows_of(
        FIELDS,
        shown,
        operation=lambda collective: collective.signature.operation,
        group=lambda collective: names.group(collective.units, collective.size),
        last_rank=lambda c: None if c.last_unit is None else names.names[c.last_unit],
        abnormal=lambda collective: len(collective.abnormal),
    )
    notes = (
        *_abnormal_notes(shown, names),
        *([NO_SIZES] if any(collective.signature.bytes < 0 for collective in shown) else []),
        *_missing_notes(shown, names),
        *_notes_on_groups(alignment, names),
    )
    return Table("collectives", FIELDS, rows, notes=notes)


def _by_node(parts: Parts[RankPart]) -> Table:
    alignment = align_parts(once(parts.ranks, parts.results))
    shown = _shown_units(parts.scope, alignment)
    by_node = traffic_by_node(alignment, arrivals_of(alignment), shown)
    rows = rows_of(NODE_FIELDS, by_node)
    notes = (
        *([UNPLACED] if any(traffic.place == UNKNOWN_PLACE for traffic in by_node) else []),
        *([] if rows else [NO_SHARED]),
        *_notes_on_groups(alignment, UnitNames.of(alignment)),
    )
    return Table("collectives", NODE_FIELDS, rows, notes=notes)


def _shown_units(scope: Scope, alignment: Alignment) -> frozenset[int]:
    return frozenset(
        place
        for place, unit in enumerate(alignment.ledger.units)
        if scope.includes(alignment.clocks[unit.clock].rank, unit.device)
    )


def called(collective: GroupedCollective, names: UnitNames) -> str:
    """A collective as notes call it: operation, size and group."""
    size = "" if collective.bytes is None else f" of {format_bytes(collective.bytes)}"
    group = names.group(collective.units, collective.size)
    return f"{collective.signature.operation}{size} in {group}"


def _abnormal_notes(seen: Sequence[GroupedCollective], names: UnitNames) -> list[str]:
    """The worst instances, each with its ratio and whether somebody was waited for."""
    every = ((bad, collective) for collective in seen for bad in collective.abnormal)
    return [
        f"abnormal: {called(collective, names)} once took {format_time(bad.duration_ns)}, "
        f"{significant(bad.ratio)} times its median; {cause_of(bad, names)}."
        for bad, collective in sorted(every, key=lambda case: -case[0].ratio)[:MOST_NOTES]
    ]


def cause_of(bad: Abnormal, names: UnitNames) -> str:
    """Why an instance was slow, as far as it is known."""
    if bad.late_unit is not None:
        return f"it waited for rank {names.names[bad.late_unit]}"
    if not bad.whole:
        return "whether it waited is not known, since no other rank was captured"
    return "the transfer itself was slow"


def _missing_notes(seen: Sequence[GroupedCollective], names: UnitNames) -> list[Said]:
    torn = {
        names.group(collective.units, collective.size): collective.size - len(collective.units)
        for collective in seen
        if collective.size > len(collective.units)
    }
    if not torn:
        return []
    parts = (f"{group}: {missing} missing" for group, missing in torn.items())
    shown = listed(parts, MOST_NOTES, "; ")
    reason = f"Not all ranks of every group were captured ({shown}): their arrivals are unknown."
    return [Note(reason, "Profile every rank of the job and give all reports.")]


def doubtful_note(alignment: Alignment, names: UnitNames) -> list[Said]:
    """Which groups are not known."""
    ledger = alignment.ledger
    shown = np.unique(ledger.communicator[ledger.shown & alignment.instances.matched]).tolist()
    seen = [ledger.communicators[place] for place in shown]
    several = dict.fromkeys(names.group(each.ranks, 0) for each in seen if each.doubtful)
    if not several:
        return []
    reason = (
        f"Groups are not known in {listed(several, MOST_NOTES, '; ')}: their collectives end as "
        "those of one group and of several would, and are shown as one group's."
    )
    return [
        Note(
            reason,
            "NCCL's NVTX payload names the groups.",
            "PyTorch 2.3 and later write the groups as arguments of NCCL's kernels.",
        )
    ]


def _notes_on_groups(alignment: Alignment, names: UnitNames) -> list[Said]:
    """Which groups are not known, how many collectives are in no figure of several ranks, and what
    is said of the clocks."""
    matched = alignment.instances.matched[alignment.ledger.shown]
    notes = doubtful_note(alignment, names)
    if alone := int(np.count_nonzero(~matched)):
        of = f"{alone:,} of {len(matched):,}"
        notes.append(f"{of} collectives have no counterpart in another rank.")
    return [*notes, *alignment.notes]
