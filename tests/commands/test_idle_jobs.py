"""Idle time of simulated jobs, known to the nanosecond by walking through what they enqueued."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulator import PRESETS

import nsightpy

JOBS = ("small", "ranks_2", "pipeline_4", "one_report_2rank", "edges", "graph_nodes", "no_nvtx")


@pytest.mark.parametrize("name", JOBS)
def test_the_waits_of_streams_are_the_truth(name: str, tmp_path: Path) -> None:
    job = replace(PRESETS[name], graph_replays=2)
    paths, truth = job.write(tmp_path)
    rows = nsightpy.breakdown([str(path) for path in paths]).records()
    rows.sort(key=lambda row: (row["rank"] is None, row["rank"], row["device"]))
    ranks = truth["ranks"]
    assert isinstance(ranks, list)
    for row, rank in zip(rows, ranks, strict=True):
        assert {name: row[name] for name in rank["idle"]} == rank["idle"]
