"""Speed of light, occupancy and stalls of a launch, and its class in NVIDIA's words.

Thresholds are those of the rule SOLBottleneck, the same from ncu 2022.3 to 2025.3 at least.
"""

import re

from nsightpy.analysis.roofline.readings import Readings
from nsightpy.results.rooflines import SpeedOfLight

BOUND_PCT = 80.0
LATENCY_PCT = 60.0
BALANCE_POINTS = 10.0
HIGH, SMALL, LATENCY = "High Throughput", "Small Grid", "Latency Issue"
COMPUTE, MEMORY = "High Compute Throughput", "High Memory Throughput"
BALANCED = "Balanced Throughput"

_COMPUTE_PCT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_MEMORY_PCT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
_LEVELS = {
    "DRAM": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "L2": (
        "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "lts__t_throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    "L1": (
        "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
}
_UNITS = {"dram": "DRAM", "fbp": "DRAM", "fbpa": "DRAM", "l1tex": "L1", "lts": "L2", "ltc": "L2"}
LOAD_STORE, ISSUE, TENSOR = "load/store", "instruction issue", "tensor"
# What the compute percentage is of, by its largest part.
_PIPES = (
    (re.compile(r"sm__inst_executed_pipe_(?:lsu|tex)|sm__mio|sm__memory"), LOAD_STORE),
    (re.compile(r"sm__issue_active|sm__inst_(?:executed|issued)\."), ISSUE),
    (re.compile(r"sm__pipe_(?:tensor|tc)_|sm__inst_executed_pipe_tensor"), TENSOR),
    (re.compile(r"sm__(?:inst_executed_)?pipe_([a-z]+[0-9]*)"), ""),
)
_LIMITS = {
    "registers": "registers",
    "shared_mem": "shared memory",
    "warps": "warps per block",
    "blocks": "blocks per SM",
    "barriers": "barriers",
}
_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_NO_STALL = ("selected", "not_selected")


def speed_of_light(readings: Readings) -> SpeedOfLight:
    """Everything that the sections SpeedOfLight, Occupancy and WarpStateStats would show."""
    compute, memory = readings.get(_COMPUTE_PCT), readings.get(_MEMORY_PCT)
    waves = readings.get("launch__waves_per_multiprocessor")
    # what keeps more blocks from an SM: the smallest of the limits, all of them on ties
    limits = [(readings.get(f"launch__occupancy_limit_{n}"), word) for n, word in _LIMITS.items()]
    least = min((limit for limit, _ in limits if limit is not None), default=-1.0)
    return SpeedOfLight(
        compute_pct=compute,
        memory_pct=memory,
        waves=waves,
        theoretical_occupancy_pct=readings.get("sm__maximum_warps_per_active_cycle_pct"),
        achieved_occupancy_pct=readings.get("sm__warps_active.avg.pct_of_peak_sustained_active"),
        limiters=tuple(word for limit, word in limits if limit == least),
        stalls=_stalls(readings),
        latency_cycles=readings.get("smsp__average_warp_latency_per_inst_issued.ratio"),
        busiest=_busiest(readings),
        busiest_pipe=_busiest_pipe(readings),
        classification=classify(compute, memory, waves),
    )


def classify(
    compute_pct: float | None, memory_pct: float | None, waves: float | None
) -> str | None:
    """NVIDIA's title for a launch; None where one of the figures that decide is missing."""
    if compute_pct is None or memory_pct is None:
        return None
    if max(compute_pct, memory_pct) >= BOUND_PCT:
        return HIGH
    if max(compute_pct, memory_pct) < LATENCY_PCT:
        if waves is None:
            return None
        return SMALL if waves < 1 else LATENCY
    if abs(compute_pct - memory_pct) >= BALANCE_POINTS:
        return COMPUTE if compute_pct > memory_pct else MEMORY
    return BALANCED


def _stalls(readings: Readings) -> tuple[tuple[str, float], ...]:
    """Reasons and cycles per issued instruction, longest first."""
    stalls = [
        (match[1].replace("_", " "), value)
        for name, value in readings.numbers.items()
        if (match := _STALL.fullmatch(name)) and match[1] not in _NO_STALL and value > 0
    ]
    return tuple(sorted(stalls, key=lambda stall: (-stall[1], stall[0])))


def _busiest(readings: Readings) -> str:
    """The memory unit that the memory percentage comes from: DRAM, L2 or L1; "" if not known."""
    if part := _largest_part(readings, _MEMORY_PCT):
        return _UNITS.get(part.partition("__")[0], "")
    levels = ((readings.get(*metrics), name) for name, metrics in _LEVELS.items())
    return max(((n, name) for n, name in levels if n is not None), default=(0.0, ""))[1]


def _busiest_pipe(readings: Readings) -> str:
    """What the compute percentage is of: load/store, tensor, FMA, ...; "" if not known."""
    part = _largest_part(readings, _COMPUTE_PCT)
    for pattern, name in _PIPES:
        if match := pattern.match(part):
            return name or match[1].upper().removesuffix("HEAVY")
    return ""


def _largest_part(readings: Readings, metric: str) -> str:
    """The metric that a throughput, the largest of several, comes from; "" if not known."""
    parts = (part.strip() for part in readings.texts.get(f"breakdown:{metric}", "").split(","))
    measured = [(value, part) for part in parts if (value := readings.get(part)) is not None]
    return max(measured, default=(0.0, ""))[1]
