"""One PyTorch memory snapshot: its frames, read on first use."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.tools.file_check import file_errors, has_suffix, is_regular, resolved
from nsightpy.readers.torch.snapshot import read_snapshot
from nsightpy.readers.torch.snapshot_process import is_snapshot_file
from nsightpy.reports.one_file import OneFile, name_ranks
from nsightpy.reports.presentation import DataFrameOf, facts_table
from nsightpy.units import format_count

# Where reports of nsys lie, snapshots beside them are not what is asked about.
REPORT_SUFFIXES = (".nsys-rep", ".qdrep", ".sqlite", ".sqlite3", ".db")

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
    def facts(self) -> list[str]:
        """The notes: they are shown after a function was run on the snapshot."""
        return self.notes

    def adopt(self, facts: list[str]) -> None:
        """Take over the notes that another process found."""
        self.notes = facts

    @cached_property
    def devices(self) -> list[int]:
        """The devices that the snapshot knows something of."""
        known = (
            self.frame(name).ints("device") for name in ("allocator_events", "memory_segments")
        )
        return sorted(set(np.unique(np.concatenate(list(known))).tolist()))

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

    def _repr_html_(self) -> str:
        facts = {
            "snapshot": str(self.path),
            "devices": ", ".join(map(str, self.devices)),
            "events": format_count(self.frame("allocator_events").rows),
            "notes": " ".join(self.notes),
        }
        return facts_table(facts)


def _notes(events: Frame) -> list[str]:
    if not events.rows:
        return [NO_HISTORY]
    return [NO_CLOCK] if (events.ints("start_ns") < 0).any() else []


def find_snapshots(given: str | Path) -> list[Path]:
    """The memory snapshots behind one path: itself, those in a directory, or those of a glob."""
    path = Path(given)
    with file_errors(path):
        if path.is_dir():
            files = [file for file in path.iterdir() if is_regular(file)]
        elif glob.has_magic(str(given)) and not path.exists():
            files = [Path(name) for name in glob.glob(str(given), recursive=True)]  # noqa: PTH207
        else:
            return [path] if is_regular(path) and is_snapshot_file(path) else []
    snapshots = sorted(file for file in files if is_snapshot_file(file))
    return snapshots if not any(has_suffix(file, REPORT_SUFFIXES) for file in files) else []


def open_snapshots(
    paths: Iterable[str | Path | MemorySnapshot], *, rank_regex: str | None = None
) -> list[MemorySnapshot]:
    """Open snapshots, directories and globs, in natural order, each once, with their ranks.

    A rank is evident from the file's name only.
    """
    opened: dict[Path, MemorySnapshot] = {}
    for given in paths:
        if isinstance(given, MemorySnapshot):
            opened.setdefault(resolved(given.path), given)
            continue
        for path in find_snapshots(given):
            opened.setdefault(resolved(path), MemorySnapshot(path))
    name_ranks(opened.values(), rank_regex)
    return list(opened.values())
