"""What ranks send to each other: all-to-all with uneven splits, sends to a neighbour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.frames import Frame

# Of the frame of collectives: what was sent, as receiver:bytes, and by whom.
SENT = ("sent", "pid", "operation", "communicator", "group_size", "group_rank")
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

    source_rank: Name
    target_rank: Name
    operation: str
    communicator: str
    instances: int
    bytes: int
    largest_bytes: int
    over_mean: float | None


def sent_by(collectives: Frame) -> dict[tuple[int, Sender], Sent]:
    """What the processes of a report sent, by process and communicator."""
    sent: dict[tuple[int, Sender], Sent] = {}
    groups = group_by(collectives, SENT)
    for key, instances in zip(groups.keys, np.bincount(groups.codes).tolist(), strict=True):
        text, pid, *sender = cast(tuple[Any, ...], key)
        for message in text.split():
            peer, length = map(int, message.split(":"))
            of_sender = sent.setdefault((pid, Sender(*sender)), {})
            count, total, most = of_sender.get(peer, (0, 0, 0))
            of_sender[peer] = (count + instances, total + instances * length, max(most, length))
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
            pairs.append(Pair(name, target, *key, count, size, most, over))
    return sorted(pairs, key=_order)


def _order(pair: Pair) -> tuple[object, ...]:
    ends = ((isinstance(name, str), name) for name in (pair.source_rank, pair.target_rank))
    return (-pair.bytes, pair.operation, pair.communicator, *ends)
