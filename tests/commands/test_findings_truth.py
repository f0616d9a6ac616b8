"""Findings on whole simulated jobs, against what the simulator knows, to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulator import PRESETS, TrainingJob

from nsightpy.analysis.memory.copies import SMALL_BYTES
from nsightpy.commands.findings.command import findings
from nsightpy.results import Value
from tests.support.jobs import Simulated, simulate

pytestmark = pytest.mark.slow

JOBS = {
    "single": replace(PRESETS["single_process"], graph_mode=None, graph_replays=0),
    "eight": PRESETS["ranks_8"],
    "sharded": PRESETS["pipeline_4"],
    "pinned": replace(PRESETS["single_process"], pageable=False, graph_mode=None, graph_replays=0),
}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Simulated]]:
    made: dict[str, Simulated] = {}

    def simulated(name: str) -> Simulated:
        if name not in made:
            made[name] = simulate(JOBS[name], tmp_path_factory.mktemp(name))
        return made[name]

    yield simulated
    made.clear()


def told(job: Simulated, start_ns: int = 0) -> dict[str, dict[str, Value]]:
    """The findings by id, from a moment of the first rank to the end of each device's work."""
    return {str(row["id"]): row for row in findings(job.folder, from_time=start_ns).records()}


def largest(job: Simulated, lost: Callable[[Any], int]) -> tuple[int, int]:
    """The rank that loses the largest share of its window from 0 on, and how much, in ns."""
    ranks = sorted(job.truth["ranks"], key=lambda one: one["rank"])
    worst = max(ranks, key=lambda one: lost(one) / one["budget"]["end_ns"])
    return worst["rank"], lost(worst)


@pytest.mark.parametrize("name", ["eight", "sharded"])
def test_exposed_communication(name: str, job: Callable[[str], Simulated]) -> None:
    row = told(job(name))["exposed-communication"]
    # the others' windows begin when the first rank's does, not with their own captures
    losses = {
        one["rank"]: one["budget"]["exposed_communication_ns"] for one in job(name).truth["ranks"]
    }
    assert row["recoverable_ns"] == losses[row["rank"]]
    assert row["recoverable_ns"] >= 0.95 * max(losses.values())


def test_alone_nobody_communicates(job: Callable[[str], Simulated]) -> None:
    names = told(job("single")).keys()
    assert not names & {"exposed-communication", "slow-collectives", "straggler"}


def test_pageable_copies(job: Callable[[str], Simulated]) -> None:
    row = told(job("single"))["pageable-copies"]
    (rank,) = job("single").truth["ranks"]
    pageable = [one for one in rank["copies"] if "Pageable" in (one["source"], one["target"])]
    copies = [one for one in pageable if one["bytes"] >= SMALL_BYTES * one["count"]]
    size = sum(one["bytes"] for one in copies)
    count = sum(one["count"] for one in copies)
    assert f"{size / 1e6:.3g} MB in {count} copies" in str(row["evidence"])
    # their time is that of the exposed copies
    assert row["recoverable_ns"] is None
    assert "pageable-copies" not in told(job("pinned"))


def test_copies_that_nothing_hides(job: Callable[[str], Simulated]) -> None:
    rows = told(job("single"))
    (rank,) = job("single").truth["ranks"]
    lost = sum(
        int(str(rows[name]["recoverable_ns"]))
        for name in ("exposed-h2d", "exposed-d2h", "exposed-d2d", "many-small-copies")
        if name in rows
    )
    # and the time in which the driver stages pageable memory, before they begin
    slack = 0.01 * rank["budget"]["window_ns"]
    assert abs(lost - rank["budget"]["copy_only_ns"]) <= slack


@pytest.mark.parametrize(("gap_ns", "idles"), [(1_200_000, True), (0, False)])
def test_the_data_loader_leaves_host_gaps(gap_ns: int, idles: bool, tmp_path: Path) -> None:
    made = simulate(
        TrainingJob(data_gap_ns=gap_ns, long_gap_ns=gap_ns, iterations=6, warmup=0, layers=8),
        tmp_path,
    )
    (truth,) = made.truth["ranks"]
    start = truth["budget"]["start_ns"]
    row = told(made, start).get("host-gap")
    assert (row is not None) == idles
    if row is None:
        return
    assert "inside range 'data_loading'" in str(row["evidence"])
    assert str(row["next_command"]).startswith("nsightpy gaps ")
    assert str(row["next_command"]).endswith(f" --from={start}")
    # at least what the loader took after the first iteration, and no more than the device idled
    assert 5 * gap_ns < int(str(row["recoverable_ns"])) <= truth["budget"]["idle_ns"]
