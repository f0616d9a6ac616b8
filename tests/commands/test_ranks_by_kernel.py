"""ranks --by kernel: the slowest rank of every kernel, among ranks that do the same work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from simulator import PRESETS

from nsightpy.analysis.ranks.kernels import imbalance_of
from nsightpy.commands.ranks.command import ranks
from tests.support.jobs import simulate


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
    found = imbalance_of([first, other, half, first])
    assert found.kinds == ((0, 2, 3), (1,))
    assert found.amounts[2] == 0.5
    gemm = next(row for row in found.kernels if row.name == "gemm")
    assert gemm.slowest == 2
    assert gemm.total_max_ns == 1_200
    assert (gemm.instances_min, gemm.instances_max) == (50, 100)
    # as much of everything is the same work, whatever a few small kernels do
    small = {f"k{n}": (20, 20) for n in range(10)}
    uneven = small | {f"k{n}": (26, 26) for n in range(4)}
    slow = imbalance_of([{"gemm": (900, 900), **small}, {"gemm": (900, 1350), **uneven}])
    assert slow.kinds == ((0, 1),)
    assert imbalance_of([]).kernels == ()
    assert imbalance_of([first]).kernels == ()


def test_more_layers_are_other_work_not_more_iterations() -> None:
    layer, step = {"gemm": 300, "norm": 300, "gelu": 300}, {"adam": 20, "loss": 20}

    def profile(layers: float, iterations: float) -> dict[str, tuple[int, int]]:
        counts = {name: round(n * layers * iterations) for name, n in layer.items()}
        counts |= {name: round(n * iterations) for name, n in step.items()}
        return {name: (count, 1_000 * count) for name, count in counts.items()}

    found = imbalance_of([profile(1, 1), profile(1.5, 1), profile(1, 0.72), profile(1.5, 1)])
    assert found.kinds == ((0, 2), (1, 3))
    assert all(row.max_over_mean == pytest.approx(1.0, abs=0.02) for row in found.kernels)
