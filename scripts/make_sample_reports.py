"""Write the simulated sample reports and their truth; the same bytes every time.

python scripts/make_sample_reports.py [--output DIR]
"""

import argparse
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulator import memory
from simulator.catalogue import Extent, extent
from simulator.kineto import write_traces
from simulator.ncu import MeasuredKernel, SimulatedKernel, raw_page
from simulator.presets import SINGLE_PROCESS, TORCH_2RANK, TRAINING_4RANK
from simulator.truth import truth as job_truth

from nsightpy.commands.select.command import select

HERE = Path(__file__).resolve().parent.parent / "sample_reports"
GEMM = 8192
PEAK_FP32 = 59.3e12
SQUARE = (64, 64, 1)


def _kernel(
    name: str, grid: Extent, threads: int, per_sm: int, efficiency: float, **work: Any
) -> SimulatedKernel:
    return SimulatedKernel(name, grid, (threads, 1, 1), per_sm, efficiency=efficiency, **work)


def _product(size: float, l1_read: float, **work: Any) -> dict[str, Any]:
    """The work of a product of square matrices, whose elements have so many bytes."""
    matrix = size * GEMM * GEMM
    traffic = {"dram_read": 3 * matrix, "dram_write": matrix, "l2_read": 64 * matrix}
    return {**traffic, "l1_read": l1_read, **work}


_XMMA = "sm90_xmma_gemm_{}_f32_tn_n_tilesize128x128x{}_warpgroupsize1x1x1"
_COPIED = dict.fromkeys(("dram_read", "dram_write", "l2_read", "l1_read"), 1.0e9)
_STRIDED = dict.fromkeys(("dram_read", "dram_write", "l2_read"), 1.3e8) | {"l1_read": 5.4e8}
_RESIDENT = {"dram_read": 2.4e7, "l2_read": 3.2e10, "l1_read": 3.2e10}
_SMALL = {"dram_read": 1.2e6, "l2_read": 1.6e6, "l1_read": 2.4e6}
_SGEMM = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_tn_align1>(T1::Params)"
_REDUCE = "void reduce_kernel<512, 4, float>(const float *, float *, long)"
_TRIAD = "l2_resident_triad(const float *, const float *, float *, int, int)"
_ADD = "strided_add(const float *, float *, int, int)"
_COPY = "void copy_kernel<float4>(const float4 *, float4 *, long)"
_BF16 = _product(2.0, 2.0e9, tensor={"bf16": 2.0 * GEMM**3})
_TF32 = _product(4.0, 4.0e9, tensor={"tf32": 2.0 * GEMM**3})
_FP32 = _product(4.0, 2.2e11, fma=float(GEMM) ** 3)
KERNELS = (
    _kernel(_COPY, (65536, 1, 1), 256, 8, 0.92, **_COPIED),
    _kernel(_XMMA.format("bf16bf16_bf16f32", 64), SQUARE, 384, 1, 0.78, **_BF16),
    _kernel(_XMMA.format("f32f32_tf32f32", 32), SQUARE, 384, 1, 0.72, **_TF32),
    _kernel(_SGEMM, SQUARE, 256, 2, 0.88, **_FP32),
    _kernel(_REDUCE, (2048, 1, 1), 512, 4, 0.71, add=2.5e8, **(_COPIED | {"dram_write": 0.0})),
    _kernel(_ADD, (16384, 1, 1), 256, 8, 0.45, add=4.2e6, **_STRIDED),
    _kernel(_TRIAD, (1824, 1, 1), 256, 8, 0.8, fma=4.0e9, **_RESIDENT),
    _kernel(
        "void small_norm<float>(float *, int)", (24, 1, 1), 128, 16, 0.3, fma=3e5, add=1e5, **_SMALL
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=HERE)
    output = parser.parse_args().output
    _, truth = TRAINING_4RANK.write(output / "training_4rank")
    _write_json(output / "training_4rank" / "truth.json", truth)
    (single,), truth = SINGLE_PROCESS.write(output)
    report = single.rename(output / "single_process.sqlite")
    truth = json.loads(json.dumps(truth).replace(single.name, report.name))
    _write_json(output / "single_process.truth.json", truth)
    (output / "kernels_h100.ncu.csv").write_text(raw_page(KERNELS, "train"), encoding="utf-8")
    launches = [kernel.truth() for kernel in KERNELS]
    _write_json(output / "kernels_h100.truth.json", {"launches": launches})
    trained = memory.Training(iterations=8).run()
    memory.write_snapshot(output / "training_memory.pickle", [trained])
    _write_json(output / "training_memory.truth.json", memory.truth(trained))
    run = TORCH_2RANK.run()
    write_traces(run, output / "torch_2rank")
    _write_json(output / "torch_2rank" / "truth.json", job_truth(run))
    page = _measured_page(output / "training_4rank")
    (output / "training_4rank.ncu.csv").write_text(page, encoding="utf-8")


def _measured_page(job: Path) -> str:
    """What ncu would have measured of the launches that `select` chooses, to try the loop on.

    Nothing was measured: speeds are made up from the kernels' names, the same every time.
    """
    chosen, kernels = select(job).to_pandas(), []
    columns = (chosen[name] for name in ("name", "grid", "block", "representative_ns"))
    for name, grid, block, nsys_ns in zip(*columns, strict=True):
        shape = extent(grid), extent(block)
        seed = int(hashlib.sha256(f"{name} {shape[0]}".encode()).hexdigest()[:8], 16)
        spread = seed % 1000 / 1000
        is_gemm = re.search("gemm|nvjet|flash", name) is not None
        usage = (44 + 42 * spread, 22 + 20 * spread) if is_gemm else (14.0, 52 + 38 * spread)
        slower = 1.7 if nsys_ns < 20_000 else 1.06 + 0.2 * spread
        work = None if is_gemm else 0.03 * PEAK_FP32 * (0.5 + spread)
        time_ns = int(nsys_ns * slower)
        kernels.append(MeasuredKernel(name, *shape, time_ns, *usage, work, waves=6.0))
    return raw_page(kernels)


def _write_json(path: Path, truth: Mapping[str, object]) -> None:
    """One line per member, and per element where a member is a list."""
    members = []
    for name, value in truth.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(json.dumps(element) for element in value) + "\n]"
        members.append(f"{json.dumps(name)}: {text}")
    path.write_text("{\n" + ",\n".join(members) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
