"""Values that are no numbers, sums that would overflow, and limits that end what has no end."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from simulator import Export

from nsightpy.analysis.iterations import recurrence, steady
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.nvtx.nesting import Nesting, paths
from nsightpy.analysis.timeline.lanes import DEEPEST, levels_of
from nsightpy.errors import ReportError, TooMuchError, UsageError
from nsightpy.frames import Labels
from nsightpy.readers import limits
from nsightpy.readers.sqlite import SqliteFile
from nsightpy.readers.tools.signals import signals_raise
from nsightpy.readers.torch.columns import whole
from nsightpy.render.plots.memory_plot import memory_figure
from nsightpy.reports.nsys import NsysReport
from nsightpy.results.series import MemorySeries, MemoryUsage
from tests.support.full_export import changed, full
from tests.support.reports import ask, refused, rows_of

KERNEL, RUNTIME = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"


@pytest.mark.parametrize("size", [2**61, 2**57, -1])
def test_sizes_that_cannot_be_are_in_no_sum(tmp_path: Path, size: int) -> None:
    export = Export(tmp_path / "a.sqlite")
    for at in range(100, 900, 100):
        export.memcpy(at, at + 10, size)
    export.memcpy(1_000, 1_010, 4_096)
    found = ask("memory", export.write(), "--format", "json").json
    assert [row["Total (MB)"] for row in found["rows"]] == [pytest.approx(4_096e-6, abs=1e-3)]
    assert any(note.startswith(f"8 rows of {COPY}") for note in found["notes"])


def test_lengths_that_cannot_be_are_in_no_sum(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    for at in range(4):
        export.kernel(at, 2**60, "k")
    export.kernel(5, 15, "k")
    (row,) = rows_of("kernels", export.write())
    assert (row["Instances"], row["Total Time (ns)"]) == (1, 10)


@pytest.mark.parametrize("duration", ["-5", "null", '"5x"', "1e30", "{}"])
def test_events_of_traces_without_a_length_are_left_out(tmp_path: Path, duration: str) -> None:
    event = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %s, "dur": %s}'
    path = tmp_path / "t.json"
    events = [event % ("5", "2"), event % ("9", duration), event.replace(', "dur": %s', "") % "20"]
    path.write_text('{"traceEvents": [' + ", ".join(events) + "]}")
    found = ask("kernels", path, "--format", "json").json
    (row,) = found["rows"]
    assert (row["Instances"], row["Total Time (ns)"]) == (1, 2_000)
    assert "2 events without a time that can be are left out." in found["notes"]


@pytest.mark.parametrize(
    ("others", "wrong"),
    [("5", str(-(2**63))), ("5", "9" * 16), ("1711964646123456.789", "9999999999999999")],
)
def test_moments_beyond_every_clock_are_none(tmp_path: Path, others: str, wrong: str) -> None:
    event = '{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": %s, "dur": 2}'
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [' + ", ".join(event % ts for ts in (others, wrong)) + "]}")
    found = ask("kernels", path, "--format", "json").json
    (row,) = found["rows"]
    assert (row["Instances"], row["Total Time (ns)"]) == (1, 2_000)
    assert "1 events without a time that can be are left out." in found["notes"]


@pytest.mark.slow
def test_a_query_without_rows_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.QUERY_SECONDS, "0.3")
    file = SqliteFile(full(tmp_path / "full.sqlite").write())
    numbers = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{}) SELECT i FROM n)"
    i: sa.ColumnClause[int] = sa.column("i")
    # a second or two: the driver cannot be stopped, and nobody waits for its thread
    long, endless = numbers.format(" LIMIT 8000000"), numbers.format("")
    with pytest.raises(ReportError, match="s of processor time"):
        file.arrays(sa.select(i).select_from(sa.text(long)).where(i < 0))
    # another limit: the thread that goes on takes the time of this process
    monkeypatch.delenv(limits.QUERY_SECONDS)
    with pytest.raises(ReportError, match="gave more than"):
        SqliteFile(file.path).rows(sa.select(i).select_from(sa.text(endless)))


def test_exports_beyond_two_gib_are_read(tmp_path: Path) -> None:
    path = full(tmp_path / "full.sqlite").write()
    rows = rows_of("kernels", path)
    os.truncate(path, 2**31 + 4096)
    assert rows_of("kernels", path) == rows


def test_more_devices_streams_names_or_rows_than_there_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = full(tmp_path / "full.sqlite").write()
    requests = {
        limits.DEVICES: ("breakdown", "has 2 devices of processes, and 1 are"),
        limits.STREAMS: ("launches --by stream", "has 2 streams, and 1 are"),
        limits.NAMES: ("kernels", "has 3 names in one column, and 1 are"),
        limits.ROWS: ("kernels", "gave more than 1 rows"),
    }
    for variable, (request, words) in requests.items():
        command, *options = request.split()
        with monkeypatch.context() as patch:
            patch.setenv(variable, "1")
            said = ask(command, path, *options, expect=1).stderr
            assert words in said
            assert variable in said
            patch.setenv(variable, "1000000")
            ask(command, path, *options)
            patch.setenv(variable, "-1")
            assert variable in ask(command, path, *options, expect=2).stderr


def test_memory_may_be_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, size in (("8G", 8 * 2**30), ("800M", 800 * 2**20), ("5", 5)):
        monkeypatch.setenv(limits.MEMORY, text)
        assert limits.most_memory() == size
    monkeypatch.setenv(limits.MEMORY, "much")
    with pytest.raises(UsageError, match="give a size"):
        limits.most_memory()


def test_a_schema_that_is_no_text_is_damage(tmp_path: Path) -> None:
    path = full(tmp_path / "a.sqlite").write()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        broken = "UPDATE sqlite_master SET sql = CAST(x'435245415445205441424C45A028' AS TEXT)"
        connection.execute(f"{broken} WHERE name = '{KERNEL}'")
    assert "is damaged" in ask("kernels", path, expect=1).stderr


def test_texts_in_another_encoding_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16be'")
        connection.execute("CREATE TABLE StringIds (id, value)")
    assert "holds texts in UTF-16" in refused("kernels", path)


def test_devices_of_any_number_stay_apart(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    for device in (0, 65_536, 2**40, -7):
        export.kernel(10, 20, "k", deviceId=device)
    path = export.write()
    rows = rows_of("breakdown", path)
    assert sorted(row["device"] for row in rows) == [-7, 0, 65_536, 2**40]
    assert json.loads(NsysReport(path).kernels["device"].to_json(orient="values"))


def test_a_search_in_a_part_of_the_launches_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = Export(tmp_path / "a.sqlite")
    for at in range(300):
        export.kernel(at * 100 + 50, at * 100 + 90, f"k{at}", launch=(at * 100, at * 100 + 10))
    path = export.write()
    for module in (recurrence, steady):
        monkeypatch.setattr(module, "LOOKED_AT", 150)
    notes = str(ask("iterations", path, "--format", "json").json["notes"])
    assert "looked for in the middle 150 of 300 launches" in notes


@pytest.mark.parametrize(("pid", "device"), [(3, 3), (41_234, -1)])
def test_a_device_that_a_trace_does_not_name(tmp_path: Path, pid: int, device: int) -> None:
    event = '{"ph": "X", "cat": "kernel", "name": "k", "pid": %d, "tid": 7, "ts": 5, "dur": 2}'
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [' + event % pid + "]}")
    found = ask("kernels", "--by", "device", path, "--format", "json").json
    assert [row["device"] for row in found["rows"]] == [device]
    assert ("1 rows of kernels name no device." in found["notes"]) == (device == -1)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *((7.0, 7), ("stream 7", 7), (2**64 - 1, -1), (2**64, -5), (-(2**63) - 1, -5)),
        *((0.5, -5), (float("inf"), -5), ("x", -5), (None, -5)),
    ],
)
def test_what_is_no_whole_number_in_a_trace_is_missing(value: object, number: int) -> None:
    assert whole(value, -5) == number


def test_a_stretch_without_gpu_work_has_no_findings(tmp_path: Path) -> None:
    answer = ask("findings", full(tmp_path / "a.sqlite").write(), "--to", "0.000001ms")
    assert "No GPU work is in the wanted stretch of time" in answer.stderr


@pytest.mark.slow
def test_ranges_nested_without_end_are_bounded(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(30_000, 40_000, "k", launch=(20_000, 20_010))
    for depth in range(1_100):
        export.nvtx_push_pop(depth, 100_000 - depth, f"r{depth}")
    export.nvtx_push_pop(150_000, 160_000, "crosses")
    export.nvtx_start_end(99_000, 155_000, "crosses")
    path = export.write()
    assert (
        "nests ranges more than 1,000 deep"
        in ask("stats", "-r", "nvtx_gpu_proj_trace", path, expect=1).stderr
    )
    for words in (("operators", "--by", "module"), ("nvtx", "--tree")):
        rows = rows_of(*words, path)
        assert [rows[0].get(name) for name in ("module", "range") if name in rows[0]] == ["r0"]
    many = Labels(np.arange(2_000, dtype=np.int32), tuple(f"{n:099}" for n in range(2_000)))
    line = Nesting(np.arange(2_000), np.arange(-1, 1_999))
    with pytest.raises(TooMuchError, match="2,000 deep"):
        paths(many, line)


def test_levels_of_ranges_that_cross_are_the_lowest_free_ones() -> None:
    starts = np.arange(20_000)
    levels = levels_of(starts, starts + 15_000)
    assert levels[:10_000].tolist() == list(range(10_000))
    assert levels.max() == DEEPEST
    assert levels[15_000:].tolist() == levels[:5_000].tolist()


def test_a_memory_series_without_events_has_no_peak() -> None:
    empty = MemorySeries((), (), None, 0, "CUDA")
    assert memory_figure(MemoryUsage("memory-usage", (), (), series=(empty,))) is not None


def test_a_steady_state_without_length_is_none() -> None:
    same = np.full(4, 7, dtype=np.int64)
    iterations = Iterations("k", same, same, same, (steady.STEADY,) * 4)
    assert steady.steady_state(iterations) is None


@pytest.mark.parametrize("reading", [-(2**63), 2**62])
def test_a_clock_that_no_clock_shows_is_not_known(tmp_path: Path, reading: int) -> None:
    """Else the UTC of two ranks would be further apart than int64 counts."""
    for name in ("r0", "r1"):
        full(tmp_path / f"{name}.sqlite").write()
    clock = f"UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = {reading}"
    shift = f"UPDATE META_DATA_EXPORT SET value = {reading} WHERE name = 'EXPORT_CONFIG_TIME_SHIFT'"
    folder = tmp_path / "set"
    folder.mkdir()
    changed(tmp_path / "r0.sqlite", folder / "r0.sqlite", [clock, shift])
    (tmp_path / "r1.sqlite").rename(folder / "r1.sqlite")
    assert rows_of("info", folder / "r0.sqlite")[0]["start_utc"] is None
    ask("export", folder, "-o", tmp_path / "frames")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_query_that_a_signal_ends_says_which(number: signal.Signals, tmp_path: Path) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        pytest.skip("this shell lets its background jobs ignore interrupts")
    path = Export(tmp_path / "a.sqlite").write()
    endless = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    timer = threading.Timer(0.3, os.kill, (os.getpid(), number))
    file = SqliteFile(path)
    timer.start()
    with signals_raise(), pytest.raises((KeyboardInterrupt, SystemExit)) as ended:
        file.rows(sa.text(endless))
    expected = None if number == signal.SIGINT else 128 + number
    assert getattr(ended.value, "code", None) == expected
