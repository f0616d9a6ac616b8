"""The tables of an export: which there are, how large they are, what is the same in all rows.

Tables and columns are asked for, never assumed, and no version is ever looked at. A table that
the capture did not produce gives the empty frame.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import ReportError
from nsightpy.frames import Frame
from nsightpy.readers.nsys.columns import process_of
from nsightpy.readers.nsys.constant_columns import (
    FEW_ROWS,
    constant_at_first,
    constant_columns,
    constant_of_few,
)
from nsightpy.readers.nsys.countable import countable_rows
from nsightpy.readers.nsys.strings import Strings
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import SqliteFile

# How the tables of an export begin; `nsys export --tables` may leave any of them out.
EXPORT_TABLES = (
    *("StringIds", "META_DATA_", "EXPORT_META_DATA", "TARGET_INFO_", "ANALYSIS_", "ENUM_"),
    *("CUPTI_ACTIVITY_", "CUDA_", "CUDNN_", "CUBLAS_", "NVTX_", "MPI_", "UCX_", "NVSHMEM_"),
    *("OSRT_", "SCHED_EVENTS", "COMPOSITE_EVENTS", "GENERIC_EVENT", "GPU_", "DIAGNOSTIC_EVENT"),
    *("ThreadNames", "ProcessStreams", "PROFILER_OVERHEAD", "NET_", "NIC_"),
)
# The tables of events, in the order in which commands need them.
EVENT_TABLES = (
    *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET")),
    *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT")),
    *("NVTX_EVENTS", "CUDA_GPU_MEMORY_USAGE_EVENTS", "OSRT_API", "GPU_METRICS", "StringIds"),
)
# Those of work on the GPU.
GPU_TABLES = EVENT_TABLES[:4]
MPI_TABLES = (
    *("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"),
)
# So many events are read as a whole and chosen from: several questions share them.
FEW_CALLS = 200_000
# Columns that often hold one value: a report with one process on one device.
STEADY_COLUMNS = ("globalPid", "deviceId", "contextId")

T = TypeVar("T")


class NsysExport:
    """One SQLite export: its tables, its strings, and what had to be said while reading it."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.file = SqliteFile(path, threads)
        self._whole = self
        self.strings = Strings(self.file)
        self.notes: dict[str, None] = {}
        self._steady: dict[str, dict[str, int]] = {}
        self._counts: dict[str, int] = {}
        self._found: dict[Callable[[NsysExport], Any], Any] = {}
        self._finding = threading.RLock()
        self._countable: dict[str, NDArray[np.bool_] | None] = {}
        self.careful: set[str] = set()  # tables that hold more than integers in their columns
        if not any(name.startswith(EXPORT_TABLES) for name in self.file.tables):
            raise ReportError(
                path,
                "is an SQLite file, but no Nsight Systems export: it has none of its tables",
                "give what `nsys export --type sqlite REPORT` writes; if it was exported with "
                "--tables, no table matched.",
            )

        if present := [name for name in EVENT_TABLES if self.has(name)]:
            self.file.row_bounds(*present)

    def part(self, table: str, low: int, high: int, without: Collection[str]) -> NsysExport:
        """The same with the rows low to high - 1 of a table, and without some other tables.

        What is asked `once` is asked of the whole; notes are the part's own.
        """
        part = copy(self)
        part.file = self.file.part(self.file.tables[table], low, high, without)
        part.notes, part._countable = {}, {}
        part._counts, part._steady = {}, {}
        return part

    def once(self, make: Callable[[NsysExport], T]) -> T:
        """What a function finds in this export; it is asked once."""
        with self._finding:
            if make not in self._found:
                self._found[make] = make(self._whole)
        value: T = self._found[make]
        return value

    def has(self, table: str) -> bool:
        return table in self.file.tables

    def count(self, table: str) -> int:
        """The number of rows of a table; 0 when it does not exist."""
        if not self.has(table):
            return 0
        if table not in self._counts:
            query = sa.select(sa.func.count()).select_from(self.file.tables[table])
            self._counts[table] = int(self.file.rows(query)[0][0])
        return self._counts[table]

    def holds_rows(self, table: str) -> bool:
        """Whether a table exists and has any row."""
        if not self.has(table):
            return False
        return self.file.row_bounds(table) is not None or self.count(table) > 0

    def is_small(self, table: str) -> bool:
        """Whether a table has so few rows for certain that it is read without further questions."""
        return self._whole is not self or self._spans_less(table, FEW_ROWS)

    def is_shared(self, table: str) -> bool:
        """Whether a table has so few rows for certain that all is read, whatever is wanted."""
        return self._spans_less(table, FEW_CALLS)

    def _spans_less(self, table: str, rows: int) -> bool:
        bounds = self.file.row_bounds(table) if self.has(table) else None
        return bounds is not None and bounds[1] - bounds[0] < rows

    def steady(self, table: str) -> Mapping[str, int]:
        """The columns of STEADY_COLUMNS that hold one integer in every row of a table.

        One scan is cheaper than carrying such a column.
        """
        if table not in self._steady:
            source = self.file.tables[table]
            find = constant_of_few if self.is_small(table) else constant_columns
            constants = find(self.file, source, STEADY_COLUMNS)
            self._steady[table] = {n: value for n, value in constants.items() if value is not None}
        return self._steady[table]

    def guessed_steady(self, table: str) -> Mapping[str, int] | None:
        """What `steady` may turn out to be, by the first rows; None where it is known already.

        Who reads just the rows of these values and gets them all, says so: `confirm`.
        """
        if table in self._steady:
            return None
        source = self.file.tables[table]
        constants = constant_at_first(self.file, source, STEADY_COLUMNS, sa.true())
        likely = {name: value for name, value in constants.items() if value is not None}
        if not likely:
            self._steady[table] = {}
        return likely or None

    def confirm(self, table: str, guessed: Mapping[str, int], rows: int) -> bool:
        """Whether so many rows are all that a table has; then what was guessed is steady."""
        bounds = self.file.row_bounds(table)
        contiguous = bounds is not None and bounds[1] + 1 - bounds[0] == rows
        if not contiguous and rows != self.count(table):
            return False
        self._steady[table] = dict(guessed)
        return True

    def pids_of(self, *tables: str) -> set[int]:
        """The processes that own rows of these tables; one query for all that are small."""
        pids: set[int] = set()
        few = []
        for table in filter(self.holds_rows, tables):
            source = self.file.tables[table]
            pid = process_of("globalPid" if "globalPid" in source.c else "globalTid")(source)
            if pid is None:
                continue
            if self.is_small(table):
                few.append(sa.select(pid))
            elif (steady := self.steady(table).get("globalPid")) is not None:
                pids.add((steady >> 24) & 0xFFFFFF)
            else:
                pids |= {int(row[0] or 0) for row in self.file.rows(sa.select(pid).distinct())}
        if few:
            pids |= {int(row[0] or 0) for row in self.file.rows(sa.union(*few))}
        return pids

    def countable(self, table: str, frame: Frame, lacking: Collection[str] = ()) -> Frame:
        """The rows of a table's frame that can be counted; the others make one note.

        The columns that the table is `lacking` rule out none. Which rows they are is known from
        the first frame on, which has the times and sizes.
        """
        if table not in self._countable and not {"start_ns", "end_ns"}.isdisjoint(frame):
            countable, note = countable_rows(
                frame.select(name for name in frame if name not in lacking)
            )
            self._countable[table] = None if countable.all() else countable
            if note:
                self.notes[f"{note.format(table=table)} left out."] = None
        kept = self._countable.get(table)
        return frame if kept is None else frame.take(kept)
