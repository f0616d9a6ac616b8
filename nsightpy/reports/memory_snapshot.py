"""One PyTorch memory snapshot: its frames, read on first use."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.torch.snapshot import read_snapshot
from nsightpy.reports.one_file import OneFile
from nsightpy.reports.presentation import DataFrameOf

NO_HISTORY = (
    "The snapshot holds no history, only what was allocated at the dump; "
    "torch.cuda.memory._record_memory_history() records one."
)
NO_CLOCK = "The snapshot's torch recorded no time: its events have an order only."


class MemorySnapshot(OneFile):
    """What torch.cuda.memory._dump_snapshot wrote. Nothing in the file is run.

    The frames (allocator_events, memory_segments, memory_blocks, stack_frames, snapshot_ranges) are
    pandas DataFrames with the columns of `nsightpy.frames`, times in ns since the recording began.
    Raises ReportError when a file cannot be read.
    """

    reading_factor = 16

    @cached_property
    def _frames(self) -> dict[str, Frame]:
        read = read_snapshot(self.path)
        # they are asked for again when the frames have been let go
        self.notes = _notes(read["allocator_events"])
        return read

    def close(self) -> None:
        """Let go of the frames; what is asked next reads the file again."""
        self.__dict__.pop("_frames", None)

    @cached_property
    def notes(self) -> list[str]:
        """What a reader of any figure of this snapshot must know."""
        return _notes(self.frame("allocator_events"))

    @property
    def facts(self) -> dict[str, list[str]]:
        """The notes: they are shown after a function was run on the snapshot."""
        return {"notes": self.notes}

    @cached_property
    def devices(self) -> list[int]:
        """The devices that the snapshot knows something of."""
        numbers = (
            self.frame(name).ints("device") for name in ("allocator_events", "memory_segments")
        )
        return sorted(set(np.unique(np.concatenate(list(numbers))).tolist()))

    def frame(self, name: str) -> Frame:
        """A frame in nsightpy's own columnar form."""
        if name not in frames.SNAPSHOT_SCHEMAS:
            raise KeyError(f"no frame {name!r}; there are {', '.join(frames.SNAPSHOT_SCHEMAS)}")
        return self._frames[name]

    allocator_events = DataFrameOf(frames.ALLOCATOR_EVENTS)
    memory_segments = DataFrameOf(frames.MEMORY_SEGMENTS)
    memory_blocks = DataFrameOf(frames.MEMORY_BLOCKS)
    stack_frames = DataFrameOf(frames.STACK_FRAMES)
    snapshot_ranges = DataFrameOf(frames.SNAPSHOT_RANGES)


def _notes(events: Frame) -> list[str]:
    if not events.rows:
        return [NO_HISTORY]
    return [NO_CLOCK] if (events.ints("start_ns") < 0).any() else []
