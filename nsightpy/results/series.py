"""Tables with what is drawn beside them: memory over time, modes of durations."""

from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.results.keys import Row
from nsightpy.results.tables import Table
from nsightpy.units import format_time


@dataclass(frozen=True)
class MemorySeries:
    """Live bytes of one kind of memory on one device: `live[i]` from `times_ns[i]` on.

    Where it is known: `layers` divide live bytes by who allocated them, from the bottom up;
    `reserved` is what the allocator held; `iterations_ns` are where iterations begin and end;
    `failures_ns` are allocations that failed. Without a `clock`, times count events.
    """

    times_ns: Sequence[int]
    live: Sequence[int]
    reserved: Sequence[int] = ()
    rank: int | None = None
    device: int = 0
    memory: str = "Device"
    layers: Sequence[tuple[str, Sequence[int]]] = ()
    iterations_ns: Sequence[int] = ()
    failures_ns: Sequence[int] = ()
    clock: bool = True


@dataclass(frozen=True)
class MemoryGrowth:
    """One iteration: the most that was live in it, and by how much memory grew over it, in bytes.

    `grown_at` is the place that grew most, by `grown_bytes`; empty where nothing grew.
    """

    start_ns: int
    end_ns: int
    peak_bytes: int
    left_bytes: int
    grown_at: str = ""
    grown_bytes: int = 0
    rank: int | None = None
    device: int = 0


@dataclass(frozen=True, repr=False)
class MemoryUsage(Table):
    """The table of `nsightpy memory-usage`, behind it what is drawn, and what iterations left."""

    series: tuple[MemorySeries, ...] = ()
    iterations: tuple[MemoryGrowth, ...] = ()


def stretches_of(table: Table) -> int:
    """How many rows each device has in the table of `nsightpy breakdown --bins`; at least 1."""
    ends = [
        int(start or 0) + int(length or 0)
        for start, length in zip(table.column("start_ns"), table.column("duration_ns"), strict=True)
    ]
    return ends.index(max(ends)) + 1 if ends else 1


@dataclass(frozen=True, slots=True)
class Bin:
    """How many durations lie from `low_ns` on and below `high_ns`, and the mode that is theirs."""

    low_ns: int
    high_ns: int
    count: int
    mode: int


@dataclass(frozen=True)
class Durations:
    """How the durations of one name spread: medians of modes in ns, ascending; how many each has;
    bins from the shortest."""

    name: str
    medians_ns: tuple[float, ...]
    counts: tuple[int, ...]
    bins: tuple[Bin, ...] = ()

    @property
    def instances(self) -> int:
        return sum(self.counts)

    def modes_text(self, most: int) -> str:
        """The most frequent modes with their shares, and how many others: 2.1 us (61 %), ..."""
        if len(self.counts) == 1:
            return format_time(self.medians_ns[0])
        often = sorted(zip(self.counts, self.medians_ns, strict=True), reverse=True)[:most]
        parts = [
            f"{format_time(median)} ({100 * count / self.instances:.2g} %)"
            for median, count in sorted((median, count) for count, median in often)
        ]
        left = len(self.counts) - len(often)
        return ", ".join(parts) + (f" + {left}" if left else "")


@dataclass(frozen=True, repr=False)
class Instances(Table):
    """The table of `nsightpy instances`, how durations spread, by time of the names, and for people
    the usual ones of each rank."""

    durations: tuple[Durations, ...] = ()
    by_rank: tuple[Row, ...] = ()
