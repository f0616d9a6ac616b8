"""Allocations out of PyTorch's ring buffer of allocator events, and live memory over them.

The buffer may have lost its beginning. What was allocated before it is what was active at the
dump and never allocated in it, and what was freed in it without having been allocated there.
Live bytes go up at `alloc` and down at `free_completed`.

Moments are places in the order of events, as several events share a microsecond: state k is what
was live before event k, state n what was live after the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nsightpy.frames import Frame, Ints

BEFORE = -1
ALLOC, FREED = "alloc", "free_completed"
GROWS, SHRINKS = ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")


@dataclass(frozen=True)
class Recorded:
    """The allocations of one device.

    `start` and `freed` are the events (0 to n - 1) that made and ended each; BEFORE and n stand
    for before the first and never. `times` (ns, n of them) are -1 where no clock was recorded.
    `reserved` has n + 1 states. Frees that end nothing known are left out, and blocks that were
    allocated after the last event; an allocation that was freed unseen ends where its address is
    allocated again.
    """

    start: Ints
    freed: Ints
    bytes: Ints
    stack: Ints
    times: Ints
    reserved: Ints

    @property
    def events(self) -> int:
        return len(self.times)

    @cached_property
    def live(self) -> Ints:
        """Live bytes of each of the n + 1 states."""
        change = np.zeros(self.events + 2, dtype=np.int64)
        np.add.at(change, self.start + 1, self.bytes)
        np.subtract.at(change, self.freed + 1, self.bytes)
        return np.cumsum(change)[:-1]

    def alive(self, state: int) -> np.ndarray:
        """Mask of the allocations that are live in a state."""
        return (self.start < state) & (self.freed >= state)

    def states(self, from_ns: int | None, to_ns: int | None) -> tuple[int, int]:
        """The first and the last state of a stretch of time."""
        times = np.maximum.accumulate(self.times) if self.events else self.times
        first = 0 if from_ns is None else int(np.searchsorted(times, from_ns, side="left"))
        last = self.events if to_ns is None else int(np.searchsorted(times, to_ns, side="right"))
        return first, max(first, last)

    def time_of(self, state: int) -> int | None:
        """When a state began, in ns; the first one with the recording."""
        if not self.events or self.times[max(state - 1, 0)] < 0:
            return None
        return int(self.times[max(state - 1, 0)])


def recorded(events: Frame, segments: Frame, blocks: Frame) -> Recorded:
    """The allocations of one device (schemas allocator_events, memory_segments, memory_blocks)."""
    actions = events.labels("action")
    places = np.flatnonzero(actions.equals([ALLOC, FREED]))
    count = events.rows
    address = events.ints("address")[places]
    by_address = np.lexsort((places, address))
    places, address = places[by_address], address[by_address]
    allocs = actions.equals([ALLOC])[places]
    # an event may follow another one of its address
    first = np.ones(len(places), dtype=np.bool_)
    first[1:] = address[1:] != address[:-1]
    follows = np.flatnonzero(~first)
    ended = np.full(len(places), count, dtype=np.int64)
    ended[follows - 1] = places[follows]
    lost = ~allocs & first
    # active blocks that no event of their address made
    active = blocks.labels("state").where(lambda name: name.startswith("active"))
    kept = np.flatnonzero(active & ~np.isin(blocks.ints("address"), address))
    size, stack = events.ints("bytes")[places], events.ints("stack")[places]
    # what is reserved, backwards from what the segments held at the dump
    grown = events.ints("bytes") * (
        actions.equals(GROWS).astype(np.int64) - actions.equals(SHRINKS)
    )
    return Recorded(
        np.concatenate([np.full(len(kept) + np.count_nonzero(lost), BEFORE), places[allocs]]),
        np.concatenate([np.full(len(kept), count), places[lost], ended[allocs]]),
        np.concatenate([blocks.ints("requested_bytes")[kept], size[lost], size[allocs]]),
        np.concatenate([blocks.ints("stack")[kept], np.full(lost.sum(), -1), stack[allocs]]),
        events.ints("start_ns"),
        int(segments.ints("bytes").sum()) - np.append(np.cumsum(grown[::-1])[::-1], 0),
    )


OOM = "oom"


@dataclass(frozen=True, slots=True)
class Reserve:
    """What the segments of one device held at the dump, in bytes.

    `unused` is neither asked for nor what the allocator rounds that up by; `free_pieces` are the
    blocks that nobody used: an allocation larger than `largest_free` needs new memory.
    """

    reserved: int
    requested: int
    unused: int
    free_pieces: int
    largest_free: int


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """An allocation that failed: what was asked for, and what there was, in bytes."""

    start_ns: int | None
    asked: int
    device_free: int | None
    live: int
    reserved: int
    stack: int


def reserve(segments: Frame, blocks: Frame) -> Reserve:
    """The state of one device at the dump (schemas memory_segments, memory_blocks)."""
    active = blocks.labels("state").where(lambda state: state.startswith("active"))
    size, reserved = blocks.ints("bytes"), int(segments.ints("bytes").sum())
    requested, free = int(blocks.ints("requested_bytes")[active].sum()), size[~active]
    unused = reserved - int(size[active].sum())
    return Reserve(reserved, requested, unused, len(free), int(free.max(initial=0)))


def out_of_memory(events: Frame, recorded: Recorded) -> list[OutOfMemory]:
    """Every failed allocation of one device, in order (schema allocator_events)."""
    rows = np.flatnonzero(events.labels("action").equals([OOM]))
    if not len(rows):
        return []
    live, free = recorded.live, events.ints("device_free_bytes")
    return [
        OutOfMemory(
            recorded.time_of(row + 1),
            int(events.ints("bytes")[row]),
            int(free[row]) if free[row] >= 0 else None,
            int(live[row]),
            int(recorded.reserved[row]),
            int(events.ints("stack")[row]),
        )
        for row in rows.tolist()
    ]
