"""What a launch did and what the machine could do: FLOP/s of each precision, bytes/s of each level.

Formulas: SpeedOfLight_(Hierarchical)RooflineChart of Nsight Compute 2020 to 2026.

Work: a fused multiply and add is two; half precision instructions are counted as the pairs of half2
(an upper bound for scalar half code). A precision with one of its counters missing is not computed
at all. Operations of tensor cores are counted per path (sm__ops_path_tensor_*) since 2025.1. The
aggregate path of a type counts all its sub-paths, and its peak is the sparse one: achieved work is
the aggregate's, the dense ceiling that of the fastest sub-path without sparsity. Before,
instructions were counted, which are 512 operations on Volta only; elsewhere no figure is made up
from them.

Traffic: L2 and L1 counted stores until 2022 and count read returns only since: levels are not
comparable across that change.
"""

import re
from collections.abc import Sequence

from nsightpy.analysis.roofline.readings import LANES, VOLTA, Rate, Readings
from nsightpy.analysis.thresholds import MATERIAL

# The letter of the counters, and what one instruction does: of half2 two.
_SCALARS = {"fp64": ("d", 1), "fp32": ("f", 1), "fp16": ("h", 2)}
# Packed FP32 of Blackwell, where it was counted.
_PACKED = (("fadd2", 2), ("fmul2", 2), ("ffma2", 4))
_COUNTER = "{}__sass_thread_inst_executed_op_{}_pred_on.sum{}"
VOLTA_TENSOR_OPS_PER_SM = 1024
VOLTA_OPS_PER_INSTRUCTION = 512
# How busy a tensor pipe is, in % of its peak.
_PATH = re.compile(
    r"sm__ops_path_tensor_(?:op_(?P<op>\w+?)_)?src_(?P<type>\w+?)(?:_sparsity_(?P<sparsity>on|off))?\.sum"
)
ACTIVE = re.compile(
    r"sm__(?:pipe_tensor|inst_executed_pipe_tensor)\w*\.avg\.pct_of_peak_sustained_(?:active|elapsed)"
)
_VOLTA = "inst_executed_pipe_tensor.sum"
L2_BYTES_PER_CYCLE = 32
L1_BYTES_PER_CYCLE = 128
SECTOR_BYTES = 32
READ_RETURNS = "read returns only"
ALL_TRAFFIC = "reads and writes"
# Counters, the bytes of each count, and what they count.
_L2_WAYS = (
    ("derived__lts__lts2xbar_bytes", 1, READ_RETURNS),
    ("lts__lts2xbar_cycles_active", L2_BYTES_PER_CYCLE, READ_RETURNS),
    ("l1tex__m_xbar2l1tex_read_bytes", 1, READ_RETURNS),
    ("lts__t_bytes", 1, ALL_TRAFFIC),
)


def scalar_work(readings: Readings) -> list[Rate]:
    """FP64, FP32 and FP16 outside the tensor cores, where they were counted; zero is a count."""
    rates = ((of, _rate(readings, of), scalar_peak(readings, of)) for of in _SCALARS)
    return [Rate(of, rate, peak) for of, rate, peak in rates if rate is not None]


def scalar_peak(readings: Readings, precision: str) -> float | None:
    """Peak FLOP/s at the profiled clock: from the counters, else SMs x lanes x 2 x clock."""
    letter, weight = _SCALARS[precision]
    clock = readings.sm_hz
    if not clock:
        return None
    fma = readings.get(_COUNTER.format("sm", f"{letter}fma", ".peak_sustained"))
    if fma is not None:
        return 2 * weight * fma * clock
    lanes, count = LANES.get(precision, {}).get(readings.capability), readings.sm_count
    return 2 * lanes * count * clock if lanes and count else None


def _rate(r: Readings, precision: str) -> float | None:
    weight = _SCALARS[precision][1]
    per_cycle = _instructions(r, precision, "smsp", ".per_cycle_elapsed")
    if per_cycle is not None and r.smsp_hz:
        return per_cycle * weight * r.smsp_hz
    for unit in ("smsp", "sm"):
        amount = _instructions(r, precision, unit)
        if amount is not None:
            return r.rate(amount * weight)
    return None


def _instructions(r: Readings, precision: str, unit: str, rollup: str = "") -> float | None:
    """The instructions counted, a fused one as two; None where a counter is missing."""
    letter = _SCALARS[precision][0]
    add, mul, fma = (
        r.get(_COUNTER.format(unit, f"{letter}{name}", rollup)) for name in ("add", "mul", "fma")
    )
    if add is None or mul is None or fma is None:
        return None
    amount = add + mul + 2 * fma
    if precision != "fp32":
        return amount
    packed = ((r.get(_COUNTER.format(unit, name, rollup)) or 0.0) * n for name, n in _PACKED)
    return amount + sum(packed)


def tensor_work(readings: Readings) -> list[Rate]:
    """The tensor types with work in this launch."""
    if readings.capability in VOLTA:
        return _volta(readings)
    paths = {match[0]: match for name in readings.numbers if (match := _PATH.match(name))}
    aggregates = [path["type"] for path in paths.values() if _is_aggregate(path)]
    groups: dict[str, list[re.Match[str]]] = {}
    for path in paths.values():
        # by the type of the aggregate that counts it, else by its own
        counted_by = [of for of in aggregates if f"{path['type']}_dst".startswith(f"{of}_dst")]
        groups.setdefault(max(counted_by, key=len, default=path["type"]), []).append(path)
    works = (_path_work(readings, name, group) for name, group in groups.items())
    return [work for work in works if work is not None]


def _is_aggregate(path: re.Match[str]) -> bool:
    return not path["op"] and not path["sparsity"]


def _path_work(r: Readings, name: str, paths: Sequence[re.Match[str]]) -> Rate | None:
    """The work of one type; None without any, or where a part of it was not counted."""
    rates = {path[0]: r.per_second(path[0], r.sm_hz) for path in paths}
    parts = [path for path in paths if not _is_aggregate(path)]
    whole = [path for path in paths if _is_aggregate(path)]
    counted = [rates[path[0]] for path in whole or paths]
    achieved = sum(rate or 0.0 for rate in counted)
    if None in counted or not achieved:
        return None
    used = [path for path in parts if rates[path[0]]]
    sparse = any(path["sparsity"] == "on" for path in used)
    ceilings = [path for path in parts if (path["sparsity"] == "on") == sparse] or whole
    peak = max((_peak(r, path[0]) or 0.0 for path in ceilings), default=0.0) or None
    # the usual FP32 result is left out of the name
    kind = f"tensor_{name.removesuffix('_dst_fp32')}"
    reach, remark = max((_peak(r, path[0]) or 0.0 for path in used), default=0.0), ""
    if sparse:
        remark = f"{kind} uses structured sparsity; its roof is the sparse peak."
    elif peak and 0 < reach < (1 - MATERIAL) * peak:
        ops = ", ".join(sorted({path["op"] for path in used if path["op"]}))
        remark = (
            f"{kind} runs as {ops}, which cannot exceed {100 * reach / peak:.0f} % of its roof; "
            "the newer tensor instructions can."
        )
    return Rate(kind, achieved, peak, remark)


def _peak(r: Readings, metric: str) -> float | None:
    width = r.get(f"{metric}.peak_sustained")
    if width is not None and r.sm_hz:
        return width * r.sm_hz
    return r.get(f"{metric}.peak_sustained_elapsed.per_second")


def _volta(r: Readings) -> list[Rate]:
    clock, count, width = r.sm_hz, r.sm_count, r.get(f"sm__{_VOLTA}.peak_sustained")
    rate = r.per_second(f"smsp__{_VOLTA}", r.smsp_hz) or r.per_second(f"sm__{_VOLTA}")
    if not rate:
        return []
    peak = VOLTA_TENSOR_OPS_PER_SM * count if count else None
    if width is not None:
        peak = VOLTA_OPS_PER_INSTRUCTION * width
    work = VOLTA_OPS_PER_INSTRUCTION * rate
    return [Rate("tensor_fp16", work, peak * clock if peak and clock else None)]


def traffic(readings: Readings, clock_factor: float = 1.0) -> list[Rate]:
    """The levels whose traffic was measured; the factor scales the peak of L1, in the SM's domain.

    L2 and DRAM have clocks of their own, and keep those of the profile.
    """
    l2_hz = readings.get("lts__cycles_elapsed.avg.per_second")
    l1_hz = readings.get("l1tex__cycles_elapsed.avg.per_second")
    writeback = readings.l1_writeback
    derived = writeback.replace(
        "l1tex__lsu_writeback_active", "derived__l1tex__lsu_writeback_bytes"
    )
    l1_ways = (
        (derived, 1, READ_RETURNS),
        (writeback, L1_BYTES_PER_CYCLE, READ_RETURNS),
        ("l1tex__t_bytes", 1, ALL_TRAFFIC),
    )
    levels = (
        _dram(readings),
        _cache(readings, "l2", l2_hz, _L2_WAYS),
        _cache(readings, "l1", l1_hz and l1_hz * clock_factor, l1_ways),
    )
    return [level for level in levels if level is not None]


def peak_dram(readings: Readings) -> float | None:
    """Peak bytes/s of device memory: at the profiled clock, else 2 x maximum clock x bus width."""
    if not readings.has_dram_roofline:
        return None
    bytes_per_cycle = readings.get("dram__bytes.sum.peak_sustained")
    cycles_per_s = readings.get("dram__cycles_elapsed.avg.per_second")
    if bytes_per_cycle is not None and cycles_per_s is not None:
        return bytes_per_cycle * cycles_per_s
    clock = readings.get(
        "device__attribute_max_mem_frequency_khz", "device__attribute_memory_clock_rate"
    )
    width = readings.get(
        "device__attribute_fb_bus_width", "device__attribute_global_memory_bus_width"
    )
    return 2 * clock * 1e3 * width / 8 if clock and width else None


def _dram(r: Readings) -> Rate | None:
    peak = peak_dram(r)
    rate = r.get("dram__bytes.sum.per_second")
    if rate is None:
        rate = r.total("dram__bytes_read.sum.per_second", "dram__bytes_write.sum.per_second")
    if rate is None:
        rate = r.rate(_dram_bytes(r))
    if rate is None and peak is not None:
        share = r.get(
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        )
        rate = None if share is None else share / 100 * peak
    return None if rate is None else Rate("dram", rate, peak, ALL_TRAFFIC)


def _dram_bytes(r: Readings) -> float | None:
    for unit, size in (("bytes", 1), ("sectors", SECTOR_BYTES)):
        for parts in (("",), ("_read", "_write"), ("_op_read", "_op_write")):
            amount = r.total(*(f"dram__{unit}{part}.sum" for part in parts))
            if amount is not None:
                return amount * size
    return None


def _cache(
    r: Readings, level: str, clock: float | None, ways: tuple[tuple[str, int, str], ...]
) -> Rate | None:
    """The first counter with both its rate and its peak; the amount per time for the last one."""
    for counter, size, counted in ways:
        rate, width = r.get(f"{counter}.sum.per_second"), r.get(f"{counter}.sum.peak_sustained")
        if rate is not None and width is not None and clock:
            return Rate(level, rate * size, width * size * clock, counted)
    counter, size, counted = ways[-1]
    rate = r.per_second(f"{counter}.sum")
    return None if rate is None else Rate(level, rate * size, None, counted)
