"""The tables of an export: which there are, how large they are, what is the same in all rows.

Tables and columns are asked for, never assumed, and no version is ever looked at. A table that
the capture did not produce gives the empty frame.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from nsightpy.errors import ReportError
from nsightpy.frames import Ints, Labels, distinct
from nsightpy.names import NO_NAME
from nsightpy.readers.limits import NAMES, check_count
from nsightpy.readers.nsys.columns import numbered
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import SqliteFile

_CHUNK = 500
_FEW = 10_000
# In place of NULL: the id of what must have a name, and of what may have none. An id 0 is neither:
# it names what the export says, and where that says nothing, it is none.
NAMELESS = -(2**62)
UNNAMED = NAMELESS + 1
_NO_IDS = {NAMELESS: NO_NAME, UNNAMED: "", 0: ""}
ABSENT = re.compile(r"\[name -?\d+ is not in the export\]")


class Strings:
    """The string table of one export; an id without an entry is named by its number."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def labels(self, ids: Ints) -> Labels:
        """The names of a column of ids, as Labels."""
        unique, codes = distinct(ids)
        check_count(self._file.path, NAMES, len(unique))
        asked = unique.tolist()
        texts = self._texts_of(asked)
        return Labels(
            codes,
            tuple(
                texts[i] if i in texts else _NO_IDS.get(i, f"[name {i} is not in the export]")
                for i in asked
            ),
        )

    def starting(self, *prefixes: str) -> dict[int, str]:
        """The strings that begin with one of these prefixes in any case, by id."""
        table = self._table
        if table is None:
            return {}
        patterns = (prefix.replace("_", r"\_") + "%" for prefix in prefixes)
        begins = (table.c.value.like(pattern, escape="\\") for pattern in patterns)
        query = sa.select(table.c.id, table.c.value).where(sa.or_(sa.false(), *begins))
        return _texts(self._file.rows(query))

    def named(self, texts: Collection[str]) -> dict[int, str]:
        """The strings that are one of these texts, by id."""
        table = self._table
        if table is None:
            return {}
        query = sa.select(table.c.id, table.c.value).where(table.c.value.in_(sorted(texts)))
        return _texts(self._file.rows(query))

    @cached_property
    def _few(self) -> dict[int, str] | None:
        """All strings, where they are few enough to be read at once."""
        table = self._table
        if table is None:
            return {}
        rows = self._file.rows(sa.select(table.c.id, table.c.value).limit(_FEW + 1))
        return None if len(rows) > _FEW else _texts(rows)

    @cached_property
    def _table(self) -> sa.TableClause | None:
        table = self._file.tables.get("StringIds")
        return table if table is not None and {"id", "value"} <= set(table.c.keys()) else None

    def _texts_of(self, ids: list[int]) -> dict[int, str]:
        """The strings of these ids, and maybe of others."""
        table = self._table
        if self._few is not None or table is None:
            return self._few or {}
        texts: dict[int, str] = {}
        for start in range(0, len(ids), _CHUNK):
            among = table.c.id.in_(ids[start : start + _CHUNK])
            texts |= _texts(self._file.rows(sa.select(table.c.id, table.c.value).where(among)))
        return texts


def _texts(rows: Iterable[tuple[Any, ...]]) -> dict[int, str]:
    return {i: str(value) for i, value in numbered(rows, 1) if value is not None}


# How the tables of an export begin; `nsys export --tables` may leave any of them out.
EXPORT_TABLES = (
    *("StringIds", "META_DATA_", "EXPORT_META_DATA", "TARGET_INFO_", "ANALYSIS_", "ENUM_"),
    *("CUPTI_ACTIVITY_", "CUDA_", "CUDNN_", "CUBLAS_", "NVTX_", "MPI_", "UCX_", "NVSHMEM_"),
    *("OSRT_", "SCHED_EVENTS", "COMPOSITE_EVENTS", "GENERIC_EVENT", "GPU_", "DIAGNOSTIC_EVENT"),
    *("ThreadNames", "ProcessStreams", "PROFILER_OVERHEAD", "NET_", "NIC_"),
)
# The tables of work on the GPU.
GPU_TABLES = (
    *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET")),
)
MPI_TABLES = (
    *("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"),
)
T = TypeVar("T")


class NsysExport:
    """One SQLite export: its tables, its strings, and what had to be said while reading it."""

    def __init__(self, path: Path, threads: int | None = None) -> None:
        self.file = SqliteFile(path, threads)
        self.strings = Strings(self.file)
        self._notes: dict[str, dict[str, None]] = {}
        self._found: dict[Callable[[NsysExport], Any], Any] = {}
        if not any(name.startswith(EXPORT_TABLES) for name in self.file.tables):
            raise ReportError(
                path,
                "is an SQLite file, but no Nsight Systems export: it has none of its tables",
                "give what `nsys export --type sqlite REPORT` writes; if it was exported with "
                "--tables, no table matched.",
            )

    def once(self, make: Callable[[NsysExport], T]) -> T:
        """What a function finds in this export; it is asked once."""
        if make not in self._found:
            self._found[make] = make(self)
        value: T = self._found[make]
        return value

    def has(self, table: str) -> bool:
        return table in self.file.tables

    def table(self, name: str, *columns: str) -> sa.TableClause | None:
        """A table that has these columns; None where there is none."""
        table = self.file.tables.get(name)
        return None if table is None or set(columns) - set(table.c.keys()) else table

    def rows(self, name: str, *columns: str, optional: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """Columns of a small table, None for optional ones that it lacks; no rows without it."""
        table = self.table(name, *columns)
        if table is None:
            return []
        wanted = [table.c[column] for column in columns]
        more = [table.c[column] if column in table.c else sa.null() for column in optional]
        return self.file.rows(sa.select(*wanted, *more))

    def count(self, table: str) -> int:
        """The number of rows of a table; 0 when it does not exist."""
        if not self.has(table):
            return 0
        query = sa.select(sa.func.count()).select_from(self.file.tables[table])
        return int(self.file.rows(query)[0][0])

    def holds_rows(self, table: str) -> bool:
        """Whether a table exists and has any row."""
        if not self.has(table):
            return False
        first = sa.select(sa.literal_column("1", sa.Integer)).select_from(self.file.tables[table])
        return bool(self.file.rows(first.limit(1)))

    def note(self, text: str, column: str = "") -> None:
        """Say something of what is being read: of a column of its frame, or of all of them."""
        self._notes.setdefault(column, {})[text] = None

    def noted(self) -> dict[str, tuple[str, ...]]:
        """What was said since it was last asked for, by column."""
        notes, self._notes = self._notes, {}
        return {column: tuple(texts) for column, texts in notes.items()}
