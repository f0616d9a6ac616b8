"""Damage that follows from each other: whole tables and columns that mean something else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuzzer.sqlite_damage import Export, nullable
from fuzzer.values import HOSTILE, sql_value

TYPES = ("TEXT", "REAL", "BLOB", "NUMERIC", "", "INTEGER NOT NULL", "BOOLEAN", "DATETIME", "INT")
# Texts that SQLite takes for numbers, or nearly.
NEARLY = ("12abc", "1e5", " 12 ", "0x10", "1.5", "-7", "+7", "12,5", "1_000", "inf", "9" * 40)
SMALL = 2000
IDS = ("streamId", "deviceId", "contextId", "correlationId", "globalPid", "globalTid", "graphId")
NAME_IDS = ("demangledName", "shortName", "mangledName", "nameId", "textId", "domainId")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rebuilt(export: Export, table: str, declared: Sequence[str], options: str = "") -> None:
    """A table made anew with these declarations of its columns, rows kept."""
    name = quoted(table)
    columns = ", ".join(map(quoted, export.columns(table)))
    export.run(f"ALTER TABLE {name} RENAME TO fuzz_old")
    export.run(f"CREATE TABLE {name} ({', '.join(declared)}) {options}")
    export.run(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM fuzz_old")
    export.run("DROP TABLE fuzz_old")


def other_types(export: Export) -> None:
    """Columns of a table are of other types; their values are changed to fit."""
    table, kind = export.table(), export.rng.choice(TYPES)
    every = export.rng.random() < 0.5
    columns = export.columns(table)
    one = export.rng.choice(columns)
    _rebuilt(
        export, table, [f"{quoted(c)} {kind if every or c == one else 'INTEGER'}" for c in columns]
    )


def other_numbers(export: Export) -> None:
    """All integers of a small table are stored as texts or fractions."""
    rows = {t: export.run(f"SELECT count(*) FROM {quoted(t)}").fetchone()[0] for t in export.tables}
    table = export.rng.choice([name for name, count in rows.items() if 0 < count < SMALL])
    kind = export.rng.choice(("TEXT", "REAL"))
    declared = export.run(f"PRAGMA table_info({quoted(table)})").fetchall()
    columns = [f"{quoted(c[1])} {kind if 'INT' in c[2].upper() else c[2]}" for c in declared]
    _rebuilt(export, table, columns)


def nested_ranges(export: Export) -> None:
    """Ranges of one thread, thousands deep, each with a name of its own or all with one."""
    columns = export.columns("NVTX_EVENTS")
    deep = export.rng.choice((100, 3000, 20_000))
    name = export.rng.choice(("'deep'", "'deep ' || i"))
    made = {"start": "start + i", '"end"': '"end" - i', "text": name, "textId": "NULL"}
    selected = [made.get(quoted(c) if c == "end" else c, quoted(c)) for c in columns]
    export.run(
        f"WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {deep}) "
        f"INSERT INTO NVTX_EVENTS ({', '.join(map(quoted, columns))}) "
        f"SELECT {', '.join(selected)} FROM n, (SELECT * FROM NVTX_EVENTS WHERE eventType = 59 "
        'ORDER BY "end" - start DESC LIMIT 1)'
    )


def swapped(export: Export) -> None:
    """Two columns have changed their names."""
    table = export.table()
    one, other = export.rng.sample(export.columns(table), 2)
    for old, new in ((one, "fuzz_x"), (other, one), ("fuzz_x", other)):
        export.run(f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(old)} TO {quoted(new)}")


def any_value(export: Export) -> None:
    """One value in every row of a column of any table."""
    table = export.rng.choice(export.tables)
    nullable(export)
    column = quoted(export.rng.choice(export.columns(table)))
    export.run(f"UPDATE {quoted(table)} SET {column} = ?", (sql_value(export.rng),))


def mixed_values(export: Export) -> None:
    """A column of a table that matters has a value of another kind in some rows."""
    table = export.table()
    nullable(export)
    column = quoted(export.column(table))
    for value in (export.rng.choice(NEARLY), sql_value(export.rng)):
        step = export.rng.choice((2, 5, 17, 100))
        export.run(f"UPDATE {quoted(table)} SET {column} = ? WHERE rowid % {step} = 0", (value,))


def nearly_numbers(export: Export) -> None:
    """Texts that begin as numbers where times and sizes are."""
    table = export.rng.choice([t for t in export.tables if "start" in export.columns(t)])
    names = [n for n in ("start", "end", "bytes", *IDS) if n in export.columns(table)]
    column = quoted(export.rng.choice(names))
    sql = f"UPDATE {quoted(table)} SET {column} = {column} || 'abc' WHERE rowid % 4 = 1"
    if export.rng.random() < 0.5:
        sql = f"UPDATE {quoted(table)} SET {column} = {column} + 0.25 WHERE rowid % 4 = 1"
    export.run(sql)


def rows_twice(export: Export) -> None:
    table = export.table()
    name = quoted(table)
    columns = export.columns(table)
    if any(row[5] for row in export.run(f"PRAGMA table_info({name})")):
        _rebuilt(export, table, [quoted(c) for c in columns])
    listed = ", ".join(map(quoted, columns))
    export.run(f"INSERT INTO {name} ({listed}) SELECT {listed} FROM {name}")


def renamed_table(export: Export) -> None:
    table = export.table()
    new = export.rng.choice((table.lower(), f"{table}_V2", HOSTILE.replace("\x00", "")))
    export.run(f"ALTER TABLE {quoted(table)} RENAME TO fuzz_table")
    export.run(f"ALTER TABLE fuzz_table RENAME TO {quoted(new)}")


def without_rowid(export: Export) -> None:
    table = export.table()
    columns = [quoted(c) for c in export.columns(table)]
    name = quoted(table)
    export.run(f"CREATE TABLE fuzz_new ({', '.join(columns)}, k PRIMARY KEY) WITHOUT ROWID")
    export.run(f"INSERT INTO fuzz_new SELECT {', '.join(columns)}, rowid FROM {name}")
    export.run(f"DROP TABLE {name}")
    export.run(f"ALTER TABLE fuzz_new RENAME TO {name}")


def generated(export: Export) -> None:
    """A column that is calculated whenever it is read."""
    table = export.table()
    column = export.column(table)
    name = quoted(column)
    how = export.rng.choice((
        "(fuzz_value + 1)", "(randomblob(1000))", "(zeroblob(100000000))",
        "(length(zeroblob(900000000)) + length(hex(zeroblob(300000000))))",
        "(abs(-9223372036854775808))", "(load_extension('x'))",
    ))  # fmt: skip
    kept = [c for c in export.columns(table) if c != column]
    listed = ", ".join(map(quoted, kept))
    export.run(f"ALTER TABLE {quoted(table)} RENAME TO fuzz_old")
    export.run(
        f"CREATE TABLE {quoted(table)} ({listed}, fuzz_value, {name} INTEGER AS {how} VIRTUAL)"
    )
    export.run(
        f"INSERT INTO {quoted(table)} ({listed}, fuzz_value) SELECT {listed}, {name} FROM fuzz_old"
    )
    export.run("DROP TABLE fuzz_old")


def triggers(export: Export) -> None:
    table = quoted(export.table())
    export.run(f"CREATE TRIGGER fuzz_t AFTER INSERT ON {table} BEGIN DELETE FROM StringIds; END")
    export.run(f"CREATE INDEX fuzz_i ON {table} (abs(rowid))")


def huge_values(export: Export) -> None:
    nullable(export)
    size = export.rng.choice((100_000, 3_000_000))
    what = export.rng.choice(("zeroblob(?)", "hex(zeroblob(? / 2))", "CAST(randomblob(?) AS TEXT)"))
    table = export.rng.choice(("StringIds", export.table()))
    column = "value" if table == "StringIds" else export.column(table)
    export.run(
        f"UPDATE {quoted(table)} SET {quoted(column)} = {what} WHERE rowid IN "
        f"(SELECT rowid FROM {quoted(table)} LIMIT 2)",
        (size,),
    )


def nowhere(export: Export) -> None:
    """Ids that point nowhere, in every row."""
    table = export.table()
    columns = [c for c in export.columns(table) if c in (*IDS, *NAME_IDS)]
    name = quoted(export.rng.choice(columns))
    how = export.rng.choice(("{n} + 1000000", "-{n} - 1", "0", "NULL", "7", "{n} * 4294967296"))
    nullable(export)
    export.run(f"UPDATE {quoted(table)} SET {name} = {how.format(n=name)}")


def all_backwards(export: Export) -> None:
    spans = [t for t in export.tables if {"start", "end"} <= set(export.columns(t))]
    for table in spans if export.rng.random() < 0.5 else [export.rng.choice(spans)]:
        export.run(f'UPDATE {quoted(table)} SET start = "end", "end" = start')


def other_clock(export: Export) -> None:
    """All times of one table, or of all, moved or stretched."""
    spans = [t for t in export.tables if {"start", "end"} <= set(export.columns(t))]
    nullable(export)
    how = export.rng.choice((
        "{c} - 4000000000000000000", "{c} + 1700000000000000000", "-{c}", "{c} * 1000000",
        "{c} / 1000000", "0", "2305843009213693951", "{c} + rowid * 1000000000000", "{c} * 1.0",
    ))  # fmt: skip
    for table in spans if export.rng.random() < 0.5 else [export.rng.choice(spans)]:
        export.run(
            f"UPDATE {quoted(table)} SET start = {how.format(c='start')}, "
            f'"end" = {how.format(c=quoted("end"))}'
        )


def without_enums(export: Export) -> None:
    for table in export.tables:
        if table.startswith("ENUM_"):
            export.run(f"DROP TABLE {quoted(table)}")


def huge_sizes(export: Export) -> None:
    table = export.rng.choice([t for t in export.tables if "bytes" in export.columns(t)])
    value = export.rng.choice((2**60, 2**61, 2**62, 2**63 - 1, -1, 1 << 45))
    export.run(f"UPDATE {quoted(table)} SET bytes = ?", (value,))


def invalid_text(export: Export) -> None:
    table = export.table()
    raw = export.rng.choice(("ff", "c0af", "eda080", "f8888080", "00", "ff" * 3000, "e29c"))
    nullable(export)
    column = export.rng.choice(("value", export.column(table)))
    export.run(f"UPDATE {quoted(table)} SET {quoted(column)} = CAST(x'{raw}' AS TEXT)")


def other_storage(export: Export) -> None:
    """The file is written anew with other pages or in another journal mode."""
    size = export.rng.choice((512, 1024, 65536))
    export.run(f"PRAGMA page_size = {size}")
    export.run(f"PRAGMA auto_vacuum = {export.rng.randrange(3)}")
    export.run("VACUUM")
    if export.rng.random() < 0.3:
        export.run("PRAGMA journal_mode = WAL").fetchall()


def many_tables(export: Export) -> None:
    for number in range(export.rng.choice((50, 2000))):
        export.run(f"CREATE TABLE CUPTI_ACTIVITY_KIND_X{number} (start, rowid)")


def many_columns(export: Export) -> None:
    table = quoted(export.table())
    for number in range(export.rng.choice((5, 300))):
        export.run(f"ALTER TABLE {table} ADD COLUMN c{number} INTEGER DEFAULT {number}")


def many_names(export: Export) -> None:
    """Every row has a name of its own, or a stream, or a grid."""
    table = export.rng.choice([t for t in export.tables if "KIND_KERNEL" in t or "RUNTIME" in t])
    columns = [
        c for c in export.columns(table)
        if c in (*NAME_IDS, "streamId", "gridX", "contextId", "globalTid", "deviceId")
    ]  # fmt: skip
    name = quoted(export.rng.choice(columns))
    export.run(f"UPDATE {quoted(table)} SET {name} = rowid + 10000000")


def payload_types(export: Export) -> None:
    texts = (
        '{"Rank": "0"}', '{"Rank": [0]}', '{"Rank": null}', "[]", "7", "null", '"x"', '{"a":NaN}',
        '{"Rank": 0, "Rank": 1}', '{"Message size [bytes]": 1e400}', "\ufeff{}", '{"Rank": -1}',
        '{"NCCL communicator ID": {}, "No. of ranks": -5, "Rank": 9}',
        '{"Message size [bytes]": 9223372036854775807, "Reduction operation": 5}',
        "[" * 100_000, '{"Rank": 1e999}', "{", '{"a":' * 5000,
        '{"Rank": 20240131, "No. of ranks": 99999999999999999999}',
    )  # fmt: skip
    export.run("UPDATE NVTX_EVENTS SET jsonText = ?", (export.rng.choice(texts),))
    for table in export.tables:
        if "SCHEMA" in table and export.rng.random() < 0.5:
            export.run(f"DELETE FROM {quoted(table)} WHERE rowid % 2 = 0")


def binary_payload(export: Export) -> None:
    value = export.rng.choice((b"", b"\xff" * 7, b"\x00" * 1_000_000, "text", 5, None))
    export.run("UPDATE NVTX_EVENTS SET binaryData = ?", (value,))


DAMAGES: tuple[Callable[[Export], None], ...] = (
    *(any_value, any_value, mixed_values, mixed_values, mixed_values, nearly_numbers),
    *(other_types, other_types, swapped, rows_twice, renamed_table, without_rowid, generated),
    *(triggers, huge_values, nowhere, nowhere, all_backwards, other_clock),
    *(other_clock, without_enums, huge_sizes, invalid_text, other_storage, many_tables),
    *(many_columns, many_names, payload_types, binary_payload, other_numbers, other_numbers),
    *(nested_ranges,),
)
