"""The tables of an SQLite file with the columns that they really have, never views; what SQLite
says of a file that it cannot read, as messages with the file's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nsightpy.errors import ReportError
from nsightpy.readers.sql import sa

ROW_NUMBERS = ("rowid", "_rowid_", "oid")
# The columns of every table; a view, or what is no table that SQLite itself knows, is left out:
# it may have no end, or need any amount of memory.
_OTHERS = "SELECT name FROM sqlite_master WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL%'"
_SCHEMA = (
    "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c "
    "WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY t.rowid, c.cid"
)


class Tables(Mapping[str, "sa.TableClause"]):
    """Tables by name, with their columns.

    `ask` gives the rows of a question about the schema. Raises ReportError for views, when they are
    asked for.
    """

    def __init__(self, path: Path, ask: Callable[[str], Sequence[tuple[Any, ...]]]) -> None:
        self._path = path
        self._ask = ask
        self._columns: dict[str, list[str]] = {}
        for table, column in ask(_SCHEMA):
            self._columns.setdefault(str(table), []).append(str(column))
        self._refused = {str(name) for (name,) in ask(_OTHERS)}
        self._names = dict.fromkeys([*self._columns, *self._refused])
        self._known: dict[str, sa.TableClause] = {}

    def __getitem__(self, name: str) -> sa.TableClause:
        if name not in self._names:
            raise KeyError(name)
        if name in self._refused:
            problem = f"has a view or a virtual table in place of the table {name}"
            advice = "make it a table (CREATE TABLE ... AS SELECT ...), or export the report again."
            raise ReportError(self._path, problem, advice)
        if name not in self._known:
            columns: list[sa.ColumnClause[Any]] = [sa.column(c) for c in self._columns[name]]
            self._known[name] = sa.table(name, *columns)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def row_number(table: sa.TableClause) -> sa.ColumnElement[int]:
    """The number of a row, by a name that is none of the table's columns."""
    taken = {column.name.lower() for column in table.c}
    free = next((name for name in ROW_NUMBERS if name not in taken), "no_row_number")
    return sa.literal_column(free)


def too_much(path: Path, exceeded: str) -> ReportError:
    problem = f"is damaged or very slow to read: a query {exceeded}"
    advice = "copy it to a fast local disk, or set NSIGHTPY_QUERY_SECONDS to allow more."
    return ReportError(path, problem, advice)


def explained(path: Path, error: Exception) -> ReportError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return ReportError(
            path,
            "is locked by another program",
            "wait until nsys has finished writing it, or copy the file and read the copy.",
        )
    if "malformed" in text or "not a database" in text or "encrypted" in text:
        return damaged(path)
    if "unable to open" in text:
        return ReportError(path, "cannot be opened", "check that it exists and may be read.")
    if "readonly" in text:  # SQLite would undo what the journal holds
        problem = f"a change that was not finished waits in {path.name}-journal"
        return ReportError(path, problem, "let its writer end, or export it again.")
    first_line = text.splitlines()[0] if text else type(error).__name__
    return ReportError(path, f"SQLite says: {first_line}")


def damaged(path: Path) -> ReportError:
    return ReportError(path, "is damaged (SQLite cannot read it)", "copy or export it again.")
