"""What `ncu --csv --page raw` would print for kernels whose speed is made up."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass

ABOUT = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
CLOCK_HZ = 1.755e9
DRAM_HZ, DRAM_BYTES = 2.619e9, 1280
LANES = 16896


@dataclass(frozen=True)
class MeasuredKernel:
    """One profiled launch: name as ncu prints it, shape, ns, throughputs in %, work in FLOP/s."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    duration_ns: int
    compute_pct: float | None = 50.0
    memory_pct: float | None = 50.0
    flops_per_s: float | None = None
    waves: float = 4.0
    clock_hz: float = CLOCK_HZ


def raw_page(kernels: Iterable[MeasuredKernel], process: str = "train.py") -> str:
    """The page with its header, its row of units, and one row per kernel."""
    rows = [(one, _metrics(one)) for one in kernels]
    names = list(dict.fromkeys(name for _, metrics in rows for name in metrics))
    units = {name: unit for _, metrics in rows for name, (_, unit) in metrics.items()}
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*ABOUT, *names])
    writer.writerow([*[""] * len(ABOUT), *(units[name] for name in names)])
    for number, (one, metrics) in enumerate(rows):
        about = (number, 4242, process, "127.0.0.1", one.name, 1, 7, one.block, one.grid, 0, "9.0")
        values = (metrics[name][0] if name in metrics else "" for name in names)
        writer.writerow([*map(str, about), *values])
    return text.getvalue()


def _metrics(one: MeasuredKernel) -> dict[str, tuple[str, str]]:
    """Values and units by metric name."""
    found = {
        "gpu__time_duration.sum": (str(one.duration_ns), "ns"),
        "launch__waves_per_multiprocessor": (f"{one.waves:.2f}", ""),
        "sm__cycles_elapsed.avg.per_second": (f"{one.clock_hz:.0f}", "hz"),
        "smsp__cycles_elapsed.avg.per_second": (f"{one.clock_hz:.0f}", "hz"),
    }
    for name, percent in (
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", one.compute_pct),
        ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", one.memory_pct),
    ):
        if percent is not None:
            found[name] = (f"{percent:.6f}", "%")
    if one.flops_per_s is not None and one.memory_pct is not None:
        traffic = one.memory_pct / 100 * DRAM_HZ * DRAM_BYTES
        counted = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
        per_cycle = one.flops_per_s / 2 / one.clock_hz
        found |= {
            "dram__bytes.sum.per_second": (f"{traffic:.0f}", "byte/s"),
            "dram__bytes.sum.peak_sustained": (str(DRAM_BYTES), "byte/cycle"),
            "dram__cycles_elapsed.avg.per_second": (f"{DRAM_HZ:.0f}", "hz"),
            "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": (
                str(LANES),
                "inst/cycle",
            ),
            counted.format("ffma"): (f"{per_cycle:.6f}", "inst/cycle"),
            counted.format("fadd"): ("0", "inst/cycle"),
            counted.format("fmul"): ("0", "inst/cycle"),
        }
    return found
