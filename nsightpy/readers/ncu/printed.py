"""What ncu prints: labels in place of metrics' names, numbers of any locale, units with any prefix.

Labels changed over the years; a label that stands for different metrics in different sections is
looked up by both. `--print-metric-name name` (ncu 2024 on) makes their table unnecessary. Numbers
go back to base units: ns, byte, hz, and rates and counts of these. Prefixes are powers of 1000.
"""

import re
from collections.abc import Iterable
from math import isfinite

_SPEED = "gpu speed of light throughput"
_LABELS = {
    "compute (sm) throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "compute (sm) [%]": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sm [%]": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "sol sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory [%]": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "sol memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram throughput": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "sol dram": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "sol fb": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1/tex cache throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "sol l1/tex cache": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l2 cache throughput": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "sol l2 cache": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "duration": "gpu__time_duration.sum",
    "elapsed cycles": "gpc__cycles_elapsed.max",
    "sm frequency": "gpc__cycles_elapsed.avg.per_second",
    "dram frequency": "dram__cycles_elapsed.avg.per_second",
    "sm active cycles": "sm__cycles_active.avg",
    "executed ipc active": "sm__inst_executed.avg.per_cycle_active",
    "executed ipc elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
    "issued ipc active": "sm__inst_issued.avg.per_cycle_active",
    "mem busy": "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",
    "max bandwidth": "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed",
    "mem pipes busy": "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1/tex hit rate": "l1tex__t_sector_hit_rate.pct",
    "l2 hit rate": "lts__t_sector_hit_rate.pct",
    "one or more eligible": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "issued warp per scheduler": "smsp__issue_active.avg.per_cycle_active",
    "no eligible": "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
    "active warps per scheduler": "smsp__warps_active.avg.per_cycle_active",
    "eligible warps per scheduler": "smsp__warps_eligible.avg.per_cycle_active",
    "warp cycles per issued instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
    "warp cycles per executed instruction": "smsp__average_warps_active_per_inst_executed.ratio",
    "avg. active threads per warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "avg. not predicated off threads per warp": (
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
    ),
    "executed instructions": "smsp__inst_executed.sum",
    "issued instructions": "smsp__inst_issued.sum",
    "block size": "launch__block_size",
    "grid size": "launch__grid_size",
    "registers per thread": "launch__registers_per_thread",
    "shared memory configuration size": "launch__shared_mem_config_size",
    "driver shared memory per block": "launch__shared_mem_per_block_driver",
    "dynamic shared memory per block": "launch__shared_mem_per_block_dynamic",
    "static shared memory per block": "launch__shared_mem_per_block_static",
    "# sms": "launch__sm_count",
    "threads": "launch__thread_count",
    "waves per sm": "launch__waves_per_multiprocessor",
    "stack size": "launch__stack_size",
    "cluster size": "launch__cluster_size",
    "block limit sm": "launch__occupancy_limit_blocks",
    "block limit registers": "launch__occupancy_limit_registers",
    "block limit shared mem": "launch__occupancy_limit_shared_mem",
    "block limit warps": "launch__occupancy_limit_warps",
    "block limit barriers": "launch__occupancy_limit_barriers",
    "theoretical active warps per sm": "sm__maximum_warps_avg_per_active_cycle",
    "theoretical occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "achieved occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "achieved active warps per sm": "sm__warps_active.avg.per_cycle_active",
}
_BY_SECTION = {
    (_SPEED, "memory throughput"): (
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    ),
    ("memory workload analysis", "memory throughput"): "dram__bytes.sum.per_second",
}


def metric_of(section: str, label: str) -> str:
    """The metric that a details row is about; "Section: Label" where no table knows it."""
    if "__" in label:
        return label
    heading = section.strip().lower()
    heading = _SPEED if heading == "gpu speed of light" else heading
    key = label.strip().lower()
    return _BY_SECTION.get((heading, key)) or _LABELS.get(key) or f"{section.strip()}: {label}"


_TIMES = {
    **dict.fromkeys(("nsecond", "ns"), 1.0),
    **dict.fromkeys(("usecond", "us"), 1e3),
    **dict.fromkeys(("msecond", "ms"), 1e6),
    **dict.fromkeys(("second", "s"), 1e9),
}
_PREFIXES = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_COUNTED = ("byte", "hz", "inst", "sector", "cycle", "request", "warp", "thread", "block", "op")
_GROUPED = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GERMAN = re.compile(
    r"-?(?:\d{1,3}(?:\.\d{3})+,\d+|\d+,(?!\d{3}\b)\d+|0,\d+|\d{1,3}(?:\.\d{3}){2,})"
)
_WITH_INSTANCES = re.compile(r"\s*\(.*\)\s*$")
MISSING = ("", "n/a", "nan", "-nan", "inf", "-inf", "no data")


def base_unit(unit: str) -> tuple[str, float]:
    """The base unit of a printed unit, and by what to multiply: "Gbyte/second" is byte/s, 1e9."""
    whole, slash, per = unit.partition("/")
    if not slash:
        if whole in _TIMES:
            return "ns", _TIMES[whole]
        return _counted(whole)
    name, factor = _counted(whole)
    if per in _TIMES:
        factor *= _TIMES["second"] / _TIMES[per]
        return ("hz" if name == "cycle" else f"{name}/s"), factor
    below, divisor = _counted(per)
    return f"{name}/{below}", factor / divisor


def _counted(word: str) -> tuple[str, float]:
    if word.lower() in ("hz", "khz", "mhz", "ghz") and word != "hz":
        return "hz", _PREFIXES.get(word[0], 1.0) if len(word) == 3 else 1.0
    if word[:1] in _PREFIXES and word[1:] in _COUNTED:
        return word[1:], _PREFIXES[word[0]]
    return word, 1.0


def is_german(cells: Iterable[str]) -> bool:
    """Whether these cells were printed with comma decimals: some cannot be read otherwise."""
    german = False
    for cell in cells:
        text = _WITH_INSTANCES.sub("", cell)
        if _GERMAN.fullmatch(text):
            german = True
        elif _GROUPED.fullmatch(text) and ("." in text or text.count(",") > 1):
            return False
    return german


def number(cell: str, *, german: bool = False) -> float | None:
    """The number in a cell; None for a text and for what ncu prints where it has no value.

    Of an instanced value, "7 (3; 4)", the aggregate.
    """
    text = _WITH_INSTANCES.sub("", cell).strip()
    if text.lower() in MISSING:
        return None
    text = text.replace(".", "").replace(",", ".") if german else text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
