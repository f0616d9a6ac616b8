"""ranks: waits and arrivals as they truly were, and a straggler where there is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jobs import Simulated, begin_late, change, simulate, split_by_process
from reports import DDP, NSYS, ask, needs_reports
from simulator import PRESETS, TrainingJob

from nsightpy.verbs.ranks import ranks

LAYOUTS = [{"data": 4}, {"tensor": 2, "data": 2}, {"tensor": 2}]
STEADY = {"drift_ppb": (0,), "gpu_error_ns": (0,)}
COLUMNS = (
    "rank,report,host,device,rank_source,offset_ns,drift_ppm,alignment,instances,residual_p05_ns,"
    "residual_p50_ns,residual_p95_ns,compute_ns,wait_ns,arrived_last_share,straggler"
)


def stragglers(job: Simulated) -> list[Any]:
    """The ranks that are called stragglers."""
    return [row["rank"] for row in ranks(job.folder).records() if row["straggler"]]


@pytest.mark.parametrize("name", ["ranks_8", "training_4rank"])
def test_waits_and_arrivals_are_the_true_ones(tmp_path: Path, name: str) -> None:
    job = simulate(PRESETS[name], tmp_path)
    table = ranks(tmp_path)
    assert table.column("rank") == job.rank_truth("rank")
    assert table.column("wait_ns") == pytest.approx(job.rank_truth("wait_ns"), rel=0.02)
    shares = [
        last / n
        for last, n in zip(
            job.rank_truth("arrived_last"), job.rank_truth("collectives"), strict=True
        )
    ]
    assert table.column("arrived_last_share") == pytest.approx(shares, abs=0.04)
    compute = [budget["compute_ns"] for budget in job.rank_truth("budget")]
    assert table.column("compute_ns") == compute
    assert stragglers(job) == [job.truth["straggler"]]


@pytest.mark.parametrize("payload", ["json", None])
@pytest.mark.parametrize("slow", [1.03, 1.3])
def test_the_straggler_is_named(tmp_path: Path, slow: float, payload: str | None) -> None:
    job = replace(PRESETS["ranks_8"], straggler=6, straggler_slowdown=slow, payload=payload)
    assert stragglers(simulate(job, tmp_path)) == [6]


def test_one_of_64_is_named(tmp_path: Path) -> None:
    assert stragglers(simulate(PRESETS["ranks_64"], tmp_path)) == [37]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("slow", [1.07, 1.2])
def test_the_straggler_is_named_in_every_layout(
    tmp_path: Path, layout: dict[str, int], slow: float
) -> None:
    job = TrainingJob(iterations=10, layers=2, ranks_per_node=2, straggler_slowdown=slow, **layout)
    assert stragglers(simulate(replace(job, straggler=1), tmp_path)) == [1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nobody_is_named_where_nobody_is_slow(
    tmp_path: Path, layout: dict[str, int], seed: int
) -> None:
    job = TrainingJob(seed=100 + seed, iterations=6, layers=2, ranks_per_node=2, **layout)
    found = simulate(job, tmp_path)
    assert stragglers(found) == []
    assert any("No rank is a straggler" in note for note in ranks(tmp_path).notes)


def test_a_late_start_is_no_straggler(tmp_path: Path) -> None:
    job = replace(PRESETS["ranks_8"], straggler=None, start_skew_ns=(0, 0, 0, 900_000_000, 0))
    assert stragglers(simulate(job, tmp_path)) == []


@pytest.mark.parametrize("slow", range(4))
def test_who_is_held_up_by_a_slow_pipeline_neighbour_is_not_blamed(
    tmp_path: Path, slow: int
) -> None:
    job = replace(PRESETS["pipeline_4"], straggler=slow, iterations=8)
    assert set(stragglers(simulate(job, tmp_path))) <= {slow}


def test_wrong_clocks_make_no_straggler(tmp_path: Path) -> None:
    job = replace(PRESETS["ranks_8"], straggler=None, utc_error_ns=(0, 40_000_000))
    assert stragglers(simulate(job, tmp_path)) == []


def test_slurm_ranks_that_are_all_zero_and_two_nodes_apart(tmp_path: Path) -> None:
    job = replace(PRESETS["ranks_2"], ranks_per_node=1, utc_error_ns=(0, 3_700_000), **STEADY)
    simulate(replace(job, evidence=("slurm_zero",), payload=None), tmp_path)
    table = ranks(tmp_path)
    assert table.column("rank") == [0, 1]
    assert table.column("offset_ns") == pytest.approx([0, 3_700_000], abs=1_000)
    assert table.column("alignment") == ["collectives"] * 2


@pytest.mark.parametrize("payload", ["json", None])
def test_one_report_of_many_ranks(tmp_path: Path, payload: str | None) -> None:
    job = replace(PRESETS["ranks_8"], report_per="node", payload=payload, evidence=("mpi_table",))
    found = simulate(job, tmp_path)
    table = ranks(tmp_path)
    assert len(set(table.column("report"))) == 2
    assert table.column("rank") == list(range(8))
    assert table.column("wait_ns") == pytest.approx(found.rank_truth("wait_ns"), rel=0.02)
    assert stragglers(found) == [5]


def test_ranks_that_were_not_captured_and_repeated_reports_are_told_of(tmp_path: Path) -> None:
    def lost(paths: list[Path]) -> None:
        paths[6].unlink()
        (tmp_path / "again.sqlite").write_bytes(paths[0].read_bytes())

    simulate(PRESETS["ranks_8"], tmp_path, lost)
    table = ranks(tmp_path)
    assert table.column("rank") == [0, 1, 2, 3, 4, 5, 7]
    assert "ranks without a report here: 6" in table.notes
    assert sum("repeats the capture" in note for note in table.notes) == 1
    assert [row["rank"] for row in table.records() if row["straggler"]] == [5]


def test_captures_of_different_length(tmp_path: Path) -> None:
    job = simulate(
        PRESETS["ranks_8"], tmp_path, lambda paths: begin_late(paths, {2, 5}, 25_000_000)
    )
    assert stragglers(job) == [5]


def test_scope_and_workers(tmp_path: Path) -> None:
    simulate(PRESETS["ranks_8"], tmp_path)
    everything = ranks(tmp_path, jobs=1)
    assert ranks(tmp_path, jobs=2) == everything
    some = ranks(tmp_path, rank="2-3")
    assert some.rows == everything.rows[2:4]
    assert not ranks(tmp_path, device="9").rows


def test_nothing_to_compare(tmp_path: Path) -> None:
    simulate(PRESETS["single_process"], tmp_path)
    (row,) = ranks(tmp_path).records()
    assert row["alignment"] == "one session"
    assert row["offset_ns"] == 0
    assert row["wait_ns"] is row["straggler"] is row["arrived_last_share"] is None
    assert row["residual_p50_ns"] is None


def test_no_collectives_on_two_ranks(tmp_path: Path) -> None:
    def no_nccl(paths: list[Path]) -> None:
        for path in paths:
            names = "SELECT id FROM StringIds WHERE value LIKE 'nccl%'"
            change(path, f"DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName IN ({names})")

    simulate(PRESETS["ranks_2"], tmp_path, no_nccl)
    table = ranks(tmp_path)
    assert table.column("straggler") == [None, None]
    assert any("who waits for whom is not known" in note for note in table.notes)


def test_the_command_line(tmp_path: Path) -> None:
    simulate(PRESETS["ranks_2"], tmp_path)
    answer = ask("ranks", tmp_path, "--format", "csv")
    assert answer.text.splitlines()[0] == COLUMNS
    assert ask("ranks", tmp_path, "--format", "json").json["schema"] == "nsightpy.ranks/1"
    assert "collectives" in ask("ranks", tmp_path).text


@needs_reports
@pytest.mark.parametrize("split", [False, True])
def test_the_real_pair(tmp_path: Path, split: bool) -> None:
    table = ranks(split_by_process(NSYS / DDP, tmp_path) if split else NSYS / DDP)
    assert table.column("rank") == [0, 1]
    assert table.column("device") == [0, 1]
    assert table.column("instances") == [119, 119]
    waits, shares = table.column("wait_ns"), table.column("arrived_last_share")
    assert all(isinstance(one, int) and one > 0 for one in waits)
    assert sum(float(one or 0) for one in shares) == pytest.approx(1)


@needs_reports
def test_real_point_to_point_is_not_aligned_by_it() -> None:
    table = ranks(NSYS / "mfu_2gpu_before_h100_2026.2.sqlite")
    assert table.column("alignment") == ["one session"] * 2
    assert table.column("offset_ns") == [0, 0]
