"""One name instance by instance, and how durations are distributed: by hand and by seed."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from simulator import PRESETS, Export

import nsightpy
from nsightpy.analysis.modes import Mode, bin_edges, find_modes
from nsightpy.errors import NsightpyError
from nsightpy.render.plots.instances_plot import instances_figure
from nsightpy.results.series import Durations
from tests.support.reports import ask
from tests.support.samples import TRAINING


def modes_of(durations: np.ndarray) -> list[Mode]:
    values, counts = np.unique(durations.astype(np.int64) // 32 * 32, return_counts=True)
    return find_modes(values, counts)


def lognormal(random: np.random.Generator, count: int, middle: float, spread: float) -> np.ndarray:
    return np.asarray(middle * np.exp(spread * random.standard_normal(count)))


@pytest.mark.parametrize("count", [10, 100, 20_000])
@pytest.mark.parametrize("spread", [0.0, 0.005, 0.1, 0.8])
@pytest.mark.parametrize("middle", [1_500, 50_000])
def test_one_mode_stays_one(count: int, spread: float, middle: float) -> None:
    random = np.random.default_rng(count)
    for _ in range(20):
        (mode,) = modes_of(lognormal(random, count, middle, spread))
        assert mode.count == count


def test_a_long_tail_and_outliers_are_no_modes() -> None:
    random = np.random.default_rng(5)
    for tail in (random.exponential(1e4, 2_000), 1e4 * random.pareto(1.5, 2_000)):
        assert len(modes_of(1e4 + tail)) == 1
    some = np.concatenate([lognormal(random, 1_000, 5_000, 0.05), np.full(9, 3_000_000.0)])
    assert len(modes_of(some)) == 1


@pytest.mark.parametrize(
    ("parts", "spread"),
    [
        (((2_100, 610), (48_000, 390)), 0.05),
        (((2_100, 900), (2_700, 100)), 0.02),
        # two near ones that a distant one must not hide
        (((2_100, 400), (2_700, 300), (900_000, 300)), 0.02),
        (((1_000, 500), (3_000, 250), (9_000, 250)), 0.15),
    ],
)
def test_planted_modes_are_found(parts: tuple[tuple[int, int], ...], spread: float) -> None:
    random = np.random.default_rng(7)
    mixed = np.concatenate([lognormal(random, n, middle, spread) for middle, n in parts])
    found = modes_of(random.permutation(mixed))
    assert len(found) == len(parts)
    for mode, (middle, count) in zip(found, parts, strict=True):
        assert mode.median_ns == pytest.approx(middle, rel=0.05)
        assert mode.count == pytest.approx(count, rel=0.03)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=30), st.integers(1, 50))
def test_every_duration_lies_in_one_bin(durations: list[int], bins: int) -> None:
    edges = bin_edges(min(durations), max(durations), bins).tolist()
    assert len(edges) <= bins + 1
    assert all(low < high for low, high in pairwise(edges))
    assert edges[0] <= min(durations) < edges[1]
    assert edges[-2] <= max(durations) < edges[-1]


def test_bins_add_up_to_the_kernels_of_the_job() -> None:
    table = nsightpy.instances(TRAINING, of="*", bins=20, top=3)
    kernels = {row["Name"]: row for row in nsightpy.kernels(TRAINING, top=3).records()}
    assert [one.name for one in table.durations] == list(kernels)
    for one in table.durations:
        mine = [row for row in table.records() if row["name"] == one.name]
        assert sum(row["count"] for row in mine) == one.instances == kernels[one.name]["Instances"]  # type: ignore[misc]
        assert mine[0]["low_ns"] <= kernels[one.name]["Min (ns)"] < mine[0]["high_ns"]  # type: ignore[operator]
        assert mine[-1]["low_ns"] <= kernels[one.name]["Max (ns)"] < mine[-1]["high_ns"]  # type: ignore[operator]


def report_of_three_steps(folder: Path) -> Path:
    """Kernel k at 100, 200, ... in each of three steps, 10 ns longer each time; j once a step."""
    export = Export(folder / "job.sqlite")
    for step in range(3):
        base = 10_000 * step
        export.nvtx_push_pop(base, base + 5_000, f"step {step}")
        for number in range(4):
            start = base + 1_000 * (number + 1)
            launch = (base + 100 * number, base + 100 * number + 50)
            name = "j" if number == 3 else "void ns::k<int>(float *)"
            export.kernel(start, start + 100 + 10 * number + step, name, launch=launch)
    export.write()
    return folder / "job.sqlite"


def test_the_instances_of_a_kernel_with_iteration_and_number(tmp_path: Path) -> None:
    report = report_of_three_steps(tmp_path)
    table = nsightpy.instances(report, of="ns::k")
    rows = table.records()
    columns = ("iteration", "instance", "duration_ns", "kind")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (step, number, 100 + 10 * number + step, "kernel")
        for step in range(3)
        for number in range(3)
    ]
    (host, *_) = nsightpy.instances(report, of="step*").records()
    assert (host["kind"], host["duration_ns"], host["device"]) == ("range", 5_000, None)
    (gpu, *_) = nsightpy.instances(report, of="step*", kind="projection").records()
    assert (gpu["start_ns"], gpu["duration_ns"]) == (1_000, 3_130)


def test_idle_time_and_launch_delays_of_a_planted_report(tmp_path: Path) -> None:
    report = report_of_three_steps(tmp_path)
    idle = nsightpy.instances(report, of="idle")
    begun = [10_000 * step + 1_000 * number for step in range(3) for number in range(1, 5)]
    ends = [start + 90 + (start // 100 % 100) + start // 10_000 for start in begun]
    assert idle["start_ns"] == ends[:-1]
    lengths = [after - end for end, after in zip(ends, begun[1:], strict=False)]
    assert idle["duration_ns"] == lengths
    assert sum(lengths) == nsightpy.breakdown(report)["idle_ns"][0]
    delays = nsightpy.instances(report, of="launch-delay")
    launched = [10_000 * step + 100 * number for step in range(3) for number in range(4)]
    assert delays["start_ns"] == launched
    assert delays["duration_ns"] == [a - b for a, b in zip(begun, launched, strict=True)]
    assert set(delays["name"]) == {"cudaLaunchKernel"}
    nothing = nsightpy.instances(report, of="idle", to_time=ends[0])
    assert not nothing.rows
    assert "no stretch in which a device was idle" in " ".join(nothing.notes)


def test_what_nobody_has_is_refused(tmp_path: Path) -> None:
    report = report_of_three_steps(tmp_path)
    with pytest.raises(NsightpyError, match=r"no kernel, collective or range is called 'stepp'"):
        nsightpy.instances(report, of="stepp")
    told = ask("instances", report, "--of", "kk", "--bins", "9", expect=1).stderr
    assert "`nsightpy kernels`, `collectives` and `nvtx` list" in told


@pytest.mark.slow
def test_collectives_of_all_ranks_stand_on_one_clock(tmp_path: Path) -> None:
    """Clocks are 7.8 ms apart; the same instance of a collective ends together on all ranks."""
    PRESETS["ranks_8"].write(tmp_path)
    found = nsightpy.instances(tmp_path, of="AllReduce")
    table = found.to_pandas()
    table["end_ns"] = table["start_ns"] + table["duration_ns"]
    last = table[table["iteration"] == 3].groupby("rank").tail(1)
    # the last one of an iteration is over all ranks
    assert len(last) == 8
    assert last["end_ns"].max() - last["end_ns"].min() < 20_000
    (axes,) = (one for one in instances_figure(found).axes if one.get_xlabel() == "time (ms)")
    points = [one for one in axes.lines if one.get_linestyle() == "None"]
    assert sum(np.size(one.get_xdata()) for one in points) == len(found)
    assert {one.name for one in found.durations} == set(table["name"])


@pytest.mark.parametrize(
    "part", [{"rank": "1"}, {"device": "0"}, {"iteration": "steady"}, {"nvtx": "*@NCCL"}]
)
def test_collectives_of_a_part_are_among_all(part: dict[str, str]) -> None:
    every = nsightpy.instances(TRAINING, of="AllReduce").to_pandas()
    some = nsightpy.instances(TRAINING, of="AllReduce", **part).to_pandas()
    assert 0 < len(some) <= len(every)
    assert set(some["start_ns"]) <= set(every["start_ns"])
    assert len(nsightpy.open(TRAINING, **part).events("collectives")) >= len(some)


def test_the_name_is_required_and_a_star_of_nothing_is_no_fault(tmp_path: Path) -> None:
    assert "--of" in ask("instances", TRAINING, expect=2).stderr
    with pytest.raises(TypeError, match="of"):
        nsightpy.instances(TRAINING)
    Export(tmp_path / "empty.sqlite").write()
    for bins in ((), ("--bins", "9")):
        assert ask("instances", tmp_path, "--of", "*", *bins).text == "no rows\n"


def test_modes_are_told_in_words() -> None:
    three = Durations("k", (2_100.0, 48_000.0, 1e6), (61, 38, 1))
    assert three.modes_text(3) == "2.10 us (61 %), 48.0 us (38 %), 1.00 ms (1 %)"
    assert three.modes_text(2) == "2.10 us (61 %), 48.0 us (38 %) + 1"
    assert Durations("k", (2_100.0,), (20,)).modes_text(2) == "2.10 us"


def test_people_see_a_row_a_rank_or_a_row_a_name() -> None:
    lines = ask("instances", TRAINING, "--of", "AllReduce").text.splitlines()
    assert len(lines) == 2 + 4 * 3
    assert ask("instances", TRAINING, "--of", "AllReduce", "--top", "5").text.splitlines() == lines
    lines = ask("instances", TRAINING, "--of", "AllReduce", "--bins", "9").text.splitlines()
    assert lines[2].split("  ")[0] == "AllReduce of 33.6 MB"
    assert "707 us (64 %), 1.23 ms (36 %)" in lines[2]
    assert len(lines) == 2 + 3
