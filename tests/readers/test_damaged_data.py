"""What the fuzzer found, and its kind: data that contradict what a file says of itself."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from simulator import Export

from nsightpy.commands.findings.command import findings
from nsightpy.commands.info import report_info
from nsightpy.commands.memory import memory
from nsightpy.errors import FAULTS, FaultError
from nsightpy.readers.export.environment import remove_environment
from nsightpy.readers.ncu import ncu_csv
from nsightpy.readers.nsys.identity import rank_in_name
from nsightpy.report_sets.rank_opening import open_ranks
from nsightpy.reports.nsys import NsysReport
from nsightpy.workers.outcomes import attempt_elsewhere
from tests.support.full_export import changed, damaged, full, untyped
from tests.support.reports import ROOT, ask, refused, rows_of

SAMPLE = ROOT / "sample_reports" / "single_process.sqlite"
SAMPLES = ROOT / "sample_reports" / "training_4rank"
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("bench_r20240131.sqlite", None),
        ("bench_r240131.sqlite", None),
        ("run.rank=99999999.sqlite", None),
        ("rank_1700000000.sqlite", None),
        ("rank_3.sqlite", 3),
        ("train_r12.sqlite", 12),
        ("rank123456.sqlite", 123456),
    ],
)
def test_dates_are_no_ranks(name: str, rank: int | None) -> None:
    assert [each.rank for each in rank_in_name(name)] == ([] if rank is None else [rank])


def test_missing_ranks_are_counted_not_listed(tmp_path: Path) -> None:
    for rank in (3, 999_998):
        shutil.copy(SAMPLES / f"train_rank{rank % 4}.sqlite", tmp_path / f"rank{rank}.sqlite")
    ranks = open_ranks(tmp_path, rank_regex=r"rank(\d+)")
    ranks.find_ranks()
    assert "ranks without a report here: 0, 1, 2, 4, 5, 6, 7, 8 and 999,989 more" in map(
        str, ranks.notes
    )


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT 1 AS start FROM n"


@pytest.mark.parametrize(
    "body",
    [
        ENDLESS,
        "SELECT * FROM real_k",
        f"SELECT a.* FROM real_k a, real_k b, {KERNEL} c",
        "SELECT zeroblob(9) AS start",
    ],
)
def test_views_are_refused(tmp_path: Path, body: str) -> None:
    statements = [f"ALTER TABLE {KERNEL} RENAME TO real_k", f"CREATE VIEW {KERNEL} AS {body}"]
    path = changed(full(tmp_path / "full.sqlite").write(), tmp_path / "a.sqlite", statements)
    answer = ask("kernels", path, expect=1)
    assert f"has a view or a virtual table in place of the table {KERNEL}" in answer.stderr


def test_a_column_called_rowid_is_none(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    added = [f"ALTER TABLE {KERNEL} ADD COLUMN rowid TEXT", f"UPDATE {KERNEL} SET rowid = 'x'"]
    path = changed(whole, tmp_path / "a.sqlite", added)
    assert NsysReport(path).kernels.equals(NsysReport(whole).kernels)


def test_the_environment_is_taken_out(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 9, "k")
    name = "PROCESS_0:ENVIRONMENT_VARIABLE"
    for value in ('API_KEY="hunter2"', 'RANK="3"', "HOME=/home/me" + "x" * 9_000):
        export.add("META_DATA_CAPTURE", {"name": name, "value": value})
    path = export.write()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE IF EXISTS TARGET_INFO_SYSTEM_ENV")
        connection.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)")
        connection.execute(
            "INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value) VALUES (?, ?)",
            ("DeviceEnvironment", "TOKEN=hunter2;SLURM_PROCID=7;PATH=/usr/hunter2"),
        )
        connection.commit()
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


FIRST = f"rowid = (SELECT min(rowid) FROM {KERNEL})"


@pytest.mark.parametrize(
    ("update", "note"),
    [
        ("start = NULL", "1 rows of {} have no start and are left out."),
        ('"end" = NULL', "1 rows of {} have no end and are left out."),
        ('"end" = start - 1', "1 rows of {} have an end before their start and are left out."),
        ("start = 4611686018427387904", "1 rows of {} have no possible start and are left out."),
        ('"end" = 9223372036854775807', "1 rows of {} have no possible end and are left out."),
    ],
)
def test_a_row_that_cannot_be_counted_is_noted(tmp_path: Path, update: str, note: str) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    statements = [*untyped(KERNEL), f"UPDATE {KERNEL} SET {update} WHERE {FIRST}"]
    path = changed(whole, tmp_path / "a.sqlite", statements)
    removed = [*untyped(KERNEL), f"DELETE FROM {KERNEL} WHERE {FIRST}"]
    without = changed(whole, tmp_path / "b.sqlite", removed)
    for words in (("kernels",), ("breakdown",), ("launches",), ("stats", "-r", "cuda_gpu_trace")):
        found, expected = (ask(*words, each, "--format", "json").json for each in (path, without))
        assert found["rows"] == expected["rows"], words
        assert note.format(KERNEL) in found["notes"], words


def test_the_end_of_a_row_that_cannot_be_counted_is_no_end_of_the_capture(tmp_path: Path) -> None:
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    whole = full(tmp_path / "full.sqlite").write()
    row = FIRST.replace(KERNEL, table)
    late = f'UPDATE {table} SET start = NULL, "end" = "end" + 1000000000 WHERE {row}'
    found, expected = (
        rows_of("breakdown", path, "--bins", "200")
        for change in (late, f"DELETE FROM {table} WHERE {row}")
        for path in [changed(whole, tmp_path / "a.sqlite", [*untyped(table), change])]
    )
    assert found == expected


def test_columns_that_kernels_need_are_named(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    for name, said in (("start", "column start"), ("streamId", "no column for the stream")):
        drop = [*untyped(KERNEL), f'ALTER TABLE {KERNEL} DROP COLUMN "{name}"']
        path = changed(whole, tmp_path / "a.sqlite", drop)
        answer = ask("kernels", path, "--by", "stream", expect=1)
        assert said in answer.stderr


def test_another_column_of_names_does_as_well(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    drop = [*untyped(KERNEL), f"ALTER TABLE {KERNEL} DROP COLUMN demangledName"]
    path = changed(whole, tmp_path / "a.sqlite", drop)
    for command in (("kernels",), ("stats", "-r", "cuda_gpu_trace")):
        found = ask(*command, path, "--format", "json").json
        assert all(row["Name"] for row in found["rows"])


def test_sizes_that_are_not_recorded_are_empty_everywhere(tmp_path: Path) -> None:
    """Times stay; nothing becomes 0 bytes, and no copy is small."""
    export = full(tmp_path / "full.sqlite")
    for number in range(200):
        at = 20_000 + 2_000 * number
        export.memcpy(at, at + 1_000, 1 << 20, process=export.process(100), launch=(at, at + 10))
    drop = [
        statement
        for table in ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
        for statement in (*untyped(table), f"ALTER TABLE {table} DROP COLUMN bytes")
    ]
    whole = export.write()
    path = changed(whole, tmp_path / "a.sqlite", drop)
    sizes = [field.name for field in memory.layouts[0] if "MB" in field.name or "gb" in field.name]
    said = "202 rows of CUPTI_ACTIVITY_KIND_MEMCPY have no size."
    for more in ((), ("--by", "device")):
        found = ask("memory", path, *more, "--format", "json").json
        known = ask("memory", whole, *more, "--format", "json").json
        assert said in found["notes"]
        assert {row[name] for row in found["rows"] for name in sizes} == {None}
        blank = [{**row, **dict.fromkeys(sizes)} for row in known["rows"]]
        assert found["rows"] == blank
    lines = ask("memory", path, "--format", "csv").stdout.splitlines()[1:]
    assert all(line.endswith(b"," * len(sizes)) for line in lines)
    found = ask("stats", "-r", "cuda_gpu_trace", path, "--format", "json").json
    assert said in found["notes"]
    operations = [row for row in found["rows"] if str(row["Name"]).startswith("[CUDA mem")]
    listed = ("Bytes (MB)", "Throughput (MB/s)")
    assert {row[name] for row in operations for name in listed} == {None}
    assert set(NsysReport(path).memory_operations["bytes"]) == {-1}
    (row,) = [r for r in findings(path).records() if r["id"] == "exposed-h2d"]
    assert "an unknown amount" in row["evidence"]
    assert "many-small-copies" not in findings(path).column("id")
    assert b"0 B" not in ask("summarize", path).stdout


def test_kernels_without_one_name_go_by_another(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    update = f"UPDATE {KERNEL} SET demangledName = NULL, mangledName = NULL WHERE rowid % 2 = 0"
    path = changed(whole, tmp_path / "a.sqlite", [*untyped(KERNEL), update])
    names = {row["Name"] for row in rows_of("kernels", path)}
    short = rows_of("kernels", whole, "--name", "base")
    assert names & {row["Name"] for row in short}
    assert "[no name]" not in names


@pytest.mark.parametrize(
    ("table", "column", "command", "where"),
    [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", "api", "1"),
        ("NVTX_EVENTS", "text = NULL, textId", "nvtx", "eventType = 59"),
    ],
)
def test_names_that_are_not_in_the_export_are_counted(
    tmp_path: Path, table: str, column: str, command: str, where: str
) -> None:
    where = f"rowid = (SELECT min(rowid) FROM {table} WHERE {where})"
    update = f"UPDATE {table} SET {column} = 9223372036854775807 WHERE {where}"
    path = damaged(tmp_path, table, update)
    found = ask(command, path, "--format", "json").json
    assert f"1 rows of {table} have a name that the export does not hold." in found["notes"]
    names = [str(value) for row in found["rows"] for value in row.values()]
    assert "[name 9223372036854775807 is not in the export]" in names


def test_ranges_without_their_kind_are_said_to_be_unknown(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    drop = [*untyped("NVTX_EVENTS"), "ALTER TABLE NVTX_EVENTS DROP COLUMN eventType"]
    path = changed(whole, tmp_path / "a.sqlite", drop)
    report = NsysReport(path)
    assert report.nvtx_ranges.empty
    assert any("has no column eventType" in note.reason for note in report.notes)


@pytest.mark.parametrize("rows", ["1", FIRST])
def test_calls_that_name_no_work_are_said(tmp_path: Path, rows: str) -> None:
    table = "CUPTI_ACTIVITY_KIND_RUNTIME"
    whole = full(tmp_path / "full.sqlite").write()
    where = rows.replace(KERNEL, table)
    update = f"UPDATE {table} SET correlationId = NULL WHERE {where}"
    path = changed(whole, tmp_path / "a.sqlite", [*untyped(table), update])
    note = f"rows of {table} have no correlation id."
    for command in ("launches", "nvtx"):
        assert note in str(ask(command, path, "--format", "json").json["notes"])
        assert note not in str(ask(command, whole, "--format", "json").json["notes"])


@pytest.mark.parametrize(
    ("table", "update", "note"),
    [
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid = NULL", "have no process."),
        ("NVTX_EVENTS", "globalTid = NULL", "have no process."),
        (KERNEL, "globalPid = NULL", "have no process"),
        (KERNEL, "globalPid = -5", "have no process"),
    ],
)
def test_ids_that_are_missing_are_counted(
    tmp_path: Path, table: str, update: str, note: str
) -> None:
    kind = "WHERE eventType = 59" if table == "NVTX_EVENTS" else ""
    two = f"rowid IN (SELECT rowid FROM {table} {kind} LIMIT 2)"
    change = f"UPDATE {table} SET {update} WHERE {two}"
    path = damaged(tmp_path, table, change)
    notes = ask("nvtx", path, "--format", "json").json["notes"]
    assert [said for said in notes if note in said and said.startswith("2 ")]


def test_work_of_no_process_has_shares_of_time(tmp_path: Path) -> None:
    update = [*untyped(KERNEL), f"UPDATE {KERNEL} SET globalPid = NULL"]
    path = changed(SAMPLE, tmp_path / "a.sqlite", update)
    found = ask("breakdown", path, "--bins", "200", "--format", "json").json
    assert found["rows"]
    assert [note for note in found["notes"] if "have no process" in note]


def test_derived_columns_where_a_table_is_not_there(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    path = changed(whole, tmp_path / "a.sqlite", ["DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET"])
    assert NsysReport(path).frame("memory_operations", ("green_context",)).rows


def test_kinds_of_memory_that_are_not_known_are_none(tmp_path: Path) -> None:
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    change = f"UPDATE {table} SET srcKind = NULL WHERE {FIRST.replace(KERNEL, table)}"
    path = damaged(tmp_path, table, change)
    assert "Unknown (-1)" in NsysReport(path).frame("memory_operations").labels("source_memory")


def test_work_without_a_context_is_said(tmp_path: Path) -> None:
    update = f"UPDATE {KERNEL} SET contextId = NULL WHERE {FIRST}"
    path = damaged(tmp_path, KERNEL, update)
    assert (
        f"1 rows of {KERNEL} have no context."
        in ask("gaps", path, "--format", "json").json["notes"]
    )
    rows = rows_of("stats", "-r", "cuda_gpu_trace", path)
    assert [row["Ctx"] for row in rows if row["GrdX"]].count(None) == 1


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
