"""The tables of an export: which there are, their names, and their columns as SQL.

Tables and columns are asked for, never assumed, and no version is ever looked at. A table that
the capture did not produce gives the empty frame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from nsightpy.errors import ReportError
from nsightpy.frames import Ints, Labels, distinct
from nsightpy.names import NO_NAME
from nsightpy.readers.limits import NO_TIME, check_count
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import SqliteFile

NO_END = NO_TIME
_CHUNK = 500
# In place of NULL: the id of what must have a name, and of what may have none. An id 0 is neither:
# it names what the export says, and where that says nothing, it is none.
NAMELESS = -(2**62)
UNNAMED = NAMELESS + 1
_NO_IDS = {NAMELESS: NO_NAME, UNNAMED: "", 0: ""}


class Strings:
    """The string table of one export; an id without an entry is named by its number."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def labels(self, ids: Ints) -> Labels:
        """The names of a column of ids, as Labels."""
        unique, codes = distinct(ids)
        check_count(self._file.path, "names in one column", len(unique))
        asked = unique.tolist()
        texts: dict[int, str] = {}
        for start in range(0, len(asked), _CHUNK):
            texts |= self._texts(sa.column("id").in_(asked[start : start + _CHUNK]))
        names = (
            texts[i] if i in texts else _NO_IDS.get(i, f"[name {i} is not in the export]")
            for i in asked
        )
        return Labels(codes, tuple(names))

    def starting(self, *prefixes: str) -> dict[int, str]:
        """The strings that begin with one of these prefixes in any case, by id."""
        patterns = (prefix.replace("_", r"\_") + "%" for prefix in prefixes)
        begins = (sa.column("value").like(pattern, escape="\\") for pattern in patterns)
        return self._texts(sa.or_(sa.false(), *begins))

    def named(self, texts: Collection[str]) -> dict[int, str]:
        """The strings that are one of these texts, by id."""
        return self._texts(sa.column("value").in_(sorted(texts)))

    def _texts(self, where: sa.ColumnElement[bool]) -> dict[int, str]:
        """Strings by id; none where the export has no table of them."""
        rows = self._file.values("StringIds", ("id",), ("value",), where)
        return {i: text for i, text in rows if i is not None and text is not None}


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
        table = self.file.table(name)
        return None if table is None or set(columns) - set(table.c.keys()) else table

    def count(self, name: str, most: int | None = None) -> int:
        """The number of rows of a table, counted up to `most`; 0 when it does not exist."""
        table = self.file.table(name)
        if table is None:
            return 0
        one = sa.select(sa.literal_column("1", sa.Integer)).select_from(table).limit(most)
        return int(self.file.rows(sa.select(sa.func.count()).select_from(one.subquery()))[0][0])

    def holds_rows(self, name: str) -> bool:
        """Whether a table exists and has any row."""
        return self.count(name, 1) > 0

    def note(self, text: str, column: str = "") -> None:
        """Say something of what is being read: of a column of its frame, or of all of them."""
        self._notes.setdefault(column, {})[text] = None

    def noted(self) -> dict[str, tuple[str, ...]]:
        """What was said since it was last asked for, by column."""
        notes, self._notes = self._notes, {}
        return {column: tuple(texts) for column, texts in notes.items()}


def number(table: sa.TableClause, name: str, null: int = 0) -> sa.ColumnElement[Any]:
    """A column as the table has it; `null` in place of NULL, and where there is no such column."""
    return sa.func.coalesce(table.c[name], literal(null)) if name in table.c else literal(null)


def process_part(global_ids: Any) -> Any:
    """The process inside of serialized global ids: bits 24 to 47."""
    return (global_ids >> 24) & 0xFFFFFF


def thread_part(global_ids: Any) -> Any:
    """The thread inside of serialized global ids: bits 0 to 23."""
    return global_ids & 0xFFFFFF


def literal(value: int) -> sa.ColumnElement[Any]:
    """A whole number as SQL, in which -2**63 is none."""
    return sa.literal_column(f"({NO_END + 1} - 1)" if value == NO_END else str(value))


def text(table: sa.TableClause, name: str) -> sa.ColumnElement[Any]:
    """A text column as bytes, so that no encoding can fail; NULL or absent is the empty text."""
    # its type says so where a query finds no row
    empty: sa.ColumnElement[Any] = sa.literal_column("x''", sa.LargeBinary)
    if name in table.c:
        empty = sa.func.coalesce(sa.cast(table.c[name], sa.LargeBinary), empty)
    return empty.label(name)
