"""Memory over time from allocations and frees: how much was live, the peak, and who holds it.

A free belongs to the last allocation at its address (same process and kind of memory). Memory
that was allocated before the capture is not known, and frees of it change nothing, but where the
allocator recorded how much was live (PyTorch's does).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.frames import Frame, Ints

NEVER = 2**63 - 1
_NO_TIMES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Usage:
    """Live bytes of one kind of memory: `live[i]` from `times[i]` (ns) on.

    `rows` are the allocations among the events and `freed` when each was given back, NEVER if not.
    `unknown_frees` gave back what was allocated before the capture. Where the allocator recorded
    it: `reserved[i]` is what it held from `times[i]` on, `older_bytes` were live when the first
    event came, each until `older_freed`.
    """

    times: Ints
    live: Ints
    rows: Ints
    start: Ints
    freed: Ints
    bytes: Ints
    unknown_frees: int
    reserved: Ints
    older_freed: Ints
    older_bytes: Ints

    def older(self, time_ns: int = -1) -> int:
        """The bytes from before the capture that were live at a moment, its begin by default."""
        return int(self.older_bytes[self.older_freed > time_ns].sum())

    @property
    def peak_bytes(self) -> int:
        return int(self.live.max()) if len(self.live) else 0

    @property
    def peak_ns(self) -> int | None:
        """When the peak was reached first."""
        return int(self.times[int(np.argmax(self.live))]) if len(self.live) else None

    @property
    def left_bytes(self) -> int:
        """What was never given back during the capture."""
        return int(self.live[-1]) if len(self.live) else 0

    @property
    def at_peak(self) -> Ints:
        """The places (in `rows`) of the allocations that were live at the peak."""
        peak = self.peak_ns
        if peak is None:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero((self.start <= peak) & (self.freed > peak))


def usages(events: Frame) -> Iterator[tuple[int, int, str, Ints, Usage]]:
    """By process, device and kind of memory: the rows of its events, and its memory."""
    groups = group_by(events, ("pid", "device", "memory"))
    for code, (pid, device, memory) in enumerate(groups.keys):
        rows = np.flatnonzero(groups.codes == code)
        if isinstance(pid, int) and isinstance(device, int) and len(rows):
            yield pid, device, str(memory), rows, usage(events.take(rows))


def usage(events: Frame) -> Usage:
    """The memory of one process, device and kind of memory; events by start.

    Columns start_ns, address, bytes, operation (allocate, free), allocated_bytes, reserved_bytes.
    """
    takes = events.labels("operation").equals(["allocate"])
    start, size = events.ints("start_ns"), events.ints("bytes")
    order = np.lexsort((np.arange(events.rows), events.ints("address")))
    address, taken = events.ints("address")[order], takes[order]
    follows = (address[1:] == address[:-1]) & taken[:-1] & ~taken[1:]
    given_by = np.full(events.rows, -1, dtype=np.int64)
    given_by[order[1:][follows]] = order[:-1][follows]
    frees = np.flatnonzero(given_by >= 0)
    freed = np.full(events.rows, NEVER, dtype=np.int64)
    freed[given_by[frees]] = start[frees]
    change = np.where(takes, size, 0)
    change[frees] = -size[given_by[frees]]
    rows = np.flatnonzero(takes)
    unknown = ~takes & (given_by < 0)
    level, held = events.ints("allocated_bytes"), events.ints("reserved_bytes")
    older_freed, older_bytes, before = _NO_TIMES, _NO_TIMES, 0
    levels_known = events.rows > 0 and bool((level >= 0).all())
    if levels_known:
        change[unknown] = -size[unknown]
        before = max(int(level[0] - change[0]), 0)
        older_freed = np.append(start[unknown], NEVER)
        older_bytes = np.append(size[unknown], before - size[unknown].sum())
    counted = np.flatnonzero(takes | (given_by >= 0) | levels_known)
    times, live = start[counted], before + np.cumsum(change[counted])
    last = np.append(np.diff(times) != 0, True) if len(times) else np.empty(0, dtype=np.bool_)
    times, live = times[last], live[last]
    reserved = held[counted][last] if levels_known and (held > 0).any() else _NO_TIMES
    if before and times[0] > 0:
        times, live = np.append(0, times), np.append(before, live)
        reserved = np.append(reserved[:1], reserved)
    return Usage(
        times,
        live,
        rows,
        start[rows],
        freed[rows],
        size[rows],
        int(np.count_nonzero(unknown)),
        reserved,
        older_freed,
        older_bytes,
    )


@dataclass(frozen=True, slots=True)
class Holder:
    """What one allocator holds: at the peak, at the end, and of how many allocations it has made.

    `name` is None where nothing says who allocated; the numbers in between where only sums are
    known.
    """

    name: str | None
    at_peak_bytes: int
    at_peak_allocations: int | None
    allocations: int | None
    largest_bytes: int | None
    at_end_bytes: int


def holders(
    codes: Ints, names: Sequence[str], size: Ints, at_peak: np.ndarray, at_end: np.ndarray
) -> list[Holder]:
    """The holders, most bytes at the peak first.

    codes: an index of `names` for each allocation, of `size` bytes; an empty name is unknown.
    at_peak, at_end: masks of the allocations that were live then.
    """
    count = len(names)
    allocated = np.bincount(codes, minlength=count)
    peak, end = (
        np.bincount(codes[mask], size[mask], count).astype(np.int64) for mask in (at_peak, at_end)
    )
    pieces = np.bincount(codes[at_peak], minlength=count)
    largest = np.zeros(count, dtype=np.int64)
    np.maximum.at(largest, codes, size)
    held = [
        Holder(
            names[code] or None,
            *(int(column[code]) for column in (peak, pieces, allocated, largest, end)),
        )
        for code in np.flatnonzero(allocated).tolist()
    ]
    return sorted(
        held, key=lambda one: (-one.at_peak_bytes, -(one.largest_bytes or 0), str(one.name))
    )
