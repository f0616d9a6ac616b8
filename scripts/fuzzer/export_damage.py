"""Damage to SQLite exports: to what their tables are and say, and to the pages that hold them."""

import contextlib
import random
import sqlite3
from contextlib import closing
from pathlib import Path

from fuzzer.values import FORMULA, HOSTILE, SECRET, sql_value

WANTED = (
    *("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    *("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS", "StringIds", "TARGET_INFO_GPU"),
    *("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUDA_GPU_MEMORY_USAGE_EVENTS", "MPI_RANKS"),
)
IDS = (
    *("streamId", "deviceId", "contextId", "correlationId", "globalPid", "globalTid", "graphId"),
    *("demangledName", "shortName", "mangledName", "nameId", "textId", "domainId", "gridX"),
)
# What a statement may leave open, by its name in braces.
CHOICES: dict[str, tuple[str, ...]] = {
    "rows": ("1", "rowid % 2 = 0", "rowid % 17 = 0", "rowid % 100 = 0"),
    "type": ("TEXT", "REAL", "BLOB", "NUMERIC", "", "INTEGER NOT NULL", "DATETIME", "INT"),
    "nearly": ("{number} || 'abc'", "{number} + 0.25", "' ' || {number}", "{number} || '.5'"),
    "nowhere": (
        *("{id} + 1000000", "-{id} - 1", "0", "NULL", "{id} * 4294967296", "rowid + 10000000"),
        *("{id} + rowid % 300", "{id} + rowid % 20000", "{id} + (rowid % 20000) * 16777216"),
    ),
    "calculated": (
        *("(fuzz_value + 1)", "(zeroblob(100000000))"),
        *("(length(hex(zeroblob(300000000))))", "(abs(-9223372036854775808))"),
    ),
    "huge": ("zeroblob(3000000)", "hex(zeroblob(1500000))", "CAST(randomblob(100000) AS TEXT)"),
    "size": (*map(str, (2**60, 2**61, 2**62, 2**63 - 1, 1 << 45)), "-1"),
    "raw": ("ff", "c0af", "eda080", "f8888080", "00", "ff" * 3000, "e29c"),
    "column_name": ("rowid", "oid", "START", "x" * 500, '"a""b;--"', "naïve"),
    "table_name": ("kernels", '"' + HOSTILE.replace("\0", "").replace('"', '""') + '"'),
    "last": ("9223372036854775807", "-9223372036854775808", "1000000000000"),
    "page": ("512", "1024", "65536"),
    "journal": ("DELETE", "DELETE", "WAL"),
    "deep": ("100", "3000", "20000"),
    "range": ("'deep'", "'deep ' || i"),
    "view": (
        "SELECT {columns} FROM fuzz_old",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT {ones} FROM n",
        "SELECT a.* FROM fuzz_old a, fuzz_old b, fuzz_old c, StringIds d",
        "SELECT {ones} FROM (SELECT zeroblob(900000000))",
        "SELECT * FROM {table}",
    ),
    "payload": (
        *('{{"Rank": "0"}}', '{{"Rank": [0]}}', "[]", "7", "null", '{{"a":NaN}}', "[" * 100_000),
        *('{{"Rank": 0, "Rank": 1}}', '{{"Rank": -1}}', '{{"a":' * 5000, "{{"),
        '{{"NCCL communicator ID": {{}}, "No. of ranks": -5, "Rank": 9}}',
        '{{"Message size [bytes]": 9223372036854775807, "Reduction operation": 5}}',
        '{{"Rank": 20240131, "No. of ranks": 99999999999999999999}}',
    ),
}
MOMENTS = (
    *("{t} - 4000000000000000000", "{t} + 1700000000000000000", "-{t}", "{t} * 1000000"),
    *("0", "2305843009213693951", "{t} + rowid * 1000000000000", "{t} * 1.0"),
)
NEW = "DROP TABLE {table}", "ALTER TABLE fuzz_new RENAME TO {table}"
# Ranges thousands deep.
NESTED = (
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {deep}) INSERT INTO "
    'NVTX_EVENTS (start, "end", eventType, text, globalTid) SELECT start + i, "end" - i, 59, '
    "{range}, globalTid FROM n, (SELECT * FROM NVTX_EVENTS WHERE eventType = 59 "
    'ORDER BY "end" - start DESC LIMIT 1)'
)
# Each is some statements in a row; ? is any value.
ACTS: tuple[tuple[str, ...], ...] = (
    *(("UPDATE {table} SET {column} = ? WHERE {rows}",),) * 8,
    *(("UPDATE {any} SET {column} = ?",),) * 2,
    ("UPDATE {numbered} SET {number} = {nearly} WHERE rowid % 4 = 1",),
    ("UPDATE {timed} SET start = {start_moment}, \"end\" = {end_moment}",),
    ("UPDATE {timed} SET start = \"end\", \"end\" = start",),
    ("UPDATE {timed} SET \"end\" = start",),
    *(("UPDATE {with_id} SET {id} = {nowhere}",),) * 3,
    ("UPDATE {sized} SET bytes = {size}",),
    ("UPDATE {table} SET {column} = {huge} WHERE rowid < 3",),
    ("UPDATE StringIds SET value = {huge} WHERE rowid < 3",),
    *(("UPDATE StringIds SET value = ? WHERE {rows}",),) * 2,
    ("UPDATE {table} SET {column} = CAST(x'{raw}' AS TEXT)",),
    ("UPDATE StringIds SET value = CAST(x'{raw}' AS TEXT)",),
    ("UPDATE NVTX_EVENTS SET jsonText = '{payload}'",),
    ("UPDATE NVTX_EVENTS SET binaryData = ?", "DELETE FROM {any} WHERE rowid % 2 = 0"),
    (
        "CREATE TABLE IF NOT EXISTS MPI_RANKS (globalTid INTEGER, rank INTEGER)",
        "INSERT INTO MPI_RANKS (globalTid, rank) SELECT globalTid, ? FROM NVTX_EVENTS LIMIT 1",
    ),
    ("DELETE FROM {table}",),
    ("DROP TABLE {any}",),
    *(("ALTER TABLE {table} DROP COLUMN {column}",),) * 2,
    ("ALTER TABLE {table} RENAME COLUMN {column} TO {column_name}",),
    ("ALTER TABLE {table} RENAME COLUMN {column} TO x",
     "ALTER TABLE {table} RENAME COLUMN {other} TO {column}",
     "ALTER TABLE {table} RENAME COLUMN x TO {other}"),
    ("ALTER TABLE {table} RENAME TO {table_name}",),
    ("UPDATE {table} SET rowid = {last} WHERE rowid = (SELECT max(rowid) FROM {table})",),
    *(("CREATE TABLE fuzz_new ({others}, {column} {type})",
       "INSERT INTO fuzz_new ({others}, {column}) SELECT {others}, {column} FROM {table}",
       *NEW),) * 3,
    ("CREATE TABLE fuzz_new AS SELECT * FROM {table} UNION ALL SELECT * FROM {table}", *NEW),
    ("CREATE TABLE fuzz_new ({columns}, k PRIMARY KEY) WITHOUT ROWID",
     "INSERT INTO fuzz_new SELECT {columns}, rowid FROM {table}", *NEW),
    ("CREATE TABLE fuzz_new ({others}, fuzz_value, {column} INTEGER AS {calculated} VIRTUAL)",
     "INSERT INTO fuzz_new ({others}, fuzz_value) SELECT {others}, {column} FROM {table}", *NEW),
    *(("ALTER TABLE {table} RENAME TO fuzz_old", "CREATE VIEW {table} AS {view}"),) * 2,
    ("CREATE TRIGGER fuzz_t AFTER INSERT ON {table} BEGIN DELETE FROM StringIds; END",
     "CREATE INDEX fuzz_i ON {table} (abs({column}))"),
    ("CREATE VIRTUAL TABLE words USING fts5(a)",
     "CREATE TABLE more (a BLOB, rowid TEXT, b AS (a || a))"),
    ("PRAGMA page_size = {page}", "PRAGMA auto_vacuum = 1", "VACUUM",
     "PRAGMA journal_mode = {journal}"),
    tuple(f"CREATE TABLE CUPTI_ACTIVITY_KIND_X{number} (start, rowid)" for number in range(800)),
    tuple(f"ALTER TABLE {{table}} ADD COLUMN c{n} INTEGER DEFAULT {n}" for n in range(300)),
    (NESTED,),
)  # fmt: skip


# Which columns the table of an act has, by the word that stands for it; any table if none.
TABLES: dict[str, tuple[str, ...]] = {
    "any": (),
    "timed": ("end",),
    "numbered": ("start", "bytes"),
    "with_id": IDS,
    "sized": ("bytes",),
}


class Export:
    """An export that is being damaged; what its statements leave open is chosen once an act."""

    def __init__(self, connection: sqlite3.Connection, rng: random.Random) -> None:
        self.run, self.rng = connection.execute, rng
        names = self.run("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self.columns: dict[str, list[str]] = {
            name: [str(row[1]) for row in self.run(f"PRAGMA table_info({quoted(name)})")]
            for (name,) in names
        }

    def names(self, act: tuple[str, ...]) -> dict[str, str]:
        found = [name for name in WANTED if name in self.columns]
        for word, wanted in TABLES.items():
            if f"{{{word}}}" in " ".join(act):
                having = (t for t, own in self.columns.items() if set(wanted) & set(own))
                found = list(having) if wanted else list(self.columns)
        table = self.rng.choice(found or list(self.columns))
        own = self.columns[table]
        column, other = self.rng.choices(own, k=2)
        ids = [name for name in own if name in IDS] or own
        numbers = [name for name in own if name in ("start", "end", "bytes", *IDS)] or own
        chosen = {"table": table, **dict.fromkeys(TABLES, table), "column": column, "other": other}
        chosen |= {"id": self.rng.choice(ids), "number": self.rng.choice(numbers)}
        chosen = {key: quoted(name) for key, name in chosen.items()}
        chosen["columns"] = ", ".join(map(quoted, own))
        chosen["others"] = ", ".join(quoted(name) for name in own if name != column)
        chosen["ones"] = ", ".join(f"1 AS {quoted(name)}" for name in own)
        return chosen

    def do(self, act: tuple[str, ...]) -> str:
        """Run the statements of an act; returns the first."""
        names = self.names(act)
        moment = self.rng.choice(MOMENTS)
        names |= {"start_moment": moment.format(t="start"), "end_moment": moment.format(t='"end"')}
        names |= {key: self.rng.choice(each).format(**names) for key, each in CHOICES.items()}
        value = self.rng.choice((sql_value(self.rng), HOSTILE, FORMULA))
        for statement in act:
            self.run(statement.format(**names), (value,) if "?" in statement else ())
        return act[0].format(**names)[:80]

    def nullable(self) -> None:
        """No column is NOT NULL any more."""
        self.run("PRAGMA writable_schema = ON")
        self.run("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table'")
        version = self.run("PRAGMA schema_version").fetchone()[0]
        self.run(f"PRAGMA schema_version = {version + 1}")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def change_tables(path: Path, rng: random.Random) -> str:
    """Damage an export in place; returns what was done. What SQLite refuses is not done."""
    done = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA journal_mode = MEMORY").fetchall()
        connection.execute("PRAGMA synchronous = OFF")
        with contextlib.suppress(sqlite3.Error):
            connection.execute(
                "INSERT INTO META_DATA_CAPTURE (name, value) VALUES (?, ?)",
                ("PROCESS_0:ENVIRONMENT_VARIABLE", f'API_KEY="{SECRET}"'),
            )
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            export = Export(connection, rng)
            if rng.random() < 0.8:
                export.nullable()
            with contextlib.suppress(sqlite3.Error, IndexError):
                done.append(export.do(rng.choice(ACTS)))
    return "; ".join(done)


INNER, LEAF = 5, 13
# Fields of a page's header and of the file's: where, how wide, and what they become.
PAGE_HEADER = (
    *((0, 1, (0, 2, INNER, 10, LEAF, 255)), (3, 2, (0, 1, 500, 65535)), (8, 2, (0, 99, 4000))),
)
HEADER = (
    *((16, 2, (1, 0, 512, 3, 65535)), (18, 1, (2, 0, 255)), (19, 1, (2, 255)), (20, 1, (1, 255))),
    *((28, 4, (0, 1, 2**31)), (32, 4, (1, 2**31)), (36, 4, (2**31, 1)), (44, 4, (0, 9))),
    *((52, 4, (1, 3)), (56, 4, (2, 3, 0, 99))),
)


class Pages:
    """The pages of a file, numbered from 1; those of trees by their kind."""

    def __init__(self, data: bytes, rng: random.Random) -> None:
        self.data, self.rng = bytearray(data), rng
        size = int.from_bytes(data[16:18], "big")
        self.size = 65536 if size == 1 else max(512, size)
        self.starts = [100, *range(self.size, len(data) - 12, self.size)]

    def of_kind(self, *kinds: int) -> list[int]:
        return [at for at in self.starts if self.data[at] in kinds]

    def cells(self, at: int) -> list[int]:
        """Where some or all of the cells of the page that begins there are."""
        page, first = at // self.size * self.size, at + (12 if self.data[at] == INNER else 8)
        count = min(int.from_bytes(self.data[at + 3 : at + 5], "big"), self.size // 4)
        found = [
            page + int.from_bytes(self.data[first + 2 * n : first + 2 * n + 2], "big")
            for n in range(count)
        ]
        return [at for at in found if at + 12 < len(self.data)][: self.rng.choice((1, 1000))]

    def put(self, at: int, number: int, width: int) -> None:
        self.data[at : at + width] = (number % 256**width).to_bytes(width, "big")

    def page_header(self) -> None:
        """Another kind of page, another number of cells, or cells somewhere else."""
        at = self.rng.choice(self.of_kind(2, INNER, 10, LEAF))
        place, width, numbers = self.rng.choice(PAGE_HEADER)
        self.put(at + place, self.rng.choice(numbers), width)

    def tree(self) -> None:
        """Inner pages whose children are themselves, their parents, or each other many times."""
        inner = self.of_kind(INNER)
        targets = (*(at // self.size + 1 for at in inner), 1, self.rng.randrange(len(self.starts)))
        for at in inner if self.rng.random() < 0.3 else [self.rng.choice(inner)]:
            target = self.rng.choice(targets)
            for cell in [*self.cells(at), at + 8]:
                self.put(cell, target, 4)

    def rows(self) -> None:
        """Rows of other numbers, sizes or types."""
        kind = self.rng.randrange(3)
        for at in self.cells(self.rng.choice(self.of_kind(LEAF))):
            if kind == 0:
                self.data[at + 1 : at + 3] = bytes([self.rng.randrange(128, 256), 0x7F])
            elif kind == 1:
                width = self.rng.choice((1, 3, 5, 9))
                self.data[at : at + width] = b"\xff" * (width - 1) + b"\x7f"
            else:
                self.data[at + 3 + self.rng.randrange(6)] = self.rng.choice((*range(14), 127))

    def header(self) -> None:
        at, width, values = self.rng.choice(HEADER)
        self.put(at, self.rng.choice(values), width)

    def exchange(self) -> None:
        one, other = (self.rng.choice(self.starts[1:]) for _ in range(2))
        page = self.data[one : one + self.size]
        self.data[one : one + self.size] = self.data[other : other + self.size]
        self.data[other : other + self.size] = page


def change_pages(path: Path, rng: random.Random) -> str:
    """Damage the pages of an export in place; returns how."""
    pages, done = Pages(path.read_bytes(), rng), []
    acts = (*(pages.page_header, pages.tree, pages.rows) * 2, pages.header, pages.exchange)
    for _ in range(rng.choice((1, 1, 2, 3))):
        act = rng.choice(acts)
        with contextlib.suppress(IndexError):
            act()
            done.append(act.__name__)
    path.write_bytes(pages.data)
    return ", ".join(done)
