"""Collectives of other libraries than NCCL: what the kernels of all ranks say by meeting."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.full_export import changed
from tests.support.reports import ROOT, rows_of

TRACES = ROOT / "sample_reports" / "torch_2rank"
EXPORTS = ROOT / "sample_reports" / "training_4rank"
KERNEL = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, int)"
SHORT = "cross_device_reduce_1stage"
# What tells a collective of NCCL from others in a trace's arguments.
OF_NCCL = ("Collective name", "Process Group Name", "Process Group Ranks", "Group size", "Seq")


def renamed_trace(original: Path, path: Path) -> None:
    """The trace with NCCL's kernels called otherwise, and without what only NCCL's have."""
    with gzip.open(original, "rt", encoding="utf-8") as file:
        trace: dict[str, Any] = json.load(file)
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel" and "nccl" in event["name"]:
            event["name"] = KERNEL
            event["args"] = {k: v for k, v in event["args"].items() if not k.startswith(OF_NCCL)}
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(trace, file)


def renamed_export(original: Path, path: Path) -> None:
    """The export with NCCL's kernels called otherwise, and without NCCL's ranges."""
    ranges = "SELECT id FROM StringIds WHERE value LIKE 'nccl%' AND value NOT LIKE '%Kernel%'"
    changed(
        original,
        path,
        [
            f"DELETE FROM NVTX_EVENTS WHERE text LIKE 'nccl%' OR textId IN ({ranges})",
            f"UPDATE StringIds SET value = '{KERNEL}' WHERE value LIKE 'ncclDevKernel%(%'",
            f"UPDATE StringIds SET value = '{SHORT}' WHERE value LIKE 'ncclDevKernel%'",
        ],
    )


@pytest.mark.parametrize(
    ("job", "pattern", "rename"),
    [(TRACES, "*.json.gz", renamed_trace), (EXPORTS, "*.sqlite", renamed_export)],
)
def test_other_names_change_no_clock_wait_or_straggler(
    job: Path, pattern: str, rename: Any, tmp_path: Path
) -> None:
    for original in job.glob(pattern):
        rename(original, tmp_path / original.name)
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
