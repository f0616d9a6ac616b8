"""One Nsight Compute report: a .ncu-rep, or what `ncu --csv` printed."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.ncu.file import MAGIC
from nsightpy.readers.tools.file_check import file_errors, has_suffix, is_regular, size_of_regular
from nsightpy.reports.one_file import OneFile
from nsightpy.reports.presentation import DataFrameOf

if TYPE_CHECKING:
    from nsightpy.readers.ncu.tables import NcuTables

# The last is that of the first releases, before 2020.
NCU_SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
CSV_SUFFIXES = (".csv", ".txt", ".log")


class NcuReport(OneFile):
    """One Nsight Compute report (.ncu-rep, .ncu-repz, or a CSV page that ncu printed).

    The frames (launches, metrics, rules) are pandas DataFrames with the columns of
    `nsightpy.frames`, read on first use and the same whichever way the report came in. Raises
    ReportError when a file cannot be read.
    """

    reading_factor = 64

    @cached_property
    def tables(self) -> NcuTables:
        """Everything in the file, in nsightpy's own columnar form."""
        with file_errors(self.path):
            size_of_regular(self.path)
        if has_suffix(self.path, NCU_SUFFIXES) or _has_magic(self.path):
            from nsightpy.readers.ncu import ncu_rep

            return ncu_rep.read(self.path)
        from nsightpy.readers.ncu import ncu_csv

        return ncu_csv.read(self.path)

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
        if name not in frames.NCU_SCHEMAS:
            raise KeyError(f"no frame {name!r}; there are {', '.join(frames.NCU_SCHEMAS)}")
        frame: Frame = getattr(self.tables, name)
        return frame

    launches = DataFrameOf(frames.LAUNCHES)
    metrics = DataFrameOf(frames.METRICS)
    rules = DataFrameOf(frames.RULES)


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def is_ncu_file(path: Path) -> bool:
    """Whether a file is Nsight Compute's: by its suffix, its magic or the header of a CSV page."""
    if has_suffix(path, NCU_SUFFIXES):
        return True
    # reading anything but a regular file could wait for ever
    if not is_regular(path):
        return False
    if _has_magic(path):
        return True
    if not has_suffix(path, CSV_SUFFIXES):
        return False
    from nsightpy.readers.ncu.ncu_csv import looks_like_csv

    return looks_like_csv(path)
