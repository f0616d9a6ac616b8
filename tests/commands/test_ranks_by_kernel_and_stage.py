"""ranks --by kernel and --by stage: the slowest rank of equal work, the bubbles of pipelines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from simulator import PRESETS, TrainingJob
from simulator.emit import write_reports
from simulator.kineto import write_traces
from simulator.run import Run

import nsightpy
from nsightpy.analysis.ranks.exchanges import stages_of_chains
from nsightpy.analysis.ranks.kernels import imbalance_of
from nsightpy.commands.ranks.command import ranks
from tests.support.jobs import on_two_nodes, simulate


def test_totals_are_the_true_ones_and_the_straggler_is_the_slowest(tmp_path: Path) -> None:
    job = simulate(PRESETS["ranks_8"], tmp_path)
    rows = ranks(tmp_path, by="kernel").records()
    truth = job.rank_truth("kernels")
    for row in rows:
        totals = [k["total_ns"] for one in truth for k in one if k["name"] == row["name"]]
        assert row["total_max_ns"] == max(totals)
        assert row["max_over_mean"] == pytest.approx(max(totals) / (sum(totals) / 8))
        assert row["ranks"] == 8
    heavy = rows[:5]
    assert {row["slowest_rank"] for row in heavy} == {5}
    assert all(1.05 < float(row["max_over_mean"] or 0) < 1.12 for row in heavy)
    assert not any("nccl" in str(row["name"]) for row in rows)


def test_pipeline_stages_are_compared_apart(tmp_path: Path) -> None:
    simulate(replace(PRESETS["pipeline_4"], straggler=3), tmp_path)
    table = ranks(tmp_path, by="kernel")
    assert set(table.column("compared")) == {"0-1", "2-3"}
    assert any("2 kinds of work" in note for note in table.notes)
    last = [row for row in table.records() if row["compared"] == "2-3"]
    assert {row["slowest_rank"] for row in last[:5]} == {3}


def test_kinds_of_work() -> None:
    first = {"gemm": (100, 1_000), "norm": (100, 100)}
    half = {"gemm": (50, 600), "norm": (50, 50)}
    other = {"gemm": (100, 1_000), "softmax": (100, 100)}
    kernels, kinds = imbalance_of([first, other, half, first])
    assert kinds == [(0, 2, 3), (1,)]
    gemm = next(row for row in kernels if row.name == "gemm")
    assert gemm.slowest == 2
    assert gemm.total_max_ns == 1_200
    assert (gemm.instances_min, gemm.instances_max) == (50, 100)
    # as much of everything is the same work, whatever a few small kernels do
    small = {f"k{n}": (20, 20) for n in range(10)}
    uneven = small | {f"k{n}": (26, 26) for n in range(4)}
    slow = imbalance_of([{"gemm": (900, 900), **small}, {"gemm": (900, 1350), **uneven}])
    assert slow[1] == [(0, 1)]
    assert imbalance_of([]) == ([], [])
    assert imbalance_of([first]) == ([], [(0,)])


def test_more_layers_are_other_work_not_more_iterations() -> None:
    layer, step = {"gemm": 300, "norm": 300, "gelu": 300}, {"adam": 20, "loss": 20}

    def profile(layers: float, iterations: float) -> dict[str, tuple[int, int]]:
        counts = {name: round(n * layers * iterations) for name, n in layer.items()}
        counts |= {name: round(n * iterations) for name, n in step.items()}
        return {name: (count, 1_000 * count) for name, count in counts.items()}

    of_all = [profile(1, 1), profile(1.5, 1), profile(1, 0.72), profile(1.5, 1)]
    kernels, kinds = imbalance_of(of_all)
    assert kinds == [(0, 2), (1, 3)]
    assert all(row.max_over_mean == pytest.approx(1.0, abs=0.02) for row in kernels)


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
    for row, first in zip(rows, (0, 2), strict=True):
        mean = (truth[first] + truth[first + 1]) / 2
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
    found = stages_of_chains({**ring, **chain, **star}, {5: 50, 6: 60, 7: 70})
    assert found == {5: 0, 6: 1, 7: 2}
