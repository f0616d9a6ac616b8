"""Rows of an export gathered in memory and written to SQLite in one go, byte-stable."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from simulator import schema
from simulator.enumerations import ENUMERATIONS

Text = str | bytes

PAGE_SIZE = 4096
# The header's library version is overwritten, so that the bytes do not depend on who wrote them.
_VERSION_OFFSET = 96
_VERSION = 3_045_000


def signed64(value: int) -> int:
    """An unsigned 64-bit value as SQLite stores it."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >= 1 << 63 else value


class Database:
    """Tables of one generation, filled row by row or in bulk, then written once."""

    def __init__(self, path: str | Path, generation: str = schema.NEW) -> None:
        self.path = Path(path)
        self.generation = generation
        self.tables = schema.tables(generation)
        self.statements: list[str] = []
        self._rows: dict[str, list[tuple[object, ...]]] = {
            name: [] for name in schema.ALWAYS_PRESENT[generation]
        }
        self._strings: dict[bytes, int] = {}
        self._finished = False

    def string(self, text: Text) -> int:
        """The StringIds id of a text, which may hold any bytes."""
        raw = text.encode() if isinstance(text, str) else text
        return self._strings.setdefault(raw, len(self._strings) + 1)

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether this generation knows the table, and the column in it."""
        if table not in self.tables:
            return False
        return column is None or any(c.name == column for c in self.tables[table])

    def add(self, table: str, values: Mapping[str, object], **columns: object) -> int:
        """Add one row; `columns` override and must exist. Returns the row's number, from 1.

        Keys of `values` that this generation lacks are left out, as its exporter did.
        """
        known = self.tables.get(table)
        if known is None:
            raise ValueError(f"generation {self.generation!r} has no table {table}")
        unknown = set(columns) - {c.name for c in known}
        if unknown:
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        merged = {**values, **columns}
        rows = self._rows.setdefault(table, [])
        rows.append(tuple(merged.get(c.name, c.default) for c in known))
        return len(rows)

    def bulk(self, table: str, values: Mapping[str, object]) -> int:
        """Add many rows: name -> array, list, or one value for all rows. Returns their number."""
        known = self.tables.get(table)
        if known is None:
            raise ValueError(f"generation {self.generation!r} has no table {table}")
        lists = {name: _as_list(value) for name, value in values.items()}
        lengths = {len(column) for column in lists.values() if column is not None}
        if len(lengths) != 1:
            raise ValueError(f"columns of {table} have lengths {sorted(lengths)}")
        (count,) = lengths
        columns: list[Sequence[object]] = []
        for c in known:
            given = lists.get(c.name)
            constant = values.get(c.name, c.default)
            columns.append([constant] * count if given is None else given)
        self._rows.setdefault(table, []).extend(zip(*columns, strict=True))
        return count

    def sql(self, statement: str) -> None:
        """Run a statement on the file after everything is written (for hostile cases)."""
        self.statements.append(statement)

    def write(self) -> Path:
        """Write the file, replacing one that is there. Returns its path."""
        self.path.unlink(missing_ok=True)
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            self._fill(connection)
            for statement in self.statements:
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            connection.close()
        with self.path.open("r+b") as file:
            file.seek(_VERSION_OFFSET)
            file.write(_VERSION.to_bytes(4, "big"))
        return self.path

    def _fill(self, connection: sqlite3.Connection) -> None:
        """Write every table."""
        if not self._finished:
            self._finish()
            self._finished = True
        for name, columns in self.tables.items():
            if name in self._rows:
                connection.execute(schema.ddl(name, columns))
                self._write_rows(connection, name, columns)

    def _finish(self) -> None:
        """Fill the tables that follow from the others."""
        self._rows["StringIds"] = [(number, text) for text, number in self._strings.items()]
        for name, members in ENUMERATIONS.items():
            if name in self._rows:
                self._rows[name] = list(members)

    def _write_rows(
        self, connection: sqlite3.Connection, name: str, columns: tuple[schema.Column, ...]
    ) -> None:
        rows = self._rows[name]
        if not rows:
            return
        # A text given as bytes is kept as it is, invalid UTF-8 and NULs included.
        texts = [i for i, column in enumerate(columns) if column.declared == "TEXT"]
        raw = {i for i in texts if any(isinstance(row[i], bytes) for row in rows)}
        marks = ", ".join("CAST(? AS TEXT)" if i in raw else "?" for i in range(len(columns)))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)


def _as_list(value: object) -> list[object] | None:
    """The Python values of a column, or None for a single value."""
    if isinstance(value, np.ndarray):
        return list(value.tolist())
    if isinstance(value, (list, tuple, range)):
        return list(value)
    return None
