"""Write what ncu would have measured of the simulated training job, to try the loop on.

    python scripts/make_sample_measurements.py           # sample_reports/training_4rank.ncu.csv

Nothing was measured: the kernels are those that `nsightpy select` chooses, their speeds are made
up from their names, the same every time.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from simulator.ncu import MeasuredKernel, raw_page

from nsightpy.commands.select.command import select

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "sample_reports" / "training_4rank.ncu.csv"
JOB = ROOT / "sample_reports" / "training_4rank"
PEAK_FP32 = 59.3e12


def page() -> str:
    """The raw page of the chosen launches."""
    chosen = select(JOB).to_pandas()
    columns = (chosen[name] for name in ("name", "grid", "block", "representative_ns"))
    return raw_page(_measured(*launch) for launch in zip(*columns, strict=True))


def _extent(text: str) -> tuple[int, int, int]:
    x, y, z = map(int, text.split("x"))
    return x, y, z


def _measured(name: str, grid: str, block: str, nsys_ns: int) -> MeasuredKernel:
    shape = _extent(grid), _extent(block)
    seed = int(hashlib.sha256(f"{name} {shape[0]}".encode()).hexdigest()[:8], 16)
    spread = seed % 1000 / 1000
    is_gemm = re.search("gemm|nvjet|flash", name) is not None
    compute, memory = (44 + 42 * spread, 22 + 20 * spread) if is_gemm else (14.0, 52 + 38 * spread)
    slower = 1.7 if nsys_ns < 20_000 else 1.06 + 0.2 * spread
    work = None if is_gemm else 0.03 * PEAK_FP32 * (0.5 + spread)
    return MeasuredKernel(name, *shape, int(nsys_ns * slower), compute, memory, work, waves=6.0)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
