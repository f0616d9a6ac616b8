"""ranks --by stage: stages and their bubbles against simulated jobs whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from simulator import TrainingJob
from simulator.emit import write_reports
from simulator.kineto import write_traces
from simulator.run import Run

import nsightpy
from nsightpy.analysis.ranks.stages import _chains
from tests.support.jobs import on_two_nodes

Interval = tuple[int, int]


def bubbles(run: Run) -> dict[int, int]:
    """By rank the ns in which it waited in an exchange while its GPU did nothing else."""
    came: dict[tuple[int, int], int] = {}
    for one in run.instances:
        if one.communicator.kind == "pipeline":
            for rank, start in one.starts.items():
                came[rank, start] = max(one.starts.values())
    found = {}
    for rank in run.ranks:
        waits = [
            (op.start, came[rank.index, op.start]) for op in rank.operations if op.stream == 33
        ]
        others = [(op.start, op.end) for op in rank.operations if op.stream != 33]
        found[rank.index] = sum(alone(wait, others) for wait in waits)
    return found


def alone(wait: Interval, others: list[Interval]) -> int:
    """The part of a wait in which nothing else ran."""
    left, at = 0, wait[0]
    for start, end in sorted(one for one in others if one[1] > wait[0] and one[0] < wait[1]):
        left += max(start - at, 0)
        at = max(at, end)
    return left + max(wait[1] - at, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", None, "torch"])
def test_bubbles_are_those_of_the_truth(tmp_path: Path, kind: str | None) -> None:
    """Two pipelines of two stages over two nodes whose clocks disagree and drift apart."""
    more: dict[str, Any] = {} if kind == "torch" else {"payload": kind}
    job = on_two_nodes(1, 2, 2, microbatches=4, drift_ppb=(0, 4_000), seed=3, **more)
    run = job.run()
    (write_traces if kind == "torch" else write_reports)(run, tmp_path)
    table = nsightpy.ranks(tmp_path, by="stage")
    truth = bubbles(run)
    rows = table.records()
    assert [(row["stage"], row["ranks"]) for row in rows] == [(0, "0-1"), (1, "2-3")]
    for row, ranks in zip(rows, ((0, 1), (2, 3)), strict=True):
        mean = sum(truth[rank] for rank in ranks) / 2
        # the clocks of two nodes agree to microseconds, in each of its exchanges
        assert row["bubble_ns"] == pytest.approx(mean, rel=0.02, abs=20_000)
        parts = ("compute", "bubble", "transfer", "other_communication", "copy_only", "idle")
        assert sum(int(row[f"{part}_ns"] or 0) for part in parts) == pytest.approx(
            row["window_ns"], abs=6
        )
        assert row["exchanges"] == 2 * 2 * 4 * job.iterations
    half = nsightpy.ranks(tmp_path, by="stage", iteration="1-2").records()
    assert 0 < half[0]["exchanges"] < rows[0]["exchanges"]
    assert half[0]["window_ns"] < rows[0]["window_ns"]


def test_experts_of_two_ranks_are_no_stages(tmp_path: Path) -> None:
    job = TrainingJob(
        name="experts", data=2, iterations=2, warmup=1, layers=1, buckets=1, expert_bytes=1 << 20
    )
    job.write(tmp_path)
    table = nsightpy.ranks(tmp_path, by="stage")
    assert not table.rows
    assert any(note.startswith("No pipeline") for note in table.notes)


def test_rings_and_branches_are_left_out() -> None:
    ring = {0: {1, 3}, 1: {0, 2}, 2: {1, 3}, 3: {2, 0}}
    chain = {7: {6}, 6: {7, 5}, 5: {6}}
    star = {10: {11, 12, 13}, 11: {10}, 12: {10}, 13: {10}}
    found = _chains({**ring, **chain, **star}, {5: 50, 6: 60, 7: 70})
    assert found.chains == ((5, 6, 7),)
    assert found.torn == {*ring, *star}
