"""What exports hold of the profiled job's environment: taken out, but for the keys of ranks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from nsightpy.errors import ReportError
from nsightpy.readers.nsys.identity import RANK_KEYS, rank_variables

_CAPTURE = ("META_DATA_CAPTURE", "name LIKE '%ENVIRONMENT_VARIABLE'")
_SYSTEM = ("TARGET_INFO_SYSTEM_ENV", "name = 'DeviceEnvironment'")


def remove_environment(export: Path) -> None:
    """Remove the environment from an export that is our own, not just from its tables.

    Passwords and tokens are found there. What is deleted is overwritten in the file. Raises
    ReportError when that fails: such an export must not be kept.
    """
    try:
        with closing(sqlite3.connect(export, isolation_level=None)) as connection:
            connection.text_factory = _text
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA journal_mode = MEMORY").fetchall()
            connection.execute("BEGIN")
            for table, condition in (_CAPTURE, _SYSTEM):
                if _has(connection, table, ("name", "value")):
                    _clean(connection, table, condition)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        problem = f"holds the job's environment, which cannot be taken out: {error}"
        raise ReportError(export, problem, "export it again.") from error


def _has(connection: sqlite3.Connection, table: str, columns: Iterable[str]) -> bool:
    present = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    return present >= set(columns)


def _clean(connection: sqlite3.Connection, table: str, condition: str) -> None:
    """Keep the rank keys of each row; rows without any go."""
    rows = connection.execute(f"SELECT rowid, value FROM {table} WHERE {condition}").fetchall()
    for row, value in rows:
        kept = rank_variables(str(value or ""))
        text = ";".join(f"{key}={kept[key]}" for key in RANK_KEYS if key in kept)
        if text:
            connection.execute(f"UPDATE {table} SET value = ? WHERE rowid = ?", (text, row))
        else:
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
