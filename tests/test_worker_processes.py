"""Workers of `--jobs`: copies of the command line, else processes of their own; gone at the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from reports import ask
from test_ranks_assignment import write

from nsightpy import worker_processes
from nsightpy.errors import ReportError
from nsightpy.rank_set import open_ranks
from nsightpy.reports.nsys import NsysReport
from nsightpy.worker_processes import Copy, Serve, Worker
from nsightpy.workers import Workers

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="copies are made on Linux only")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """Every worker process that is started."""
    every: list[Worker] = []
    start = worker_processes.start

    def noted(serve: Serve) -> Worker:
        every.append(start(serve))
        return every[-1]

    monkeypatch.setattr(worker_processes, "start", noted)
    return every


@pytest.fixture(params=["anew", pytest.param("copies", marks=LINUX)])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    """What workers are."""
    copies = request.param == "copies"
    monkeypatch.setattr(Copy, "allowed", copies)
    main = threading.main_thread()
    if copies:
        monkeypatch.setattr(
            threading, "active_count", lambda: 1 if threading.current_thread() is main else 2
        )
    return Copy if copies else subprocess.Popen


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for rank in (0, 1, 2):
        write(tmp_path / f"rank{rank}.sqlite", took=100 + rank)
    return tmp_path


def test_they_answer_as_one_process_does(job: Path, kind: type, started: list[Worker]) -> None:
    command = ("kernels", job, "--by", "rank", "--format", "csv")
    alone = ask(*command, "--jobs", "1").text
    assert started == []
    assert ask(*command, "--jobs", "8").text == alone
    assert [type(worker) for worker in started] == [kind] * 3
    assert all(worker.returncode is not None for worker in started)


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_one_report_needs_none(job: Path, jobs: str, started: list[Worker]) -> None:
    ask("kernels", job / "rank0.sqlite", "--jobs", jobs)
    assert started == []


@LINUX
def test_threads_and_other_programs_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert not Copy.possible()
    monkeypatch.setattr(Copy, "allowed", True)
    assert Copy.possible()
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not Copy.possible()


@LINUX
def test_the_command_line_copies_itself(job: Path) -> None:
    code = (
        "import sys; from nsightpy import worker_processes as w\n"
        "from nsightpy.cli.main import main\n"
        "first = w.Copy.__init__\n"
        "def told(self, serve):\n    first(self, serve); print('copy', file=sys.stderr)\n"
        "w.Copy.__init__ = told; main(sys.argv[1:])"
    )
    argv = [sys.executable, "-c", code, "kernels", str(job), "--jobs", "2"]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stderr.count("copy") == 2
    assert "Total Time" in ran.stdout


def name_of(report: NsysReport) -> str:
    return report.path.name


def interrupted(report: NsysReport) -> str:
    """Ctrl-C while a report is read."""
    signal.raise_signal(signal.SIGINT)
    return report.path.name


def killed(report: NsysReport) -> str:
    """What a system out of memory does."""
    if "rank1" in report.path.name:
        os.kill(os.getpid(), signal.SIGKILL)
    return report.path.name


def printing(report: NsysReport) -> str:
    """What a library may do."""
    os.write(1, b"not an answer")
    return report.path.name


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_what_is_read_and_no_waiting_worker(
    job: Path, kind: type, started: list[Worker]
) -> None:
    reports = open_ranks(job).reports
    with Workers(1) as workers:
        names = [outcome for _, outcome in workers.run(name_of, reports)]
        assert len(names) == 3
        os.kill(started[0].pid, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            list(workers.run(interrupted, reports[:1]))
        assert [outcome for _, outcome in workers.run(name_of, reports)] == names
    assert [type(worker) for worker in started] == [kind]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_one_that_dies_is_named_and_replaced(job: Path, kind: type, started: list[Worker]) -> None:
    with Workers(2) as workers:
        found = {
            report.path.name: outcome
            for report, outcome in workers.run(killed, open_ranks(job).reports)
        }
    lost = found.pop("rank1.sqlite")
    assert isinstance(lost, ReportError)
    assert "exit code -9" in lost.problem
    assert sorted(found) == ["rank0.sqlite", "rank2.sqlite"]
    assert not any(isinstance(outcome, ReportError) for outcome in found.values())
    assert len(started) == 3
    assert all(worker.returncode is not None for worker in started)


def test_what_is_printed_is_no_answer(job: Path, kind: type) -> None:
    with Workers(2) as workers:
        outcomes = [outcome for _, outcome in workers.run(printing, open_ranks(job).reports)]
    assert len(outcomes) == 3
    assert not any(isinstance(outcome, ReportError) for outcome in outcomes)


@LINUX
def test_copies_end_when_nobody_asks_any_more(job: Path, kind: type) -> None:
    workers = [worker_processes.start(_echo) for _ in range(3)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
    if kind is Copy:
        assert [worker.wait() for worker in workers] == [0, 0, 0]
    worker_processes.dismiss(workers)


def _echo(tasks: object, answers: object) -> None:
    """Serves until the pipe is closed."""
    getattr(tasks, "read")()  # noqa: B009
