"""breakdown and --bins: parts that add up, true waits, shares that are exact, one clock."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS, Export

import nsightpy
from nsightpy.analysis.binned import edges_of, sample_means
from nsightpy.analysis.intervals import Spans, spans_of, union
from nsightpy.commands.breakdown.command import CAUSES
from nsightpy.render.plots.breakdown_plot import utilization_figure
from nsightpy.results import Table, Value, number
from tests.support.reports import ask
from tests.support.samples import SAMPLES, TRAINING


def caused(table: Table) -> dict[str, int]:
    """Idle time by cause over all devices, ns."""
    records = table.records()
    sums = {cause.name: sum(int(number(row[cause.name])) for row in records) for cause in CAUSES}
    return {name: total for name, total in sums.items() if total}


@pytest.mark.slow
def test_breakdown_and_gaps_say_the_same() -> None:
    by_cause = nsightpy.gaps(TRAINING, by="cause")
    said = {str(row["cause"]): row["total_ns"] for row in by_cause.records()}
    assert {f"{cause.replace('-', '_')}_ns": total for cause, total in said.items()} == caused(
        nsightpy.breakdown(TRAINING)
    )
    places = nsightpy.gaps(TRAINING, by="cause,place,stream,before,call,range")
    assert sum(map(number, places.column("total_ns"))) == sum(said.values())
    assert len({row[:6] for row in places.rows}) == len(places)


def test_a_report_alone_does_not_know_who_waited() -> None:
    (alone,) = nsightpy.breakdown(sorted(TRAINING.glob("*.sqlite"))[0]).records()
    assert alone["exposed_wait_ns"] is alone["exposed_transfer_ns"] is None


@pytest.mark.parametrize("more", [{}, {"iteration": "steady"}, {"nvtx": "forward"}])
def test_parts_add_up_in_windows_with_holes_too(more: dict[str, Any]) -> None:
    for row in nsightpy.breakdown(TRAINING, **more).records():
        assert sum(number(row[cause.name]) for cause in CAUSES) == row["idle_ns"]
        parts = row["exposed_wait_ns"], row["exposed_transfer_ns"]
        assert sum(map(number, parts)) == row["exposed_communication_ns"]


def test_a_rank_alone_waited_as_long_as_among_all() -> None:
    every = nsightpy.breakdown(TRAINING).records()
    assert [nsightpy.breakdown(TRAINING, rank=rank).records()[0] for rank in range(4)] == every


def exposed(path: Path) -> Spans:
    """When NCCL's kernels of a report's one device ran with nothing beside them."""
    report = nsightpy.open_report(path)
    kernels = report.frame("kernels")
    communicates = kernels.labels("name").where(lambda name: name.startswith("nccl"))
    others = spans_of(kernels.take(~communicates)) | spans_of(report.frame("memory_operations"))
    return spans_of(kernels.take(communicates)) - others


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


# Start, end and launch of kernels of one stream; their waits for the host, for kernels, for others.
Kernel = tuple[int, int, tuple[Any, ...] | None]
WAITS: dict[str, tuple[Sequence[Kernel], list[int]]] = {
    "launched late": ([(100, 200, (50, 60)), (300, 400, (260, 270))], [100, 0, 0]),
    "early": ([(100, 200, (50, 60)), (210, 280, (61, 70)), (290, 400, (71, 80))], [0, 20, 0]),
    "long after": ([(100, 200, (50, 60)), (40_200, 40_300, (70, 80))], [0, 0, 40_000]),
    # the second ends inside the first: HTA would see a gap from 120 on
    "inside": ([(0, 200, (-50, -40)), (110, 120, (-30, -20)), (250, 300, (210, 220))], [50, 0, 0]),
    "not launched": ([(100, 200, (50, 60)), (230, 400, None)], [0, 30, 0]),
    "unusual": ([(100, 200, (50, 60)), (300, 400, (260, 270, 1000, "hipRun_v1"))], [100, 0, 0]),
}


def waits_of_streams(path: Path, kernels: Sequence[Kernel], **options: Any) -> list[Value]:
    """The waits before kernels; another process has a call of the same number as the second."""
    export = Export(path / "report.sqlite")
    first, second = export.process(1000), export.process(2000)
    for place, (start, end, launch) in enumerate(kernels, 1):
        call: dict[str, Any] = {"launch": launch, "correlation": place if launch else 77}
        export.kernel(start, end, f"k{place}", process=first, **call)
    export.api(5, 6, "cudaLaunchKernel_v7000", process=second, correlation=2)
    (row,) = nsightpy.breakdown(str(export.write()), **options).records()
    return [row[name] for name in ("host_wait_ns", "kernel_wait_ns", "other_wait_ns")]


@pytest.mark.parametrize("name", WAITS)
def test_gaps_of_a_stream(name: str, tmp_path: Path) -> None:
    kernels, expected = WAITS[name]
    assert waits_of_streams(tmp_path, kernels) == expected


def test_a_window_clips_them(tmp_path: Path) -> None:
    kernels, _ = WAITS["launched late"]
    assert waits_of_streams(tmp_path, kernels, from_time=240, to_time=280) == [40, 0, 0]


@pytest.mark.parametrize(
    ("low", "high", "bins"), [(-(2**61), 2**61, 1_000), (0, 7, 3), (30, 40, 9), (5, 8, 9)]
)
def test_stretches_are_equal_and_cover_the_window(low: int, high: int, bins: int) -> None:
    edges = edges_of(low, high, bins)
    assert (edges[0], edges[-1], len(edges)) == (low, high, min(bins, high - low) + 1)
    assert np.ptp(np.diff(edges)) <= 1


def test_samples_speak_for_the_time_before_them_unless_some_are_missing() -> None:
    times = np.asarray([100, 200, 300, 400, 900, 1000])
    values = np.asarray([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    edges = np.asarray([0, 100, 150, 400, 600, 700, 1000])
    found = sample_means(times, values, edges)
    # from 400 to 700 nothing was sampled: the sample at 900 speaks for two usual intervals
    wanted = [1.0, 2.0, (50 * 2 + 100 * 3 + 100 * 4) / 250, np.nan, np.nan, (200 * 5 + 600) / 300]
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("name", ["training_4rank", "single_process.sqlite", "torch_2rank"])
def test_the_shares_add_up_to_the_budget(name: str) -> None:
    """Busy time of all stretches together is that of breakdown, which adds nothing up."""
    table = nsightpy.breakdown(str(SAMPLES / name), bins=37).to_pandas()
    budgets = nsightpy.breakdown(str(SAMPLES / name)).to_pandas()
    for budget in budgets.to_dict("records"):
        mine = table[(table["rank"] == budget["rank"]) & (table["device"] == budget["device"])]
        mine = mine if len(mine) else table
        for part in ("busy", "compute", "communication", "memory"):
            spent = (mine[f"{part}_share"] * mine["duration_ns"]).sum()
            # clocks drift, and shares of the last stretch are of its captured part
            assert spent == pytest.approx(budget[f"{part}_ns"], rel=1e-3, abs=60), (name, part)


def test_sampled_metrics_stand_beside_the_shares(tmp_path: Path) -> None:
    """Device 0 computes in [1000, 2000) of [0, 4000); its GPU is sampled."""
    export = Export(tmp_path / "job.sqlite")
    export.gpu(0)
    export.kernel(1_000, 2_000, "k", launch=(0, 500))
    export.kernel(3_900, 4_000, "k", launch=(3_000, 3_500))
    for time in range(100, 4_100, 100):
        export.gpu_metric(time, "SMs Active [Throughput %]", 80 if 1_000 < time <= 2_000 else 0)
        export.gpu_metric(time, "SMs Active [Cycles Active]", 12_345)
        export.gpu_metric(time, "DRAM Read Bandwidth [Throughput %]", 30)
        export.gpu_metric(time, "DRAM Write Bandwidth [Throughput %]", 20)
        export.gpu_metric(time, "NVLink RX Requests User Data [Throughput %]", 5)
        export.gpu_metric(time, "NVLink RX Responses User Data [Throughput %]", 6)
        export.gpu_metric(time, "NVLink RX Responses Protocol Data [Throughput %]", 7)
    table = nsightpy.breakdown(export.write(), bins=4, from_time=0, to_time=4_000)
    rows = table.records()
    assert [row["busy_share"] for row in rows] == [0, 1, 0, 0.1]
    assert [row["sm_active_share"] for row in rows] == pytest.approx([0, 0.8, 0, 0])
    assert [row["dram_share"] for row in rows] == pytest.approx([0.5] * 4)
    assert [row["nvlink_rx_share"] for row in rows] == pytest.approx([0.11] * 4)
    assert {row["tensor_active_share"] for row in rows} == {None}
    assert {row["nvlink_tx_share"] for row in rows} == {None}
    assert not any("nsys profile" in note for note in table.notes)


def test_one_report_of_a_host_samples_the_gpus_of_all(tmp_path: Path) -> None:
    """Each rank uses a GPU of its own; the report of rank 0 samples both."""
    for rank in range(2):
        export = Export(tmp_path / f"rank{rank}.sqlite")
        for gpu in range(2):
            export.gpu(gpu)
        export.kernel(0, 1_000, "k", device=rank)
        for time in range(100, 1_100, 100) if rank == 0 else ():
            for gpu in range(2):
                export.gpu_metric(time, "SMs Active [Throughput %]", 30 + gpu * 40, gpu=gpu)
        export.write()
    rows = nsightpy.breakdown(tmp_path, bins=1).records()
    assert [row["sm_active_share"] for row in rows] == pytest.approx([0.3, 0.7])


def test_iterations_and_ranges_leave_what_is_outside_unknown() -> None:
    (window,) = {
        (row["start_ns"], row["duration_ns"])
        for row in nsightpy.iterations(TRAINING, rank=0, iteration=4).records()
    }
    rows = nsightpy.breakdown(TRAINING, rank=0, iteration="4", bins=20).records()
    known = [row for row in rows if row["busy_share"] is not None]
    assert known
    for row in known:
        assert row["start_ns"] < window[0] + window[1]  # type: ignore[operator]
        assert row["start_ns"] + row["duration_ns"] > window[0]  # type: ignore[operator]


@pytest.mark.slow
def test_a_terminal_shows_one_row_a_device() -> None:
    found = ask("breakdown", TRAINING, "--bins", "200", "-q").stdout.decode()
    assert len(found.splitlines()) == 6
    assert "busy over time" in found.splitlines()[0]


def test_devices_of_the_same_name_stay_apart(tmp_path: Path) -> None:
    """Both are device 0 of one rank, or of none: a row of the picture for each."""
    for name, starts in (("a", [1_000]), ("b", [1_000, 8_000])):
        export = Export(tmp_path / f"{name}.sqlite")
        for start in starts:
            export.kernel(start, start + 1_000, "k")
        export.write()
    table = nsightpy.breakdown(tmp_path, bins=8)
    table = replace(table, rows=tuple((None, *row[1:]) for row in table.rows))
    (image,) = utilization_figure(table).axes[0].get_images()
    assert image.get_array().shape == (2, 8)  # type: ignore[union-attr]


@pytest.mark.slow
def test_ranks_stand_on_one_clock(tmp_path: Path) -> None:
    """Clocks of two nodes are 7.8 ms apart: the first work of each rank is where alignment says."""
    PRESETS["ranks_8"].write(tmp_path)
    table = nsightpy.breakdown(tmp_path, bins=500)
    work = [nsightpy.open(tmp_path).events(name) for name in ("kernels", "memory_operations")]
    for rank in range(8):
        busy = [row for row in table.records() if row["rank"] == rank and row["busy_share"]]
        first = min(int(one[one["rank"] == rank]["start_ns"].min()) for one in work)
        began, length = int(busy[0]["start_ns"] or 0), int(busy[0]["duration_ns"] or 0)
        assert began - 1 <= first < began + length + 1


def test_a_range_has_the_samples_of_every_report(tmp_path: Path) -> None:
    """Also of those in which others take longer: together one is the longest."""
    for rank, lengths in enumerate(((1_000, 400), (500, 600))):
        export = Export(tmp_path / f"rank{rank}.sqlite")
        export.gpu(0)
        for at, name, length in zip((0, 2_000), ("forward", "backward"), lengths, strict=True):
            export.nvtx_push_pop(at, at + 100, name)
            export.kernel(at + 200, at + 200 + length, "k", launch=(at + 10, at + 20))
        for time in range(0, 4_000, 10):
            export.gpu_metric(time, "SMs Active [Throughput %]", 50)
        export.write()
    table = nsightpy.nvtx(tmp_path, metrics=True, top=1)
    samples = {row["range"]: row["samples"] for row in table.records()}
    assert samples == {"(whole capture)": 800, "forward": 100 + 50}
