"""One report: a file that another process can read, with frames as DataFrames. Those read as a
whole, whose rank only their name gives: of Nsight Compute (a .ncu-rep, or what `ncu --csv` prints),
and memory snapshots of PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame, Schema
from nsightpy.readers.ncu.file import is_ncu_rep
from nsightpy.readers.nsys.identity import (
    GUESS,
    decide_ranks,
    rank_by_regex,
    rank_expression,
    rank_in_name,
)
from nsightpy.readers.tools.file_check import file_errors, file_size, has_suffix, size_of_regular
from nsightpy.readers.torch.snapshot import read_snapshot

if TYPE_CHECKING:
    import pandas as pd

    from nsightpy.readers.ncu.tables import NcuTables


class OneFile:
    """One report, its frames as attributes. To another process only path and settings travel."""

    # by how much more memory than the file reading takes, by suffix; some are compressed
    growth: ClassVar[tuple[tuple[str, int], ...]]
    schemas: ClassVar[Mapping[str, Schema]]
    threads: int | None = None  # that read one table at most; None: as many as pay

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __getattr__(self, name: str) -> pd.DataFrame:
        """A frame as a pandas DataFrame with the columns of its schema (`nsightpy.frames`)."""
        if name not in self.schemas:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return self.frame(name).to_pandas()

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.schemas})

    def frame(self, name: str) -> Frame:
        """A frame in nsightpy's own columnar form. Raises KeyError for an unknown one."""
        raise NotImplementedError

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated from the size of the file."""
        factor = next(factor for suffix, factor in self.growth if has_suffix(self.path, (suffix,)))
        return file_size(self.path) * factor

    @property
    def facts(self) -> dict[str, Any]:
        """What another process need not open the file for, by attribute."""
        return {}

    def schema_of(self, name: str) -> Schema:
        """The schema of a frame. Raises KeyError for one that no such report has."""
        if name not in self.schemas:
            raise KeyError(f"no frame {name!r}; there are {', '.join(self.schemas)}")
        return self.schemas[name]

    def close(self) -> None:
        """Let go of what was read, where that can be read again."""


class WholeFile(OneFile):
    """One report that is read as a whole, and has one rank. No frames travel."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self.rank: int | None = None
        self.rank_source = ""

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "rank": self.rank, "rank_source": self.rank_source}


def name_ranks(reports: Iterable[WholeFile], rank_regex: str | None = None) -> None:
    """Give every report the rank in its file name, by the user's expression first."""
    if rank_regex is not None:
        rank_expression(rank_regex)
    by_unit = {(str(report.path), 0): report for report in reports}
    evidence = {
        unit: (rank_by_regex(report.path.name, rank_regex) if rank_regex else [])
        + rank_in_name(report.path.name)
        for unit, report in by_unit.items()
    }
    for unit, (rank, source) in decide_ranks(evidence).items():
        if not source.startswith(GUESS):
            by_unit[unit].rank, by_unit[unit].rank_source = rank, source


NO_HISTORY = (
    "The snapshot holds no history, only what was allocated at the dump; "
    "torch.cuda.memory._record_memory_history() records one."
)


class MemorySnapshot(WholeFile):
    """What torch.cuda.memory._dump_snapshot wrote. Nothing in the file is run.

    The frames (allocator_events, memory_segments, memory_blocks, stack_frames, snapshot_ranges) are
    pandas DataFrames with the columns of `nsightpy.frames`, times in ns since the recording began.
    Raises ReportError when a file cannot be read.
    """

    growth = (("", 16),)
    schemas = frames.SNAPSHOT_SCHEMAS

    @cached_property
    def _frames(self) -> dict[str, Frame]:
        return read_snapshot(self.path)

    def close(self) -> None:
        """Let go of the frames, not of the notes; what is asked next reads the file again."""
        if "_frames" in self.__dict__:
            vars(self).update(self.facts)
            del self._frames

    @cached_property
    def notes(self) -> list[str]:
        """What a reader of any figure of this snapshot must know."""
        return [] if self.frame("allocator_events").rows else [NO_HISTORY]

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
        return self._frames[self.schema_of(name).name]


class NcuReport(WholeFile):
    """One Nsight Compute report (.ncu-rep, or a CSV page that ncu printed).

    The frames (launches, metrics, rules) are pandas DataFrames with the columns of
    `nsightpy.frames`, read on first use and the same whichever way the report came in. Raises
    ReportError when a file cannot be read.
    """

    growth = (("", 64),)
    schemas = frames.NCU_SCHEMAS

    @cached_property
    def tables(self) -> NcuTables:
        """Everything in the file, in nsightpy's own columnar form."""
        from nsightpy.readers.ncu import ncu_csv, ncu_rep

        with file_errors(self.path):
            size_of_regular(self.path)
        read = ncu_rep.read if is_ncu_rep(self.path) else ncu_csv.read
        return read(self.path)

    @property
    def tool_version(self) -> str:
        """The ncu that profiled; empty where the file does not tell."""
        return self.tables.tool_version

    @property
    def notes(self) -> list[str]:
        """What a reader of any figure of this report must know."""
        return list(self.tables.notes)

    def frame(self, name: str) -> Frame:
        """A frame (launches, metrics or rules) in nsightpy's own columnar form."""
        frame: Frame = getattr(self.tables, self.schema_of(name).name)
        return frame
