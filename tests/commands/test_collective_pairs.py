"""Who sends how much to whom, and collectives of other libraries than NCCL."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from simulator import TrainingJob
from simulator.emit import write_reports
from simulator.kineto import write_traces
from simulator.run import Run

import nsightpy
from tests.support.full_export import changed
from tests.support.reports import rows_of
from tests.support.samples import TRACES, TRAINING
from tests.support.trace_events import changed_trace

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
    table = nsightpy.collectives(TRAINING, by="pair")
    assert not table.rows
    assert any("--include-json true" in note for note in table.notes)


KERNEL = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, int)"
SHORT = "cross_device_reduce_1stage"
# What tells a collective of NCCL from others in a trace's arguments.
OF_NCCL = ("Collective name", "Process Group Name", "Process Group Ranks", "Group size", "Seq")


def renamed_trace(original: Path, folder: Path) -> None:
    """The trace with NCCL's kernels called otherwise, and without what only NCCL's have."""

    def rename(trace: dict[str, Any]) -> None:
        for one in trace["traceEvents"]:
            if one.get("cat") == "kernel" and "nccl" in one["name"]:
                one["name"] = KERNEL
                one["args"] = {k: v for k, v in one["args"].items() if not k.startswith(OF_NCCL)}

    changed_trace(original, folder / original.stem, rename)


def renamed_export(original: Path, folder: Path) -> None:
    """The export with NCCL's kernels called otherwise, and without NCCL's ranges."""
    ranges = "SELECT id FROM StringIds WHERE value LIKE 'nccl%' AND value NOT LIKE '%Kernel%'"
    changed(
        original,
        folder / original.name,
        [
            f"DELETE FROM NVTX_EVENTS WHERE text LIKE 'nccl%' OR textId IN ({ranges})",
            f"UPDATE StringIds SET value = '{KERNEL}' WHERE value LIKE 'ncclDevKernel%(%'",
            f"UPDATE StringIds SET value = '{SHORT}' WHERE value LIKE 'ncclDevKernel%'",
        ],
    )


@pytest.mark.parametrize(
    ("job", "pattern", "rename"),
    [(TRACES, "*.json.gz", renamed_trace), (TRAINING, "*.sqlite", renamed_export)],
)
def test_other_names_change_nothing(job: Path, pattern: str, rename: Any, tmp_path: Path) -> None:
    for original in job.glob(pattern):
        rename(original, tmp_path)
    of_nccl, of_others = rows_of("ranks", job), rows_of("ranks", tmp_path)
    assert len(of_nccl) == len(of_others) > 1
    for shown, wanted in zip(of_others, of_nccl, strict=True):
        for name in ("rank", "wait_ns", "straggler", "instances", "arrived_last_share"):
            assert shown[name] == wanted[name], name
        assert shown["offset_ns"] == pytest.approx(wanted["offset_ns"], abs=1)
    collectives = rows_of("collectives", tmp_path)
    assert {row["operation"] for row in collectives} == {"AllReduce"}
    assert {row["bytes"] for row in collectives} == {None}
    groups = {row["group"] for row in rows_of("collectives", job)}
    assert {row["group"] for row in collectives} == groups
