"""Damage to the structure of an SQLite export: its schema, its values, its ids."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from fuzzer.values import FORMULA, HOSTILE, SECRET, sql_value

WANTED = (
    *("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    *("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS", "StringIds", "TARGET_INFO_GPU"),
    *("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUDA_GPU_MEMORY_USAGE_EVENTS", "MPI_RANKS"),
)
TIMES = ("start", "end", "timestamp")


class Export:
    """An export that is being damaged."""

    def __init__(self, connection: sqlite3.Connection, rng: random.Random) -> None:
        self.run = connection.execute
        self.rng = rng
        rows = self.run("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
        self.tables = [name for (name,) in rows if self.columns(name)]

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.run(f'PRAGMA table_info("{table}")')]

    def table(self) -> str:
        known = [name for name in self.tables if name in WANTED]
        among = known if known and self.rng.random() < 0.8 else self.tables
        return str(self.rng.choice(among))

    def column(self, table: str) -> str:
        columns = self.columns(table)
        times = [name for name in columns if name in TIMES]
        return self.rng.choice(times if times and self.rng.random() < 0.3 else columns)

    def some(self) -> str:
        return self.rng.choice(("1", "rowid % 3 = 0", "rowid = (SELECT min(rowid) + 1 FROM {t})"))


def set_value(export: Export) -> None:
    table = export.table()
    where = export.some().format(t=f'"{table}"')
    nullable(export)
    sql = f'UPDATE "{table}" SET "{export.column(table)}" = ? WHERE {where}'
    export.run(sql, (sql_value(export.rng),))


def nullable(export: Export) -> None:
    """No column is NOT NULL."""
    export.run("PRAGMA writable_schema = ON")
    export.run("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table'")
    version = export.run("PRAGMA schema_version").fetchone()[0]
    export.run(f"PRAGMA schema_version = {version + 1}")


def untrue_not_null(export: Export) -> None:
    """NULLs in a column that says that it has none."""
    table = export.table()
    name = export.column(table)
    nullable(export)
    export.run(f'UPDATE "{table}" SET "{name}" = NULL WHERE rowid % 2 = 0')
    for old in (f"{name} INTEGER", f'"{name}" INTEGER'):
        export.run(
            "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?",
            (old, f"{old} NOT NULL", table),
        )


def drop_table(export: Export) -> None:
    export.run(f'DROP TABLE "{export.table()}"')


def drop_column(export: Export) -> None:
    table = export.table()
    export.run(f'ALTER TABLE "{table}" DROP COLUMN "{export.column(table)}"')


def rename_column(export: Export) -> None:
    table = export.table()
    new = export.rng.choice(("rowid", "oid", "START", "x" * 500, 'a"b;--', "naïve"))
    quoted = new.replace('"', '""')
    export.run(f'ALTER TABLE "{table}" RENAME COLUMN "{export.column(table)}" TO "{quoted}"')


def empty(export: Export) -> None:
    export.run(f'DELETE FROM "{export.table()}"')


def row_numbers(export: Export) -> None:
    table = export.table()
    last = export.rng.choice((2**63 - 1, -(2**63), 10**12))
    export.run(
        f'UPDATE "{table}" SET rowid = ? WHERE rowid = (SELECT max(rowid) FROM "{table}")', (last,)
    )


def view(export: Export) -> None:
    """A view in place of a table: endless, of a product, or calculated."""
    table = export.table()
    names = ", ".join(f'"{name}"' for name in export.columns(table))
    export.run(f'ALTER TABLE "{table}" RENAME TO "real_{table}"')
    nothing = ", ".join(f"1 AS {name}" for name in names.split(", "))
    bodies = (
        f'SELECT {names} FROM "real_{table}"',
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT {nothing} FROM n",
        f'SELECT a.* FROM "real_{table}" a, "real_{table}" b, "real_{table}" c, StringIds d',
        f"SELECT {nothing.replace('1 AS', 'zeroblob(900000000) AS', 1)}",
        f'SELECT * FROM "{table}"',
    )
    export.run(f'CREATE VIEW "{table}" AS {export.rng.choice(bodies)}')


def flat(export: Export) -> None:
    table = export.rng.choice(
        [t for t in export.tables if {"start", "end"} <= set(export.columns(t))]
    )
    export.run(f'UPDATE "{table}" SET "end" = start')


def strings(export: Export) -> None:
    value = export.rng.choice((HOSTILE, FORMULA, b"\xff\xfe\x00", None, "y" * 50_000, ""))
    nullable(export)
    export.run("UPDATE StringIds SET value = ? WHERE id % 3 = 0", (value,))


def many(export: Export) -> None:
    """Thousands of processes, devices or streams."""
    table = export.rng.choice([t for t in export.tables if "KIND_KERNEL" in t or "RUNTIME" in t])
    spread = export.rng.choice((300, 20_000))
    name = export.rng.choice(("globalPid", "globalTid", "deviceId", "streamId", "contextId"))
    step = (1 << 24) if name.startswith("global") else 1
    export.run(f'UPDATE "{table}" SET "{name}" = "{name}" + (rowid % {spread}) * {step}')


def mpi(export: Export) -> None:
    export.run("CREATE TABLE IF NOT EXISTS MPI_RANKS (globalTid INTEGER, rank INTEGER)")
    pid = export.run("SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1").fetchone()[0]
    export.run(
        "INSERT INTO MPI_RANKS (globalTid, rank) VALUES (?, ?)", (pid, sql_value(export.rng))
    )


def foreign(export: Export) -> None:
    export.run("CREATE VIRTUAL TABLE words USING fts5(a)")
    export.run("CREATE TABLE more (a BLOB, rowid TEXT, b AS (a || a))")


DAMAGES: tuple[Callable[[Export], None], ...] = (
    *(set_value,) * 6,
    *(untrue_not_null, drop_table, drop_column, drop_column, rename_column, empty, row_numbers),
    *(view, view, flat, strings, strings, many, mpi, foreign),
)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA journal_mode = MEMORY").fetchall()
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def damage(
    path: Path, rng: random.Random, acts: Sequence[Callable[[Export], None]] = DAMAGES
) -> list[str]:
    """Damage an export in place; returns what was done. What SQLite refuses is not done."""
    done = []
    with _open(path) as connection:
        hide_secret(connection)
        export = Export(connection, rng)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            act = rng.choice(acts)
            with contextlib.suppress(sqlite3.Error, IndexError, TypeError, ValueError):
                act(export)
                done.append(act.__name__)
    return done


def utf16(path: Path, encoding: str) -> None:
    """An export written anew with its texts in UTF-16."""
    with _open(path) as old:
        script = list(old.iterdump())
    path.unlink()
    with closing(sqlite3.connect(path, isolation_level=None)) as new:
        new.execute(f"PRAGMA encoding = '{encoding}'")
        new.execute("PRAGMA synchronous = OFF")
        for statement in script:
            with contextlib.suppress(sqlite3.Error):
                new.execute(statement)


def hide_secret(connection: sqlite3.Connection) -> None:
    """A secret where exports keep the job's environment."""
    with contextlib.suppress(sqlite3.Error):
        connection.execute(
            "INSERT INTO META_DATA_CAPTURE (name, value) VALUES (?, ?)",
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'API_KEY="{SECRET}"'),
        )
