"""Rooflines and speed of light: formulas on made-up chips, golden numbers on real reports."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from nsightpy.analysis.roofline.points import estimates, launch_rooflines, stored_titles, variants
from nsightpy.analysis.roofline.speed_of_light import classify
from nsightpy.analysis.roofline.work import type_name
from nsightpy.frames import RULES
from nsightpy.readers.ncu.tables import Rule, framed
from nsightpy.reports.one_file import NcuReport
from nsightpy.results.rooflines import Point, RooflineLaunch
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
def test_the_class_is_nvidias_own(path: Path) -> None:
    titles = stored_titles(NcuReport(path).frame("rules"))
    found = {one.launch: one.speed.classification for one in of_report(path)}
    assert len(titles) == TITLES.get(path.stem, 0)
    assert {launch: found[launch] for launch in titles} == titles


@every_report
def test_dram_traffic_is_the_share_that_ncu_says(path: Path) -> None:
    report = NcuReport(path)
    metrics = report.frame("metrics")
    shares = {
        int(metrics.ints("launch")[row]): float(metrics.floats("value")[row])
        for row in metrics.labels("metric").equals([DRAM_PCT]).nonzero()[0]
    }
    for one in of_report(path):
        for each in one.points:
            if each.level == "dram" and one.launch in shares:
                assert each.traffic_share is not None
                assert 100 * each.traffic_share == pytest.approx(shares[one.launch], abs=0.5)


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


@needs_reports
@needs_library
def test_golden_numbers_of_a_gb200() -> None:
    one = of_report(REPORTS / "gb200_full_2025.3.ncu-rep")[0]
    fp32, fp64 = point(one, "fp32", "dram"), point(one, "fp64", "dram")
    assert one.machine.sm_hz == pytest.approx(730.6e6, rel=1e-4)
    assert fp32.peak_flops_per_s == pytest.approx(28.43e12, rel=1e-3)
    assert fp64.peak_flops_per_s == pytest.approx(14.22e12, rel=1e-3)
    assert fp32.peak_bytes_per_s == pytest.approx(7887.0e9, rel=1e-4)
    assert fp32.bytes_per_s == pytest.approx(1.333e9, rel=1e-3)
    assert fp32.arithmetic_intensity == pytest.approx(0.148, abs=5e-4)
    assert fp32.flops_per_s == pytest.approx(0.1975e9, rel=1e-3)
    assert fp64.flops_per_s == 0.0
    assert fp64.roof_fraction is None
    assert (one.speed.compute_pct, one.speed.memory_pct) == pytest.approx(
        (0.0893, 1.2416), abs=1e-3
    )
    assert one.speed.classification == "Small Grid"
    assert any("hardly used" in text for text in one.remarks)
    assert one.speed.leading_stall is not None
    assert one.speed.leading_stall[0] == "no instruction"
    assert one.speed.leading_stall[1] == pytest.approx(0.3427, abs=1e-3)  # as ncu's rule says
    assert not [p for p in one.points if p.precision.startswith("tensor")]  # no work, no point


@needs_reports
@needs_library
def test_golden_numbers_of_an_a40_and_an_a100() -> None:
    writes, tensor = of_report(REPORTS / "a40_2022.1.ncu-rep")
    assert point(writes, "fp32", "dram").peak_flops_per_s == pytest.approx(27.857e12, rel=1e-4)
    assert point(writes, "fp64", "dram").peak_flops_per_s == pytest.approx(0.43527e12, rel=1e-4)
    assert point(writes, "fp32", "dram").traffic_share == pytest.approx(0.95699, abs=1e-4)
    assert writes.speed.busiest == "DRAM"
    assert tensor.tensor_pct == pytest.approx(53.957, abs=1e-3)
    assert tensor.judged is None
    assert any("tensor pipe was active" in str(note) for note in tensor.missing)
    assert not any(p.precision.startswith("tensor") for p in tensor.points)  # no x512 off Volta
    a100 = of_report(REPORTS / "cutlass_a100_2024.1.ncu-rep")[2]
    assert point(a100, "fp32", "dram").peak_flops_per_s == pytest.approx(14.528e12, rel=1e-4)
    assert point(a100, "fp32", "dram").peak_bytes_per_s == pytest.approx(1931.3e9, rel=1e-4)
    assert any("L2 and L1 traffic was not collected" in str(note) for note in a100.missing)


@needs_reports
@needs_library
def test_flops_of_2020_reports_need_a_time() -> None:
    """One run counted FLOPs and time, another only FLOPs: no rate is made up."""
    timed = of_report(next(path for path in GENE if "time_rank0" in path.name))
    assert len(timed) == 4
    work = timed[0].points[0]
    flops = 27_525_120 + 2 * 330_301_440
    assert work.flops_per_s == pytest.approx(flops / (148_571_494.1 / 1_311_406_928.5582), rel=1e-6)
    assert work.peak_flops_per_s == pytest.approx(80 * 32 * 2 * 1.3114069e9, rel=1e-6)
    assert (work.level, work.arithmetic_intensity, work.roof_fraction) == ("", None, None)
    untimed = of_report(next(path for path in GENE if "flops_rank0" in path.name))
    assert len(untimed) == 12
    assert untimed[0].points == ()
    assert any("no duration" in str(note) for note in untimed[0].missing)


@needs_reports
@needs_library
def test_a_basic_set_has_a_class_and_says_what_to_collect() -> None:
    for one in of_report(REPORTS / "a10g_11kernels_2023.1.ncu-rep"):
        assert one.points == ()
        assert any("--set roofline" in str(note) for note in one.missing)
        assert one.speed.classification


def test_fp32_and_fp64_at_dram_level() -> None:
    one = roofline_of(
        CLOCKS
        | per_cycle("f", 100, 50, 200)
        | per_cycle("d", 0, 0, 0)
        | {
            FP32: 6912,
            FP32.replace("ffma", "dfma"): 3456,
            "dram__bytes.sum.peak_sustained": 1280,
            "dram__bytes.sum.per_second": 5e11,
        }
    )
    fp32 = point(one, "fp32", "dram")
    assert fp32.flops_per_s == 550e9
    assert fp32.peak_flops_per_s == 2 * 6912 * 1e9
    assert fp32.peak_bytes_per_s == 1280e9
    assert fp32.arithmetic_intensity == pytest.approx(1.1)
    assert fp32.roof_flops_per_s == pytest.approx(1.1 * 1280e9)
    assert fp32.roof_fraction == pytest.approx(550 / 1408)
    assert fp32.is_memory_side
    assert fp32.ridge == pytest.approx(10.8)
    assert point(one, "fp64", "dram").flops_per_s == 0.0


def test_half_precision_counts_pairs() -> None:
    one = roofline_of(
        CLOCKS | per_cycle("h", 10, 20, 30) | {FP32.replace("ffma", "hfma"): 13824},
        capability="8.0",
    )
    (fp16,) = one.points
    assert fp16.flops_per_s == (2 * 10 + 2 * 20 + 4 * 30) * 1e9
    assert fp16.peak_flops_per_s == 4 * 13824 * 1e9
    assert any("upper bound" in text for text in one.remarks)


def test_packed_fp32_of_blackwell_is_counted() -> None:
    packed = {
        f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed": 10.0
        for op in ("fadd2", "fmul2", "ffma2")
    }
    one = roofline_of(CLOCKS | per_cycle("f", 1, 1, 1) | packed, capability="10.0")
    assert one.points[0].flops_per_s == (1 + 1 + 2 + 20 + 20 + 40) * 1e9


def test_a_missing_counter_makes_a_precision_missing_never_zero() -> None:
    counters = per_cycle("f", 1, 1, 1)
    counters.popitem()
    one = roofline_of(CLOCKS | counters)
    assert one.points == ()
    assert any("FLOPs were not collected" in str(note) for note in one.missing)


@pytest.mark.parametrize(
    ("capability", "fp32", "fp64"),
    [
        *[("7.0", 64, 32), ("7.5", 64, 2), ("8.0", 64, 32), ("8.6", 128, 2), ("9.0", 128, 64)],
        *[("8.9", 128, None), ("10.0", 128, 64), ("10.3", 128, None), ("12.0", 128, None)],
    ],
)
def test_peaks_from_lanes(capability: str, fp32: int, fp64: int | None) -> None:
    counts = {
        f"smsp__sass_thread_inst_executed_op_{kind}_pred_on.sum": 1e6
        for kind in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma")
    }
    one = roofline_of(
        CLOCKS | counts | {"device__attribute_multiprocessor_count": 10}, capability=capability
    )
    peaks = {p.precision: p.peak_flops_per_s for p in one.points}
    assert peaks["fp32"] == fp32 * 10 * 2 * 1e9
    assert peaks["fp64"] == (fp64 and fp64 * 10 * 2 * 1e9)
    assert one.points[0].flops_per_s == pytest.approx(4e6 / 1e-3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"dram__bytes_read.sum.per_second": 3e9, "dram__bytes_write.sum.per_second": 1e9}, 4e9),
        ({"dram__bytes.sum": 4e6}, 4e9),
        ({"dram__bytes_read.sum": 3e6, "dram__bytes_write.sum": 1e6}, 4e9),
        ({"dram__bytes_op_read.sum": 3e6, "dram__bytes_op_write.sum": 1e6}, 4e9),
        ({"dram__sectors.sum": 125_000}, 4e9),
        ({DRAM_PCT: 10.0}, 0.1 * 2 * 1e9 * 8),
        ({"dram__bytes_read.sum": 3e6}, None),
    ],
)
def test_dram_traffic_by_the_ladder(given: dict[str, float], expected: float | None) -> None:
    bus = {
        "device__attribute_max_mem_frequency_khz": 1e6,
        "device__attribute_fb_bus_width": 64,
    }
    one = roofline_of(CLOCKS | per_cycle("f", 1, 1, 1) | bus | given)
    levels = {p.level: p for p in one.points}
    if expected is None:
        assert set(levels) == {""}
        assert any("DRAM traffic was not collected" in str(note) for note in one.missing)
    else:
        assert levels["dram"].bytes_per_s == pytest.approx(expected)
        assert levels["dram"].peak_bytes_per_s == 16e9


@pytest.mark.parametrize("capability", ["8.7", "11.0", "12.1"])
def test_integrated_memory_has_no_dram_roofline(capability: str) -> None:
    bus = {"device__attribute_max_mem_frequency_khz": 1e6, "device__attribute_fb_bus_width": 64}
    one = roofline_of(CLOCKS | per_cycle("f", 1, 1, 1) | bus, capability=capability)
    assert [p.level for p in one.points] == [""]
    assert any("shares the system's memory" in str(note) for note in one.missing)


@pytest.mark.parametrize(
    ("capability", "counters", "l2", "l1"),
    [
        (
            "9.0",
            {
                "lts__lts2xbar_cycles_active.sum": (160, 1e10),
                "l1tex__lsu_writeback_active_mem_lgds.sum": (114, 1e10),
            },
            (160 * 32e9, 32e10),
            (114 * 128e9, 128e10),
        ),
        (
            "8.0",
            {
                "derived__lts__lts2xbar_bytes.sum": (5120, 1e11),
                "l1tex__lsu_writeback_active_mem_lg.sum": (108, 1e10),
            },
            (5120e9, 1e11),
            (108 * 128e9, 128e10),
        ),
        (
            "7.0",
            {"lts__t_bytes.sum": (2048, 2e11), "l1tex__t_bytes.sum": (5120, 3e11)},
            (2048e9, 2e11),
            (5120e9, 3e11),
        ),
        (
            "8.6",
            {
                "l1tex__m_xbar2l1tex_read_bytes.sum": (1024, 2e11),
                "l1tex__lsu_writeback_active_mem_lg.sum": (84, 1e10),
            },
            (1024e9, 2e11),
            (84 * 128e9, 128e10),
        ),
    ],
)
def test_caches_by_metric_generation(
    capability: str,
    counters: dict[str, tuple[float, float]],
    l2: tuple[float, float],
    l1: tuple[float, float],
) -> None:
    metrics = {f"{name}.peak_sustained": peak for name, (peak, _) in counters.items()}
    metrics |= {f"{name}.per_second": rate for name, (_, rate) in counters.items()}
    one = roofline_of(CLOCKS | per_cycle("f", 1, 1, 1) | metrics, capability=capability)
    for level, (peak, rate) in (("l2", l2), ("l1", l1)):
        found = point(one, "fp32", level)
        assert (found.peak_bytes_per_s, found.bytes_per_s) == pytest.approx((peak, rate))


def paths(work: dict[str, float], peaks: dict[str, float]) -> dict[str, float]:
    """Tensor paths: operations and peak per cycle."""
    name = "sm__ops_path_tensor_{}.sum.{}"
    found = {name.format(path, "peak_sustained"): peak for path, peak in peaks.items()}
    return found | {name.format(path, "per_cycle_elapsed"): work.get(path, 0.0) for path in peaks}


HOPPER = {
    "src_bf16_dst_fp32": 8192.0,
    "op_hgmma_src_bf16_dst_fp32_sparsity_off": 4096.0,
    "op_hgmma_src_bf16_dst_fp32_sparsity_on": 8192.0,
    "op_hmma_src_bf16_dst_fp32_sparsity_off": 2730.7,
    "src_fp16": 8192.0,
    "op_hgmma_src_fp16_sparsity_off": 4096.0,
    "op_hmma_src_fp16_dst_fp32_sparsity_off": 2730.7,
    "src_fp64": 256.0,
}


def test_the_dense_tensor_peak_is_the_roof_and_the_aggregate_the_work() -> None:
    work = {"src_bf16_dst_fp32": 1000.0, "op_hgmma_src_bf16_dst_fp32_sparsity_off": 1000.0}
    one = roofline_of(CLOCKS | paths(work, HOPPER), capability="9.0")
    (found,) = one.points
    assert (found.precision, found.flops_per_s) == ("tensor_bf16", 1000e9)
    assert found.peak_flops_per_s == 4096e9
    assert one.remarks == ()


def test_sparse_work_has_the_sparse_roof_and_legacy_work_is_named() -> None:
    sparse = {"src_bf16_dst_fp32": 10.0, "op_hgmma_src_bf16_dst_fp32_sparsity_on": 10.0}
    one = roofline_of(CLOCKS | paths(sparse, HOPPER), capability="9.0")
    assert one.points[0].peak_flops_per_s == 8192e9
    assert any("sparsity" in text for text in one.remarks)
    legacy = {"src_fp16": 10.0, "op_hmma_src_fp16_dst_fp32_sparsity_off": 10.0}
    one = roofline_of(CLOCKS | paths(legacy, HOPPER), capability="9.0")
    assert (one.points[0].precision, one.points[0].peak_flops_per_s) == ("tensor_fp16", 4096e9)
    assert any("cannot exceed 67 %" in text for text in one.remarks)


def test_paths_without_an_aggregate_add_up() -> None:
    ampere = {"src_tf32_dst_fp32_sparsity_off": 1024.0, "src_tf32_dst_fp32_sparsity_on": 2048.0}
    one = roofline_of(CLOCKS | paths({"src_tf32_dst_fp32_sparsity_off": 7.0}, ampere))
    assert [(p.precision, p.flops_per_s, p.peak_flops_per_s) for p in one.points] == [
        ("tensor_tf32", 7e9, 1024e9)
    ]
    one = roofline_of(CLOCKS | paths({"src_fp64": 5.0}, {"src_fp64": 128.0}))
    assert [(p.precision, p.peak_flops_per_s) for p in one.points] == [("tensor_fp64", 128e9)]


def test_512_operations_per_instruction_on_volta_only() -> None:
    metrics = {
        "sm__inst_executed_pipe_tensor.sum.peak_sustained": 160.0,
        "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed": 80.0,
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active": 50.0,
    }
    volta = roofline_of(CLOCKS | metrics, capability="7.0")
    assert [(p.precision, p.flops_per_s, p.peak_flops_per_s) for p in volta.points] == [
        ("tensor_fp16", 512 * 80e9, 512 * 160e9)
    ]
    assert volta.tensor_pct is None
    of_lanes = {"device__attribute_multiprocessor_count": 80.0, **dict(list(metrics.items())[1:])}
    (found,) = roofline_of(CLOCKS | of_lanes, capability="7.0").points
    assert found.peak_flops_per_s == 80 * 1024 * 1e9
    ampere = roofline_of(CLOCKS | metrics | per_cycle("f", 1, 1, 1), capability="8.0")
    assert [p.precision for p in ampere.points] == ["fp32"]
    assert ampere.tensor_pct == 50.0
    assert ampere.judged is None


def test_type_names() -> None:
    assert type_name("bf16_dst_fp32") == "tensor_bf16"
    assert type_name("fp16_dst_fp16") == "tensor_fp16_dst_fp16"
    assert type_name("int8") == "tensor_int8"


def test_a_wanted_clock_moves_the_peaks_of_the_sms_only() -> None:
    metrics = (
        CLOCKS
        | per_cycle("f", 1, 1, 1)
        | {
            FP32: 100,
            "dram__bytes.sum.peak_sustained": 10,
            "dram__bytes.sum.per_second": 1e9,
            "l1tex__t_bytes.sum.peak_sustained": 10,
            "l1tex__t_bytes.sum.per_second": 1e9,
            "device__attribute_max_gpu_frequency_khz": 2e6,
        }
    )
    profiled, fastest = roofline_of(metrics), roofline_of(metrics, clock="max")
    chosen = roofline_of(metrics, clock=1.5e9)
    for level, factor in (("dram", 1.0), ("l1", 2.0)):
        before, after = point(profiled, "fp32", level), point(fastest, "fp32", level)
        assert after.flops_per_s == before.flops_per_s
        assert after.peak_flops_per_s == 2 * (before.peak_flops_per_s or 0)
        assert after.peak_bytes_per_s == factor * (before.peak_bytes_per_s or 0)
    assert point(chosen, "fp32", "l1").peak_bytes_per_s == 15e9
    assert (fastest.machine.clock, fastest.machine.clock_hz) == ("max", 2e9)


@pytest.mark.parametrize(
    ("compute", "memory", "waves", "title"),
    [
        (80.0, 10.0, 0.1, "High Throughput"),
        (10.0, 80.0, None, "High Throughput"),
        (59.9, 20.0, 0.99, "Small Grid"),
        (59.9, 59.9, 1.0, "Latency Issue"),
        (20.0, 20.0, None, None),
        (60.0, 50.0, 0.1, "High Compute Throughput"),
        (50.0, 60.0, 0.1, "High Memory Throughput"),
        (60.0, 50.1, 0.1, "Balanced Throughput"),
        (79.9, 79.9, 5.0, "Balanced Throughput"),
        (None, 50.0, 5.0, None),
        (50.0, None, 5.0, None),
    ],
)
def test_classes_at_their_thresholds(
    compute: float | None, memory: float | None, waves: float | None, title: str | None
) -> None:
    assert classify(compute, memory, waves) == title


def test_limiters_stalls_and_the_busiest_unit() -> None:
    stall = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    metrics = {
        "launch__occupancy_limit_registers": 4.0,
        "launch__occupancy_limit_shared_mem": 4.0,
        "launch__occupancy_limit_warps": 8.0,
        stall.format("long_scoreboard"): 6.0,
        stall.format("selected"): 9.0,
        stall.format("wait"): 2.0,
        "smsp__average_warp_latency_per_inst_issued.ratio": 12.0,
        "l1tex__a.avg": 5.0,
        "lts__b.avg": 70.0,
    }
    breakdown = "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    frames = frames_of(metrics, texts={breakdown: "l1tex__a.avg,lts__b.avg,absent"})
    (one,) = launch_rooflines(*frames)
    assert one.speed.limiters == ("registers", "shared memory")
    assert one.speed.stalls == (("long scoreboard", 6.0), ("wait", 2.0))
    assert one.speed.leading_stall == ("long scoreboard", 0.5)
    assert one.speed.busiest == "L2"


@needs_library
@needs_reports
def test_what_the_compute_percentage_is_of() -> None:
    """A plain loop over global memory is busy with loads and stores, not with arithmetic."""
    kernels = {
        one.base_name: variants([one])[0]
        for one in of_report(REPORTS / "a10g_11kernels_2023.1.ncu-rep")
    }
    pipes = {name: one.first.speed.busiest_pipe for name, one in kernels.items()}
    assert pipes["gmem_coalesce"] == pipes["smem_blocking"] == "load/store"
    assert pipes["ampere_sgemm_128x64_nn"] == "instruction issue"
    assert kernels["gmem_coalesce"].verdict == (
        "Runs near the limit of compute, load/store pipe (91 %; memory 91 %). "
        "Try wider loads and stores, and more reuse in registers."
    )
    assert kernels["one_blocktiling"].verdict.startswith(
        "Busy with loads and stores (their pipe 65 %; L1 65 %)."
    )
    others = [of_report(REPORTS / f"{name}.ncu-rep") for name in TITLES if "a10g" not in name]
    assert [{one.speed.busiest_pipe for one in report} for report in others] == [
        {"instruction issue", "ALU"},
        {"tensor"},
        {"ADU"},
    ]


def test_variants_are_grouped_and_never_summed() -> None:
    launches = of_report(SAMPLE)
    (group,) = variants([launches[3], launches[3]])
    assert len(group.launches) == 2
    assert group.total_ns == 2 * (launches[3].duration_ns or 0)
    assert group.typical.points == launches[3].points
    assert group.spread("fp32", "dram") == (launches[3].points[3].flops_per_s,) * 2


def test_the_simulated_sample_gives_back_its_truth() -> None:
    import json

    truth = json.loads(SAMPLE.with_name("kernels_h100.truth.json").read_text())["launches"]
    launches = of_report(SAMPLE)
    assert len(launches) == len(truth)
    for one, true in zip(launches, truth, strict=True):
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


def test_nvidias_verdict_stands_in_where_the_metrics_are_missing() -> None:
    launches, metrics, _ = frames_of(CLOCKS)
    told = Rule(0, "SOLBottleneck", "SpeedOfLight", "optimization", "Latency Issue", "...")
    (one,) = launch_rooflines(launches, metrics, framed(RULES, [told]))
    assert one.speed.classification == "Latency Issue"
    assert one.remarks == ()


def test_what_damage_left_makes_no_point() -> None:
    one = roofline_of(CLOCKS | per_cycle("f", 1e300, 1, 1) | per_cycle("d", -5, 1, 1))
    assert one.points == ()


def test_a_rule_says_once_the_most_it_promises_and_nothing_where_it_promises_none() -> None:
    promised = [("A", 5.0), ("B", math.nan), ("A", 9.0), ("C", 0.0), ("D", -1.0), ("E", math.inf)]
    told = [Rule(3, name, "S", "optimization", name, "...", speedup) for name, speedup in promised]
    ((launch, (found,)),) = estimates(framed(RULES, told)).items()
    assert (launch, found.rule, found.speedup_pct) == (3, "A", 9.0)
