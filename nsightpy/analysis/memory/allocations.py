"""Memory over time from allocations and frees: how much was live, the peak, and who holds it.

Two recordings are one model. Allocations and frees of a capture: a free belongs to the last
allocation at its address (same process and kind of memory); memory that was allocated before the
capture is not known, and frees of it change nothing, but where the allocator recorded how much was
live (PyTorch's does). And PyTorch's ring buffer of allocator events with the state at the dump: the
buffer may have lost its beginning; what was allocated before it is what was active at the dump and
never allocated in it, and what was freed in it without having been allocated there. Live bytes go
up at `alloc` and down at `free_completed`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.frames import Frame, Ints

BEFORE = -1
_NEVER = 2**63 - 1
_NONE = np.empty(0, dtype=np.int64)
_ALLOC, _FREED = "alloc", "free_completed"
_GROWS, _SHRINKS = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")


@dataclass(frozen=True)
class Allocations:
    """Allocations, and the moments (0 to n - 1) at which they were made and given back.

    State k is what was live before moment k, state n what was live after the last one. `start` and
    `freed` are moments; BEFORE and n stand for before the first and never. `source` is what says
    who allocated, a row of the events or a stack; -1 where nothing does. `times` (ns, n of them)
    are -1 where no clock was recorded. `reserved`, what the allocator held, has n + 1 states, or
    none where it is not known.
    """

    start: Ints
    freed: Ints
    bytes: Ints
    source: Ints
    times: Ints
    reserved: Ints

    @property
    def moments(self) -> int:
        return len(self.times)

    @cached_property
    def live(self) -> Ints:
        """Live bytes of each of the n + 1 states."""
        change = np.zeros(self.moments + 2, dtype=np.int64)
        np.add.at(change, self.start + 1, self.bytes)
        np.subtract.at(change, self.freed + 1, self.bytes)
        return np.cumsum(change)[:-1]

    def alive(self, state: int) -> np.ndarray:
        """Mask of the allocations that are live in a state."""
        return (self.start < state) & (self.freed >= state)

    def states(self, from_ns: int | None, to_ns: int | None) -> tuple[int, int]:
        """The first and the last state of a stretch of time."""
        times = np.maximum.accumulate(self.times) if self.moments else self.times
        first = 0 if from_ns is None else int(np.searchsorted(times, from_ns, side="left"))
        last = self.moments if to_ns is None else int(np.searchsorted(times, to_ns, side="right"))
        return first, max(first, last)

    def time_of(self, state: int) -> int | None:
        """When a state began, in ns; the first one with the recording."""
        if not self.moments or self.times[max(state - 1, 0)] < 0:
            return None
        return int(self.times[max(state - 1, 0)])


def usages(events: Frame) -> Iterator[tuple[int, int, str, Ints, Allocations]]:
    """By process, device and kind of memory: the rows of its events, and its memory."""
    groups = group_by(events, ("pid", "device", "memory"))
    for code, (pid, device, memory) in enumerate(groups.keys):
        rows = np.flatnonzero(groups.codes == code)
        if isinstance(pid, int) and isinstance(device, int) and len(rows):
            yield pid, device, str(memory), rows, usage(events.take(rows))


def usage(events: Frame) -> Allocations:
    """The memory of one process, device and kind of memory; events by start.

    Columns start_ns, address, bytes, operation (allocate, free), allocated_bytes, reserved_bytes.
    Events of one time are one moment. What is known to be from before has no source, and is there
    from 0 ns on.
    """
    takes = events.labels("operation").equals(["allocate"])
    time, size = events.ints("start_ns"), events.ints("bytes")
    before, after = _neighbours(events.ints("address"))
    gives = takes[before] & ~takes[after]
    freed, unknown = np.full(events.rows, _NEVER), ~takes
    freed[before[gives]] = time[after[gives]]
    unknown[after[gives]] = False
    level, held = events.ints("allocated_bytes"), events.ints("reserved_bytes")
    older_freed, older_bytes, reserved = _NONE, _NONE, _NONE
    if levels_known := events.rows > 0 and bool((level >= 0).all()):
        held_before = max(int(level[0] - (size[0] if takes[0] else -size[0])), 0)
        older_freed = np.append(time[unknown], _NEVER)
        older_bytes = np.append(size[unknown], held_before - size[unknown].sum())
    times = np.unique(time[~unknown | levels_known])
    begun = BEFORE
    if older_bytes.sum() and times[0] > 0:
        begun, times = 0, np.append(0, times)
    if levels_known and (held > 0).any():
        last = np.searchsorted(time, np.maximum(times, time[0]), side="right") - 1
        reserved = held[np.append(last[:1], last)]
    rows = np.flatnonzero(takes)
    starts, ends = (np.searchsorted(times, each) for each in (time[rows], freed[rows]))
    older = np.full(len(older_bytes), begun)
    return Allocations(
        np.concatenate([older, starts]),
        np.concatenate([np.searchsorted(times, older_freed), ends]),
        np.concatenate([older_bytes, size[rows]]),
        np.concatenate([np.full(len(older), -1), rows]),
        times,
        reserved,
    )


def _neighbours(address: Ints) -> tuple[Ints, Ints]:
    """The rows that are followed by one of the same address, and those."""
    order = np.argsort(address, kind="stable")
    follows = np.flatnonzero(address[order[1:]] == address[order[:-1]])
    return order[follows], order[follows + 1]


def recorded(events: Frame, segments: Frame, blocks: Frame) -> Allocations:
    """The memory of one device (schemas allocator_events, memory_segments, memory_blocks).

    Every event is a moment, as several share a microsecond. Frees that end nothing known are left
    out, and blocks that were allocated after the last event; an allocation that was freed unseen
    ends where its address is allocated again. The source is the stack.
    """
    actions = events.labels("action")
    places, count = np.flatnonzero(actions.equals([_ALLOC, _FREED])), events.rows
    address, allocs = events.ints("address")[places], actions.equals([_ALLOC])[places]
    before, after = _neighbours(address)
    ended = np.full(len(places), count)
    ended[before] = places[after]
    lost = ~allocs
    lost[after] = False
    # active blocks that no event of their address made
    active = blocks.labels("state").where(lambda name: name.startswith("active"))
    kept = np.flatnonzero(active & ~np.isin(blocks.ints("address"), address))
    size, stack = events.ints("bytes")[places], events.ints("stack")[places]
    # what is reserved, backwards from what the segments held at the dump
    grown = events.ints("bytes") * (
        actions.equals(_GROWS).astype(np.int64) - actions.equals(_SHRINKS)
    )
    return Allocations(
        np.concatenate([np.full(len(kept) + np.count_nonzero(lost), BEFORE), places[allocs]]),
        np.concatenate([np.full(len(kept), count), places[lost], ended[allocs]]),
        np.concatenate([blocks.ints("requested_bytes")[kept], size[lost], size[allocs]]),
        np.concatenate([blocks.ints("stack")[kept], np.full(lost.sum(), -1), stack[allocs]]),
        events.ints("start_ns"),
        int(segments.ints("bytes").sum()) - np.append(np.cumsum(grown[::-1])[::-1], 0),
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
