"""Reserved against allocated memory of PyTorch's allocator: at the dump, and where it ran out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.memory.recorded import Recorded
from nsightpy.frames import Frame

OOM = "oom"


@dataclass(frozen=True, slots=True)
class Reserve:
    """What the segments of one device held at the dump, in bytes.

    `free_pieces` are the blocks that nobody used; an allocation larger than `largest_free` needs
    new memory however much is free. `rounding` is what the allocator added to what was asked for.
    """

    reserved: int
    requested: int
    rounding: int
    free_pieces: int
    largest_free: int

    @property
    def unused(self) -> int:
        return self.reserved - self.requested - self.rounding

    @property
    def unused_share(self) -> float | None:
        return self.unused / self.reserved if self.reserved else None


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
    size, requested = blocks.ints("bytes"), blocks.ints("requested_bytes")
    free = size[~active]
    return Reserve(
        int(segments.ints("bytes").sum()),
        int(requested[active].sum()),
        int((size - requested)[active].sum()),
        len(free),
        int(free.max(initial=0)),
    )


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
