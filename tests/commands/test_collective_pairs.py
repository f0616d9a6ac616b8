"""What is sent to whom, and collectives of other libraries than NCCL."""

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
    with nsightpy.open(tmp_path) as job:
        events = job.events("collectives")
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in events[events["group_size"] == 4].itertuples():
        first = 4 * (row.rank // 4)
        for target, size in (message.split(":") for message in row.sent.split()):
            found[row.rank, first + int(target)].append(int(size))
    shown = {pair: (len(sizes), sum(sizes), max(sizes)) for pair, sizes in found.items()}
    assert shown == truth(run)


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
