"""SQLAlchemy as `sa`, imported when the first statement is made (0.2 s, and a trace needs none);
how rows are numbered; what keeps SQLite from reading a file, as messages."""

from __future__ import annotations

import importlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsightpy.errors import ReportError

if TYPE_CHECKING:
    import sqlalchemy as sa
else:

    class _OnFirstUse:
        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module("sqlalchemy"), name)
            setattr(self, name, value)
            return value

    sa = _OnFirstUse()

__all__ = ["check_lock", "damaged", "explained", "row_number", "sa"]
ROW_NUMBERS = ("rowid", "_rowid_", "oid")
LOCK_WAIT_S = 1.0
WAL_FORMAT = 2


_CAUSES = (
    (
        ("locked", "busy"),
        "is locked by another program",
        "wait until nsys has finished writing it, or copy the file and read the copy.",
    ),
    (
        ("malformed", "not a database", "encrypted"),
        "is damaged (SQLite cannot read it)",
        "copy or export it again.",
    ),
    (("unable to open",), "cannot be opened", "check that it exists and may be read."),
    (  # SQLite would undo what the journal holds
        ("readonly",),
        "a change that was not finished waits in {name}-journal",
        "let its writer end, or export it again.",
    ),
)


def explained(path: Path, error: Exception | str) -> ReportError:
    """What SQLite says of a file, with what to do about it."""
    text = str(error)
    for words, problem, advice in _CAUSES:
        if any(word in text for word in words):
            return ReportError(path, problem.format(name=path.name), advice)
    first_line = text.splitlines()[0] if text else type(error).__name__
    return ReportError(path, f"SQLite says: {first_line}")


def damaged(path: Path) -> ReportError:
    """What is said of a file that SQLite cannot read."""
    return explained(path, "malformed")


def check_lock(path: Path, uri: str) -> None:
    """Raise ReportError or sqlite3.Error when a writer holds a file.

    A WAL file is never opened but as immutable.
    """
    with path.open("rb") as file:
        header = file.read(20)
    wal = path.with_name(path.name + "-wal")
    if WAL_FORMAT in header[18:20]:
        if wal.exists() and wal.stat().st_size:
            problem = f"changes that are not in the file yet wait in {wal.name}"
            advice = "close the program that writes it, or copy it with `VACUUM INTO`, then retry."
            raise ReportError(path, problem, advice)
    elif not wal.exists():  # SQLite would make an index of another file's beside the report
        with closing(sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S)) as probe:
            probe.execute("SELECT count(*) FROM sqlite_master").fetchone()


def row_number(table: sa.TableClause) -> sa.ColumnElement[int]:
    """The number of a row, by a name that is none of the table's columns."""
    taken = {column.name.lower() for column in table.c}
    return sa.literal_column(next((n for n in ROW_NUMBERS if n not in taken), "no_row_number"))
