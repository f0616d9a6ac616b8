"""Workers that `--jobs` asks for: started once, ahead of need, gone when the command is done."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from reports import ask, refused
from test_ranks_assignment import write

from nsightpy import worker_processes
from nsightpy.rank_set import open_ranks
from nsightpy.reports import NsysReport
from nsightpy.workers import Workers


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every worker process that is started."""
    every: list[subprocess.Popen[bytes]] = []
    start = worker_processes.start

    def noted() -> subprocess.Popen[bytes]:
        every.append(start())
        return every[-1]

    monkeypatch.setattr(worker_processes, "start", noted)
    return every


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for rank in (0, 1, 2):
        write(tmp_path / f"rank{rank}.sqlite", took=100 + rank)
    return tmp_path


def test_those_started_ahead_are_the_ones_that_work(
    job: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    command = ("kernels", job, "--by", "rank", "--format", "csv")
    alone = ask(*command, "--jobs", "1").text
    assert started == []
    assert ask(*command, "--jobs", "8").text == alone
    assert len(started) == 3
    assert all(worker.returncode is not None for worker in started)


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_one_report_needs_none(
    job: Path, jobs: str, started: list[subprocess.Popen[bytes]]
) -> None:
    ask("kernels", job / "rank0.sqlite", "--jobs", jobs)
    assert started == []


def test_none_outlives_a_refused_command(job: Path, started: list[subprocess.Popen[bytes]]) -> None:
    (job / "notes.txt").write_text("counts as a file, is no report")
    assert "rank" in refused("kernels", job, "--rank", "x", "--jobs", "4", code=2)
    assert len(started) == 4
    assert all(worker.returncode is not None for worker in started)


def name_of(report: NsysReport) -> str:
    return report.path.name


def interrupted(report: NsysReport) -> str:
    """Ctrl-C while a report is read."""
    signal.raise_signal(signal.SIGINT)
    return report.path.name


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_what_is_read_and_no_waiting_worker(
    job: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    reports = open_ranks(job).reports
    with Workers(1) as workers:
        names = [outcome for _, outcome in workers.run(name_of, reports)]
        assert len(names) == 3
        started[0].send_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            list(workers.run(interrupted, reports[:1]))
        assert [outcome for _, outcome in workers.run(name_of, reports)] == names
    assert len(started) == 1
