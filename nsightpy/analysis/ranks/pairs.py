"""What ranks send to each other: all-to-all with uneven splits, sends to a neighbour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from nsightpy.frames import Frame

COLUMNS = ("start_ns", "end_ns", "pid", "operation", "communicator", "group_size", "group_rank")
SENT = "sent"
Name: TypeAlias = int | str


class Sender(NamedTuple):
    """A process in a communicator; `place` is its rank there, -1 where unknown."""

    operation: str
    communicator: str
    size: int
    place: int


# By receiver (its rank in the communicator) the number of messages, their bytes, the largest.
Sent: TypeAlias = dict[int, tuple[int, int, int]]


@dataclass(frozen=True)
class Pair:
    """All that one rank sent to another in one operation and group.

    `over_mean` is its part of the bytes over the mean of the group's pairs.
    """

    operation: str
    communicator: str
    source: Name
    target: Name
    instances: int
    bytes: int
    largest: int
    over_mean: float | None


def sent_by(collectives: Frame) -> dict[tuple[int, Sender], Sent]:
    """What the processes of a report sent, by process and communicator."""
    sent: dict[tuple[int, Sender], Sent] = {}
    texts = collectives.labels(SENT)
    messages = [
        [tuple(map(int, part.split(":"))) for part in text.split()] for text in texts.values
    ]
    columns = [collectives.ints(name).tolist() for name in ("pid", "group_size", "group_rank")]
    operations, groups = (collectives.labels(name) for name in ("operation", "communicator"))
    for row, (code, pid, size, place) in enumerate(
        zip(texts.codes.tolist(), *columns, strict=True)
    ):
        if messages[code]:
            sender = Sender(operations[row], groups[row], size, place)
            mine = sent.setdefault((pid, sender), {})
            for peer, length in messages[code]:
                count, total, most = mine.get(peer, (0, 0, 0))
                mine[peer] = (count + 1, total + length, max(most, length))
    return sent


def pairs_of(sent: Iterable[tuple[Name, Sender, Sent]]) -> list[Pair]:
    """The pairs of all ranks, most bytes first; each sender with its name.

    A receiver that was not captured goes by its place in the communicator: `?3`.
    """
    senders = list(sent)
    names = {
        (sender.communicator, sender.place): name
        for name, sender, _ in senders
        if sender.place >= 0
    }
    sums: dict[tuple[str, str], int] = {}
    counts: dict[tuple[str, str], int] = {}
    for _, sender, peers in senders:
        key = (sender.operation, sender.communicator)
        sums[key] = sums.get(key, 0) + sum(size for _, size, _ in peers.values())
        counts[key] = counts.get(key, 0) + len(peers)
    pairs = []
    for name, sender, peers in senders:
        key = (sender.operation, sender.communicator)
        for peer, (count, size, most) in peers.items():
            target = names.get((sender.communicator, peer), f"?{peer}")
            over = size * counts[key] / sums[key] if sums[key] else None
            pairs.append(Pair(*key, name, target, count, size, most, over))
    return sorted(pairs, key=lambda pair: (-pair.bytes, *key_of(pair)))


def key_of(pair: Pair) -> tuple[str, str, tuple[bool, Name], tuple[bool, Name]]:
    source, target = ((isinstance(name, str), name) for name in (pair.source, pair.target))
    return pair.operation, pair.communicator, source, target


def received(pairs: Iterable[Pair]) -> Mapping[tuple[str, str], dict[Name, int]]:
    """Bytes by receiver of each operation and group."""
    received_bytes: dict[tuple[str, str], dict[Name, int]] = {}
    for pair in pairs:
        mine = received_bytes.setdefault((pair.operation, pair.communicator), {})
        mine[pair.target] = mine.get(pair.target, 0) + pair.bytes
    return received_bytes
