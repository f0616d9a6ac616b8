"""The frames of all ranks in one: those of each report, with its rank, on one clock if wanted."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nsightpy
from nsightpy.errors import UsageError
from nsightpy.frames import COLLECTIVES, SCHEMAS, Frame, Ints
from nsightpy.query.rank_alignment import alignment_of
from nsightpy.report_sets.rank_frames import clock_aligned
from nsightpy.report_sets.rank_opening import open_ranks
from nsightpy.report_sets.rank_set import RankSet
from nsightpy.reports.nsys import NsysReport

JOB = Path(__file__).parent.parent.parent / "sample_reports" / "training_4rank"
NAMES = (*SCHEMAS, COLLECTIVES.name)


@pytest.fixture(scope="module")
def ranks() -> RankSet:
    return open_ranks(JOB)


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_columns_are_those_of_the_reports(ranks: RankSet, name: str) -> None:
    table = getattr(ranks, name)
    own = [getattr(report, name) for report in ranks]
    assert list(table.columns) == list(dict.fromkeys(("rank", "report", *own[0].columns)))
    assert len(table) == sum(map(len, own))
    done = 0
    for rank, part in enumerate(own):
        rows = table.iloc[done : done + len(part)]
        done += len(part)
        assert set(rows["rank"]) <= {rank}
        assert set(rows["report"]) <= {str(JOB / f"train_rank{rank}.sqlite")}
        for column in part.columns:
            assert rows[column].tolist() == part[column].tolist(), column


def apart(collectives: pd.DataFrame) -> Ints:
    """How far the ends of each collective's members are apart, in ns."""
    turns = collectives.groupby(["rank", "communicator"], observed=True).cumcount()
    ends = collectives.groupby(["communicator", turns], observed=True)["end_ns"]
    assert (ends.size() >= 2).all()
    return (ends.max() - ends.min()).to_numpy()


def test_on_one_clock_collectives_end_together(ranks: RankSet) -> None:
    own = ranks.collectives
    table = nsightpy.aligned_frame(ranks, "collectives")
    alignment = alignment_of(ranks)
    zero = alignment.fits[0].to_aligned(np.zeros(1, dtype=np.int64))[0]
    for fit in alignment.fits:
        rows = own["report"] == fit.report
        for column in ("start_ns", "end_ns"):
            moved = fit.to_aligned(own.loc[rows, column].to_numpy()) - zero
            assert table.loc[rows, column].tolist() == moved.tolist()
    first = own["rank"] == 0
    assert table.loc[first, "start_ns"].tolist() == own.loc[first, "start_ns"].tolist()
    unchanged = [name for name in own.columns if name not in ("start_ns", "end_ns")]
    assert table[unchanged].equals(own[unchanged])
    assert np.percentile(apart(table), 95) < 2_000
    assert np.percentile(apart(own), 95) > 1_000_000


def test_a_frame_that_is_none_is_a_mistake_not_a_damaged_report(ranks: RankSet) -> None:
    with pytest.raises(UsageError, match=r"no frame 'kernel'; there are kernels, .*, collectives"):
        nsightpy.aligned_frame(ranks, "kernel")


def test_worker_processes_and_clocks_of_their_own_change_nothing() -> None:
    alone, shared = (nsightpy.aligned_frame(JOB, "kernels", jobs=jobs) for jobs in (1, 2))
    assert alone.equals(shared)
    assert alone["rank"].unique().tolist() == [0, 1, 2, 3]


def test_a_capture_that_comes_twice_counts_once(tmp_path: Path) -> None:
    for name in ("train_rank0", "train_rank1"):
        shutil.copy(JOB / f"{name}.sqlite", tmp_path)
    once = open_ranks(tmp_path).kernels
    shutil.copy(JOB / "train_rank0.sqlite", tmp_path / "train_rank1_again.sqlite")
    ranks = open_ranks(tmp_path)
    assert len(ranks.kernels) == len(once)
    assert any("repeats the capture" in note for note in ranks.notes)


@dataclass
class Fast:
    """A clock that runs so many ns ahead."""

    report: str
    pid: int
    ahead_ns: int

    def to_aligned(self, times: Ints) -> Ints:
        return times - self.ahead_ns


def test_processes_without_a_clock_and_unknown_times() -> None:
    def column(*numbers: int) -> Ints:
        return np.asarray(numbers, dtype=np.int64)

    frame = Frame({"time_ns": column(0, 100, 200, 300), "pid": column(7, 7, 8, 9)})
    clocks = [Fast("first", 1, 0), Fast("second", 7, 10), Fast("second", 8, 20)]
    moved = clock_aligned(frame, NsysReport("second"), clocks, unknown=0)
    assert moved.ints("time_ns").tolist() == [0, 90, 180, 290]
    assert clock_aligned(frame, NsysReport("second"), clocks).ints("time_ns").tolist()[0] == -10
    assert clock_aligned(frame, NsysReport("third"), clocks).rows == 0
