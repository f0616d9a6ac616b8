"""Findings on whole simulated jobs, against what the simulator knows, to the nanosecond."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from simulator import PRESETS

from nsightpy.analysis.memory.copies import SMALL_BYTES
from nsightpy.commands.findings.command import findings
from tests.support.jobs import simulate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["ranks_8", "pipeline_4"])
def test_exposed_communication(name: str, tmp_path: Path) -> None:
    job = simulate(PRESETS[name], tmp_path)
    rows = {str(row["id"]): row for row in findings(tmp_path, from_time=0).records()}
    row = rows["exposed-communication"]
    # the others' windows begin when the first rank's does, not with their own captures
    losses = {one["rank"]: one["budget"]["exposed_communication_ns"] for one in job.truth["ranks"]}
    assert row["recoverable_ns"] == losses[row["rank"]]
    assert row["recoverable_ns"] >= 0.95 * max(losses.values())


@pytest.mark.parametrize("pageable", [True, False])
def test_copies_that_nothing_hides(pageable: bool, tmp_path: Path) -> None:
    single = replace(PRESETS["single_process"], graph_mode=None, graph_replays=0)
    job = simulate(replace(single, pageable=pageable), tmp_path)
    rows = {str(row["id"]): row for row in findings(tmp_path, from_time=0).records()}
    (rank,) = job.truth["ranks"]
    assert not rows.keys() & {"exposed-communication", "slow-collectives", "straggler"}
    assert ("pageable-copies" in rows) == pageable
    if pageable:
        names = ("exposed-h2d", "exposed-d2h", "exposed-d2d", "many-small-copies")
        lost = sum(int(str(rows[name]["recoverable_ns"])) for name in names if name in rows)
        # and the time in which the driver stages pageable memory, before they begin
        slack = 0.01 * rank["budget"]["window_ns"]
        assert abs(lost - rank["budget"]["copy_only_ns"]) <= slack
        copies = [
            copy
            for copy in rank["copies"]
            if "Pageable" in (copy["source"], copy["target"])
            and copy["bytes"] >= SMALL_BYTES * copy["count"]
        ]
        size, count = (sum(copy[of] for copy in copies) for of in ("bytes", "count"))
        told = rows["pageable-copies"]
        assert f"{size / 1e6:.3g} MB in {count} copies" in str(told["evidence"])
        # their time is that of the exposed copies
        assert told["recoverable_ns"] is None
