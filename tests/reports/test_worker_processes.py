"""Workers of `--jobs`: new processes, gone at the end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from loky.backend.process import LokyProcess

from nsightpy.errors import ReportError
from nsightpy.report_sets.opening import open_ranks
from nsightpy.reports.profiles import NsysReport
from nsightpy.workers import engine
from nsightpy.workers.engine import ProcessWorkers
from nsightpy.workers.outcomes import Done
from tests.support.nsys_stand_in import is_alive
from tests.support.ranked_reports import write
from tests.support.reports import ask

pytestmark = pytest.mark.slow


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[BaseProcess]:
    """Every worker process that is started."""
    every: list[BaseProcess] = []
    start = LokyProcess.start

    def noted(self: BaseProcess) -> None:
        start(self)
        every.append(self)

    monkeypatch.setattr(LokyProcess, "start", noted)
    return every


@pytest.fixture
def job(tmp_path: Path) -> Path:
    for rank in (0, 1, 2):
        write(tmp_path / f"rank{rank}.sqlite", took=100 + rank)
    return tmp_path


def test_they_answer_as_one_process_does(job: Path, started: list[BaseProcess]) -> None:
    command = ("kernels", job, "--by", "rank", "--format", "csv")
    alone = ask(*command, "--jobs", "1").text
    ask("kernels", job / "rank0.sqlite", "--jobs", "4")
    assert started == [], "one report needs none"
    assert ask(*command, "--jobs", "8").text == alone
    assert len(started) == 3
    assert not any(process.is_alive() for process in started)


def test_a_script_needs_no_guard(job: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    called = "nsightpy.kernels(sys.argv[1], by='rank', jobs=2)"
    script.write_text(f"import sys, nsightpy\nprint('once', len({called}.rows))\n")
    argv = [sys.executable, str(script), str(job)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "once 3\n"


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


def killed_once(report: NsysReport) -> str:
    """What it does while several reports are read at a time."""
    mark = report.path.with_name("tried")
    if "rank1" not in report.path.name:
        # it must be under way when the other worker dies
        until = time.monotonic() + 20
        while not mark.exists() and time.monotonic() < until:
            time.sleep(0.01)
        while time.time() - mark.stat().st_mtime < 1.0:
            time.sleep(0.01)
    elif not mark.exists():
        mark.touch()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    return report.path.name


def printing(report: NsysReport) -> str:
    """What a library may do."""
    os.write(1, b"not an answer")
    return report.path.name


def threads_of(report: NsysReport) -> int | None:
    return report.threads


def sleeping(report: NsysReport) -> None:
    """Says who reads, and takes its time."""
    report.path.with_suffix(".pid").write_text(str(os.getpid()))
    time.sleep(60)


def test_an_interrupt_ends_what_is_read_and_no_waiting_worker(
    job: Path, started: list[BaseProcess]
) -> None:
    reports = open_ranks(job).reports
    with ProcessWorkers(1) as workers:
        names = [outcome for _, outcome in workers.run(name_of, reports)]
        assert len(names) == 3
        os.kill(started[0].pid or 0, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            list(workers.run(interrupted, reports[:1]))
        assert [outcome for _, outcome in workers.run(name_of, reports)] == names
    assert len(started) == 1


def test_one_that_dies_is_named_and_replaced(job: Path, started: list[BaseProcess]) -> None:
    with ProcessWorkers(2) as workers:
        ran = workers.run(killed, open_ranks(job).reports)
        outcomes = {report.path.name: outcome for report, outcome in ran}
    lost = outcomes.pop("rank1.sqlite")
    assert isinstance(lost, ReportError)
    assert "ended unexpectedly" in lost.problem
    assert sorted(outcomes) == ["rank0.sqlite", "rank2.sqlite"]
    assert all(isinstance(outcome, Done) for outcome in outcomes.values())
    assert not any(process.is_alive() for process in started)


def test_what_died_beside_others_is_tried_again_alone(job: Path) -> None:
    mapped = open_ranks(job, jobs=2).map(killed_once)
    assert mapped.values == ["rank0.sqlite", "rank1.sqlite", "rank2.sqlite"]
    assert not mapped.failures


def test_what_is_printed_is_no_answer(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert len(open_ranks(job, jobs=2).map(printing).values) == 3
    assert capfd.readouterr().out == ""


def test_readers_share_the_processors(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "processors", lambda: 6)
    for jobs, threads in ((2, 3), (3, 2), (1, 1), (None, None)):
        assert open_ranks(job, jobs=jobs).map(threads_of).values == [threads] * 3


@pytest.mark.parametrize("interrupted", [True, False], ids=["interrupted", "killed"])
def test_they_end_with_who_asked(job: Path, *, interrupted: bool) -> None:
    """A program in a process group of its own whose workers read for long."""
    code = (
        "import sys; from test_worker_processes import *; "
        "open_ranks(sys.argv[1], jobs=2).map(sleeping)"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", code, str(job)],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        try:
            until(lambda: len([f for f in job.glob("*.pid") if f.read_text()]) == 2)
            workers = [int(file.read_text()) for file in job.glob("*.pid")]
            if interrupted:
                os.killpg(program.pid, signal.SIGINT)
            else:
                program.kill()
            _, said = program.communicate(timeout=30)
        finally:
            program.kill()
    assert said.rstrip().endswith("KeyboardInterrupt") == interrupted
    until(lambda: not any(map(is_alive, workers)))


def until(true: Callable[[], bool]) -> None:
    """Wait for something to become true."""
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < 40
        time.sleep(0.05)
