"""What the fuzzer found, and its kind: data that contradict what a file says of itself."""

from __future__ import annotations

import functools
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from simulator import Export

from nsightpy import frames
from nsightpy.commands.findings.command import findings
from nsightpy.commands.info import report_info
from nsightpy.commands.memory import memory
from nsightpy.errors import FAULTS, FaultError
from nsightpy.readers import sqlite
from nsightpy.readers.export.nsys_export import remove_environment
from nsightpy.readers.ncu import ncu_csv
from nsightpy.reports.nsys import NsysReport
from nsightpy.workers.outcomes import attempt_elsewhere
from tests.support.full_export import GENERATIONS, KERNELS, changed, columns, damaged, full, untyped
from tests.support.reports import COMMANDS, ROOT, SPLITS, ask, refused, rows_of

SAMPLE = ROOT / "sample_reports" / "single_process.sqlite"
KERNEL, COPY, CALL = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "RUNTIME"))
RANGE, FIRST, SECOND = "NVTX_EVENTS", "rowid = 1", "rowid <= 2"
RANGES = f"rowid IN (SELECT rowid FROM {RANGE} WHERE eventType = 59 LIMIT {{}})"
NO_NAMES = "demangledName = NULL, mangledName = NULL, shortName = NULL, gridX = NULL"
NOWHERE = 2**63 - 1
WIDE = ("kernels", "--by", ",".join(SPLITS), "--name", "mangled")
TRACE = ("stats", "-r", "cuda_gpu_trace")


@pytest.fixture(scope="module", params=GENERATIONS)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    generation: str = request.param
    return full(tmp_path_factory.mktemp("full") / f"{generation}.sqlite", generation).write()


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full(tmp_path_factory.mktemp("newest") / "new.sqlite").write()


def document(path: Path, *request: str) -> dict[str, Any]:
    return ask(*request, path, "--format", "json").json


def figures(path: Path) -> list[object]:
    """What machines are told about a report, without its name."""
    requests = (*((command,) for command in COMMANDS[2:]), WIDE)
    return [(found["rows"], found["notes"]) for r in requests for found in [document(path, *r)]]


plain_figures = functools.cache(figures)


# Rows that lack something


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "change", "rows", "request_", "note"),
    [
        *(
            (KERNEL, change, FIRST, ("launches",), f"1 rows of {{}} have {said} and are left out.")
            for change, said in (
                ("start = NULL", "no start"),
                ('"end" = start - 1', "an end before their start"),
                ("start = 4611686018427387904", "no possible start"),
                ('"end" = 9223372036854775807', "no possible end"),
            )
        ),
        *(
            (
                f"CUPTI_ACTIVITY_KIND_{kind}",
                *('"end" = NULL', FIRST, (command,), "1 rows of {} have no end and are left out."),
            )
            for kind, command in (
                *(("KERNEL", "kernels"), ("MEMCPY", "memory"), ("MEMSET", "memory")),
                *(("GRAPH_TRACE", "breakdown"), ("RUNTIME", "api")),
            )
        ),
        (CALL, f"nameId = {NOWHERE}", FIRST, ("api",),
         "1 rows of {} have a name that the export does not hold."),
        (RANGE, f"text = NULL, textId = {NOWHERE}", RANGES.format(1), ("nvtx",),
         "1 rows of {} have a name that the export does not hold."),
        (CALL, "globalTid = NULL", SECOND, ("nvtx",), "2 rows of {} have no process."),
        (RANGE, "globalTid = NULL", RANGES.format(2), ("nvtx",), "2 rows of {} have no process."),
        *((KERNEL, f"globalPid = {pid}", SECOND, ("nvtx",), "2 rows of {} have no process")
          for pid in ("NULL", "-5")),
        (CALL, "correlationId = NULL", FIRST, ("launches",),
         "1 rows of {} have no correlation id."),
        (CALL, "correlationId = NULL", "1", ("nvtx",), "rows of {} have no correlation id."),
        (KERNEL, "contextId = NULL", FIRST, ("gaps",), "1 rows of {} have no context."),
        (KERNEL, "streamId = NULL", FIRST, ("kernels", "--by", "stream"),
         "1 rows of {} have no stream."),
        (KERNEL, "deviceId = NULL", FIRST, ("kernels", "--by", "device"),
         "1 rows of {} have no device."),
        (KERNEL, NO_NAMES, SECOND, ("kernels",), "2 rows of {} have no name."),
        (KERNEL, NO_NAMES, SECOND, ("kernels", "--by", "grid"), "2 rows of {} have no grid x."),
    ],
)  # fmt: skip
def test_what_rows_lack_is_noted(
    tmp_path: Path, table: str, change: str, rows: str, request_: tuple[str, ...], note: str
) -> None:
    path = damaged(tmp_path, table, f"UPDATE {table} SET {change} WHERE {rows}")
    said = ask(*request_, path, "--format", "json").everything.decode()
    assert note.format(table) in said
    whole = ask(*request_, tmp_path / "full.sqlite", "--format", "json").everything.decode()
    assert note.format(table).lstrip("12 ") not in whole


@pytest.mark.slow
@pytest.mark.parametrize("change", ["start = NULL", '"end" = start - 1', '"end" = 1 << 62'])
def test_what_is_left_out_is_as_if_it_were_not_there(tmp_path: Path, change: str) -> None:
    found = damaged(tmp_path, KERNEL, f"UPDATE {KERNEL} SET {change} WHERE {FIRST}")
    statements = [*untyped(KERNEL), f"DELETE FROM {KERNEL} WHERE {FIRST}"]
    without = changed(tmp_path / "full.sqlite", tmp_path / "b.sqlite", statements)
    for words in (("kernels",), ("breakdown",), ("launches",), TRACE):
        assert rows_of(*words, found) == rows_of(*words, without), words


def test_the_end_of_a_row_that_cannot_be_counted_is_no_end_of_the_capture(tmp_path: Path) -> None:
    late = f'UPDATE {COPY} SET start = NULL, "end" = "end" + 1000000000 WHERE {FIRST}'
    found, expected = (
        rows_of("breakdown", damaged(tmp_path, COPY, change), "--bins", "200")
        for change in (late, f"DELETE FROM {COPY} WHERE {FIRST}")
    )
    assert found == expected


def test_what_rows_lack_is_in_no_group_of_those_that_have_it(tmp_path: Path) -> None:
    for column, words in (("streamId", "stream"), ("deviceId", "device")):
        path = damaged(tmp_path, KERNEL, f"UPDATE {KERNEL} SET {column} = NULL WHERE {FIRST}")
        found = rows_of("kernels", "--by", words, path)
        assert sum(row["Instances"] for row in found) == KERNELS
        assert sum(row["Instances"] for row in found if row[words] == -1) == 1
    path = damaged(tmp_path, KERNEL, f"UPDATE {KERNEL} SET {NO_NAMES} WHERE {SECOND}")
    nameless = [r for r in rows_of("kernels", "--by", "grid", path) if r["Name"] == "[no name]"]
    assert sum(row["Instances"] for row in nameless) == 2
    assert {row["grid"] for row in nameless} == {None}
    path = damaged(tmp_path, KERNEL, f"UPDATE {KERNEL} SET contextId = NULL WHERE {FIRST}")
    assert [row["Ctx"] for row in rows_of(*TRACE, path) if row["GrdX"]].count(None) == 1
    path = damaged(tmp_path, COPY, f"UPDATE {COPY} SET srcKind = NULL WHERE {FIRST}")
    assert "Unknown (-1)" in NsysReport(path).frame("memory_operations").labels("source_memory")
    path = damaged(tmp_path, CALL, f"UPDATE {CALL} SET nameId = {NOWHERE} WHERE {FIRST}")
    names = [row["Name"] for row in rows_of("api", path)]
    assert f"[name {NOWHERE} is not in the export]" in names


def test_kernels_without_one_name_go_by_another(tmp_path: Path) -> None:
    update = f"UPDATE {KERNEL} SET demangledName = NULL, mangledName = NULL WHERE rowid % 2 = 0"
    names = {row["Name"] for row in rows_of("kernels", damaged(tmp_path, KERNEL, update))}
    assert names & {r["Name"] for r in rows_of("kernels", tmp_path / "full.sqlite", "--name=base")}
    assert "[no name]" not in names
    path = damaged(tmp_path, KERNEL, f"ALTER TABLE {KERNEL} DROP COLUMN demangledName")
    for command in (("kernels",), TRACE):
        assert all(row["Name"] for row in rows_of(*command, path))


def test_work_of_no_process_has_shares_of_time(tmp_path: Path) -> None:
    update = [*untyped(KERNEL), f"UPDATE {KERNEL} SET globalPid = NULL"]
    assert rows_of("breakdown", changed(SAMPLE, tmp_path / "a.sqlite", update), "--bins", "200")


def test_what_has_no_correlation_is_in_no_range(tmp_path: Path) -> None:
    export = Export(tmp_path / "full.sqlite")
    export.kernel(500, 600, "k", launch=(100, 200))
    export.nvtx_push_pop(0, 300, "range")
    updates = (f"UPDATE {table} SET correlationId = NULL" for table in (KERNEL, CALL))
    statements = [*untyped(KERNEL), *untyped(CALL), *updates]
    path = changed(export.write(), tmp_path / "a.sqlite", statements)
    assert rows_of("kernels", "--nvtx", "range", path) == []


@pytest.mark.slow
def test_sizes_that_are_not_recorded_are_empty_everywhere(tmp_path: Path) -> None:
    """Times stay; nothing becomes 0 bytes, and no copy is small."""
    export = full(tmp_path / "full.sqlite")
    for number in range(200):
        at = 20_000 + 2_000 * number
        export.memcpy(at, at + 1_000, 1 << 20, process=export.process(100), launch=(at, at + 10))
    drop = [
        statement
        for table in (COPY, "CUPTI_ACTIVITY_KIND_MEMSET")
        for statement in (*untyped(table), f"ALTER TABLE {table} DROP COLUMN bytes")
    ]
    whole = export.write()
    path = changed(whole, tmp_path / "a.sqlite", drop)
    sizes = [field.name for field in memory.layouts[0] if "MB" in field.name or "gb" in field.name]
    said = f"202 rows of {COPY} have no size."
    for more in ((), ("--by", "device")):
        found = document(path, "memory", *more)
        assert said in found["notes"]
        known = rows_of("memory", whole, *more)
        assert found["rows"] == [{**row, **dict.fromkeys(sizes)} for row in known]
    found = document(path, *TRACE)
    assert said in found["notes"]
    operations = [row for row in found["rows"] if str(row["Name"]).startswith("[CUDA mem")]
    listed = ("Bytes (MB)", "Throughput (MB/s)")
    assert {row[name] for row in operations for name in listed} == {None}
    (row,) = [r for r in findings(path).records() if r["id"] == "exposed-h2d"]
    assert "an unknown amount" in row["evidence"]
    assert "many-small-copies" not in findings(path).column("id")
    assert b"0 B" not in ask("summarize", path).stdout


# Tables and columns that are missing, added or replaced


def test_every_generation_answers_alike(original: Path) -> None:
    assert sum(row["Instances"] for row in rows_of(*WIDE, original)) == KERNELS
    assert sum(row["count"] for row in rows_of("launches", original)) == KERNELS
    (row,) = rows_of("info", original)
    assert (row["processes"], row["kernels"]) == (2, KERNELS)
    assert row["gpu"]


@pytest.mark.parametrize(
    ("table", "command", "words"),
    [
        (KERNEL, "kernels", "no kernels"),
        (CALL, "launches", "No CUDA API calls were recorded"),
        ("StringIds", "kernels", "no StringIds table"),
        ("TARGET_INFO_GPU", "info", "does not describe its GPUs"),
    ],
)
def test_what_is_missing_is_said(
    newest: Path, tmp_path: Path, table: str, command: str, words: str
) -> None:
    path = changed(newest, tmp_path / "a.sqlite", [f"DROP TABLE {table}"])
    assert words in str(document(path, command))


@pytest.mark.slow
@pytest.mark.parametrize(
    "statements",
    [
        ["DROP TABLE {0}"],
        ["DELETE FROM {0}"],
        ["DROP TABLE {0}", "CREATE TABLE {0} (x)", "INSERT INTO {0} VALUES (1)"],
    ],
    ids=["missing", "empty", "of other columns"],
)
def test_one_table_after_the_other_is_damaged(
    original: Path, tmp_path: Path, statements: list[str]
) -> None:
    """Only where it is that of the kernels their number changes."""
    for table in columns(original):
        path = changed(original, tmp_path / "a.sqlite", [each.format(table) for each in statements])
        answer = ask("summarize", path, "--format", "json", expect=None)
        if answer.code == 0:
            kernels = answer.json["header"]["kernels"]
            assert kernels == (0 if table == KERNEL else KERNELS), table
        else:
            assert f"its table {table} has no column" in answer.stderr
            assert len(statements) == 3


@pytest.mark.slow
def test_columns_are_missing(original: Path, tmp_path: Path) -> None:
    """Every column name is dropped from all its tables, a few names at a time."""
    layout = {table: [name for name, _, _ in found] for table, found in columns(original).items()}
    names = sorted({name for found in layout.values() for name in found})
    Random(1).shuffle(names)
    for first in range(0, len(names), 12):
        drops = [
            f'ALTER TABLE {table} DROP COLUMN "{name}"'
            for table, found in layout.items()
            for name in names[first : first + 12]
            if name in found[1:]
        ]
        path = changed(original, tmp_path / "a.sqlite", drops)
        for command in (*COMMANDS, "launches"):
            answer = ask(command, path, "--format", "json", expect=None)
            assert answer.code == 0 or "KERNEL has no column" in answer.stderr, command


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
def test_null_in_every_column_that_may_hold_it(tmp_path: Path, generation: str) -> None:
    whole = full(tmp_path / "full.sqlite", generation).write()
    updates = []
    for table, found in columns(whole).items():
        nullable = [name for name, _, not_null in found if not not_null and name != "id"]
        if nullable and not table.startswith(("ENUM_", "PROFILER")):
            nulls = ", ".join(f'"{name}" = NULL' for name in nullable)
            updates.append(f"UPDATE {table} SET {nulls}")
    single = [[update] for update in updates] if generation == "new" else []
    for statements in (*single, updates):
        path = changed(whole, tmp_path / "a.sqlite", statements)
        ask("launches", path, "--format", "json")
        assert document(path, "summarize")["header"]["kernels"] == KERNELS


def test_columns_that_are_needed_are_named(tmp_path: Path) -> None:
    for name, said in (("start", "column start"), ("streamId", "no column for the stream")):
        path = damaged(tmp_path, KERNEL, f'ALTER TABLE {KERNEL} DROP COLUMN "{name}"')
        assert said in ask("kernels", path, "--by", "stream", expect=1).stderr
    report = NsysReport(damaged(tmp_path, RANGE, f"ALTER TABLE {RANGE} DROP COLUMN eventType"))
    assert report.nvtx_ranges.empty
    assert any("has no column eventType" in note.reason for note in report.notes)


FOREIGN = (
    "CREATE TABLE _nsysai_cache (name TEXT, value BLOB)",
    "CREATE TABLE 'a table; with \"quotes\"' (x)",
    'CREATE TABLE "日本語" (x)',
    f"CREATE VIEW EXTRAP_KERNELS AS SELECT * FROM {KERNEL}",
    "CREATE VIEW broken AS SELECT missing FROM nowhere",
    f"CREATE INDEX by_start ON {KERNEL} (start)",
    f"CREATE INDEX by_id ON {CALL} (correlationId, globalTid)",
    f"ALTER TABLE {KERNEL} ADD COLUMN name TEXT DEFAULT 'mine'",
    f'ALTER TABLE {KERNEL} ADD COLUMN "start_ns" INT DEFAULT 7',
    f"ALTER TABLE {CALL} ADD COLUMN \"the 'name'\" TEXT",
    f"ALTER TABLE {RANGE} ADD COLUMN end_ns INT DEFAULT 1",
    "ALTER TABLE TARGET_INFO_GPU ADD COLUMN pid INT DEFAULT 5",
    "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN SELECT 1; END",
)


def foreign(_layout: dict[str, Any]) -> list[str]:
    """What users add."""
    return [*FOREIGN, f"ALTER TABLE {KERNEL} ADD COLUMN rowid TEXT", f"UPDATE {KERNEL} SET rowid=5"]


def without_rowid(layout: dict[str, Any]) -> list[str]:
    found = []
    for table in (KERNEL, CALL, COPY):
        listed = ", ".join(f'"{name}"' for name, _, _ in layout[table])
        found += [
            f"CREATE TABLE made ({listed}, place INTEGER PRIMARY KEY) WITHOUT ROWID",
            f"INSERT INTO made SELECT {listed}, rowid FROM {table}",
            *(f"DROP TABLE {table}", f"ALTER TABLE made RENAME TO {table}"),
        ]
    return found


def with_gaps(_layout: dict[str, Any]) -> list[str]:
    """Row numbers far apart and below zero, in the same order."""
    return [f"UPDATE {t} SET rowid = rowid * 1000000007 - 3000000000" for t in (KERNEL, CALL, COPY)]


def backwards(_layout: dict[str, Any]) -> list[str]:
    found = []
    for table in (KERNEL, CALL, COPY, RANGE):
        found += [
            f"CREATE TABLE made AS SELECT * FROM {table} ORDER BY rowid DESC",
            *(f"DROP TABLE {table}", f"ALTER TABLE made RENAME TO {table}"),
        ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("replace", [foreign, without_rowid, with_gaps, backwards])
@pytest.mark.parametrize("parallel", [False, True])
def test_the_same_rows_kept_otherwise_give_the_same(
    newest: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    replace: Callable[[dict[str, Any]], list[str]],
    parallel: bool,
) -> None:
    expected = plain_figures(newest)
    if parallel:
        monkeypatch.setattr(sqlite, "PARALLEL_ROWS", 1)
    assert figures(changed(newest, tmp_path / "a.sqlite", replace(columns(newest)))) == expected


def test_frames_keep_their_columns_whatever_is_missing(original: Path, tmp_path: Path) -> None:
    memset = "CUPTI_ACTIVITY_KIND_MEMSET"
    for table in (KERNEL, COPY, memset, CALL, RANGE, "StringIds"):
        report = NsysReport(changed(original, tmp_path / "a.sqlite", [f"DROP TABLE {table}"]))
        for name, schema in frames.SCHEMAS.items():
            if hasattr(NsysReport, name):
                assert tuple(getattr(report, name).columns) == schema.names
        assert table == COPY or report.frame("memory_operations", ("green_context",)).rows


@pytest.mark.parametrize(
    "body",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT 1 AS start FROM n",
        "SELECT * FROM real_k",
        f"SELECT a.* FROM real_k a, real_k b, {KERNEL} c",
        "SELECT zeroblob(9) AS start",
    ],
)
def test_views_are_refused(newest: Path, tmp_path: Path, body: str) -> None:
    statements = [f"ALTER TABLE {KERNEL} RENAME TO real_k", f"CREATE VIEW {KERNEL} AS {body}"]
    said = ask("kernels", changed(newest, tmp_path / "a.sqlite", statements), expect=1).stderr
    assert f"has a view or a virtual table in place of the table {KERNEL}" in said


# Files


def test_the_environment_is_taken_out(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 9, "k")
    name = "PROCESS_0:ENVIRONMENT_VARIABLE"
    for value in ('API_KEY="hunter2"', 'RANK="3"', "HOME=/home/me" + "x" * 9_000):
        export.add("META_DATA_CAPTURE", {"name": name, "value": value})
    told = "TOKEN=hunter2;SLURM_PROCID=7;PATH=/usr/hunter2"
    export.sql(f"UPDATE TARGET_INFO_SYSTEM_ENV SET value = '{told}' WHERE name LIKE '%Environment'")
    path = export.write()
    assert b"hunter2" in path.read_bytes()
    remove_environment(path)
    assert b"hunter2" not in path.read_bytes()
    assert b"/home/me" not in path.read_bytes()
    sources = {each.source: each.rank for each in NsysReport(path).evidence}
    assert sources == {"environment RANK": 3, "environment SLURM_PROCID": 7}


def test_a_csv_with_a_lost_quote_and_a_second_id(tmp_path: Path) -> None:
    page = (ROOT / "sample_reports" / "kernels_h100.ncu.csv").read_text(encoding="utf-8")
    whole = ncu_csv.parse(tmp_path, page)
    lines = page.splitlines()
    cut = lines[-1].replace('",', ",", 1)
    lost = ncu_csv.parse(tmp_path, "\n".join([*lines[:-1], cut]))
    assert "1 damaged lines are left out (a quote is missing there)" in lost.notes
    second = [lines[0] + ',"ID"', *(f'{line},"x"' for line in lines[1:])]
    again = ncu_csv.parse(tmp_path, "\n".join(second))
    assert again.launches.rows == whole.launches.rows


@pytest.mark.parametrize("replaced", [False, True])
def test_a_damaged_report_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, replaced: bool
) -> None:
    for rank in (0, 1):
        shutil.copy(SAMPLE, tmp_path / f"rank{rank}.sqlite")

    def broken(self: NsysReport, name: str, columns: object = None) -> object:
        if self.path.name == "rank1.sqlite":
            if replaced:
                time.sleep(0.02)  # the clock of files is coarse
                shutil.copy(SAMPLE, self.path)
            raise OverflowError("an integer is too large")
        return whole(self, name, columns)  # type: ignore[arg-type]

    whole = NsysReport.frame
    monkeypatch.setattr(NsysReport, "frame", broken)
    monkeypatch.delenv(FAULTS)
    answer = ask("kernels", tmp_path, "--jobs", "1", expect=0 if replaced else 1)
    assert answer.stdout
    path = tmp_path / "rank1.sqlite"
    said = f"{path}: was changed while it was read" if replaced else f"nsightpy failed on {path}"
    assert f"left out: {said} (OverflowError" in answer.stderr


def test_facts_that_no_check_foresaw_leave_a_report_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked for after the work, for the process that has the other reports."""

    def facts(_report: NsysReport) -> object:
        raise KeyError("shown")

    monkeypatch.setattr(NsysReport, "facts", property(facts))
    monkeypatch.delenv(FAULTS)
    assert isinstance(attempt_elsewhere(report_info, NsysReport(SAMPLE)), FaultError)


def test_pages_that_are_not_in_order_are_damage(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    for at in range(3_000):
        export.kernel(at, at + 1, "k")
    path = export.write()
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (KERNEL,)
        ).fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    # https://www.sqlite.org/fileformat2.html#b_tree_pages: the last child, and that of a cell
    header = (root - 1) * page
    assert data[header] == 5
    cell = header + int.from_bytes(data[header + 12 : header + 14], "big")
    last, first = bytes(data[header + 8 : header + 12]), bytes(data[cell : cell + 4])
    data[header + 8 : header + 12], data[cell : cell + 4] = first, last
    path.write_bytes(data)
    for command in ("kernels", "gaps", "breakdown", "memory"):
        assert "is damaged" in refused(command, path)
