"""ranks: waits and arrivals as they truly were, and a straggler where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from simulator import PRESETS, Export, TrainingJob

from nsightpy.commands.ranks.command import ranks
from nsightpy.errors import NsightpyError
from tests.support.jobs import Simulated, begin_late, change, simulate, split_by_process
from tests.support.reports import DDP, NSYS, needs_reports, rows_of

LAYOUTS = [{"data": 4}, {"tensor": 2, "data": 2}, {"tensor": 2}]
STEADY = {"drift_ppb": (0,), "gpu_error_ns": (0,)}


# start and end, ns
Span: TypeAlias = tuple[int, int]


def stragglers(job: Simulated) -> list[Any]:
    """The ranks that are called stragglers."""
    return [row["rank"] for row in ranks(job.folder).records() if row["straggler"]]


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("payload", ["json", None])
@pytest.mark.parametrize("slow", [1.03, 1.3])
def test_the_straggler_is_named(tmp_path: Path, slow: float, payload: str | None) -> None:
    job = replace(PRESETS["ranks_8"], straggler=6, straggler_slowdown=slow, payload=payload)
    assert stragglers(simulate(job, tmp_path)) == [6]


@pytest.mark.slow
def test_one_of_64_is_named(tmp_path: Path) -> None:
    assert stragglers(simulate(PRESETS["ranks_64"], tmp_path)) == [37]


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("slow", [1.07, 1.2])
def test_the_straggler_is_named_in_every_layout(
    tmp_path: Path, layout: dict[str, int], slow: float
) -> None:
    job = TrainingJob(iterations=10, layers=2, ranks_per_node=2, straggler_slowdown=slow, **layout)
    assert stragglers(simulate(replace(job, straggler=1), tmp_path)) == [1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nobody_is_named_where_nobody_is_slow(
    tmp_path: Path, layout: dict[str, int], seed: int
) -> None:
    job = TrainingJob(seed=100 + seed, iterations=6, layers=2, ranks_per_node=2, **layout)
    found = simulate(job, tmp_path)
    assert stragglers(found) == []
    assert any("No rank is late as a rule" in note for note in ranks(tmp_path).notes)


@pytest.mark.slow
def test_a_late_start_is_no_straggler(tmp_path: Path) -> None:
    job = replace(PRESETS["ranks_8"], straggler=None, start_skew_ns=(0, 0, 0, 900_000_000, 0))
    assert stragglers(simulate(job, tmp_path)) == []


@pytest.mark.slow
@pytest.mark.parametrize("slow", range(4))
def test_who_is_held_up_by_a_slow_pipeline_neighbour_is_not_blamed(
    tmp_path: Path, slow: int
) -> None:
    job = replace(PRESETS["pipeline_4"], straggler=slow, iterations=8)
    assert set(stragglers(simulate(job, tmp_path))) <= {slow}


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_many_repeated_reports_are_counted(tmp_path: Path) -> None:
    def again(paths: list[Path]) -> None:
        for number in range(6):
            (tmp_path / f"again{number}.sqlite").write_bytes(paths[0].read_bytes())

    simulate(PRESETS["small"], tmp_path, again)
    told = [note for note in ranks(tmp_path).notes if "repeat" in note]
    assert [note.split(" ", 1)[1] for note in told[:3]] == [
        f"repeats the capture of {tmp_path}/again0.sqlite"
    ] * 3
    assert told[3:] == ["3 more reports repeat the capture of an earlier one"]


@pytest.mark.slow
def test_captures_of_different_length(tmp_path: Path) -> None:
    job = simulate(
        PRESETS["ranks_8"], tmp_path, lambda paths: begin_late(paths, {2, 5}, 25_000_000)
    )
    assert stragglers(job) == [5]


@pytest.mark.slow
def test_scope(tmp_path: Path) -> None:
    simulate(PRESETS["ranks_8"], tmp_path)
    everything = ranks(tmp_path)
    some = ranks(tmp_path, rank="2-3")
    assert some.rows == everything.rows[2:4]
    with pytest.raises(NsightpyError, match="--device 9: no GPU work on it"):
        ranks(tmp_path, device="9")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_one_of_eight_that_computes_5_percent_slower_is_named(tmp_path: Path, seed: int) -> None:
    job = replace(PRESETS["ranks_8"], seed=512 + seed, straggler=(4 + seed) % 8)
    assert stragglers(simulate(replace(job, straggler_slowdown=1.05), tmp_path)) == [(4 + seed) % 8]


def _both_devices(path: Path, operation: str, spans: Sequence[tuple[Span, Span]]) -> list[Any]:
    """What `ranks` says of one process whose two devices take part in collectives; spans in ns."""
    export = Export(path)
    export.process()
    export.nvtx_domain("NCCL")
    told = {"NCCL communicator ID": 7, "Message size [bytes]": 4096}
    name = f"ncclDevKernel_{operation}_RING_LL(ncclDevKernelArgsStorage<4096>)"
    kind = f"nccl{operation.partition('_')[0]}"
    for place, (device, (start, end)) in enumerate(
        each for pair in spans for each in enumerate(pair)
    ):
        call = 200 * place
        export.nvtx_push_pop(call, call + 90, kind, domain=1, payload=told)
        launch = (call + 10, call + 20)
        export.kernel(10**9 + start, 10**9 + end, name, launch=launch, device=device, stream=21)
    return ranks(export.write()).records()


def test_who_may_leave_early_waits_no_longer_than_it_stays(tmp_path: Path) -> None:
    # the root is gone before the other comes, or held up until it reads
    spans = [((0, 10_000), (500_000, 512_000)), ((1_000_000, 1_600_000), (1_590_000, 1_602_000))]
    first, second = _both_devices(tmp_path / "a.sqlite", "Broadcast", spans)
    assert (first["wait_ns"], second["wait_ns"]) == (588_000, 0)
    assert (first["arrived_last_share"], second["arrived_last_share"]) == (0.0, 1.0)


def test_a_wait_is_latest_start_minus_own_start(tmp_path: Path) -> None:
    spans = [((0, 60_000), (50_000, 61_000)), ((100_000, 160_000), (92_000, 160_500))]
    first, second = _both_devices(tmp_path / "a.sqlite", "AllReduce_Sum_f32", spans)
    assert (first["wait_ns"], second["wait_ns"]) == (50_000, 8_000)
    assert first["arrived_last_share"] == second["arrived_last_share"] == 0.5


def test_lateness_that_comes_and_goes_is_no_straggling(tmp_path: Path) -> None:
    def spans(stretches: Sequence[tuple[int, int]]) -> list[tuple[Span, Span]]:
        """(device that is late, collectives in a row) one after the other."""
        late = [device for device, count in stretches for _ in range(count)]
        starts = [(n * 1_000_000, n * 1_000_000 + 50_000) for n in range(len(late))]
        ends = [start + 49_000 for _, start in starts]
        order = [
            (one, other) if device else (other, one)
            for device, (one, other) in zip(late, starts, strict=True)
        ]
        return [((a, end), (b, end)) for (a, b), end in zip(order, ends, strict=True)]

    waves = [(1, 40), (0, 15), (1, 25), (0, 10), (1, 30)]
    rows = _both_devices(tmp_path / "a.sqlite", "AllReduce_Sum_f32", spans(waves))
    assert [row["straggler"] for row in rows] == [False, False]
    steady = [(1, 3), (0, 1)] * 30
    rows = _both_devices(tmp_path / "b.sqlite", "AllReduce_Sum_f32", spans(steady))
    assert [row["straggler"] for row in rows] == [False, True]


@needs_reports
@pytest.mark.parametrize("split", [False, True])
def test_the_real_pair_has_late_arrivals_but_no_straggler(tmp_path: Path, split: bool) -> None:
    table = ranks(split_by_process(NSYS / DDP, tmp_path) if split else NSYS / DDP)
    assert table.column("offset_ns") == [0, 0]
    assert table.column("drift_ppm") == [None, None]
    assert table.column("alignment") == ["one session"] * 2
    assert table.column("straggler") == [False, False]
    # rank 0 communicates for 209 ms: 133 ms in a Broadcast and 28 ms in an AllReduce before rank 1
    # came, 8 ms in all others
    assert table.column("wait_ns") == [168_940_297, 1_919_368]
    assert any("Rank 1 came late 2 times and the others waited 160 ms" in n for n in table.notes)


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


@pytest.mark.parametrize("part", [("--nvtx", "forward"), ("--from", "560ms", "--to", "570ms")])
def test_a_part_of_the_job_is_seen_on_the_clock_of_the_whole(part: tuple[str, ...]) -> None:
    clock = ("offset_ns", "alignment", "instances", "residual_p50_ns", "residual_p95_ns")
    path = Path(__file__).parent.parent.parent / "sample_reports" / "training_4rank"
    whole = rows_of("ranks", path)
    some = rows_of("ranks", path, *part)
    assert [[row[name] for name in clock] for row in some] == [
        [row[name] for name in clock] for row in whole
    ]
    assert all(0 < a["wait_ns"] < b["wait_ns"] for a, b in zip(some, whole, strict=True))


def test_only_the_collectives_of_the_part_are_shown() -> None:
    path = Path(__file__).parent.parent.parent / "sample_reports" / "training_4rank"
    rows = rows_of("collectives", path, "--nvtx", "forward")
    assert [(row["group"], row["instances"]) for row in rows] == [("2-3", 64), ("0-1", 64)]


def test_nobody_straggles_where_only_the_first_collective_waits(tmp_path: Path) -> None:
    spans = [((number * 10**6, number * 10**6 + 500_000),) * 2 for number in range(1, 21)]
    spans[0] = ((1_300_000, 1_500_000), spans[0][1])
    rows = _both_devices(tmp_path / "a.sqlite", "AllReduce", spans)
    assert [(row["wait_ns"], row["straggler"]) for row in rows] == [(0, False), (300_000, False)]
