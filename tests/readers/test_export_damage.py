"""Exports that lack rows, values, columns or tables, or hold others: what is said, what is left."""

import errno
import functools
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import Export

from nsightpy import frames
from nsightpy.commands.findings.command import findings
from nsightpy.commands.info import report_info
from nsightpy.commands.memory import memory
from nsightpy.errors import FAULTS, FaultError, ReportError
from nsightpy.frames import Frame
from nsightpy.readers import limits, sqlite
from nsightpy.readers.export.nsys_export import remove_environment
from nsightpy.readers.sqlite import SqliteFile
from nsightpy.reports.profiles import NsysReport
from nsightpy.workers.outcomes import attempt_elsewhere
from tests.support.full_export import GENERATIONS, KERNELS, changed, columns, damaged, full, untyped
from tests.support.reports import COMMANDS, ROOT, SPLITS, ask, refused, rows_of
from tests.support.stored import rows

SAMPLE = ROOT / "sample_reports" / "single_process.sqlite"
KERNEL, GRAPH, COPY, SET, CALL = (
    f"CUPTI_ACTIVITY_KIND_{kind}"
    for kind in ("KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET", "RUNTIME")
)
RANGE = "NVTX_EVENTS"
FRAMES = {KERNEL: "kernels", GRAPH: "graph_launches", CALL: "api_calls", RANGE: "nvtx_ranges"}
FRAMES |= dict.fromkeys((COPY, SET), "memory_operations")
NO_NAMES = "demangledName = NULL, mangledName = NULL, shortName = NULL"
NOWHERE = 2**63 - 1
NOT_THERE = f"[name {NOWHERE} is not in the export]"
TRACE = ("stats", "-r", "cuda_gpu_trace")


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full(tmp_path_factory.mktemp("newest") / "new.sqlite").write()


def notes(report: NsysReport) -> list[str]:
    return [note.reason for note in report.notes]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        (KERNEL, "start = NULL"),
        (KERNEL, '"end" = start - 1'),
        (KERNEL, "start = (1 << 61) + 1"),
        (KERNEL, f'"end" = {NOWHERE}'),
        (KERNEL, 'start = 0, "end" = 1 << 60'),
        *((table, '"end" = NULL') for table in (GRAPH, SET, CALL, RANGE)),
        *((COPY, f"bytes = {size}") for size in ("-1", "1 << 62", "1 << 60")),
    ],
)
def test_rows_that_cannot_be_counted_are_as_if_not_there(
    tmp_path: Path, table: str, change: str
) -> None:
    events = " WHERE eventType = 59" * (table == RANGE)
    first = f"rowid = (SELECT min(rowid) FROM {table}{events})"
    path = damaged(tmp_path, table, f"UPDATE {table} SET {change} WHERE {first}")
    delete = [*untyped(table), f"DELETE FROM {table} WHERE {first}"]
    without = changed(tmp_path / "full.sqlite", tmp_path / "b.sqlite", delete)
    report = NsysReport(path)
    expected = NsysReport(without).frame(FRAMES[table])
    assert rows(report.frame(FRAMES[table])) == rows(expected)
    lack = "have no start, end or size that can be, and are left out."
    assert f"1 rows of {table} {lack}" in notes(report)


@pytest.mark.parametrize(
    ("table", "change", "lost", "lack", "column", "instead"),
    [
        (CALL, f"nameId = {NOWHERE}", 1, "", "name", NOT_THERE),
        (RANGE, f"text = NULL, textId = {NOWHERE}", 3, "", "name", NOT_THERE),
        (CALL, "globalTid = NULL", 2, "", "pid", 0),
        (RANGE, "globalTid = NULL", 3, "", "pid", 0),
        *((KERNEL, f"globalPid = {pid}", 2, "no process", "pid", 0) for pid in ("NULL", "-5")),
        (CALL, "correlationId = NULL", 2, "", "correlation_id", 0),
        (KERNEL, "contextId = NULL", 1, "no context", "context", -1),
        (KERNEL, "streamId = NULL", 1, "no stream", "stream", -1),
        (KERNEL, "deviceId = NULL", 1, "no device", "device", -1),
        (KERNEL, "gridX = NULL", 2, "", "grid_x", 0),
        (KERNEL, NO_NAMES, 2, "", "name", "[no name]"),
        (COPY, "srcKind = NULL", 1, "", "source_memory", "Unknown (-1)"),
        (COPY, f"copyKind = {NOWHERE}", 1, "", "operation", f"Unknown ({NOWHERE})"),
        (KERNEL, "graphNodeId = NULL", KERNELS, "", "graph_node_id", 0),
    ],
)  # fmt: skip
def test_what_rows_lack_is_noted(
    tmp_path: Path, table: str, change: str, lost: int, lack: str, column: str, instead: object
) -> None:
    chosen = "eventType IN (59, 60)" if table == RANGE else f"rowid <= {lost}"
    among = f"rowid IN (SELECT rowid FROM {table} WHERE {chosen} LIMIT {lost})"
    report = NsysReport(damaged(tmp_path, table, f"UPDATE {table} SET {change} WHERE {among}"))
    assert list(report.frame(FRAMES[table])[column]).count(instead) == lost
    said = f"{lost:,} rows of {table} have {lack}."
    assert (said in notes(report)) == bool(lack)
    assert said not in notes(NsysReport(tmp_path / "full.sqlite"))


def test_what_ends_as_it_starts_is_counted(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    for start, end in ((5, 5), (7, 6), (8, 9)):
        export.kernel(start, end, "k")
    assert NsysReport(export.write()).frame("kernels").ints("start_ns").tolist() == [5, 8]


def test_what_is_not_known_is_empty_or_in_a_group_of_its_own(tmp_path: Path) -> None:
    update = f"streamId = NULL, contextId = NULL, gridX = NULL, {NO_NAMES}"
    path = damaged(tmp_path, KERNEL, f"UPDATE {KERNEL} SET {update} WHERE rowid = 1")
    found = rows_of("kernels", "--by", "stream,grid", path)
    (row,) = (row for row in found if row["stream"] == -1)
    assert (row["Name"], row["grid"], row["Instances"]) == ("[no name]", None, 1)
    assert sum(row["Instances"] for row in found) == KERNELS
    assert [row["Ctx"] for row in rows_of(*TRACE, path) if row["GrdX"]].count(None) == 0
    assert [row["Ctx"] for row in rows_of(*TRACE, path)].count(None) == 1


def test_kernels_without_one_name_go_by_another(tmp_path: Path) -> None:
    update = f"UPDATE {KERNEL} SET demangledName = NULL, mangledName = NULL WHERE rowid % 2 = 0"
    for statement in (update, f"ALTER TABLE {KERNEL} DROP COLUMN demangledName"):
        kernels = NsysReport(damaged(tmp_path, KERNEL, statement)).frame("kernels")
        assert not {"", "[no name]"} & {*kernels.labels("name")}


def test_work_of_no_process_or_correlation(tmp_path: Path) -> None:
    """It has shares of time, and is in no range."""
    statement = f"UPDATE {KERNEL} SET globalPid = NULL, correlationId = NULL"
    path = damaged(tmp_path, KERNEL, statement)
    assert rows_of("breakdown", path, "--bins", "20")
    assert not any(row["Name"][:1] == "v" for row in rows_of("kernels", "--nvtx", "step", path))


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [([2**57] * 8, 0), ([2**55] * 8, 8), ([2**61, 5], 1), ([2**58, 2**20], 1), ([2**58], 1)],
)
def test_no_sum_overflows(sizes: list[int], kept: int) -> None:
    fine = limits.countable_rows(Frame({"bytes": np.asarray(sizes)}))
    left = np.asarray(sizes)[fine]
    assert (len(left), sum(left.tolist()) <= 2**58) == (kept, True)


@pytest.mark.slow
def test_sizes_that_are_not_recorded_are_empty_everywhere(tmp_path: Path) -> None:
    """Times stay; nothing becomes 0 bytes, and no copy is small."""
    export = full(tmp_path / "full.sqlite")
    for at in range(20_000, 420_000, 2_000):
        export.memcpy(at, at + 1_000, 1 << 20, process=export.process(100), launch=(at, at + 10))
    whole = export.write()
    drop = [f"ALTER TABLE {table} DROP COLUMN bytes" for table in (COPY, SET)]
    path = changed(whole, tmp_path / "a.sqlite", [*untyped(COPY), *untyped(SET), *drop])
    found = ask("memory", path, "--format", "json").json
    assert f"202 rows of {COPY} have no size." in found["notes"]
    sizes = [field.name for field in memory.layouts[0] if "MB" in field.name or "gb" in field.name]
    assert found["rows"] == [row | dict.fromkeys(sizes) for row in rows_of("memory", whole)]
    operations = [r for r in rows_of(*TRACE, path) if str(r["Name"]).startswith("[CUDA mem")]
    listed = ("Bytes (MB)", "Throughput (MB/s)")
    assert {row[name] for row in operations for name in listed} == {None}
    evidence = {row["id"]: row["evidence"] for row in findings(path).records()}
    assert "an unknown amount" in evidence["exposed-h2d"]
    assert "many-small-copies" not in evidence


# Values of other types

SPAN = ("start", "end")
THREAD = (*SPAN, "globalTid")
WORK = (*SPAN, "globalPid", "deviceId", "streamId", "contextId", "correlationId")
# By table: the frame that is made of it, and its columns of whole numbers.
NEEDED = {
    KERNEL: ("kernels", (*WORK, "gridX", "blockZ", "demangledName", "shortName")),
    GRAPH: ("graph_launches", (*WORK, "graphId")),
    COPY: ("memory_operations", (*WORK, "bytes", "copyKind", "srcKind")),
    SET: ("memory_operations", (*WORK, "bytes")),
    CALL: ("api_calls", (*THREAD, "correlationId", "nameId", "eventClass")),
    RANGE: ("nvtx_ranges", (*THREAD, "textId", "domainId")),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": ("synchronizations", (*SPAN, "streamId", "eventId")),
    "TARGET_INFO_GPU": ("devices", ("id", "smCount", "totalMemory")),
    "DIAGNOSTIC_EVENT": ("diagnostics", ("timestamp", "severity", "source")),
}
# 7, but as something else; a text that is a number would become one where a column has a type.
VALUES = {"text": "'seven'", "real": "7.5", "blob": "x'07'"}


@pytest.mark.parametrize("table", NEEDED)
def test_what_is_no_whole_number_is_refused(newest: Path, tmp_path: Path, table: str) -> None:
    frame, names = NEEDED[table]
    events = " WHERE eventType IN (59, 60, 70, 71)" * (table == RANGE)
    for place, column in enumerate(names):
        kind, value = list(VALUES.items())[place % 3]
        last = f"rowid = (SELECT max(rowid) FROM k{events})"
        damage = f"UPDATE k SET {column} = {value} WHERE {last}"
        drop, rename = untyped(table)[1:]
        copy = f"CREATE TABLE k AS SELECT * FROM {table}"
        path = changed(newest, tmp_path / f"{column}.sqlite", [copy, damage, drop, rename])
        said = f"is damaged: {table}.{column} holds a {kind} where a whole number belongs"
        with pytest.raises(ReportError) as refusal:
            NsysReport(path).frame(frame)
        assert refusal.value.problem == said
        if (table, column) == (KERNEL, "start"):
            assert said in refused("kernels", path)


@pytest.mark.parametrize("value", [2**31, 2**62, -1, -(2**63)])
def test_ids_of_any_size_stay_apart(tmp_path: Path, value: int) -> None:
    export = full(tmp_path / "a.sqlite")
    for column in ("deviceId", "streamId", "contextId", "correlationId", "gridX", "demangledName"):
        export.kernel(1, 2, "k", launch=(0, 1), **{column: value})
    export.memcpy(1, 2, 3, kind=value)
    path = export.write()
    for command in COMMANDS:
        ask(command, path, "--format", "json")
    assert sum(row["Instances"] for row in rows_of("kernels", path)) == KERNELS + 6
    assert value in NsysReport(path).frame("kernels").ints("device")


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_answers_alike(generation: str, tmp_path: Path) -> None:
    original = full(tmp_path / "full.sqlite", generation).write()
    assert sum(row["count"] for row in rows_of("launches", original)) == KERNELS
    (row,) = rows_of("info", original)
    assert (row["processes"], row["kernels"]) == (2, KERNELS)
    assert row["gpu"]
    nothing = Export(tmp_path / "a.sqlite", generation).write()
    for command in (*COMMANDS, "findings"):
        assert b"no GPU work" in ask(command, nothing).everything, command


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (KERNEL, ""),
        (CALL, "No CUDA API calls were recorded"),
        ("StringIds", "no StringIds table"),
        ("TARGET_INFO_GPU", ""),
        *((table, "") for table in (COPY, SET, RANGE)),
    ],
)
def test_frames_keep_their_columns_whatever_is_missing(
    newest: Path, tmp_path: Path, table: str, said: str
) -> None:
    drop = [f"DROP TABLE {table}"]
    drop += ["DROP TABLE TARGET_INFO_CUDA_DEVICE"] * table.startswith("TARGET")
    report = NsysReport(changed(newest, tmp_path / "a.sqlite", drop))
    for name, schema in frames.SCHEMAS.items():
        assert tuple(report.frame(name)) == schema.names
    assert said in " ".join(notes(report))


def test_columns_that_are_needed_are_named(tmp_path: Path) -> None:
    for name, said in (("start", "column start"), ("streamId", "no column for the stream")):
        path = damaged(tmp_path, KERNEL, f'ALTER TABLE {KERNEL} DROP COLUMN "{name}"')
        assert said in ask("kernels", path, "--by", "stream", expect=1).stderr
    report = NsysReport(damaged(tmp_path, RANGE, f"ALTER TABLE {RANGE} DROP COLUMN eventType"))
    assert report.nvtx_ranges.empty
    assert any("has no column eventType" in note for note in notes(report))


FOREIGN = [
    "CREATE TABLE 'a table; with \"quotes\"' (x)",
    'CREATE TABLE "日本語" (x)',
    "CREATE VIEW broken AS SELECT missing FROM nowhere",
    f"CREATE INDEX by_id ON {CALL} (correlationId, globalTid)",
    f"ALTER TABLE {KERNEL} ADD COLUMN name TEXT DEFAULT 'mine'",
    f"ALTER TABLE {CALL} ADD COLUMN \"the 'name'\" TEXT",
    "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN SELECT 1; END",
    f"ALTER TABLE {KERNEL} ADD COLUMN rowid TEXT",
    f"UPDATE {KERNEL} SET rowid = 5",
]


def without_rowid(layout: dict[str, Any]) -> list[str]:
    """SQL: tables filled again, whose rows have no number of their own."""
    found = []
    for table in (KERNEL, CALL, COPY):
        listed = ", ".join(f'"{name}"' for name, _, _ in layout[table])
        found += [
            f"CREATE TABLE made ({listed}, place INTEGER PRIMARY KEY) WITHOUT ROWID",
            f"INSERT INTO made SELECT {listed}, rowid FROM {table}",
            f"DROP TABLE {table}",
            f"ALTER TABLE made RENAME TO {table}",
        ]
    return found


@functools.cache
def figures(path: Path) -> list[object]:
    """What a report holds, and what is said of it."""
    report = NsysReport(path, use_cache=False)
    held = [rows(report.frame(name)) for name in frames.SCHEMAS if name != "processes"]
    return [held, sorted(notes(report))]


@pytest.mark.parametrize("statements", [lambda layout: FOREIGN, without_rowid])
@pytest.mark.parametrize("parallel", [False, True])
def test_the_same_rows_kept_otherwise_give_the_same(
    newest: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    statements: Callable[[dict[str, Any]], list[str]],
    parallel: bool,
) -> None:
    expected = figures(newest)
    if parallel:
        monkeypatch.setattr(sqlite, "PARALLEL_ROWS", 1)
        monkeypatch.setattr(sqlite, "FEW_ROWS", 0)
    assert figures(changed(newest, tmp_path / "a.sqlite", statements(columns(newest)))) == expected


def test_views_are_refused(newest: Path, tmp_path: Path) -> None:
    view = f"CREATE VIEW {KERNEL} AS SELECT * FROM real_k"
    statements = [f"ALTER TABLE {KERNEL} RENAME TO real_k", view]
    said = refused("kernels", changed(newest, tmp_path / "a.sqlite", statements))
    assert f"has a view or a virtual table in place of the table {KERNEL}" in said


def test_mig_slices_share_a_gpu(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.gpu(0, name="NVIDIA A30 MIG 2g.12gb", smCount=28)
    for place, pid in enumerate((100, 200)):
        row = {"gpuId": 0, "cudaId": 0, "pid": pid, "uuid": f"MIG-{place}"}
        export.add("TARGET_INFO_CUDA_DEVICE", row | {"numMultiprocessors": 14})
        export.kernel(10, 20, "k", process=export.process(pid))
    path = export.write()
    (row,) = rows_of("info", path)
    assert (row["gpu"], row["devices"]) == ("2x NVIDIA A30 MIG 2g.12gb", 2)
    assert sorted(NsysReport(path).devices["uuid"]) == ["MIG-0", "MIG-1"]
    assert NsysReport(path).devices["sm_count"].tolist() == [14, 14]
    lost = changed(path, tmp_path / "b.sqlite", ["UPDATE TARGET_INFO_CUDA_DEVICE SET gpuId = 7"])
    assert NsysReport(lost).devices["name"].tolist() == ["", ""]


@pytest.mark.parametrize(
    ("ordinals", "names", "devices"),
    [
        ([0, 1], "ab", [(0, "a"), (1, "b")]),
        ([-1, 2**32 - 1], "ab", []),
        ([-1, 1], "aa", [(0, "a"), (1, "a")]),
        ([-1], "a", [(0, "a")]),
    ],
)
def test_gpus_of_exports_that_do_not_map_them(
    tmp_path: Path, ordinals: list[int], names: str, devices: list[tuple[int, str]]
) -> None:
    export = Export(tmp_path / "a.sqlite")
    for number, (ordinal, name) in enumerate(zip(ordinals, names, strict=True)):
        export.gpu(number, name=name, cuDevice=ordinal)
    found = NsysReport(export.write()).frame("devices")
    assert list(found.tuples("device", "name")) == devices


# Texts and clocks

HOSTILE = "\x1b[31mred\x1b]0;title\x07<script>alert('1')</script>|`*_#\u202eright\r\nnext\x9b0m"
BYTES = b"bad\xff\xfe\x00after\x1b[0m\xc3"


@pytest.mark.parametrize("text", [HOSTILE, BYTES], ids=["text", "bytes"])
def test_json_and_frames_hold_the_very_text(tmp_path: Path, text: str | bytes) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 9, text)
    path = export.write()
    exact = text if isinstance(text, str) else text.decode("utf-8", "replace")
    assert [row["Name"] for row in rows_of("kernels", path)] == [exact]
    assert NsysReport(path).kernels["name"].tolist() == [exact]


def test_texts_reach_no_output_raw(tmp_path: Path) -> None:
    export = full(tmp_path / "a.sqlite", hostname=None)
    for text in (HOSTILE, BYTES):
        export.kernel(1, 9_000, text, launch=(0, 1, 5, text), process=export.process(300, text))
        export.nvtx_push_pop(1, 90_000, text, domain=export.nvtx_domain(text))
        export.thread_name(text)
        export.diagnostic(0, b"CUDA " + (text.encode() if isinstance(text, str) else text), 3)
        export.gpu(7, name=text, cuDevice=0)
    path = export.write()
    for words in (*((command,) for command in COMMANDS), ("kernels", "--by", ",".join(SPLITS))):
        for form in ("table", "csv", "json", "markdown"):
            answer = ask(*words, path, "--format", form)
            said = answer.text + answer.stderr
            assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r", "\x00"} & {*said}, (words, form)
            assert form != "markdown" or "<script>" not in said


def test_negative_times(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    early = -20_000_000_000
    for at in (early, early + 100, -50):
        export.kernel(at, at + 80, "k", launch=(at - 10, at - 5))
    path = export.write()
    (row,) = rows_of("breakdown", path)
    assert (row["window_ns"], row["busy_ns"]) == (30 - early, 240)
    assert [row["Instances"] for row in rows_of("kernels", path, "--to", "-1s")] == [2]


@pytest.mark.parametrize("reading", [-(2**63), 2**62])
def test_a_clock_that_no_clock_shows_is_not_known(
    newest: Path, tmp_path: Path, reading: int
) -> None:
    """Else the UTC of two ranks would be further apart than int64 counts."""
    clock = f"UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = {reading}"
    shift = f"UPDATE META_DATA_EXPORT SET value = {reading} WHERE name = 'EXPORT_CONFIG_TIME_SHIFT'"
    session = NsysReport(changed(newest, tmp_path / "a.sqlite", [clock, shift])).session
    assert (session.utc_ns, session.shift_ns) == (None, 0)


def test_the_environment_is_taken_out(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 9, "k")
    name = "PROCESS_0:ENVIRONMENT_VARIABLE"
    for value in ('API_KEY="hunter2"', 'RANK="3"', "HOME=/home/me" + "x" * 9_000):
        export.add("META_DATA_CAPTURE", {"name": name, "value": value})
    said = "TOKEN=hunter2;SLURM_PROCID=7;PATH=/usr/hunter2"
    sql = f"UPDATE TARGET_INFO_SYSTEM_ENV SET value = '{said}' WHERE name LIKE '%Environment'"
    path = changed(export.write(), tmp_path / "b.sqlite", [sql])
    assert b"hunter2" in path.read_bytes()
    remove_environment(path)
    assert not any(word in path.read_bytes() for word in (b"hunter2", b"/home/me"))
    sources = {each.source: each.rank for each in NsysReport(path).evidence}
    assert sources == {"environment RANK": 3, "environment SLURM_PROCID": 7}


def test_files_that_sqlite_alone_would_read(
    newest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = "UPDATE sqlite_master SET sql = CAST(x'435245415445205441424C45A028' AS TEXT)"
    statements = ["PRAGMA writable_schema = ON", f"{broken} WHERE name = '{KERNEL}'"]
    assert "is damaged" in refused("kernels", changed(newest, tmp_path / "a.sqlite", statements))
    with closing(sqlite3.connect(tmp_path / "b.sqlite")) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16be'")
        connection.execute("CREATE TABLE StringIds (id, value)")
    assert "holds texts in UTF-16" in refused("kernels", tmp_path / "b.sqlite")
    file = SqliteFile(newest)
    monkeypatch.setattr(SqliteFile, "rows", lambda file, query: [(9, 2)])  # pages out of order
    with pytest.raises(ReportError, match="is damaged"):
        file.row_bounds(file.table(KERNEL))


def test_a_report_that_changes_while_it_is_read_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in (0, 1):
        shutil.copy(SAMPLE, tmp_path / f"rank{rank}.sqlite")

    def replaced(self: NsysReport, name: str, columns: object = None) -> object:
        if self.path.name == "rank1.sqlite":
            time.sleep(0.02)  # the clock of files is coarse
            shutil.copy(SAMPLE, self.path)
            raise OverflowError("an integer is too large")
        return read(self, name, columns)  # type: ignore[arg-type]

    read = NsysReport.frame
    monkeypatch.setattr(NsysReport, "frame", replaced)
    monkeypatch.delenv(FAULTS)
    answer = ask("kernels", tmp_path, "--jobs", "1")
    assert answer.stdout
    said = f"{tmp_path / 'rank1.sqlite'}: was changed while it was read (OverflowError"
    assert f"left out: {said}" in answer.stderr


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (KeyError("shown"), f"nsightpy failed on {SAMPLE} (KeyError: 'shown')"),
        (
            OSError(errno.EMFILE, "Too many open files"),
            "needs more open files than the system allows",
        ),
        (MemoryError(), "needs more memory than there is"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_facts_that_cannot_be_had_leave_a_report_out(
    monkeypatch: pytest.MonkeyPatch, error: Exception, problem: str
) -> None:
    """They are asked for after the work, for the process that has the other reports."""

    def facts(_report: NsysReport) -> object:
        raise error

    monkeypatch.setattr(NsysReport, "facts", property(facts))
    monkeypatch.delenv(FAULTS)
    failure = attempt_elsewhere(report_info, NsysReport(SAMPLE))
    assert isinstance(failure, ReportError)
    assert failure.problem == problem
    assert isinstance(failure, FaultError) == ("failed" in problem)
