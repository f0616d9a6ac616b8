"""Rows of an export gathered in memory and written to SQLite in one go, byte-stable."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from simulator import schema

Text = str | bytes

PAGE_SIZE = 4096
# The header's library version is overwritten, so that the bytes do not depend on who wrote them.
_VERSION_OFFSET = 96
_VERSION = 3_045_000
_NOTHING: Mapping[str, object] = MappingProxyType({})


def signed64(value: int) -> int:
    """An unsigned 64-bit value as SQLite stores it."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >= 1 << 63 else value


class Database:
    """Tables of one generation, filled row by row, then written once."""

    def __init__(self, path: str | Path, generation: str = schema.NEW) -> None:
        self.path = Path(path)
        self.generation = generation
        self.tables = schema.tables(generation)
        self._rows: dict[str, list[tuple[object, ...]]] = {
            name: [] for name in schema.always_present(generation)
        }
        self._strings: dict[bytes, int] = {}
        self._finished = False

    def string(self, text: Text) -> int:
        """The StringIds id of a text, which may hold any bytes."""
        raw = text.encode() if isinstance(text, str) else text
        return self._strings.setdefault(raw, len(self._strings) + 1)

    def has(self, table: str, column: str = "") -> bool:
        """Whether this generation knows the table, and the column in it."""
        names = {c.name for c in self.tables.get(table, ())}
        return column in names if column else bool(names)

    def add(self, table: str, given: Mapping[str, object] = _NOTHING, /, **row: object) -> None:
        """Add one row: `given` columns, which must exist, before those of `row`.

        What of `row` this generation lacks is left out, as its exporter did.
        """
        columns = self.tables.get(table)
        if columns is None:
            raise ValueError(f"generation {self.generation!r} has no table {table}")
        if given and (unknown := given.keys() - {c.name for c in columns}):
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        row |= given
        values = tuple(row.get(c.name, c.default) for c in columns)
        self._rows.setdefault(table, []).append(values)

    def write(self) -> Path:
        if not self._finished:
            self._finish()
            self._finished = True
        self.path.unlink(missing_ok=True)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            for pragma in (f"page_size = {PAGE_SIZE}", "journal_mode = OFF", "synchronous = OFF"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute("BEGIN")
            for name in (name for name in self.tables if name in self._rows):
                self._fill(connection, name)
            connection.execute("COMMIT")
        with self.path.open("r+b") as file:
            file.seek(_VERSION_OFFSET)
            file.write(_VERSION.to_bytes(4, "big"))
        return self.path

    def _fill(self, connection: sqlite3.Connection, name: str) -> None:
        """Write a table; a text given as bytes is kept as it is, invalid UTF-8 included."""
        rows, columns, marks = self._rows[name], self.tables[name], []
        for place, column in enumerate(columns):
            text = column.declared == "TEXT"
            as_bytes = text and any(isinstance(row[place], bytes) for row in rows)
            marks.append("CAST(? AS TEXT)" if as_bytes else "?")
        connection.execute(f"CREATE TABLE {name} ({', '.join(c.ddl for c in columns)})")
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join(marks)})", rows)

    def _finish(self) -> None:
        """Fill the tables that follow from the others."""
        self._rows["StringIds"] = [(number, text) for text, number in self._strings.items()]
        self._rows |= {
            name: list(rows) for name, rows in schema.enumerations().items() if name in self._rows
        }
