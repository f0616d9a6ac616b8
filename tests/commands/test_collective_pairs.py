"""collectives --by pair: what each rank sends to each other one, against simulated experts."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from simulator import TrainingJob
from simulator.emit import write_reports
from simulator.kineto import write_traces
from simulator.run import Run

import nsightpy
from tests.support.reports import ROOT

# Experts in the groups of stage 0 (ranks 0-3) and 1 (4-7): two nodes, a pipeline between them.
JOB = TrainingJob(
    name="experts",
    seed=5,
    data=4,
    pipeline=2,
    ranks_per_node=4,
    iterations=2,
    warmup=1,
    layers=1,
    buckets=1,
    expert_bytes=1 << 20,
)


@pytest.fixture(scope="module")
def run() -> Run:
    return JOB.run()


def truth(run: Run) -> dict[tuple[int, int], tuple[int, int, int]]:
    """All-to-alls by sender and receiver: how many, their bytes, the most in one."""
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for rank in run.ranks:
        for group, sizes in rank.sent.values():
            for target, size in zip(group.ranks, sizes, strict=True):
                found[rank.index, target].append(size)
    return {pair: (len(sizes), sum(sizes), max(sizes)) for pair, sizes in found.items()}


@pytest.mark.parametrize("kind", ["nsys", "torch"])
def test_every_pair_has_the_bytes_that_were_sent(run: Run, tmp_path: Path, kind: str) -> None:
    (write_reports if kind == "nsys" else write_traces)(run, tmp_path)
    table = nsightpy.collectives(tmp_path, by="pair")
    rows = table.records()
    groups = {"0-3", "4-7"}
    experts = [row for row in rows if row["group"] in groups]
    figures = ("instances", "bytes", "largest_bytes")
    shown = {
        (row["source_rank"], row["target_rank"]): tuple(row[name] for name in figures)
        for row in experts
    }
    assert shown == truth(run)
    # neighbours hand each other activations and gradients, one micro-batch an iteration
    stages = [row for row in rows if row["group"] not in groups]
    neighbours = {(row["source_rank"], row["target_rank"]) for row in stages}
    assert neighbours == {(a, b) for one in range(4) for a, b in ((one, one + 4), (one + 4, one))}
    assert {row["bytes"] for row in stages} == {2 * JOB.pipeline_bytes}
    assert [row["bytes"] for row in rows] == sorted((r["bytes"] for r in rows), reverse=True)
    for group in groups:
        mine = [float(row["over_mean"] or 0) for row in experts if row["group"] == group]
        assert sum(mine) / len(mine) == pytest.approx(1.0, abs=0.001)
    # rank 1 of each group has the popular experts
    assert any("in 0-3: rank 1 receives" in note for note in table.notes)
    assert any("in 4-7: rank 5 receives" in note for note in table.notes)


def test_receivers_without_a_report_go_by_their_place(run: Run, tmp_path: Path) -> None:
    write_reports(run, tmp_path)
    (tmp_path / "experts_rank3.sqlite").unlink()
    table = nsightpy.collectives(tmp_path, by="pair", rank="0")
    targets = {row["target_rank"] for row in table.records() if row["group"] == "0-2,?"}
    assert targets == {0, 1, 2, "?3"}
    assert any(note.startswith("?3 stands") for note in table.notes)


def test_what_records_sizes_is_named_where_there_are_none() -> None:
    table = nsightpy.collectives(ROOT / "sample_reports" / "training_4rank", by="pair")
    assert not table.rows
    assert any("--include-json true" in note for note in table.notes)
