"""Headroom: matching ncu to nsys, shares of the step, ceilings, doubts, the picture."""

from dataclasses import replace
from pathlib import Path

import pytest
from simulator.ncu import MeasuredKernel, raw_page

import nsightpy
from nsightpy.analysis.selection.headroom import match, unlike
from nsightpy.analysis.selection.launch_places import Variant
from nsightpy.commands.headroom.command import headroom
from nsightpy.render.plots.headroom_plot import kernels_of
from nsightpy.results.rooflines import Machine, Point, RooflineLaunch, RooflineVariant, SpeedOfLight
from tests.support.ncu_bench import needs_library
from tests.support.ncu_stand_in import STEP_NS, Scripted, write_export
from tests.support.reports import REPORTS, ask, needs_reports
from tests.support.samples import MEASURED, TRAINING

GEMM = Scripted("_Z4gemmIiEvPf", "gemm", "void gemm<(int)4>(float *)", duration_ns=400_000)
COPY = Scripted("_Z4copyPf", "copy", "copy(float *)", duration_ns=200_000)
ODD = Scripted("_Z3oddv", "odd", "odd()", duration_ns=100_000)


def write_page(path: Path, *kernels: MeasuredKernel) -> Path:
    path.write_text(raw_page(kernels))
    return path


def measured(one: Scripted, ns: int, compute: float, memory: float) -> MeasuredKernel:
    return MeasuredKernel(one.demangled, one.grid, one.block, ns, compute, memory)


def job(tmp_path: Path) -> tuple[Path, Path]:
    """A step of 10 ms: 4 ms of gemm, 2 ms of copy, 1 ms of odd."""
    launches = [each for _ in range(10) for each in (GEMM, COPY, ODD)]
    placed = [
        replace(one, gpu_start_ns=STEP_NS * (n // 3) + (0, 450_000, 700_000)[n % 3])
        for n, one in enumerate(launches)
    ]
    last = replace(ODD, gpu_start_ns=10 * STEP_NS - 1, duration_ns=1, mangled="_Z3endv")
    report = write_export(
        tmp_path / "r.sqlite", [*placed, replace(last, function="end", demangled="end()")]
    )
    page = write_page(
        tmp_path / "ncu.csv",
        measured(GEMM, 420_000, 41.0, 20.0),
        measured(COPY, 700_000, 10.0, 85.0),
        MeasuredKernel("elsewhere(int)", (3, 1, 1), (32, 1, 1), 5),
    )
    return report, page


def test_ceilings_are_share_times_distance(tmp_path: Path) -> None:
    report, page = job(tmp_path)
    made = nsightpy.headroom(report, ncu=page, from_time=0)
    rows = {row["name"]: row for row in made.records()}
    gemm = rows["void gemm<(int)4>(float *)"]
    assert made.step_ns == 10 * STEP_NS
    assert gemm["share"] == 0.4
    assert gemm["roof_fraction"] == 0.41
    assert gemm["ceiling_share"] == pytest.approx(0.4 * 0.59)
    assert (gemm["nsys_med_ns"], gemm["ncu_ns"]) == (400_000, 420_000)
    assert gemm["matched_by"] == "function"
    assert rows["copy(float *)"]["ceiling_share"] == pytest.approx(0.2 * 0.15)
    assert made.ceiling_share == pytest.approx(0.4 * 0.59 + 0.2 * 0.15)
    assert rows["odd()"]["ncu_ns"] is None
    assert [kernel["name"] for kernel in kernels_of(made)] == [row[0] for row in made.rows][:2]
    assert [one.first.name for one in made.unmatched] == ["elsewhere(int)"]
    for note in (
        "at most 26.6 % of the window are to be gained",
        "Measured, but not seen by nsys: 1 kernel (",
        "Not measured: 2 kernels of nsys with 10.0 %",
    ):
        assert any(note in said for said in made.notes)
    assert made.notes[0] == (
        "void gemm<(int)4>(float *) is 40.0 % of the window and runs at 41 % of its roof "
        "(compute speed of light): at most 23.6 % to gain, 0.0 % by replay."
    )
    assert "% of the step and runs at" in nsightpy.headroom(report, ncu=page).notes[0]


def test_kernels_at_their_roofs_are_replayed_in_the_steady_state() -> None:
    """The sample job has eight iterations, of which the first two are warm-up."""
    made, whole = (headroom(TRAINING, ncu=MEASURED, from_time=each) for each in (None, 0))
    gains = [row for row in made.records() if row["gain_share"] is not None]
    gained, ceilings = ([row[f"{of}_share"] for row in gains] for of in ("gain", "ceiling"))
    assert len(gained) >= 10
    assert gained == sorted(gained, reverse=True)
    # the GPU is the bottleneck of this step but for some of its kernels
    assert all(0 < gain <= most for gain, most in zip(gained, ceilings, strict=True))
    assert 0.9 * sum(gained) < (made.gain_share or 0) <= (made.ceiling_share or 0)
    assert made.replay["iterations"] == 6
    assert made.step_ns < 0.8 * whole.step_ns
    counts, all_counts = (
        {(row["name"], row["grid"]): row["instances"] for row in each.records()}
        for each in (made, whole)
    )
    assert all(counts[kernel] == 0.75 * number for kernel, number in all_counts.items())
    assert any("6 iterations" in note for note in made.notes)


def test_measurements_of_another_program_are_said_to_be(tmp_path: Path) -> None:
    report, _ = job(tmp_path)
    page = write_page(tmp_path / "n.csv", measured(Scripted("else_where"), 400_000, 50, 10))
    made = headroom(report, ncu=page)
    assert made.notes[0].startswith("Nothing that ncu measured is a kernel of these reports")
    assert made.ceiling_share == 0


def test_durations_apart_are_told_with_the_reason(tmp_path: Path) -> None:
    report, page = job(tmp_path)
    made = nsightpy.headroom(report, ncu=page)
    rows = {row["name"]: row for row in made.records()}
    # a step that waits for its host gains nothing from faster kernels
    assert ([row["gain_share"] for row in made.records()], made.gain_share) == ([0, 0, None], 0)
    assert rows["copy(float *)"]["duration_ratio"] == 3.5
    assert "cold caches" in rows["copy(float *)"]["reason"]
    assert rows["void gemm<(int)4>(float *)"]["reason"] is None
    assert "1.5 x" in ask("headroom", report, "--ncu", page).stderr


@pytest.mark.parametrize(
    ("nsys", "ncu", "profiled", "usual", "reason"),
    [
        (100, 149, 1e9, 2e9, ""),
        (100, 180, 1.1e9, 1.98e9, "locked clocks (1100 of 1980 MHz: x1.80)"),
        (100, 400, 1.1e9, 1.98e9, "locked clocks (1100 of 1980 MHz: x1.80) and cold caches"),
        (100, 400, 1.9e9, 1.98e9, "cold caches"),
        (100, 400, None, None, "cold caches"),
        (100, 50, 1e9, 2e9, "slower in nsys"),
        (0, 50, 1e9, 2e9, ""),
    ],
)
def test_reasons(
    nsys: float, ncu: float, profiled: float | None, usual: float | None, reason: str
) -> None:
    found = unlike(nsys, ncu, profiled, usual)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


def launch(
    name: str, mangled: str = "", base: str = "", grid: str = "1x1x1", block: str = "32x1x1"
) -> RooflineLaunch:
    return RooflineLaunch(
        0, name, base, mangled, grid, block, 0, 100, Machine(), SpeedOfLight(compute_pct=50.0)
    )


def variant(name: str, mangled: str = "", base: str = "", grid: int = 1) -> Variant:
    return Variant(mangled, base, name, (grid, 1, 1), (32, 1, 1))


def matched(wanted: Variant, *launches: RooflineLaunch) -> tuple[int, str] | None:
    found = match(wanted, [RooflineVariant((one,)) for one in launches])
    return None if found is None else (launches.index(found.measured.first), found.way)


def test_mangled_names_go_first_then_function_then_loosely() -> None:
    own = variant("void f<(int)4>(float *)", "_Z1fILi4EEvPf", "f")
    other = launch("void f<8>(float*)", "_Z1fILi8EEvPf", "f")
    same = launch("void f<4>(float*)", "_Z1fILi4EEvPf", "f")
    assert matched(own, other, same) == (1, "mangled")
    nameless = launch("void f<4>(float*)", "", "f")
    assert matched(own, other, nameless) == (1, "function")
    assert matched(own, other) is None, "another instance of the template is another kernel"
    bigger = launch("void f<4>(float*)", "_Z1fILi4EEvPf", "f", grid="64x1x1")
    smaller = launch("void f<4>(float*)", "_Z1fILi4EEvPf", "f", grid="2x1x1")
    assert matched(own, bigger, smaller) == (1, "loose")
    assert matched(own, launch("g()", "_Z1gv", "g")) is None
    assert matched(variant("f", base="f"), launch("f", base="f", grid="1")) == (0, "function")
    template = variant("void f<(int)4>(T1)", base="f")
    assert matched(template, launch("f(float*)", base="f")) == (0, "function")
    assert matched(template, launch("void f<8>(float*)", base="f")) is None


def test_the_nearest_roof_is_the_one_that_counts() -> None:
    point = Point("fp32", "dram", 2e12, 10e12, 1e12, 2e12)
    one = replace(launch("k"), points=(point,))
    faster = replace(one, speed=SpeedOfLight(compute_pct=20.0, memory_pct=90.0))
    over = replace(launch("k"), speed=SpeedOfLight(memory_pct=100.4))
    roofs = [each.nearest_roof for each in (one, faster, over)]
    assert [roof and (roof.distance, roof.name) for roof in roofs] == [
        (0.5, "fp32 dram"),
        (pytest.approx(0.1), "memory speed of light"),
        (0.0, "memory speed of light"),
    ]
    assert replace(one, tensor_pct=30.0, speed=SpeedOfLight()).nearest_roof is None


def test_overlapping_kernels_are_not_gained_twice(tmp_path: Path) -> None:
    launches = [
        replace(GEMM, gpu_start_ns=0, duration_ns=1000),
        replace(COPY, gpu_start_ns=0, duration_ns=1000),
    ]
    report = write_export(tmp_path / "r.sqlite", launches)
    page = write_page(tmp_path / "n.csv", measured(GEMM, 1000, 50, 0), measured(COPY, 1000, 0, 20))
    made = headroom(report, ncu=page)
    assert sorted(float(str(row[8])) for row in made.rows) == [0.5, 0.8]
    assert made.ceiling_share == pytest.approx(0.8)


def test_the_command_line_takes_many_ncu_files(tmp_path: Path) -> None:
    report, page = job(tmp_path)
    second = write_page(tmp_path / "more.csv", measured(ODD, 100_000, 70, 5))
    table = ask("headroom", report, "--from", "0", "--ncu", page, second, "--format", "csv").csv
    assert {row[11] for row in table[1:]} == {"function"}
    assert sum(bool(row[3]) for row in table[1:]) == 3
    assert "--ncu" in ask("headroom", report, expect=2).stderr
    document = ask("headroom", report, "--ncu", page, "--from", "0", "--format", "json").json
    assert (document["step_ns"], document["ceiling_share"]) == (10 * STEP_NS, pytest.approx(0.266))


@needs_library
@needs_reports
def test_a_real_pair_matches_whole() -> None:
    made = headroom(
        REPORTS / "nsys" / "exgpu_a100_2021.sqlite",
        ncu=REPORTS / "ncu" / "exgpu_a100_2020.3.ncu-rep",
    )
    assert [row["matched_by"] for row in made.records()] == ["function"] * 5
    assert made.unmatched == ()
    assert all(kernel.match is not None for kernel in made.kernels)
    ratios = [float(str(row["duration_ratio"])) for row in made.records()]
    assert all(0.5 < ratio < 1.5 for ratio in ratios)
    assert any(
        "and so no ceiling: 5 kernels: FLOPs were not collected" in note for note in made.notes
    )
