"""Limits end what has no end, each with a variable that says otherwise."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from simulator import Export

from nsightpy.analysis.iterations import recurrence, steady
from nsightpy.analysis.nvtx.nesting import Nesting, paths
from nsightpy.errors import ReportError, TooMuchError
from nsightpy.frames import Labels
from nsightpy.readers import limits
from nsightpy.readers.sqlite import SqliteFile
from nsightpy.readers.tools.signals import signals_raise
from tests.support.full_export import full
from tests.support.reports import ask, rows_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return full(tmp_path / "full.sqlite").write()


@pytest.mark.slow
def test_a_query_without_rows_ends_in_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.QUERY_SECONDS, "0.3")
    file = SqliteFile(path)
    numbers = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{}) SELECT i FROM n)"
    i: sa.ColumnClause[int] = sa.column("i")
    # a second or two: the driver cannot be stopped, and nobody waits for its thread
    long, endless = numbers.format(" LIMIT 8000000"), numbers.format("")
    with pytest.raises(ReportError, match="s of processor time"):
        file.arrays(sa.select(i).select_from(sa.text(long)).where(i < 0))
    # another limit: the thread that goes on takes the time of this process
    monkeypatch.delenv(limits.QUERY_SECONDS)
    with pytest.raises(ReportError, match="gave more than"):
        SqliteFile(path).rows(sa.select(i).select_from(sa.text(endless)))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_query_that_a_signal_ends_says_which(number: signal.Signals, path: Path) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        pytest.skip("this shell lets its background jobs ignore interrupts")
    endless = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    file = SqliteFile(path)
    threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
    with signals_raise(), pytest.raises((KeyboardInterrupt, SystemExit)) as ended:
        file.rows(sa.text(endless))
    expected = None if number == signal.SIGINT else 128 + number
    assert getattr(ended.value, "code", None) == expected


def test_exports_beyond_two_gib_are_read(path: Path) -> None:
    rows = rows_of("kernels", path)
    os.truncate(path, 2**31 + 4096)
    assert rows_of("kernels", path) == rows


@pytest.mark.parametrize(
    ("what", "request_", "count"),
    [
        ("devices of processes", "breakdown", 2),
        ("streams", "launches --by stream", 2),
        ("names in one column", "kernels", 3),
    ],
)
def test_more_than_there_may_be(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: str, request_: str, count: int
) -> None:
    monkeypatch.setitem(limits.MOST, what, count - 1)
    said = f"has {count} {what}, and {count - 1} are the most"
    assert said in ask(*request_.split(), path, expect=1).stderr
    monkeypatch.setitem(limits.MOST, what, count)
    ask(*request_.split(), path)


def test_a_search_in_a_part_of_the_launches_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = Export(tmp_path / "a.sqlite")
    for at in range(300):
        export.kernel(at * 100 + 50, at * 100 + 90, f"k{at}", launch=(at * 100, at * 100 + 10))
    for module in (recurrence, steady):
        monkeypatch.setattr(module, "LOOKED_AT", 150)
    notes = str(ask("iterations", export.write(), "--format", "json").json["notes"])
    assert "looked for in the middle 150 of 300 launches" in notes


@pytest.mark.slow
def test_ranges_nested_without_end_are_bounded(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(30_000, 40_000, "k", launch=(20_000, 20_010))
    for depth in range(1_100):
        export.nvtx_push_pop(depth, 100_000 - depth, f"r{depth}")
    export.nvtx_start_end(99_000, 155_000, "crosses")
    path = export.write()
    said = ask("stats", "-r", "nvtx_gpu_proj_trace", path, expect=1).stderr
    assert "nests ranges more than 1,000 deep" in said
    assert rows_of("operators", "--by", "module", path)[0]["module"] == "r0"
    assert rows_of("nvtx", "--tree", path)[0]["range"] == "r0"
    many = Labels(np.arange(2_000, dtype=np.int32), tuple(f"{n:099}" for n in range(2_000)))
    with pytest.raises(TooMuchError, match="2,000 deep"):
        paths(many, Nesting(np.arange(2_000), np.arange(-1, 1_999)))
