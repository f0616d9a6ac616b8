"""Simulate `ncu --set full --csv --page raw`: a handful of kernels on one H100 PCIe.

Work and traffic of each kernel are given; durations follow from the machine's peaks and how well
the kernel is said to use them, counters from all of these.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

SMS, SM_HZ, MAX_SM_KHZ = 114, 1.103e9, 1_755_000
DRAM_HZ, DRAM_BYTES_PER_CYCLE, MAX_DRAM_KHZ, BUS_BITS = 1.593e9, 1280, 1_593_000, 5120
L2_HZ, L2_SLICES, L2_BYTES = 1.094e9, 160, 32
L1_BYTES = 128
FP32_LANES, FP64_LANES, FP16_LANES = 128, 64, 128
TENSOR_OPS = {
    "op_hgmma_src_bf16_dst_fp32_sparsity_off": 4096,
    "op_hgmma_src_bf16_dst_fp32_sparsity_on": 8192,
    "op_hmma_src_bf16_dst_fp32_sparsity_off": 2730.666667,
    "op_hgmma_src_tf32_dst_fp32_sparsity_off": 2048,
    "op_hgmma_src_tf32_dst_fp32_sparsity_on": 4096,
    "src_bf16_dst_fp32": 8192,
    "src_tf32_dst_fp32": 4096,
}
TENSOR_DENSE = {"bf16": 4096, "tf32": 2048}
PEAKS = {
    "dram": DRAM_BYTES_PER_CYCLE * DRAM_HZ,
    "l2": L2_SLICES * L2_BYTES * L2_HZ,
    "l1": SMS * L1_BYTES * SM_HZ,
    "fp32": 2 * SMS * FP32_LANES * SM_HZ,
    "bf16": SMS * TENSOR_DENSE["bf16"] * SM_HZ,
    "tf32": SMS * TENSOR_DENSE["tf32"] * SM_HZ,
}
ID_COLUMNS = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
LAUNCH_NS = 2_600


@dataclass(frozen=True)
class SimulatedKernel:
    """One launch: FLOP by kind, bytes by level (as read returns for the caches), and efficiency."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
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
    def rates(self) -> dict[str, float]:
        """What the kernel would take of each limit's peak if it did nothing else, in seconds."""
        amounts = {
            "dram": self.dram_read + self.dram_write,
            "l2": self.l2_read,
            "l1": self.l1_read,
            "fp32": 2 * self.fma + self.add,
            **self.tensor,
        }
        return {limit: amount / PEAKS[limit] for limit, amount in amounts.items()}

    @property
    def duration_ns(self) -> int:
        """The busiest limit at the kernel's efficiency, and a little for the launch."""
        return round(max(self.rates.values()) / self.efficiency * 1e9) + LAUNCH_NS

    @property
    def waves(self) -> float:
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        return blocks / (self.blocks_per_sm * SMS)

    def share(self, limit: str) -> float:
        """Achieved share of a limit, in %."""
        return 100 * self.rates.get(limit, 0.0) / (self.duration_ns * 1e-9)

    def truth(self) -> dict[str, Any]:
        """What is true about the launch, in FLOP, bytes and ns."""
        return {
            "kernel": self.name,
            "duration_ns": self.duration_ns,
            "fp32_flops": 2 * self.fma + self.add,
            **{f"tensor_{kind}_ops": ops for kind, ops in self.tensor.items()},
            "dram_bytes": self.dram_read + self.dram_write,
            "l2_bytes": self.l2_read,
            "l1_bytes": self.l1_read,
        }


Metric = tuple[str, str, float | str]


def metrics(kernel: SimulatedKernel) -> Iterable[Metric]:
    """Name, base unit and value of every metric of a launch."""
    yield from _device()
    yield from _clocks(kernel)
    yield from _launch(kernel)
    yield from _traffic(kernel)
    yield from _work(kernel)


def raw_page(kernels: Sequence[SimulatedKernel], process: str) -> str:
    """The page that ncu prints, in automatic units."""
    first = list(metrics(kernels[0]))
    units = [_unit(unit, value) for _, unit, value in first]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*ID_COLUMNS, *(name for name, _, _ in first)])
    writer.writerow(["" for _ in ID_COLUMNS] + units)
    for number, kernel in enumerate(kernels):
        values = _in_units(metrics(kernel), units)
        about = (number, 4242, process, "127.0.0.1", kernel.name, 1, 7, kernel.block, kernel.grid)
        writer.writerow([*map(str, about), "0", "9.0", *values])
    return out.getvalue()


def _device() -> Iterable[Metric]:
    yield "device__attribute_display_name", "", "NVIDIA H100 PCIe"
    for name, value in (
        ("compute_capability_major", 9),
        ("compute_capability_minor", 0),
        ("multiprocessor_count", SMS),
        ("max_gpu_frequency_khz", MAX_SM_KHZ),
        ("max_mem_frequency_khz", MAX_DRAM_KHZ),
        ("fb_bus_width", BUS_BITS),
    ):
        yield f"device__attribute_{name}", "", value


def _clocks(kernel: SimulatedKernel) -> Iterable[Metric]:
    cycles = kernel.duration_ns * 1e-9 * SM_HZ
    yield "gpu__time_duration.sum", "ns", kernel.duration_ns
    yield "sm__cycles_elapsed.avg", "cycle", round(cycles)
    yield "sm__cycles_elapsed.avg.per_second", "hz", SM_HZ
    yield "smsp__cycles_elapsed.avg.per_second", "hz", SM_HZ
    yield "gpc__cycles_elapsed.avg.per_second", "hz", SM_HZ
    yield "l1tex__cycles_elapsed.avg.per_second", "hz", SM_HZ
    yield "lts__cycles_elapsed.avg.per_second", "hz", L2_HZ
    yield "dram__cycles_elapsed.avg.per_second", "hz", DRAM_HZ


def _launch(kernel: SimulatedKernel) -> Iterable[Metric]:
    threads = kernel.block[0] * kernel.block[1] * kernel.block[2]
    occupancy = min(100.0, 100 * kernel.blocks_per_sm * threads / 2048)
    compute = max(kernel.share("fp32"), *(kernel.share(kind) for kind in TENSOR_DENSE))
    shares = {level: kernel.share(level) for level in ("dram", "l2", "l1")}
    yield "launch__waves_per_multiprocessor", "", kernel.waves
    yield "launch__occupancy_limit_blocks", "block", 32
    yield "launch__occupancy_limit_registers", "block", kernel.blocks_per_sm
    yield "launch__occupancy_limit_shared_mem", "block", 32
    yield "launch__occupancy_limit_warps", "block", 2048 // threads
    yield "sm__maximum_warps_per_active_cycle_pct", "%", occupancy
    yield "sm__warps_active.avg.pct_of_peak_sustained_active", "%", 0.93 * occupancy
    yield "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", max(compute, 4.0)
    memory = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    yield memory, "%", max(shares.values())
    yield "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", shares["dram"]
    yield "lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", shares["l2"]
    yield "l1tex__throughput.avg.pct_of_peak_sustained_active", "%", shares["l1"]


def _traffic(kernel: SimulatedKernel) -> Iterable[Metric]:
    seconds = kernel.duration_ns * 1e-9
    moved = kernel.dram_read + kernel.dram_write
    yield "dram__bytes.sum.peak_sustained", "byte/cycle", DRAM_BYTES_PER_CYCLE
    yield "dram__bytes.sum.per_second", "byte/s", moved / seconds
    yield "dram__bytes_read.sum", "byte", kernel.dram_read
    yield "dram__bytes_write.sum", "byte", kernel.dram_write
    yield "lts__lts2xbar_cycles_active.sum.peak_sustained", "", L2_SLICES
    yield "lts__lts2xbar_cycles_active.sum.per_second", "hz", kernel.l2_read / L2_BYTES / seconds
    writeback = "l1tex__lsu_writeback_active_mem_lgds.sum"
    yield f"{writeback}.peak_sustained", "", SMS
    yield f"{writeback}.per_second", "hz", kernel.l1_read / L1_BYTES / seconds


def _work(kernel: SimulatedKernel) -> Iterable[Metric]:
    cycles = kernel.duration_ns * 1e-9 * SM_HZ
    lanes = {"f": FP32_LANES, "d": FP64_LANES, "h": FP16_LANES}
    for letter, width in lanes.items():
        counted = f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained"
        yield counted, "inst/cycle", width * SMS
        for operation in ("add", "mul", "fma"):
            amount = getattr(kernel, operation, 0.0) if letter == "f" else 0.0
            name = f"smsp__sass_thread_inst_executed_op_{letter}{operation}_pred_on.sum"
            yield f"{name}.per_cycle_elapsed", "inst/cycle", amount / cycles
    for path, rate in TENSOR_OPS.items():
        done = 0.0
        for kind, ops in kernel.tensor.items():
            if path in (f"src_{kind}_dst_fp32", f"op_hgmma_src_{kind}_dst_fp32_sparsity_off"):
                done = ops
        yield f"sm__ops_path_tensor_{path}.sum.peak_sustained", "", rate * SMS
        yield f"sm__ops_path_tensor_{path}.sum.per_cycle_elapsed", "", done / cycles


_SCALES = {
    "ns": (("ms", 1e6), ("us", 1e3), ("ns", 1.0)),
    "hz": (("Ghz", 1e9), ("Mhz", 1e6), ("hz", 1.0)),
    "byte": (("Gbyte", 1e9), ("Mbyte", 1e6), ("Kbyte", 1e3), ("byte", 1.0)),
    "byte/s": (("Tbyte/s", 1e12), ("Gbyte/s", 1e9), ("Mbyte/s", 1e6), ("byte/s", 1.0)),
    "byte/cycle": (("Kbyte/cycle", 1e3), ("byte/cycle", 1.0)),
}


def _unit(unit: str, value: float | str) -> str:
    """The unit that suits a value, as ncu chooses one per column."""
    for name, scale in _SCALES.get(unit, ()):
        if isinstance(value, str) or value >= scale or scale == 1.0:
            return name
    return unit


def _in_units(values: Iterable[Metric], units: Sequence[str]) -> list[str]:
    scales = {name: scale for steps in _SCALES.values() for name, scale in steps}
    return [
        value if isinstance(value, str) else _printed(value / scales.get(unit, 1.0))
        for (_, _, value), unit in zip(values, units, strict=True)
    ]


def _printed(value: float) -> str:
    return str(round(value)) if value == round(value) else f"{value:.6f}"


GEMM = 8192
_MATRIX = GEMM * GEMM
KERNELS = (
    SimulatedKernel(
        "void copy_kernel<float4>(const float4 *, float4 *, long)",
        (65536, 1, 1),
        (256, 1, 1),
        8,
        dram_read=1.0e9,
        dram_write=1.0e9,
        l2_read=1.0e9,
        l1_read=1.0e9,
        efficiency=0.92,
    ),
    SimulatedKernel(
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1",
        (64, 64, 1),
        (384, 1, 1),
        1,
        tensor={"bf16": 2.0 * GEMM**3},
        dram_read=3 * 2.0 * _MATRIX,
        dram_write=2.0 * _MATRIX,
        l2_read=64 * 2.0 * _MATRIX,
        l1_read=2.0e9,
        efficiency=0.78,
    ),
    SimulatedKernel(
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1",
        (64, 64, 1),
        (384, 1, 1),
        1,
        tensor={"tf32": 2.0 * GEMM**3},
        dram_read=3 * 4.0 * _MATRIX,
        dram_write=4.0 * _MATRIX,
        l2_read=64 * 4.0 * _MATRIX,
        l1_read=4.0e9,
        efficiency=0.72,
    ),
    SimulatedKernel(
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_tn_align1>(T1::Params)",
        (64, 64, 1),
        (256, 1, 1),
        2,
        fma=float(GEMM) ** 3,
        dram_read=3 * 4.0 * _MATRIX,
        dram_write=4.0 * _MATRIX,
        l2_read=64 * 4.0 * _MATRIX,
        l1_read=2.2e11,
        efficiency=0.88,
    ),
    SimulatedKernel(
        "void reduce_kernel<512, 4, float>(const float *, float *, long)",
        (2048, 1, 1),
        (512, 1, 1),
        4,
        add=2.5e8,
        dram_read=1.0e9,
        l2_read=1.0e9,
        l1_read=1.0e9,
        efficiency=0.71,
    ),
    SimulatedKernel(
        "strided_add(const float *, float *, int, int)",
        (16384, 1, 1),
        (256, 1, 1),
        8,
        add=4.2e6,
        dram_read=1.3e8,
        dram_write=1.3e8,
        l2_read=1.3e8,
        l1_read=5.4e8,
        efficiency=0.45,
    ),
    SimulatedKernel(
        "l2_resident_triad(const float *, const float *, float *, int, int)",
        (1824, 1, 1),
        (256, 1, 1),
        8,
        fma=4.0e9,
        dram_read=2.4e7,
        l2_read=3.2e10,
        l1_read=3.2e10,
        efficiency=0.8,
    ),
    SimulatedKernel(
        "void small_norm<float>(float *, int)",
        (24, 1, 1),
        (128, 1, 1),
        16,
        fma=3.0e5,
        add=1.0e5,
        dram_read=1.2e6,
        l2_read=1.6e6,
        l1_read=2.4e6,
        efficiency=0.3,
    ),
)
