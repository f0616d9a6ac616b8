"""Exposed communication of simulated jobs: waiting for late ranks is what the truth says it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS

import nsightpy
from nsightpy.analysis.intervals import Spans, difference, spans_of, union


def exposed(path: Path) -> Spans:
    """When NCCL's kernels of a report's one device ran with nothing beside them."""
    report = nsightpy.open_report(path)
    kernels = report.frame("kernels")
    communicates = kernels.labels("name").where(lambda name: name.startswith("nccl"))
    others = spans_of(kernels.take(~communicates)) | spans_of(report.frame("memory_operations"))
    return difference(spans_of(kernels.take(communicates)), others)


def waits(truth: dict[str, Any], rank: int) -> Spans:
    """When a rank waited for others in collectives, in its report's time."""
    times = [
        (one["start_ns"][at], one["start_ns"][at] + one["wait_ns"][at])
        for one in truth["collectives"]
        for at, member in enumerate(one["ranks"])
        if member == rank
    ]
    begun, ended = np.asarray(times, dtype=np.int64).T
    return union(begun, ended)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranks_2", "ranks_8", "pipeline_4"])
def test_waiting_for_late_ranks_is_told_from_moving_data(name: str, tmp_path: Path) -> None:
    _, truth = PRESETS[name].write(tmp_path)
    rows = {row["rank"]: row for row in nsightpy.breakdown(tmp_path).records()}
    for rank in truth["ranks"]:
        row, alone = rows[rank["rank"]], exposed(tmp_path / rank["report"])
        assert row["exposed_communication_ns"] == alone.total
        wanted = (alone & waits(truth, rank["rank"])).total
        assert row["exposed_wait_ns"] == pytest.approx(wanted, rel=0.01, abs=20_000)
        assert row["exposed_wait_ns"] + row["exposed_transfer_ns"] == alone.total
