"""What `ncu --csv --page raw` would print about kernels that never ran.

A simulated kernel's work and traffic are given: its duration follows from the peaks of an H100 PCIe
and how well it is said to use them, its counters from all of these. Of a measured one the speed is.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

from simulator.catalogue import Extent

SMS, SM_HZ = 114, 1.103e9
DRAM_HZ, DRAM_BYTES_PER_CYCLE = 1.593e9, 1280
L2_HZ, L2_SLICES, L2_BYTES = 1.094e9, 160, 32
L1_BYTES = 128
LANES = {"f": 128, "d": 64, "h": 128}
DEVICE: dict[str, float | str] = {
    "display_name": "NVIDIA H100 PCIe",
    "compute_capability_major": 9,
    "compute_capability_minor": 0,
    "multiprocessor_count": SMS,
    "max_gpu_frequency_khz": 1_755_000,
    "max_mem_frequency_khz": 1_593_000,
    "fb_bus_width": 5120,
}
TENSOR_OPS = {
    "op_hgmma_src_bf16_dst_fp32_sparsity_off": 4096,
    "op_hgmma_src_bf16_dst_fp32_sparsity_on": 8192,
    "op_hmma_src_bf16_dst_fp32_sparsity_off": 2730.666667,
    "op_hgmma_src_tf32_dst_fp32_sparsity_off": 2048,
    "op_hgmma_src_tf32_dst_fp32_sparsity_on": 4096,
    "src_bf16_dst_fp32": 8192,
    "src_tf32_dst_fp32": 4096,
}
PEAKS = {
    "dram": DRAM_BYTES_PER_CYCLE * DRAM_HZ,
    "l2": L2_SLICES * L2_BYTES * L2_HZ,
    "l1": SMS * L1_BYTES * SM_HZ,
    "fp32": 2 * SMS * LANES["f"] * SM_HZ,
    "bf16": SMS * 4096 * SM_HZ,
    "tf32": SMS * 2048 * SM_HZ,
}
ID_COLUMNS = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
LAUNCH_NS = 2_600
ELAPSED = "avg.pct_of_peak_sustained_elapsed"
EXECUTED = "sass_thread_inst_executed_op_"
# The clock and the memory of the GPU of measured kernels.
MEASURED_HZ, MEASURED_DRAM_HZ, MEASURED_LANES = 1.755e9, 2.619e9, 16896

# name, base unit, value (a text is printed as it is)
Metric = tuple[str, str, float | str]


@dataclass(frozen=True)
class SimulatedKernel:
    """One launch: FLOP by kind, bytes by level (as read returns for the caches), and efficiency."""

    name: str
    grid: Extent
    block: Extent
    blocks_per_sm: int
    fma: float = 0.0
    add: float = 0.0
    tensor: dict[str, float] = field(default_factory=dict)
    dram_read: float = 0.0
    dram_write: float = 0.0
    l2_read: float = 0.0
    l1_read: float = 0.0
    efficiency: float = 0.9

    @property
    def amounts(self) -> dict[str, float]:
        """Bytes and FLOP by what limits them."""
        moved = {"dram": self.dram_read + self.dram_write, "l2": self.l2_read, "l1": self.l1_read}
        return {**moved, "fp32": 2 * self.fma + self.add, **self.tensor}

    @property
    def duration_ns(self) -> int:
        """The busiest limit at the kernel's efficiency, and a little for the launch."""
        seconds = max(amount / PEAKS[limit] for limit, amount in self.amounts.items())
        return round(seconds / self.efficiency * 1e9) + LAUNCH_NS

    def share(self, limit: str) -> float:
        rate = self.amounts.get(limit, 0.0) / PEAKS[limit]
        return 100 * rate / (self.duration_ns * 1e-9)

    def truth(self) -> dict[str, Any]:
        """What is true about the launch, in FLOP, bytes and ns."""
        amounts = self.amounts
        return {
            "kernel": self.name,
            "duration_ns": self.duration_ns,
            "fp32_flops": amounts["fp32"],
            **{f"tensor_{kind}_ops": ops for kind, ops in self.tensor.items()},
            **{f"{level}_bytes": amounts[level] for level in ("dram", "l2", "l1")},
        }

    def metrics(self) -> Iterator[Metric]:
        for name, value in DEVICE.items():
            yield f"device__attribute_{name}", "", value
        yield "gpu__time_duration.sum", "ns", self.duration_ns
        yield "sm__cycles_elapsed.avg", "cycle", round(self.duration_ns * 1e-9 * SM_HZ)
        clocks = dict.fromkeys(("sm", "smsp", "gpc", "l1tex"), SM_HZ)
        for unit, hz in (clocks | {"lts": L2_HZ, "dram": DRAM_HZ}).items():
            yield f"{unit}__cycles_elapsed.avg.per_second", "hz", hz
        yield from self._occupancy()
        yield from self._traffic()
        yield from self._work()

    def _occupancy(self) -> Iterator[Metric]:
        threads = prod(self.block)
        occupancy = min(100.0, 100 * self.blocks_per_sm * threads / 2048)
        compute = max(map(self.share, ("fp32", "bf16", "tf32")))
        dram, l2, l1 = map(self.share, ("dram", "l2", "l1"))
        waves = prod(self.grid) / (self.blocks_per_sm * SMS)
        yield "launch__waves_per_multiprocessor", "", waves
        limits = {"blocks": 32, "registers": self.blocks_per_sm, "shared_mem": 32}
        for limit, blocks in (limits | {"warps": 2048 // threads}).items():
            yield f"launch__occupancy_limit_{limit}", "block", blocks
        yield "sm__maximum_warps_per_active_cycle_pct", "%", occupancy
        yield "sm__warps_active.avg.pct_of_peak_sustained_active", "%", 0.93 * occupancy
        yield f"sm__throughput.{ELAPSED}", "%", max(compute, 4.0)
        yield f"gpu__compute_memory_throughput.{ELAPSED}", "%", max(dram, l2, l1)
        yield f"gpu__dram_throughput.{ELAPSED}", "%", dram
        yield f"lts__throughput.{ELAPSED}", "%", l2
        yield "l1tex__throughput.avg.pct_of_peak_sustained_active", "%", l1

    def _traffic(self) -> Iterator[Metric]:
        seconds = self.duration_ns * 1e-9
        l2, l1 = "lts__lts2xbar_cycles_active.sum", "l1tex__lsu_writeback_active_mem_lgds.sum"
        yield "dram__bytes.sum.peak_sustained", "byte/cycle", DRAM_BYTES_PER_CYCLE
        yield "dram__bytes.sum.per_second", "byte/s", self.amounts["dram"] / seconds
        yield "dram__bytes_read.sum", "byte", self.dram_read
        yield "dram__bytes_write.sum", "byte", self.dram_write
        yield f"{l2}.peak_sustained", "", L2_SLICES
        yield f"{l2}.per_second", "hz", self.l2_read / L2_BYTES / seconds
        yield f"{l1}.peak_sustained", "", SMS
        yield f"{l1}.per_second", "hz", self.l1_read / L1_BYTES / seconds

    def _work(self) -> Iterator[Metric]:
        cycles = self.duration_ns * 1e-9 * SM_HZ
        for letter, width in LANES.items():
            yield f"sm__{EXECUTED}{letter}fma_pred_on.sum.peak_sustained", "inst/cycle", width * SMS
            for operation in ("add", "mul", "fma"):
                amount = getattr(self, operation, 0.0) if letter == "f" else 0.0
                name = f"smsp__{EXECUTED}{letter}{operation}_pred_on.sum.per_cycle_elapsed"
                yield name, "inst/cycle", amount / cycles
        for path, rate in TENSOR_OPS.items():
            # dense operations count under the path that did them, and under all paths
            counts = not path.endswith("_on") and not path.startswith("op_hmma")
            ops = next((ops for kind, ops in self.tensor.items() if f"_{kind}_" in path), 0.0)
            yield f"sm__ops_path_tensor_{path}.sum.peak_sustained", "", rate * SMS
            name = f"sm__ops_path_tensor_{path}.sum.per_cycle_elapsed"
            yield name, "", ops * counts / cycles


@dataclass(frozen=True)
class MeasuredKernel:
    """One profiled launch: name as ncu prints it, shape, ns, throughputs in %, work in FLOP/s."""

    name: str
    grid: Extent
    block: Extent
    duration_ns: int
    compute_pct: float = 50.0
    memory_pct: float = 50.0
    flops_per_s: float | None = None
    waves: float = 4.0

    def metrics(self) -> Iterator[Metric]:
        yield "gpu__time_duration.sum", "ns", str(self.duration_ns)
        yield "launch__waves_per_multiprocessor", "", f"{self.waves:.2f}"
        for unit in ("sm", "smsp"):
            yield f"{unit}__cycles_elapsed.avg.per_second", "hz", f"{MEASURED_HZ:.0f}"
        yield f"sm__throughput.{ELAPSED}", "%", f"{self.compute_pct:.6f}"
        yield f"gpu__compute_memory_throughput.{ELAPSED}", "%", f"{self.memory_pct:.6f}"
        if self.flops_per_s is None:
            return
        moved = self.memory_pct / 100 * MEASURED_DRAM_HZ * DRAM_BYTES_PER_CYCLE
        yield "dram__bytes.sum.per_second", "byte/s", f"{moved:.0f}"
        yield "dram__bytes.sum.peak_sustained", "byte/cycle", str(DRAM_BYTES_PER_CYCLE)
        yield "dram__cycles_elapsed.avg.per_second", "hz", f"{MEASURED_DRAM_HZ:.0f}"
        lanes = f"sm__{EXECUTED}ffma_pred_on.sum.peak_sustained"
        yield lanes, "inst/cycle", str(MEASURED_LANES)
        per_cycle = f"{self.flops_per_s / 2 / MEASURED_HZ:.6f}"
        for name, value in (("ffma", per_cycle), ("fadd", "0"), ("fmul", "0")):
            counted = f"smsp__{EXECUTED}{name}_pred_on.sum.per_cycle_elapsed"
            yield counted, "inst/cycle", value


# Units by the size of a number, as ncu chooses one per column.
_SCALES = {
    "ns": (("ms", 1e6), ("us", 1e3), ("ns", 1.0)),
    "hz": (("Ghz", 1e9), ("Mhz", 1e6), ("hz", 1.0)),
    "byte": (("Gbyte", 1e9), ("Mbyte", 1e6), ("Kbyte", 1e3), ("byte", 1.0)),
    "byte/s": (("Tbyte/s", 1e12), ("Gbyte/s", 1e9), ("Mbyte/s", 1e6), ("byte/s", 1.0)),
    "byte/cycle": (("Kbyte/cycle", 1e3), ("byte/cycle", 1.0)),
}


def _scaled(unit: str, value: float | str) -> tuple[str, float]:
    """The unit that suits a number, and how many of the given unit it is."""
    steps = () if isinstance(value, str) else _SCALES.get(unit, ())
    fitting = (step for step in steps if float(value) >= step[1])
    return next(fitting, steps[-1] if steps else (unit, 1.0))


def _printed(value: float | str, scale: float) -> str:
    if isinstance(value, str):
        return value
    value /= scale
    return str(round(value)) if value == round(value) else f"{value:.6f}"


def raw_page(kernels: Iterable[SimulatedKernel | MeasuredKernel], process: str = "train.py") -> str:
    """The page that ncu prints; a column has the unit that suits its first number."""
    rows = [(kernel, list(kernel.metrics())) for kernel in kernels]
    units: dict[str, tuple[str, float]] = {}
    for _, metrics in rows:
        for name, unit, value in metrics:
            units.setdefault(name, _scaled(unit, value))
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*ID_COLUMNS, *units])
    writer.writerow([*("" for _ in ID_COLUMNS), *(unit for unit, _ in units.values())])
    for number, (kernel, metrics) in enumerate(rows):
        about = (number, 4242, process, "127.0.0.1", kernel.name, 1, 7, kernel.block, kernel.grid)
        cells = {name: _printed(value, units[name][1]) for name, _, value in metrics}
        writer.writerow([*map(str, about), "0", "9.0", *(cells.get(name, "") for name in units)])
    return out.getvalue()
