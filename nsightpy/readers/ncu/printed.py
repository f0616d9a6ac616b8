"""What ncu prints: labels in place of metrics' names, numbers of any locale, units with any prefix.

Labels changed over the years; those are known that rooflines rest on. `--print-metric-name name`
(ncu 2024 on) makes their table unnecessary. Numbers go back to base units: ns, byte, hz, and rates
and counts of these. Prefixes are powers of 1000.
"""

import re
from collections.abc import Iterable
from math import isfinite

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
    "warp cycles per issued instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
    "block size": "launch__block_size",
    "grid size": "launch__grid_size",
    "# sms": "launch__sm_count",
    "waves per sm": "launch__waves_per_multiprocessor",
    "block limit sm": "launch__occupancy_limit_blocks",
    "block limit registers": "launch__occupancy_limit_registers",
    "block limit shared mem": "launch__occupancy_limit_shared_mem",
    "block limit warps": "launch__occupancy_limit_warps",
    "block limit barriers": "launch__occupancy_limit_barriers",
    "theoretical occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "achieved occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
_MEMORY_THROUGHPUT = {
    "GPU Speed Of Light": _LABELS["memory [%]"],
    "GPU Speed Of Light Throughput": _LABELS["memory [%]"],
    "Memory Workload Analysis": "dram__bytes.sum.per_second",
}


def metric_of(section: str, label: str) -> str:
    """The metric that a details row is about; "Section: Label" where no table knows it."""
    if "__" in label:
        return label
    key, heading = label.strip().lower(), section.strip()
    known = _MEMORY_THROUGHPUT.get(heading) if key == "memory throughput" else _LABELS.get(key)
    return known or f"{heading}: {label}"


_TIMES = {
    **dict.fromkeys(("nsecond", "ns"), 1.0),
    **dict.fromkeys(("usecond", "us"), 1e3),
    **dict.fromkeys(("msecond", "ms"), 1e6),
    **dict.fromkeys(("second", "s"), 1e9),
}
_PREFIXES = {"K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_PREFIXED = re.compile("([KkMGTP])(byte|[Hh]z|inst|sector|cycle|request|warp|thread|block|op)")
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
    match = _PREFIXED.fullmatch(word)
    return (match[2].lower(), _PREFIXES[match[1]]) if match else (word, 1.0)


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
