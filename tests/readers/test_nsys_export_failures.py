"""What goes wrong while exporting: nsys fails, is interrupted, or others export the same."""

import errno
import os
import signal
import time
from pathlib import Path

import pytest

from nsightpy.errors import ReportError, ToolFailedError, UsageError
from nsightpy.readers.export.nsys_export import sqlite_of
from nsightpy.readers.tools import signals
from tests.support.nsys_stand_in import Bench, is_alive, set_up

pytestmark = pytest.mark.slow


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return set_up(tmp_path, monkeypatch)


def failure(bench: Bench) -> ToolFailedError:
    with pytest.raises(ToolFailedError) as caught:
        sqlite_of(bench.report)
    assert bench.listing(bench.cache) == []
    assert bench.listing(bench.temporary) == []
    assert caught.value.path == str(bench.report)
    return caught.value


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2022.4", "Version number is invalid: 2026@9@1@7-1234567"),
        ("2024.2", "version (2026.9.1.7), newer than your current version (2024.2.3.38)."),
        ("2026.4", "newer than your current version (2026.4.1.191)."),
    ],
)
def test_report_newer_than_nsys(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, version: str, words: str
) -> None:
    monkeypatch.setenv("STAND_IN_NSYS_VERSION", version)
    bench.write_report("2026.9.1.7")
    error = failure(bench)
    assert "failed (exit code 1)" in error.problem
    assert words in error.problem
    assert "needs nsys 2026.9.1.7 or later" in error.advice
    assert "update Nsight Systems" in error.advice


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"STAND-IN REPORT 2020.1.1.1\nhalf of ", "Section Table Reference magic number mismatch."),
        (b"\x00garbage\xff", "Cannot read from stream."),
    ],
)
def test_damaged_reports(bench: Bench, content: bytes, words: str) -> None:
    bench.report.write_bytes(content)
    error = failure(bench)
    assert words in error.problem
    assert "truncated or damaged" in error.advice


@pytest.mark.parametrize(
    ("fault", "problem", "advice"),
    [
        ("partial", "| Something went wrong  midway", "by hand"),
        ("killed", "was killed by signal 9", "by hand"),
        ("empty", "ended well, but of its export: is empty", "by hand"),
        ("no-strings", "no such table: StringIds", "by hand"),
        ("no-importer", "Importer binary", "complete Nsight Systems"),
        ("disk-full", "database or disk is full", "free some space there, or set NSIGHTPY_CACHE"),
    ],
)
def test_failures_of_nsys(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, fault: str, problem: str, advice: str
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "hunter2-hunter2")
    monkeypatch.setenv("STAND_IN_NSYS_FAULT", fault)
    error = failure(bench)
    assert problem in error.problem
    assert advice in error.advice
    assert "hunter2" not in str(error)
    assert "%" not in str(error)


def test_cache_on_a_file_system_without_locks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_NSYS_NO_LOCKS", str(bench.cache))
    assert "has no file locks" in failure(bench).advice


def test_cache_that_cannot_be_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.cache.parent.write_text("a file where the cache should be")
    with pytest.raises(ReportError, match="cannot be written there") as caught:
        sqlite_of(bench.report)
    assert caught.value.path == str(bench.cache)
    assert "NSIGHTPY_CACHE_DIR" in caught.value.advice
    assert bench.runs() == []
    bench.cache.parent.unlink()

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ReportError, match="No space left on device"):
        sqlite_of(bench.report)
    assert bench.listing(bench.cache) == []


def test_a_bad_size_is_said_before_exporting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_SIZE", "plenty")
    with pytest.raises(UsageError, match="NSIGHTPY_CACHE_SIZE"):
        sqlite_of(bench.report)
    assert bench.runs() == []


def test_report_that_changes_meanwhile(bench: Bench) -> None:
    def progress(fraction: float | None, text: str) -> None:
        if fraction is None:
            bench.write_report("2020.1.1.1", "still being written")

    with pytest.raises(ReportError, match="changed while"):
        sqlite_of(bench.report, progress=progress)
    assert bench.listing(bench.cache) == []


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 7)],
)
def test_signals_leave_nothing_behind(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    monkeypatch.setenv("STAND_IN_NSYS_FAULT", "hang")
    process = bench.start(
        "import sys\ntry: sqlite_of(report)\nexcept KeyboardInterrupt: sys.exit(7)"
    )
    bench.wait_for_export(2)
    process.send_signal(number)
    assert process.wait(10) == status
    assert bench.listing(bench.cache) == []
    assert not is_alive(bench.process_of_last_run())


def test_signal_handlers_of_the_program_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        with signals.signals_raise():
            os.kill(os.getpid(), signal.SIGTERM)
            assert got == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_two_processes_export_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_NSYS_FAULT", "slow")
    monkeypatch.setenv("STAND_IN_NSYS_VERSION", "2026.4")
    first = bench.start("sqlite_of(report)")
    bench.wait_for_export()
    told: list[str] = []
    entry = sqlite_of(bench.report, progress=lambda fraction, text: told.append(text)).path
    assert first.wait(10) == 0
    assert told == [f"waiting for another process that is exporting {bench.report.name}"]
    assert len(bench.runs()) == 1
    assert bench.listing(bench.cache) == [entry.name]


def test_a_killed_process_blocks_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_NSYS_FAULT", "hang")
    monkeypatch.setenv("STAND_IN_NSYS_VERSION", "2026.4")
    first = bench.start("sqlite_of(report)")
    bench.wait_for_export()
    first.kill()
    first.wait(10)
    os.kill(bench.process_of_last_run(), signal.SIGKILL)
    assert any(name.endswith(".part") for name in bench.listing(bench.cache))
    assert any(name.endswith(".lock") for name in bench.listing(bench.cache))
    monkeypatch.delenv("STAND_IN_NSYS_FAULT")
    began = time.monotonic()
    entry = sqlite_of(bench.report).path
    assert time.monotonic() - began < 3
    assert bench.listing(bench.cache) == [entry.name]
