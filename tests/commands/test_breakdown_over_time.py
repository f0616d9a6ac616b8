"""breakdown --bins: exact shares, sampled metrics, one clock, and what is not known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulator import PRESETS, Export

import nsightpy
from nsightpy.analysis.binned import edges_of, mean_rates, sample_means
from nsightpy.commands.breakdown.over_time import by_device
from nsightpy.render.plots.breakdown_plot import utilization_figure
from tests.support.reports import ask
from tests.support.samples import SAMPLES, TRAINING


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
    rates = mean_rates(np.asarray([0, 50]), np.asarray([50, 60]), np.asarray([2.0, 7.0]), edges)
    np.testing.assert_allclose(rates, [(100 + 70) / 60, *[np.nan] * 5])


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


def sampled_report(folder: Path) -> Path:
    """Device 0 computes in [1000, 2000) of [0, 4000); its GPU and the network are sampled."""
    export = Export(folder / "job.sqlite")
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
    for nic in (1, 2):
        for start in range(0, 3_000, 1_000):
            export.nic_metric(start, start + 1_000, "IB: Bytes sent", 25_000_000, nic)
            export.nic_metric(start, start + 1_000, "IB: Send waits", 9, nic)
    export.write()
    return folder / "job.sqlite"


def test_sampled_metrics_stand_beside_the_shares(tmp_path: Path) -> None:
    report = sampled_report(tmp_path)
    table = nsightpy.breakdown(report, bins=4, from_time=0, to_time=4_000)
    rows = table.records()
    assert [row["busy_share"] for row in rows] == [0, 1, 0, 0.1]
    assert [row["sm_active_share"] for row in rows] == pytest.approx([0, 0.8, 0, 0])
    assert [row["dram_share"] for row in rows] == pytest.approx([0.5] * 4)
    assert [row["nvlink_rx_share"] for row in rows] == pytest.approx([0.11] * 4)
    # two interfaces, 25 MB/ms each; the last stretch was not sampled
    assert [row["nic_sent_gb_per_s"] for row in rows] == [50, 50, 50, None]
    assert {row["tensor_active_share"] for row in rows} == {None}
    assert {row["nvlink_tx_share"] for row in rows} == {None}
    assert not any("nsys profile" in note for note in table.notes)


def test_iterations_and_ranges_leave_what_is_outside_unknown() -> None:
    report = TRAINING
    (window,) = {
        (row["start_ns"], row["duration_ns"])
        for row in nsightpy.iterations(report, rank=0, iteration=4).records()
    }
    rows = nsightpy.breakdown(report, rank=0, iteration="4", bins=20).records()
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
    """Both are device 0 of one rank, or of none: a row of the picture and a line for each."""
    for name, starts in (("a", [1_000]), ("b", [1_000, 8_000])):
        export = Export(tmp_path / f"{name}.sqlite")
        for start in starts:
            export.kernel(start, start + 1_000, "k")
        export.write()
    table = nsightpy.breakdown(tmp_path, bins=8)
    table = replace(table, rows=tuple((None, *row[1:]) for row in table.rows))
    shown = by_device(table)
    assert len(shown.rows) == 2
    assert shown.column("busy_share") == [1.0, 0.25]
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


def report(path: Path, forward_ns: int, backward_ns: int) -> None:
    """A GPU sampled every 10 ns, whose kernels of two ranges last this long."""
    export = Export(path)
    export.gpu(0)
    at = 0
    for name, length in (("forward", forward_ns), ("backward", backward_ns)):
        export.nvtx_push_pop(at, at + 100, name)
        export.kernel(at + 200, at + 200 + length, "k", launch=(at + 10, at + 20))
        at += 2_000
    for time in range(0, 4_000, 10):
        export.gpu_metric(time, "SMs Active [Throughput %]", 50)
    export.write()


def test_a_range_has_the_samples_of_every_report(tmp_path: Path) -> None:
    """Also of those in which others take longer: together one is the longest."""
    report(tmp_path / "rank0.sqlite", forward_ns=1_000, backward_ns=400)
    report(tmp_path / "rank1.sqlite", forward_ns=500, backward_ns=600)
    table = nsightpy.nvtx(tmp_path, metrics=True, top=1)
    samples = {row["range"]: row["samples"] for row in table.records()}
    assert samples == {"(whole capture)": 800, "forward": 100 + 50}
