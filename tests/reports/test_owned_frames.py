"""A report owns what was read of it: one order of rows whatever is asked, each column read once."""

from __future__ import annotations

import gc
import pickle
import sqlite3
import weakref
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import sqlalchemy as sa

import nsightpy
from nsightpy.frames import SCHEMAS, ColumnData, Labels
from nsightpy.readers import sqlite
from nsightpy.readers.sqlite import SqliteFile
from nsightpy.reports import owned_frames
from nsightpy.reports.nsys import NsysReport
from tests.support.reports import NSYS, ROOT, ask, exports

SAMPLES = sorted((ROOT / "sample_reports").rglob("*.sqlite"))
SINGLE = ROOT / "sample_reports" / "single_process.sqlite"


MOST_QUERIES = 41  # a third of what `summarize` took when each question was a query of its own


def plain(column: ColumnData) -> list[object]:
    """The values of a column; names as texts."""
    if isinstance(column, Labels):
        return [column.values[code] for code in column.codes.tolist()]
    return column.tolist()


def check_every_column(path: Path) -> None:
    report = NsysReport(path)
    whole = {name: report.frame(name) for name in SCHEMAS}
    assert sum(frame.rows for frame in whole.values()) > 0
    for name, frame in whole.items():
        expected = {column: plain(data) for column, data in frame.items()}
        for column, values in expected.items():
            report.close()
            alone = report.frame(name, (column,))
            assert list(alone) == [column]
            assert plain(alone[column]) == values, (name, column)
            if name == "collectives":
                break  # it is made as a whole
        report.close()
        for column in reversed(expected):
            assert report.frame(name, (column,)).rows == frame.rows


@exports
def test_rows_do_not_depend_on_the_columns_of_a_real_export(path: Path) -> None:
    check_every_column(path)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in SAMPLES[:2]])
def test_rows_do_not_depend_on_the_columns_of_a_sample(path: Path) -> None:
    check_every_column(path)


def test_a_column_lives_while_somebody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_frames, "KEPT_BYTES", 0)
    report = NsysReport(SINGLE)
    held = report.frame("kernels", ("start_ns", "name"))
    assert report.frame("kernels", ("start_ns",))["start_ns"] is held["start_ns"]
    assert report.frame("kernels", ("name",))["name"] is held["name"]
    ended = weakref.ref(report.frame("kernels", ("grid_x",))["grid_x"])
    assert ended() is None
    report.close()
    assert report.frame("kernels", ("start_ns",))["start_ns"] is not held["start_ns"]


def test_a_report_that_nobody_holds_is_let_go_of() -> None:
    report = NsysReport(SINGLE)
    assert report.frame("kernels").rows
    file = weakref.ref(report.export.file)
    del report
    gc.collect()
    assert file() is None


def test_a_report_travels_without_what_was_read() -> None:
    report = NsysReport(SINGLE)
    rows = report.frame("kernels").rows
    small = len(pickle.dumps(report))
    assert small < 10_000
    assert pickle.loads(pickle.dumps(report)).frame("kernels").rows == rows


# Without these columns nothing can be said of kernels.
NEEDED = ", ".join(
    f"{name} INTEGER DEFAULT 0"
    for name in (
        *("deviceId", "contextId", "streamId", "correlationId", "globalPid"),
        *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
        *("demangledName", "shortName", "mangledName"),
    )
)


def test_rows_in_no_order_are_put_into_one(tmp_path: Path) -> None:
    """Starts that fall and repeat: rows by start, ties as in the file, for each column alone."""
    path = tmp_path / "mixed.sqlite"
    starts = [50, 10, 30, 10, 20]
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, {NEEDED})"
        )
        rows = [(start, None if start == 30 else start + 5, n) for n, start in enumerate(starts)]
        file.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, gridX) VALUES (?, ?, ?)", rows
        )
    for columns in (("grid_x",), ("grid_x", "start_ns"), None):
        found = NsysReport(path).frame("kernels", columns)
        assert plain(found["grid_x"]) == [1, 3, 4, 0]
    report = NsysReport(path)
    assert plain(report.frame("kernels", ("start_ns",))["start_ns"]) == [10, 10, 20, 50]
    assert plain(report.frame("kernels", ("grid_x",))["grid_x"]) == [1, 3, 4, 0]
    assert any("1 rows of CUPTI_ACTIVITY_KIND_KERNEL" in note for note in report.notes)


@dataclass
class Reads:
    """Every query, and the cells that were read again: column, and of how many rows."""

    queries: list[str] = field(default_factory=list)
    again: dict[str, int] = field(default_factory=dict)
    seen: dict[tuple[Path, str], set[int]] = field(default_factory=dict)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """What is read of SQLite files meanwhile."""
    found = Reads()
    rows, arrays, plain_query = SqliteFile.rows, SqliteFile.arrays, SqliteFile._plain

    def counted_rows(self: SqliteFile, query: sqlite.SmallQuery) -> list[tuple[object, ...]]:
        found.queries.append(str(query.compile(compile_kwargs={"literal_binds": True})))
        return rows(self, query)

    def counted_arrays(
        self: SqliteFile, query: sqlite.Query, split: sa.TableClause | None = None
    ) -> dict[str, ColumnData]:
        found.queries.append(sqlite.compile_sql(query))
        rowid: sa.ColumnElement[int] = sa.literal_column("rowid")
        ids = {
            row[0] for row in rows(self, query.with_only_columns(rowid, maintain_column_froms=True))
        }
        payloads = "jsonText" in query.selected_columns  # NCCL's calls, read with what they carry
        for column in () if payloads else query.selected_columns:
            known = found.seen.setdefault((self.path, str(column.element)), set())
            if same := len(known & ids):
                found.again[str(column.element)] = same
            known |= ids
        return arrays(self, query, split)

    def counted_plain(self: SqliteFile, sql: str) -> list[tuple[object, ...]]:
        found.queries.append(sql)
        return plain_query(self, sql)

    monkeypatch.setattr(SqliteFile, "rows", counted_rows)
    monkeypatch.setattr(SqliteFile, "arrays", counted_arrays)
    monkeypatch.setattr(SqliteFile, "_plain", counted_plain)
    return found


PAGES = ("report x.html", "timeline x.html", "timeline x.png", "breakdown x.png")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("path", [SINGLE, ROOT / "sample_reports" / "training_4rank"])
def test_a_page_of_many_questions_reads_nothing_twice(
    page: str, path: Path, reads: Reads, tmp_path: Path
) -> None:
    command, name = page.split()
    ask(command, path, "--jobs", "1", "-o", tmp_path / name)
    assert len(reads.queries) == len(set(reads.queries)) or path.is_dir()  # one text, four files
    assert reads.again == {}


def test_what_is_held_stays_until_the_last_question_and_does_not_travel() -> None:
    report = NsysReport(SINGLE)
    with report.held():
        first = report.frame("kernels", ("start_ns",))["start_ns"]
        report.close()
        assert report.frame("kernels", ("start_ns",))["start_ns"] is first
        other = pickle.loads(pickle.dumps(report))
        read = other.frame("kernels", ("start_ns",))["start_ns"]
        other.close()
        assert other.frame("kernels", ("start_ns",))["start_ns"] is not read
    assert report.frame("kernels", ("start_ns",))["start_ns"] is not first


COMMANDS = (
    *("summarize", "findings", "kernels", "api", "memory", "launches", "breakdown", "iterations"),
    *("nvtx", "ranks", "collectives", "imbalance", "select", "info", "launch_queues"),
    *(
        "sync_waits",
        "memory_usage",
        "gaps",
        "utilization",
        "mpi_waits",
        "nvtx_metrics",
        "histogram",
    ),
)
FILES = (
    SINGLE,
    SAMPLES[-1],
    NSYS / "nvtx_h200_2025.1.sqlite",
    NSYS / "mordred_rtx6000_2021.sqlite",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_read_twice(command: str, path: Path, reads: Reads) -> None:
    if not path.exists():
        pytest.skip("the real reports are not here")
    getattr(nsightpy, command)(str(path), jobs=1)
    assert [text for text, times in Counter(reads.queries).items() if times > 1] == []
    assert reads.again == {}
    assert len(reads.queries) <= MOST_QUERIES
