"""What ranks sent to each other: the rows and notes of `--by pair`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nsightpy.analysis.ranks.pairs import (
    COLUMNS,
    SENT,
    Name,
    Pair,
    Sender,
    Sent,
    pairs_of,
    sent_by,
)
from nsightpy.query import Parts, Question, Scope, SystemReport
from nsightpy.results import Field, Note, Said, Table
from nsightpy.units import group_text, significant

FIELDS = (
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
MOST_NOTES = 3

Part: TypeAlias = dict[tuple[int, Sender], Sent]


def question() -> Question[Table]:
    """What each rank sent to each other one, most bytes first."""
    return Question(_sent, _table, identified=True)


def _table(parts: Parts[Part]) -> Table:
    repeated = parts.ranks.repeated
    senders: list[tuple[Name, Sender, Sent]] = []
    for report, part in parts.results:
        for (pid, sender), sent in part.items() if report.path not in repeated else ():
            rank = report.rank_of(pid)[0]
            senders.append((f"{report.path.stem}:{pid}" if rank is None else rank, sender, sent))
    pairs, groups, ranks = pairs_of(senders), _groups(senders), parts.scope.ranks
    rows = tuple(
        (
            *(pair.source, pair.target, pair.operation, groups[pair.communicator]),
            *(pair.instances, pair.bytes, pair.largest, pair.over_mean),
        )
        for pair in pairs
        if ranks is None or {pair.source, pair.target} & ranks
    )
    return Table("collectives", FIELDS, rows, notes=tuple(_notes(pairs, groups)))


def _sent(report: SystemReport, scope: Scope) -> Part:
    """What the processes of a report sent, by process and communicator."""
    columns = dict.fromkeys((*COLUMNS, "device", "correlation_id", SENT))
    frame = report.frame("collectives", tuple(columns))
    return sent_by(scope.everybody.narrow(report, frame))


def _groups(senders: Sequence[tuple[Name, Sender, Sent]]) -> dict[str, str]:
    """The ranks of each communicator in short; a question mark for those not captured."""
    members: dict[str, set[Name]] = {}
    sizes: dict[str, int] = {}
    for name, sender, _ in senders:
        members.setdefault(sender.communicator, set()).add(name)
        sizes[sender.communicator] = max(sizes.get(sender.communicator, 0), sender.size)
    return {
        which: group_text(list(names)) + (",?" if sizes[which] > len(names) else "")
        for which, names in members.items()
    }


def _notes(pairs: Sequence[Pair], groups: Mapping[str, str]) -> list[Said]:
    if not pairs:
        return [NOTHING]
    received: dict[tuple[str, str], Counter[Name]] = defaultdict(Counter)
    for pair in pairs:
        received[pair.operation, pair.communicator][pair.target] += pair.bytes
    uneven: list[tuple[float, str]] = []
    for (operation, communicator), by_rank in received.items():
        most = max(by_rank, key=lambda name: by_rank[name])
        whole = sum(by_rank.values())
        if len(by_rank) > 2 and whole and by_rank[most] * len(by_rank) >= UNEVEN * whole:
            over = by_rank[most] * len(by_rank) / whole
            where = f"{operation} in {groups[communicator]}: rank {most} receives"
            uneven.append((over, f"{where} {significant(over)} times the mean of its group."))
    uneven.sort(key=lambda entry: -entry[0])
    lost = [UNCAPTURED] if any(str(pair.target).startswith("?") for pair in pairs) else []
    return [*(note for _, note in uneven[:MOST_NOTES]), *lost]
