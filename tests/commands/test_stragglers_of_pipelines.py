"""ranks in pipelines: the slow rank is named in every stage, and nobody whom it only holds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from simulator import TrainingJob

from nsightpy.commands.ranks.command import ranks
from tests.support.jobs import on_two_nodes, simulate

pytestmark = pytest.mark.slow

# (tensor, data, pipeline, microbatches)
LAYOUTS = [(1, 2, 2, 4), (1, 4, 2, 2), (2, 1, 4, 4), (2, 2, 2, 2)]


def job_of(layout: tuple[int, int, int, int], **settings: Any) -> TrainingJob:
    """A pipeline on two nodes whose clocks disagree and drift apart."""
    tensor, data, pipeline, microbatches = layout
    more = {"microbatches": microbatches, "drift_ppb": (0, 4_000), **settings}
    return on_two_nodes(tensor, data, pipeline, **more)


def stragglers(job: TrainingJob, folder: Path) -> list[Any]:
    """The ranks that are called stragglers."""
    simulate(job, folder)
    return [row["rank"] for row in ranks(folder).records() if row["straggler"]]


@pytest.mark.parametrize(
    ("layout", "slow"),
    [((1, 2, 2, 4), 0), ((1, 2, 2, 4), 3), ((1, 4, 2, 2), 5), ((2, 1, 4, 4), 3), ((2, 2, 2, 2), 6)],
)
def test_the_slow_rank_is_named_in_every_stage(
    tmp_path: Path, layout: tuple[int, int, int, int], slow: int
) -> None:
    job = job_of(layout, seed=40 + slow, straggler=slow, straggler_slowdown=1.1)
    assert stragglers(job, tmp_path) == [slow]


def test_the_slow_rank_is_named_without_payload(tmp_path: Path) -> None:
    job = job_of((2, 2, 2, 2), seed=50, straggler=6, straggler_slowdown=1.12, payload=None)
    assert stragglers(job, tmp_path) == [6]


def test_shards_that_are_gathered_hide_no_slow_rank(tmp_path: Path) -> None:
    job = job_of((1, 2, 2, 4), seed=60, straggler=3, straggler_slowdown=1.08, sharded=True)
    assert stragglers(job, tmp_path) == [3]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nobody_is_named_where_nobody_is_slow(
    tmp_path: Path, layout: tuple[int, int, int, int]
) -> None:
    # rank 2 of the third layout is last 71 % of the time, by so little that it costs nothing
    assert stragglers(job_of(layout, seed=70), tmp_path) == []


@pytest.mark.parametrize("slow", [None, 2])
def test_stages_that_nobody_shares_are_not_compared(tmp_path: Path, slow: int | None) -> None:
    job = job_of((1, 1, 4, 4), straggler=slow, straggler_slowdown=1.12)
    assert stragglers(job, tmp_path) == []
    (note,) = [note for note in ranks(tmp_path).notes if "is a straggler" in note]
    assert note.startswith("Whether a rank is a straggler is not known")
