"""Rooflines and speed of light: formulas on made-up chips, golden numbers on real reports."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from nsightpy.analysis.roofline.points import estimates, launch_rooflines, stored_titles, variants
from nsightpy.analysis.roofline.speed_of_light import LATENCY, classify
from nsightpy.frames import RULES, Frame
from nsightpy.readers.ncu.tables import Rule
from nsightpy.reports.one_file import NcuReport
from nsightpy.results.rooflines import Point, RooflineLaunch, SpeedOfLight
from tests.support.ncu_bench import (
    CLOCKS,
    FP32,
    GENE,
    REPORTS,
    SAMPLE,
    every_report,
    frames_of,
    needs_library,
    needs_reports,
    per_cycle,
    roofline_of,
)

TITLES = {  # launches with a verdict of NVIDIA's own
    "a10g_11kernels_2023.1": 11,
    "a40_2022.1": 2,
    "cutlass_a100_2024.1": 3,
    "gb200_full_2025.3": 3,
}
DRAM_PCT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
_FP = re.compile(
    r"achieved\s+(close to )?(\d+)% of this device's fp32 .* and (close to )?\s*(\d+)%"
)


def of_report(path: Path) -> list[RooflineLaunch]:
    report = NcuReport(path)
    return launch_rooflines(*(report.frame(name) for name in ("launches", "metrics", "rules")))


def point(launch: RooflineLaunch, precision: str, level: str) -> Point:
    found = [p for p in launch.points if (p.precision, p.level) == (precision, level)]
    assert len(found) == 1, [(p.precision, p.level) for p in launch.points]
    return found[0]


@every_report
def test_the_class_and_the_share_of_dram_traffic_are_nvidias_own(path: Path) -> None:
    report = NcuReport(path)
    titles, metrics = stored_titles(report.frame("rules")), report.frame("metrics")
    launches = {one.launch: one for one in of_report(path)}
    assert len(titles) == TITLES.get(path.stem, 0)
    assert {number: launches[number].speed.classification for number in titles} == titles
    for row in metrics.labels("metric").equals([DRAM_PCT]).nonzero()[0]:
        share = float(metrics["value"][row])
        for each in launches[int(metrics.ints("launch")[row])].points:
            if each.level == "dram":
                assert 100 * (each.traffic_share or 0) == pytest.approx(share, abs=0.5)


@every_report
def test_work_is_the_share_that_ncus_rule_says(path: Path) -> None:
    rules = NcuReport(path).frame("rules")
    launches = {one.launch: one for one in of_report(path)}
    for row in rules.labels("rule").equals(["SOLFPRoofline"]).nonzero()[0]:
        match = _FP.search(rules.labels("message")[row].replace("FP", "fp"))
        assert match, rules.labels("message")[row]
        one = launches[int(rules.ints("launch")[row])]
        for precision, close, told in (("fp32", match[1], match[2]), ("fp64", match[3], match[4])):
            peak = next(p for p in one.points if p.precision == precision)
            assert peak.peak_flops_per_s
            share = 100 * peak.flops_per_s / peak.peak_flops_per_s
            assert (0 < share < 1) if close else share == pytest.approx(float(told), abs=0.5)


# By report, launch and precision: figures of the point of DRAM.
GOLDEN = {
    ("gb200_full_2025.3", 0, "fp32"): {
        "peak_flops_per_s": 28.43e12,
        "peak_bytes_per_s": 7887.0e9,
        "bytes_per_s": 1.333e9,
        "arithmetic_intensity": 0.1481,
        "flops_per_s": 0.1975e9,
    },
    ("gb200_full_2025.3", 0, "fp64"): {"peak_flops_per_s": 14.22e12, "flops_per_s": 0.0},
    ("a40_2022.1", 0, "fp32"): {"peak_flops_per_s": 27.857e12, "traffic_share": 0.95699},
    ("a40_2022.1", 0, "fp64"): {"peak_flops_per_s": 0.43527e12},
    ("cutlass_a100_2024.1", 2, "fp32"): {
        "peak_flops_per_s": 14.528e12,
        "peak_bytes_per_s": 1931.3e9,
    },
}


@needs_reports
@needs_library
@pytest.mark.parametrize(("name", "launch", "precision"), GOLDEN)
def test_golden_numbers(name: str, launch: int, precision: str) -> None:
    found = point(of_report(REPORTS / f"{name}.ncu-rep")[launch], precision, "dram")
    figures = GOLDEN[name, launch, precision]
    assert {one: getattr(found, one) for one in figures} == pytest.approx(figures, rel=1e-3)


@needs_reports
@needs_library
def test_what_is_said_beside_the_points() -> None:
    idle = of_report(REPORTS / "gb200_full_2025.3.ncu-rep")[0]
    assert any("hardly used" in text for text in idle.remarks)
    # as ncu's rule says
    assert idle.speed.leading_stall == ("no instruction", pytest.approx(0.3427, abs=1e-3))
    assert not [p for p in idle.points if p.precision.startswith("tensor")]  # no work, no point
    writes, tensor = of_report(REPORTS / "a40_2022.1.ncu-rep")
    assert writes.speed.busiest == "DRAM"
    assert (tensor.tensor_pct, tensor.judged) == (pytest.approx(53.957, abs=1e-3), None)
    assert any("tensor pipe was active" in str(note) for note in tensor.missing)
    a100 = of_report(REPORTS / "cutlass_a100_2024.1.ncu-rep")[2]
    assert any("L2 and L1 traffic was not collected" in str(note) for note in a100.missing)


@needs_reports
@needs_library
def test_flops_of_2020_reports_need_a_time() -> None:
    """One run counted FLOPs and time, another only FLOPs: no rate is made up."""
    work = of_report(next(path for path in GENE if "time_rank0" in path.name))[0].points[0]
    flops = 27_525_120 + 2 * 330_301_440
    assert work.flops_per_s == pytest.approx(flops / (148_571_494.1 / 1_311_406_928.5582), rel=1e-6)
    assert work.peak_flops_per_s == pytest.approx(80 * 32 * 2 * 1.3114069e9, rel=1e-6)
    assert (work.level, work.arithmetic_intensity, work.roof_fraction) == ("", None, None)
    untimed = of_report(next(path for path in GENE if "flops_rank0" in path.name))[0]
    assert untimed.points == ()
    assert any("no duration" in str(note) for note in untimed.missing)


FP32_COUNTS = CLOCKS | per_cycle("f", 1, 1, 1)


def test_a_point_against_its_roof() -> None:
    dram = {"dram__bytes.sum.peak_sustained": 1280, "dram__bytes.sum.per_second": 5e11}
    one = roofline_of(CLOCKS | per_cycle("f", 100, 50, 200) | {FP32: 6912} | dram)
    fp32 = point(one, "fp32", "dram")
    assert (fp32.flops_per_s, fp32.peak_flops_per_s) == (550e9, 2 * 6912 * 1e9)
    assert (fp32.peak_bytes_per_s, fp32.arithmetic_intensity) == (1280e9, pytest.approx(1.1))
    assert fp32.roof_flops_per_s == pytest.approx(1.1 * 1280e9)
    assert fp32.roof_fraction == pytest.approx(550 / 1408)


PACKED = {
    f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed": 10.0
    for op in ("fadd2", "fmul2", "ffma2")
}


@pytest.mark.parametrize(
    ("counters", "capability", "flop_per_cycle", "told"),
    [
        # half precision counts pairs
        (per_cycle("h", 10, 20, 30), "8.0", 2 * 10 + 2 * 20 + 4 * 30, "upper bound"),
        # what Blackwell does in pairs
        (per_cycle("f", 1, 1, 1) | PACKED, "10.0", 1 + 1 + 2 + 20 + 20 + 40, ""),
        # a missing counter makes a precision missing, never zero
        (dict(list(per_cycle("f", 1, 1, 1).items())[:2]), "8.0", None, "FLOPs were not collected"),
    ],
)
def test_instructions_are_counted_as_operations(
    counters: dict[str, float], capability: str, flop_per_cycle: int | None, told: str
) -> None:
    peak = {FP32.replace("ffma", "hfma"): 13824}
    one = roofline_of(CLOCKS | counters | peak, capability=capability)
    work = [] if flop_per_cycle is None else [flop_per_cycle * 1e9]
    assert [p.flops_per_s for p in one.points] == work
    assert told in " ".join([*one.remarks, *map(str, one.missing)])
    if "hadd" in "".join(counters):
        assert one.points[0].peak_flops_per_s == 4 * 13824 * 1e9


@pytest.mark.parametrize(
    ("capability", "fp32", "fp64"),
    [
        *[("7.0", 64, 32), ("7.5", 64, 2), ("8.0", 64, 32), ("8.6", 128, 2), ("9.0", 128, 64)],
        *[("8.9", 128, None), ("10.0", 128, 64), ("10.3", 128, None), ("12.0", 128, None)],
    ],
)
def test_peaks_from_lanes(capability: str, fp32: int, fp64: int | None) -> None:
    counts = {
        name.replace("per_cycle_elapsed", "").rstrip("."): 1e6
        for name in (per_cycle("f", 1, 1, 1) | per_cycle("d", 1, 1, 1))
    }
    sms = {"device__attribute_multiprocessor_count": 10}
    one = roofline_of(CLOCKS | counts | sms, capability=capability)
    peaks = {p.precision: p.peak_flops_per_s for p in one.points}
    assert peaks == {"fp32": fp32 * 20e9, "fp64": fp64 and fp64 * 20e9}
    assert one.points[0].flops_per_s == pytest.approx(4e6 / 1e-3)


BUS = {"device__attribute_max_mem_frequency_khz": 1e6, "device__attribute_fb_bus_width": 64}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"dram__bytes_read.sum.per_second": 3e9, "dram__bytes_write.sum.per_second": 1e9}, 4e9),
        ({"dram__bytes.sum": 4e6}, 4e9),
        ({"dram__bytes_op_read.sum": 3e6, "dram__bytes_op_write.sum": 1e6}, 4e9),
        ({"dram__sectors.sum": 125_000}, 4e9),
        ({DRAM_PCT: 10.0}, 0.1 * 2 * 1e9 * 8),
    ],
)
def test_dram_traffic_by_the_ladder(given: dict[str, float], expected: float) -> None:
    (found,) = roofline_of(FP32_COUNTS | BUS | given).points
    assert (found.level, found.bytes_per_s) == ("dram", pytest.approx(expected))
    assert found.peak_bytes_per_s == 16e9


@pytest.mark.parametrize(
    ("capability", "why"),
    [
        ("8.0", "DRAM traffic was not collected"),
        *((integrated, "shares the system's memory") for integrated in ("8.7", "11.0", "12.1")),
    ],
)
def test_no_dram_roofline_and_why(capability: str, why: str) -> None:
    half = {"dram__bytes_read.sum": 3e6}
    one = roofline_of(FP32_COUNTS | BUS | half, capability=capability)
    assert [p.level for p in one.points] == [""]
    assert any(why in str(note) for note in one.missing)


@pytest.mark.parametrize(
    ("capability", "level", "counter", "size"),
    [
        ("9.0", "l2", "lts__lts2xbar_cycles_active", 32),
        ("9.0", "l1", "l1tex__lsu_writeback_active_mem_lgds", 128),
        ("8.0", "l2", "derived__lts__lts2xbar_bytes", 1),
        ("8.0", "l1", "l1tex__lsu_writeback_active_mem_lg", 128),
        ("8.6", "l2", "l1tex__m_xbar2l1tex_read_bytes", 1),
        ("8.6", "l1", "derived__l1tex__lsu_writeback_bytes_mem_lg", 1),
        ("7.0", "l2", "lts__t_bytes", 1),
        ("7.0", "l1", "l1tex__lsu_writeback_active", 128),
        ("7.0", "l1", "l1tex__t_bytes", 1),
    ],
)
def test_caches_by_metric_generation(capability: str, level: str, counter: str, size: int) -> None:
    metrics = {f"{counter}.sum.peak_sustained": 160, f"{counter}.sum.per_second": 1e10}
    one = roofline_of(FP32_COUNTS | metrics, capability=capability)
    found = point(one, "fp32", level)
    assert (found.peak_bytes_per_s, found.bytes_per_s) == (160e9 * size, 1e10 * size)


# Operations per cycle at most.
BF16, FP16 = "src_bf16_dst_fp32", "src_fp16_dst_fp32"
HOPPER = {
    **dict.fromkeys([BF16, "src_fp16", f"op_hgmma_{BF16}_sparsity_on"], 8192.0),
    **dict.fromkeys([f"op_hgmma_{kind}_sparsity_off" for kind in (BF16, "src_fp16")], 4096.0),
    **dict.fromkeys([f"op_hmma_{kind}_sparsity_off" for kind in (BF16, FP16)], 2730.7),
}
PARTS = {"src_tf32_dst_fp32_sparsity_off": 1024.0, "src_tf32_dst_fp32_sparsity_on": 2048.0}
WHOLE = {"src_fp64": 128.0, "src_fp16_dst_fp16": 64.0}


@pytest.mark.parametrize(
    ("peaks", "busy", "precision", "peak", "remark"),
    [
        # the dense peak is the roof, the aggregate the work
        (HOPPER, f"{BF16} op_hgmma_{BF16}_sparsity_off", "bf16", 4096e9, ""),
        (HOPPER, f"{BF16} op_hgmma_{BF16}_sparsity_on", "bf16", 8192e9, "sparsity"),
        (HOPPER, f"src_fp16 op_hmma_{FP16}_sparsity_off", "fp16", 4096e9, "cannot exceed 67 %"),
        # without an aggregate, and without parts
        (PARTS, "src_tf32_dst_fp32_sparsity_off", "tf32", 1024e9, ""),
        (WHOLE, "src_fp64", "fp64", 128e9, ""),
        (WHOLE, "src_fp16_dst_fp16", "fp16_dst_fp16", 64e9, ""),
    ],
)
def test_work_and_roof_of_tensor_cores(
    peaks: dict[str, float], busy: str, precision: str, peak: float, remark: str
) -> None:
    name = "sm__ops_path_tensor_{}.sum.{}"
    metrics = {name.format(path, "peak_sustained"): value for path, value in peaks.items()}
    metrics |= {name.format(path, "per_cycle_elapsed"): 0.0 for path in peaks}
    metrics |= {name.format(path, "per_cycle_elapsed"): 10.0 for path in busy.split()}
    one = roofline_of(CLOCKS | metrics, capability="9.0")
    assert [(p.precision, p.flops_per_s, p.peak_flops_per_s) for p in one.points] == [
        (f"tensor_{precision}", 10e9, peak)
    ]
    assert (bool(one.remarks), remark in " ".join(one.remarks)) == (bool(remark), True)


def test_512_operations_per_instruction_on_volta_only() -> None:
    metrics = {
        "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed": 80.0,
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active": 50.0,
    }
    for peak, value, flops in (
        ("sm__inst_executed_pipe_tensor.sum.peak_sustained", 160.0, 512 * 160e9),
        ("device__attribute_multiprocessor_count", 80.0, 80 * 1024 * 1e9),
    ):
        volta = roofline_of(CLOCKS | metrics | {peak: value}, capability="7.0")
        assert [(p.precision, p.flops_per_s, p.peak_flops_per_s) for p in volta.points] == [
            ("tensor_fp16", 512 * 80e9, flops)
        ]
        assert volta.tensor_pct is None
    ampere = roofline_of(CLOCKS | metrics | per_cycle("f", 1, 1, 1), capability="8.0")
    assert [p.precision for p in ampere.points] == ["fp32"]
    assert (ampere.tensor_pct, ampere.judged) == (50.0, None)


def test_a_wanted_clock_moves_the_peaks_of_the_sms_only() -> None:
    moved = {
        f"{level}.sum.{figure}": value
        for level in ("dram__bytes", "l1tex__t_bytes")
        for figure, value in (("peak_sustained", 10), ("per_second", 1e9))
    }
    fastest = {FP32: 100, "device__attribute_max_gpu_frequency_khz": 2e6}
    metrics = FP32_COUNTS | moved | fastest
    for clock, factor in (("profiled", 1), ("max", 2), (1.5e9, 1.5)):
        one = roofline_of(metrics, clock=clock)
        dram, l1 = point(one, "fp32", "dram"), point(one, "fp32", "l1")
        assert one.machine.clock_hz == factor * 1e9
        assert (dram.flops_per_s, dram.peak_flops_per_s) == (4e9, factor * 200e9)
        assert (dram.peak_bytes_per_s, l1.peak_bytes_per_s) == (10e9, factor * 10e9)


CLASSES = {
    "High Throughput": [(80.0, 10.0, 0.1), (10.0, 80.0, None)],
    "Small Grid": [(59.9, 20.0, 0.99)],
    "Latency Issue": [(59.9, 59.9, 1.0)],
    "High Compute Throughput": [(60.0, 50.0, 0.1)],
    "High Memory Throughput": [(50.0, 60.0, 0.1)],
    "Balanced Throughput": [(60.0, 50.1, 0.1), (79.9, 79.9, 5.0)],
    None: [(20.0, 20.0, None), (None, 50.0, 5.0), (50.0, None, 5.0)],
}


def test_classes_at_their_thresholds() -> None:
    for title, cases in CLASSES.items():
        assert [classify(*figures) for figures in cases] == [title] * len(cases)


def test_limiters_stalls_and_the_busiest_unit() -> None:
    stalled = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    metrics = {
        **dict.fromkeys(map("launch__occupancy_limit_{}".format, ("registers", "shared_mem")), 4.0),
        "launch__occupancy_limit_warps": 8.0,
        stalled.format("selected"): 9.0,
        stalled.format("long_scoreboard"): 6.0,
        stalled.format("wait"): 2.0,
        "smsp__average_warp_latency_per_inst_issued.ratio": 12.0,
        "l1tex__a.avg": 5.0,
        "lts__b.avg": 70.0,
    }
    breakdown = "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    frames = frames_of(metrics, texts={breakdown: "l1tex__a.avg,lts__b.avg,absent"})
    speed = launch_rooflines(*frames)[0].speed
    assert speed.limiters == ("registers", "shared memory")
    assert speed.stalls == (("long scoreboard", 6.0), ("wait", 2.0))
    assert (speed.leading_stall, speed.busiest) == (("long scoreboard", 0.5), "L2")


@needs_library
@needs_reports
def test_what_the_compute_percentage_is_of() -> None:
    """A plain loop over global memory is busy with loads and stores, not with arithmetic."""
    a10g = of_report(REPORTS / "a10g_11kernels_2023.1.ncu-rep")
    kernels = {one.base_name: variants([one])[0] for one in a10g}
    pipes = {name: one.first.speed.busiest_pipe for name, one in kernels.items()}
    assert pipes["gmem_coalesce"] == pipes["smem_blocking"] == "load/store"
    assert pipes["ampere_sgemm_128x64_nn"] == "instruction issue"
    assert kernels["gmem_coalesce"].verdict == (
        "Runs near the limit of compute, load/store (91 %; memory 91 %). "
        "Try wider loads and stores, and more reuse in registers."
    )
    assert kernels["one_blocktiling"].verdict == (
        "Busy with loads and stores (their pipe 65 %; memory 65 %). "
        "Try wider loads and stores, and more reuse in registers."
    )
    others = [of_report(REPORTS / f"{name}.ncu-rep") for name in TITLES if "a10g" not in name]
    assert [{one.speed.busiest_pipe for one in report} for report in others] == [
        *({"instruction issue", "ALU"}, {"tensor"}, {"ADU"}),
    ]


@pytest.mark.parametrize(
    ("possible", "achieved", "advice"),
    [
        (33.0, 30.0, "Occupancy is capped at 33 % by registers."),
        (100.0, 40.0, "Occupancy is 40 % of possible 100 %: balance the blocks."),
        (100.0, 95.0, "Try more work in flight: independent instructions, more warps."),
        (None, None, "Try more work in flight: independent instructions, more warps."),
    ],
)
def test_occupancy_is_the_advice_where_no_stall_leads(
    possible: float | None, achieved: float | None, advice: str
) -> None:
    launch = of_report(SAMPLE)[3]
    speed = SpeedOfLight(
        compute_pct=20.0,
        memory_pct=30.0,
        theoretical_occupancy_pct=possible,
        achieved_occupancy_pct=achieved,
        limiters=("registers",),
        classification=LATENCY,
    )
    (group,) = variants([replace(launch, speed=speed)])
    assert group.verdict.endswith(advice)


def test_variants_are_grouped_and_never_summed() -> None:
    launch = of_report(SAMPLE)[3]
    (group,) = variants([launch, launch])
    assert (len(group.launches), group.total_ns) == (2, 2 * (launch.duration_ns or 0))
    assert group.typical.points == launch.points
    assert group.spread("fp32", "dram") == (launch.points[3].flops_per_s,) * 2


def test_the_simulated_sample_gives_back_its_truth() -> None:
    truth = json.loads(SAMPLE.with_name("kernels_h100.truth.json").read_text())["launches"]
    for one, true in zip(of_report(SAMPLE), truth, strict=True):
        seconds = true["duration_ns"] * 1e-9
        assert one.duration_ns == true["duration_ns"]
        work = point(one, "fp32", "dram")
        assert work.flops_per_s * seconds == pytest.approx(true["fp32_flops"], rel=1e-4, abs=1e4)
        for level in ("dram", "l2", "l1"):
            moved = point(one, "fp32", level).bytes_per_s or 0.0
            assert moved * seconds == pytest.approx(true[f"{level}_bytes"], rel=1e-3)
        for kind in ("bf16", "tf32"):
            if ops := true.get(f"tensor_{kind}_ops"):
                tensor = point(one, f"tensor_{kind}", "dram")
                assert tensor.flops_per_s * seconds == pytest.approx(ops, rel=1e-4)


def test_what_stands_in_for_missing_and_damaged_metrics() -> None:
    launches, metrics, _ = frames_of(CLOCKS)
    told = Rule(0, "SOLBottleneck", "SpeedOfLight", "optimization", "Latency Issue", "...")
    (one,) = launch_rooflines(launches, metrics, Frame.of_rows(RULES, [told]))
    assert (one.speed.classification, one.remarks) == ("Latency Issue", ())
    assert not roofline_of(CLOCKS | per_cycle("f", 1e300, 1, 1) | per_cycle("d", -5, 1, 1)).points


def test_a_rule_says_once_the_most_it_promises_and_nothing_where_it_promises_none() -> None:
    promised = [("A", 5.0), ("B", math.nan), ("A", 9.0), ("C", 0.0), ("D", -1.0), ("E", math.inf)]
    told = [Rule(3, name, "S", "optimization", name, "...", speedup) for name, speedup in promised]
    ((launch, (found,)),) = estimates(Frame.of_rows(RULES, told)).items()
    assert (launch, found.rule, found.speedup_pct) == (3, "A", 9.0)
