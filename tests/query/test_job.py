"""A job: its commands, and the frames of all ranks in one, with rank, duration and iteration."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nsightpy
from nsightpy.analysis.clock_alignment.clocks import ClockFit
from nsightpy.errors import ReportError, UsageError
from nsightpy.frames import COLLECTIVES, SCHEMAS, Ints
from nsightpy.job import Job
from nsightpy.query.rank_alignment import MOMENTS, CommonClock, alignment_of
from nsightpy.report_sets.opening import open_ranks
from nsightpy.reports import system
from nsightpy.reports.profiles import NsysReport
from nsightpy.store.cache import session_folder
from tests.support.frames import frame
from tests.support.samples import MEASURED, TRAINING as JOB

NAMES = (*SCHEMAS, COLLECTIVES.name)


@pytest.fixture(scope="module")
def job() -> Job:
    return nsightpy.open(JOB)


@pytest.fixture(scope="module")
def reports() -> list[NsysReport]:
    return [NsysReport(path) for path in sorted(JOB.glob("*.sqlite"))]


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_columns_are_those_of_the_reports(
    job: Job, reports: list[NsysReport], name: str
) -> None:
    table = job.events(name)
    own = [getattr(report, name) for report in reports]
    events = ("duration_ns", "iteration") if {"start_ns", "end_ns", "pid"} <= set(own[0]) else ()
    assert list(table.columns) == [*dict.fromkeys(("rank", "report", *own[0].columns)), *events]
    assert len(table) == sum(map(len, own))
    done = 0
    for rank, (report, part) in enumerate(zip(reports, own, strict=True)):
        rows = table.iloc[done : done + len(part)]
        done += len(part)
        assert {*zip(rows["rank"], rows["report"], strict=True)} <= {(rank, str(report.path))}
        for column in set(part.columns) - set(MOMENTS):
            assert rows[column].tolist() == part[column].tolist(), column
        if events:
            assert rows["duration_ns"].tolist() == (part["end_ns"] - part["start_ns"]).tolist()


def apart(collectives: pd.DataFrame) -> Ints:
    """How far the ends of each collective's members are apart, in ns."""
    turns = collectives.groupby(["rank", "communicator"], observed=True).cumcount()
    ends = collectives.groupby(["communicator", turns], observed=True)["end_ns"]
    assert (ends.size() >= 2).all()
    return (ends.max() - ends.min()).to_numpy()


def test_on_one_clock_collectives_end_together(job: Job, reports: list[NsysReport]) -> None:
    table = job.events("collectives")
    own = pd.concat([report.collectives for report in reports], ignore_index=True)
    alignment = alignment_of(open_ranks(JOB))
    zero = alignment.fits[0].to_aligned(np.zeros(1, dtype=np.int64))[0]
    for fit in alignment.fits:
        rows = table["report"] == fit.report
        for column in ("start_ns", "end_ns"):
            moved = fit.to_aligned(own.loc[rows, column].to_numpy()) - zero
            assert table.loc[rows, column].tolist() == moved.tolist()
    assert np.percentile(apart(table), 95) < 2_000
    assert np.percentile(apart(own.assign(rank=table["rank"])), 95) > 1_000_000


def test_a_part_of_the_job_is_said_once() -> None:
    with nsightpy.open(JOB, rank="0-1", iteration=3) as part:
        kernels = part.events("kernels")
        assert set(kernels["rank"]) == {0, 1}
        assert set(kernels["iteration"]) == {3}
        assert sum(part.kernels().column("Instances")) == len(kernels)
        assert part.kernels(top=1).rows == nsightpy.kernels(JOB, rank="0-1", iteration=3).rows[:1]
        assert part.info().column("rank") == [0, 1, 2, 3]
    assert len(part.events("kernels")) == len(kernels)
    with pytest.raises(TypeError, match="unexpected keyword argument 'rank'"):
        part.kernels(rank=0)


def test_reports_of_other_tools_have_their_commands(tmp_path: Path) -> None:
    job = nsightpy.open(MEASURED)
    assert job.roofline().rows == nsightpy.roofline(MEASURED).rows
    with pytest.raises(ReportError, match=r"`nsightpy roofline .*` reads it"):
        job.kernels()
    with pytest.raises(ReportError, match="no such file"):
        nsightpy.open(tmp_path / "absent.sqlite")


def test_what_was_kept_without_a_cache_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "LEAST_BYTES", 0)
    monkeypatch.setattr(system, "available_memory", lambda: 0)
    with nsightpy.open(JOB / "train_rank0.sqlite", use_cache=False) as job:
        whole = job.kernels()
        kept = list(session_folder().iterdir())
    assert kept
    assert list(session_folder().iterdir()) == []
    assert job.kernels() == whole


def test_a_frame_that_is_none_is_a_mistake_not_a_damaged_report(job: Job) -> None:
    with pytest.raises(UsageError, match=r"no frame 'kernel'; there are kernels, .*, collectives"):
        job.events("kernel")


def test_processes_without_a_clock_and_unknown_times() -> None:
    rows = frame("time_ns pid", [(0, 7), (100, 7), (200, 8), (300, 9)])
    ahead = {("first", 1): 0, ("second", 7): 10, ("second", 8): 20}
    clock = CommonClock({whose: ClockFit(*whose, None, ns) for whose, ns in ahead.items()})
    second: Any = SimpleNamespace(path=Path("second"), pids=[], rank_of=lambda _: (None, ""))
    assert clock.frame(second, rows, "cuda_events").ints("time_ns").tolist() == [0, 90, 180, 290]
    assert clock.frame(second, rows, "gpu_metrics").ints("time_ns").tolist()[0] == -10
    assert clock.places(second)
    assert not clock.places(NsysReport("third"))


def test_tables_are_joined_by_key_and_read_by_column(job: Job) -> None:
    kernels, slowest = job.kernels(), job.ranks(by="kernel")
    joined = kernels.to_pandas().merge(slowest.to_pandas(), on="key")
    assert joined["Name"].tolist() == joined["name"].tolist()
    assert len(joined) == len(slowest) > 5
    assert kernels["Instances"] == kernels.column("Instances")
    empty = job.kernels(top=1).first(0).to_pandas()
    assert [*empty.columns][-1] == "key"
