"""What lies around a report: terminals, full disks, permissions, links, pipes, signals."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.support.reports import ROOT, ask, refused
from tests.support.samples import SINGLE

pytestmark = pytest.mark.slow

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full and signals")


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A line of sh in which "$nsightpy" is the command and "$report" the sample report."""
    program = f"{sys.executable} -m nsightpy"
    variables = {**os.environ, "nsightpy": program, "report": str(SINGLE), **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, check=False, env=variables)


@LINUX
@pytest.mark.parametrize(
    ("line", "encoding", "code", "said"),
    [
        ("summarize $report", "latin-1", 0, ""),
        ("summarize $report", "ascii", 0, ""),
        ("kernels $report >/dev/full", "utf-8", 1, "output cannot be written"),
        ("kernels $report --format csv >/dev/full", "utf-8", 1, "output cannot be written"),
        ("kernels $report >&-", "utf-8", 1, "output cannot be written"),
        ("kernels $report --format csv >&-", "utf-8", 1, "output cannot be written"),
        # errors that nobody can read change no exit code
        ("kernels /nowhere 2>/dev/full", "utf-8", 1, ""),
        ("kernels $report 2>&-", "utf-8", 0, ""),
        ("ranks --by kernel $report 2>/dev/full", "utf-8", 0, ""),
        ("headroom $report 2>/dev/full", "utf-8", 2, ""),
    ],
)
def test_streams(line: str, encoding: str, code: int, said: str) -> None:
    ran = shell(f"$nsightpy {line}", PYTHONIOENCODING=encoding)
    assert ran.returncode == code, ran.stderr
    errors = ran.stderr.decode()
    assert said in errors
    assert "Traceback" not in errors
    assert "ignored" not in errors
    assert ran.stdout.decode(encoding) or ">" in line


@LINUX
@pytest.mark.parametrize(
    "first", ["ulimit -n 16", "mkdir gone; cd gone; rmdir ../gone", "exec <&-"]
)
def test_what_a_shell_takes_away(first: str, tmp_path: Path) -> None:
    """Descriptors, the working directory, stdin."""
    ran = shell(f"cd {tmp_path}; {first}; $nsightpy kernels $report --no-cache")
    assert ran.returncode == 0 or ran.stderr.startswith(b"nsightpy: ")
    assert b"Traceback" not in ran.stderr
    assert b"a fault of nsightpy" not in ran.stderr


@LINUX
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_a_reader_that_leaves_early_makes_no_noise(form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "nsightpy", "kernels", str(SINGLE), "--format", form]
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")


@LINUX
@pytest.mark.parametrize("delay", [0.25, 0.6])
def test_ctrl_c_while_modules_load_is_one_line(delay: float) -> None:
    command = [sys.executable, "-m", "nsightpy", "summarize", str(SINGLE)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    # earlier than nsightpy itself: Python's own
    assert process.returncode in (0, 130) or "nsightpy/cli" not in said
    assert process.returncode != 130 or said.strip() == "nsightpy: interrupted"


def test_links_that_form_a_loop_and_long_names_are_named(tmp_path: Path) -> None:
    loop = tmp_path / "loop.sqlite"
    loop.symlink_to(loop)
    for path in (loop, tmp_path / ("n" * 300), loop / "deeper.sqlite"):
        answer = ask("kernels", path, expect=1)
        assert str(path) in answer.stderr


@LINUX
@pytest.mark.parametrize("suffix", [".sqlite", ".ncu-rep", ".csv", ".json", ".json.gz", ".pickle"])
def test_a_pipe_is_never_waited_for(tmp_path: Path, suffix: str) -> None:
    pipe = tmp_path / f"a{suffix}"
    os.mkfifo(pipe)
    for command in ("kernels", "roofline", "memory-usage"):
        answer = ask(command, pipe, expect=1)
        assert "pipe" in answer.stderr or "no " in answer.stderr
    answer = ask(
        "roofline", ROOT / "sample_reports/kernels_h100.ncu.csv", "--ceilings", pipe, expect=1
    )
    assert "is a pipe" in answer.stderr


def test_a_change_that_was_not_finished_is_named(tmp_path: Path) -> None:
    report = Path(shutil.copy(SINGLE, tmp_path / "a.sqlite"))
    journal = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"  # where SQLite's rollback journals begin
    (tmp_path / "a.sqlite-journal").write_bytes(journal + bytes(1000))
    assert "waits in a.sqlite-journal" in refused("kernels", report)


def test_a_stale_wal_is_left_alone(tmp_path: Path) -> None:
    report = Path(shutil.copy(SINGLE, tmp_path / "a.sqlite"))
    (tmp_path / "a.sqlite-wal").write_bytes(b"stale")
    assert ask("kernels", report).code == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.sqlite", "a.sqlite-wal"]


def open_files(pid: int) -> set[Path]:
    """The files that a process has open; none of one that ended."""
    opened = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                opened.add(descriptor.readlink())
    return opened


@LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_long_query_and_leave_nothing(tmp_path: Path, number: signal.Signals) -> None:
    report = Path(shutil.copy(SINGLE, tmp_path / "a.sqlite"))
    with closing(sqlite3.connect(report)) as connection:
        connection.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME "
            "SELECT a.* FROM CUPTI_ACTIVITY_KIND_RUNTIME a, "
            "(SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 500)"
        )
        connection.commit()
    output = tmp_path / "out.svg"
    command = [sys.executable, "-m", "nsightpy", "timeline", str(report), "-o", str(output)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        latest = time.monotonic() + 10  # not every system lists open files
        while report not in open_files(process.pid) and time.monotonic() < latest:
            if process.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    assert process.returncode in (0, 128 + number)
    assert "Traceback" not in said
    if process.returncode:
        assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]
