"""Exports with tables and columns missing, added, retyped or replaced: an answer or a note."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from nsightpy import frames
from nsightpy.readers import sqlite
from nsightpy.reports.nsys import NsysReport
from tests.support.full_export import GENERATIONS, KERNELS, changed, columns, full
from tests.support.reports import COMMANDS, SPLITS, ask, rows_of

KIND = "CUPTI_ACTIVITY_KIND_"
WIDE = ("kernels", "--by", ",".join(SPLITS), "--name", "mangled")
# What between them reads every column that any command reads.
READERS = (("summarize",), WIDE)
# Tables whose absence must not change which kernels there are.
ESSENTIAL = f"{KIND}KERNEL"


@pytest.fixture(scope="module", params=GENERATIONS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    generation: str = request.param
    return full(tmp_path_factory.mktemp("full") / f"{generation}.sqlite", generation).write()


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full(tmp_path_factory.mktemp("newest") / "new.sqlite").write()


def read_tables(path: Path) -> dict[str, list[str]]:
    """The tables that a command might read, with the names of their columns."""
    return {
        table: [name for name, _, _ in found]
        for table, found in columns(path).items()
        if not table.startswith(("ENUM_", "PROFILER_", "OSRT_", "CUBLAS_", "CUDNN_"))
    }


def batches(layout: dict[str, list[str]], size: int) -> list[list[str]]:
    """All column names in a mixed but fixed order, some at a time."""
    names = sorted({name for found in layout.values() for name in found})
    Random(1).shuffle(names)
    return [names[place : place + size] for place in range(0, len(names), size)]


def answers(path: Path) -> int:
    """Ask what reads everything; the number of kernels that are counted."""
    for request in READERS:
        found = ask(*request, path, "--format", "json").json
    return sum(row["Instances"] for row in found["rows"])


def figures(path: Path) -> list[object]:
    """What machines are told about a report, without its name."""
    found: list[object] = []
    for request in (*((command,) for command in COMMANDS[2:]), WIDE):
        document = ask(*request, path, "--format", "json").json
        found.append((document["rows"], document["notes"]))
    return found


plain_figures = functools.cache(figures)


def test_every_generation_answers_alike(original: Path) -> None:
    assert answers(original) == KERNELS
    launches = rows_of("launches", original)
    assert sum(row["count"] for row in launches) == KERNELS
    (row,) = rows_of("info", original)
    assert (row["processes"], row["kernels"]) == (2, KERNELS)
    assert row["gpu"]


# Missing


@pytest.mark.slow
def test_one_table_after_the_other_is_missing(original: Path, tmp_path: Path) -> None:
    for table in read_tables(original):
        path = changed(original, tmp_path / "a.sqlite", [f"DROP TABLE {table}"])
        assert answers(path) == (0 if table == ESSENTIAL else KERNELS), table


@pytest.mark.parametrize(
    "table, command, words",
    [
        (f"{KIND}KERNEL", "kernels", "no kernels"),
        (f"{KIND}RUNTIME", "launches", "No CUDA API calls were recorded"),
        ("StringIds", "kernels", "no StringIds table"),
        ("TARGET_INFO_GPU", "info", "does not describe its GPUs"),
    ],
)
def test_what_is_missing_is_said(
    newest: Path, tmp_path: Path, table: str, command: str, words: str
) -> None:
    path = changed(newest, tmp_path / "a.sqlite", [f"DROP TABLE {table}"])
    answer = ask(command, path, "--format", "json").json
    assert words in str(answer)


@pytest.mark.slow
def test_one_table_after_the_other_is_empty(newest: Path, tmp_path: Path) -> None:
    for table in read_tables(newest):
        path = changed(newest, tmp_path / "a.sqlite", [f"DELETE FROM {table}"])
        header = ask("summarize", path, "--format", "json").json["header"]
        assert header["kernels"] == (0 if table == ESSENTIAL else KERNELS), table


@pytest.mark.slow
def test_columns_are_missing(original: Path, tmp_path: Path) -> None:
    """Every column name is dropped from all its tables, a few names at a time."""
    layout = read_tables(original)
    for names in batches(layout, 12):
        drops = [
            f'ALTER TABLE {table} DROP COLUMN "{name}"'
            for table, found in layout.items()
            for name in names
            if name in found[1:]
        ]
        path = changed(original, tmp_path / "a.sqlite", drops)
        answers_or_names(path)


def answers_or_names(path: Path) -> None:
    """Every command answers, or names the column that it cannot do without."""
    for command in (*COMMANDS, "launches"):
        answer = ask(command, path, "--format", "json", expect=None)
        assert answer.code == 0 or "KERNEL has no column" in answer.stderr, (command, answer.stderr)


@pytest.mark.slow
def test_tables_have_other_columns_altogether(newest: Path, tmp_path: Path) -> None:
    for table in read_tables(newest):
        made = [
            f"DROP TABLE {table}",
            f"CREATE TABLE {table} (x)",
            f"INSERT INTO {table} VALUES (1)",
        ]
        path = changed(newest, tmp_path / "a.sqlite", made)
        answer = ask("summarize", path, "--format", "json", expect=None)
        assert answer.code == 0 or f"its table {table} has no column" in answer.stderr


# Other types


# Added and replaced


FOREIGN = [
    "CREATE TABLE _nsysai_cache (name TEXT, value BLOB)",
    "CREATE TABLE 'a table; with \"quotes\"' (x)",
    'CREATE TABLE "日本語" (x)',
    "CREATE VIEW EXTRAP_KERNELS AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
    "CREATE VIEW broken AS SELECT missing FROM nowhere",
    "CREATE INDEX by_start ON CUPTI_ACTIVITY_KIND_KERNEL (start)",
    "CREATE INDEX by_id ON CUPTI_ACTIVITY_KIND_RUNTIME (correlationId, globalTid)",
    "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN kernel_name TEXT",
    "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN name TEXT DEFAULT 'mine'",
    'ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN "start_ns" INT DEFAULT 7',
    "ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME ADD COLUMN \"the 'name'\" TEXT",
    "ALTER TABLE NVTX_EVENTS ADD COLUMN end_ns INT DEFAULT 1",
    "ALTER TABLE TARGET_INFO_GPU ADD COLUMN pid INT DEFAULT 5",
    "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN SELECT 1; END",
    "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET kernel_name = 'x'",
]


def test_what_users_add_changes_nothing(newest: Path, tmp_path: Path) -> None:
    path = changed(newest, tmp_path / "a.sqlite", FOREIGN)
    assert figures(path) == plain_figures(newest)
    answers(path)


def without_rowid(table: str, names: list[str]) -> list[str]:
    listed = ", ".join(f'"{name}"' for name in names)
    return [
        f"CREATE TABLE made ({listed}, place INTEGER PRIMARY KEY) WITHOUT ROWID",
        f"INSERT INTO made SELECT {listed}, rowid FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE made RENAME TO {table}",
    ]


def with_gaps(table: str, _: list[str]) -> list[str]:
    """Row numbers far apart and below zero, in the same order."""
    return [f"UPDATE {table} SET rowid = rowid * 1000000007 - 3000000000 WHERE rowid < 0 OR 1"]


@pytest.mark.parametrize("replace", [without_rowid, with_gaps])
@pytest.mark.parametrize("parallel", [False, True])
def test_other_kinds_of_tables_hold_the_same(
    newest: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replace: Callable[[str, list[str]], list[str]],
    parallel: bool,
) -> None:
    expected = plain_figures(newest)
    if parallel:
        monkeypatch.setattr(sqlite, "PARALLEL_ROWS", 1)
    layout = columns(newest)
    statements = [
        statement
        for table in (f"{KIND}KERNEL", f"{KIND}RUNTIME", f"{KIND}MEMCPY")
        for statement in replace(table, [name for name, _, _ in layout[table]])
    ]
    assert figures(changed(newest, tmp_path / "a.sqlite", statements)) == expected


def test_rows_in_any_order_give_the_same(newest: Path, tmp_path: Path) -> None:
    statements = [
        statement
        for table in (f"{KIND}KERNEL", f"{KIND}RUNTIME", f"{KIND}MEMCPY", "NVTX_EVENTS")
        for statement in (
            f"CREATE TABLE copy AS SELECT * FROM {table} ORDER BY rowid DESC",
            f"DROP TABLE {table}",
            f"ALTER TABLE copy RENAME TO {table}",
        )
    ]
    assert figures(changed(newest, tmp_path / "a.sqlite", statements)) == plain_figures(newest)


# Frames


def test_frames_keep_their_columns_whatever_is_missing(original: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(original)) as connection:
        assert connection.execute("SELECT count(*) FROM StringIds").fetchone()[0]
    for table in (f"{KIND}KERNEL", f"{KIND}MEMCPY", f"{KIND}RUNTIME", "NVTX_EVENTS", "StringIds"):
        path = changed(original, tmp_path / "a.sqlite", [f"DROP TABLE {table}"])
        report = NsysReport(path)
        for name, schema in frames.SCHEMAS.items():
            if hasattr(NsysReport, name):
                assert tuple(getattr(report, name).columns) == schema.names
