"""What ranks send to each other: all-to-all with uneven splits, sends to a neighbour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
    columns = (collectives.ints(name).tolist() for name in ("pid", "group_size", "group_rank"))
    operations, groups = (collectives.labels(name) for name in ("operation", "communicator"))
    for row, (code, pid, *group) in enumerate(zip(texts.codes.tolist(), *columns, strict=True)):
        if messages[code]:
            sender = Sender(operations[row], groups[row], *group)
            of_sender = sent.setdefault((pid, sender), {})
            for peer, length in messages[code]:
                count, total, most = of_sender.get(peer, (0, 0, 0))
                of_sender[peer] = (count + 1, total + length, max(most, length))
    return sent


def pairs_of(senders: Sequence[tuple[Name, Sender, Sent]]) -> list[Pair]:
    """The pairs of all ranks, most bytes first; each sender with its name.

    A receiver that was not captured goes by its place in the communicator: `?3`.
    """
    names = {(s.communicator, s.place): name for name, s, _ in senders if s.place >= 0}
    sums, counts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for _, sender, peers in senders:
        sums[sender[:2]] += sum(size for _, size, _ in peers.values())
        counts[sender[:2]] += len(peers)
    pairs = []
    for name, sender, peers in senders:
        key = sender[:2]
        for peer, (count, size, most) in peers.items():
            target = names.get((sender.communicator, peer), f"?{peer}")
            over = size * counts[key] / sums[key] if sums[key] else None
            pairs.append(Pair(*key, name, target, count, size, most, over))
    return sorted(pairs, key=_order)


def _order(pair: Pair) -> tuple[object, ...]:
    ends = ((isinstance(name, str), name) for name in (pair.source, pair.target))
    return (-pair.bytes, pair.operation, pair.communicator, *ends)
