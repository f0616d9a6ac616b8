"""Communicators, and how long a collective lasts once everybody is there."""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

PER_RANK = {"AllGather", "ReduceScatter"}
BASE_NS = 8_000


def normal(random: Random) -> float:
    """A bell-shaped number of deviation 1, the same on every platform."""
    return (sum(random.random() for _ in range(4)) - 2.0) * 1.7320508


def bus_factor(operation: str, ranks: int) -> float:
    """Bytes that cross the bus per byte of an operation among `ranks`, as nccl-tests counts."""
    part = (ranks - 1) / ranks
    if operation == "AllReduce":
        return 2 * part
    return part if operation in PER_RANK else 1.0


@dataclass(frozen=True)
class Communicator:
    """A group of ranks: its 64-bit NCCL id, and its bus bandwidth in bytes per ns.

    `stretch` multiplies how long its data take.
    """

    kind: str
    ranks: tuple[int, ...]
    number: int
    bytes_per_ns: float
    stretch: float = 1.0

    def payload(self, operation: str, size: int) -> dict[str, object]:
        """What NCCL attaches to the range of an operation of `size` bytes."""
        values: dict[str, object] = {"NCCL communicator ID": self.number}
        values["Message size [bytes]"] = size
        if operation in {"AllReduce", "ReduceScatter"}:
            values["Reduction operation"] = "Sum"
        return values

    def total_bytes(self, operation: str, size: int) -> int:
        """The bytes of the whole operation; `size` is what one rank passed."""
        return size * len(self.ranks) if operation in PER_RANK else size

    def transfer_ns(self, operation: str, size: int) -> int:
        """How long it lasts from the last arrival on."""
        moved = self.total_bytes(operation, size) * bus_factor(operation, len(self.ranks))
        return BASE_NS + int(self.stretch * moved / self.bytes_per_ns)


class Arrival(NamedTuple):
    """A rank's kernel has started; it ends when its group is complete."""

    communicator: Communicator
    rank: int
    operation: str
    size: int
    start: int


@dataclass
class Instance:
    """One collective that happened; times are ns of the true clock, by rank."""

    communicator: Communicator
    operation: str
    size: int
    sequence: int
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.starts) == len(self.communicator.ranks)

    @property
    def last_rank(self) -> int:
        return max(self.starts, key=lambda rank: self.starts[rank])

    def finish(self, jitter_ns: float, random: Random) -> None:
        """Let it end for everybody together, but for a little jitter."""
        last = max(self.starts.values())
        common = last + self.communicator.transfer_ns(self.operation, self.size)
        for rank in self.communicator.ranks:
            self.ends[rank] = max(last + 1_000, common + int(normal(random) * jitter_ns))


class Rendezvous:
    """Matches arrivals to instances, in the order of each communicator."""

    def __init__(self, jitter_ns: float, seed: int) -> None:
        self.instances: list[Instance] = []
        self._jitter_ns = jitter_ns
        self._random = Random(seed * 104_729 + 1)
        self._counts: Counter[tuple[int, int]] = Counter()
        self._open: dict[tuple[int, int], Instance] = {}

    def arrive(self, arrival: Arrival) -> Instance:
        """Add a rank to its instance, which is finished when it is the last one."""
        number = arrival.communicator.number
        sequence = self._counts[number, arrival.rank]
        self._counts[number, arrival.rank] += 1
        key, operation = (number, sequence), (arrival.operation, arrival.size)
        instance = self._open.setdefault(key, Instance(arrival.communicator, *operation, sequence))
        if (instance.operation, instance.size) != operation:
            raise RuntimeError(f"ranks disagree about operation {sequence} of group {number}")
        instance.starts[arrival.rank] = arrival.start
        if instance.complete:
            instance.finish(self._jitter_ns, self._random)
            self.instances.append(instance)
            del self._open[key]
        return instance
