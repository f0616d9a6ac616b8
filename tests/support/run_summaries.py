"""Summaries of runs of a simulated step, made without reports: many pairs of sides, quickly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.comparison.sides import reconciled
from nsightpy.results.comparison import ComparedSide
from nsightpy.results.run_summary import PARTS, RunSummary, UnitSummary, WorkSummary

# The kernels of a step, ns a launch and launches; the parts beside compute, ns.
KERNELS = {
    "gemm": (200_000, 12),
    "attention": (400_000, 6),
    "norm": (20_000, 30),
    "add": (9_000, 60),
}
IDLE = {"exposed communication": 700_000, "idle: host-gap": 900_000, "idle: sync-drain": 40_000}


@dataclass(frozen=True)
class StepModel:
    """A step whose GPU differs from run to run, and whose parts differ from step to step."""

    run_noise: float = 0.005
    step_noise: float = 0.02
    steps: int = 20
    slower: str = ""
    factor: float = 1.0

    def side(self, seed: int, runs: int = 5) -> ComparedSide:
        random = np.random.default_rng(seed)
        return ComparedSide(tuple(self.run(random, f"{seed}.{one}") for one in range(runs)))

    def run(self, random: np.random.Generator, name: str) -> RunSummary:
        """One run: all kernels share its clock; every step and every kernel has its own noise."""
        clock = np.exp(self.run_noise * random.standard_normal())
        works, compute = [], np.zeros(self.steps)
        for kernel, (each, count) in KERNELS.items():
            factor = self.factor if kernel == self.slower else 1.0
            own = 1.0 + 0.2 * self.step_noise * random.standard_normal(self.steps)
            times = np.rint(each * count * factor * clock * own)
            compute += times
            each_step = tuple(times.astype(int).tolist())
            total = round(float(np.median(times)))
            works.append(WorkSummary("kernel", kernel, float(count), total, samples=each_step))
        parts = np.zeros((self.steps, len(PARTS)))
        parts[:, 0] = compute
        for part, length in IDLE.items():
            noise = 1.0 + self.step_noise * random.standard_normal(self.steps)
            parts[:, PARTS.index(part)] = length * np.exp(self.run_noise * random.standard_normal())
            parts[:, PARTS.index(part)] *= noise
        whole = np.rint(parts).astype(np.int64)
        typical = reconciled(whole).tolist()
        samples = np.concatenate([whole.sum(axis=1)[:, None], whole], axis=1)
        unit = UnitSummary(
            sum(typical),
            tuple(typical),
            self.steps,
            tuple(map(tuple, samples.tolist())),
            tuple(works),
        )
        return RunSummary("nsys", name, {"step": unit}, {"GPU": "simulated"})
