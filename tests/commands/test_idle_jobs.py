"""Idle time of simulated jobs, known to the nanosecond by walking through what they enqueued."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulator import PRESETS, TrainingJob

from nsightpy.commands.breakdown import breakdown

CAUSES = ("launch_starved_ns", "blocking_ns", "dependency_stalled_ns", "unattributed_ns")
WAITS = ("host_wait_ns", "kernel_wait_ns", "other_wait_ns")
JOBS = ("small", "ranks_2", "pipeline_4", "one_report_2rank", "edges", "graph_nodes", "no_nvtx")


@pytest.mark.parametrize("name", JOBS)
def test_every_figure_is_the_truth(name: str, tmp_path: Path) -> None:
    job = replace(PRESETS[name], graph_replays=2)
    paths, truth = job.write(tmp_path)
    table = breakdown([str(path) for path in paths])
    rows = {row["rank"]: row for row in table.records()}
    ranks = truth["ranks"]
    assert isinstance(ranks, list)
    by_rank = sorted(
        rows.values(), key=lambda row: (row["rank"] is None, row["rank"], row["device"])
    )
    for row, rank in zip(by_rank, ranks, strict=True):
        assert {name: row[name] for name in (*CAUSES, *WAITS)} == rank["idle"]
    beyond = any(sum(r["idle"][w] for w in WAITS) > r["budget"]["window_ns"] for r in ranks)
    assert beyond == any("are added over the streams" in note for note in table.notes)


@pytest.mark.parametrize("name", JOBS)
def test_the_causes_add_up_to_the_time_without_compute(name: str, tmp_path: Path) -> None:
    paths, _ = PRESETS[name].write(tmp_path)
    for row in breakdown([str(path) for path in paths]).records():
        causes = [row[cause] for cause in CAUSES]
        assert sum(causes) == row["window_ns"] - row["compute_ns"]  # type: ignore[operator, arg-type]


@pytest.mark.parametrize("generation", ["mid", "old"])
def test_without_event_ids_only_what_streams_tell_is_told(generation: str, tmp_path: Path) -> None:
    job = TrainingJob(
        tensor=2, iterations=2, warmup=0, layers=1, generation=generation, payload=None
    )
    paths, truth = job.write(tmp_path)
    table = breakdown([str(path) for path in paths])
    for row, rank in zip(table.records(), truth["ranks"], strict=True):  # type: ignore[call-overload]
        told = {name: row[name] for name in ("launch_starved_ns", *WAITS)}
        assert told == {name: rank["idle"][name] for name in told}
        assert row["blocking_ns"] is row["dependency_stalled_ns"] is None
        absent = row["window_ns"] - row["compute_ns"]
        assert row["unattributed_ns"] == absent - row["launch_starved_ns"]
    assert any("eventSyncId" in note for note in table.notes)


def test_opaque_graphs_abstain_with_the_reason(tmp_path: Path) -> None:
    job = replace(PRESETS["single_process"], graph_replays=2)
    (path,), _ = job.write(tmp_path)
    table = breakdown(str(path))
    (row,) = table.records()
    assert [row[name] for name in (*CAUSES, *WAITS)] == [None] * 7
    assert any("--cuda-graph-trace=node" in note for note in table.notes)


def test_a_window_before_the_graphs_is_attributed(tmp_path: Path) -> None:
    job = replace(PRESETS["single_process"], graph_replays=2)
    (path,), truth = job.write(tmp_path)
    second = truth["ranks"][0]["iterations"][1]  # type: ignore[index]
    table = breakdown(str(path), from_time=second["start_ns"], to_time=second["end_ns"])
    (row,) = table.records()
    assert sum(row[name] for name in CAUSES) == row["window_ns"] - row["compute_ns"]  # type: ignore[misc]
    assert row["unattributed_ns"] == 0
