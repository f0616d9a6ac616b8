"""Sides whose truth is known: nothing changed, one kernel became slower, few runs, no spread."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from nsightpy.analysis.comparison.compare import compare_sides, gated
from nsightpy.analysis.comparison.sides import reconciled
from nsightpy.output.sentences import confidence
from nsightpy.results.comparison import (
    CANNOT_TELL,
    SAME,
    SLOWER,
    ComparedSide,
    Comparison,
    Limits,
)
from nsightpy.results.run_summary import PARTS, RunSummary, UnitSummary, WorkSummary

GATE = Limits(0.03, 50_000)
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
        works, parts = [], np.zeros((self.steps, len(PARTS)))
        for kernel, (each, count) in KERNELS.items():
            factor = self.factor if kernel == self.slower else 1.0
            own = 1.0 + 0.2 * self.step_noise * random.standard_normal(self.steps)
            times = np.rint(each * count * factor * clock * own)
            parts[:, 0] += times
            samples = tuple(times.astype(int).tolist())
            total = round(float(np.median(times)))
            works.append(WorkSummary("kernel", kernel, float(count), total, samples=samples))
        for part, length in IDLE.items():
            noise = 1.0 + self.step_noise * random.standard_normal(self.steps)
            level = length * np.exp(self.run_noise * random.standard_normal())
            parts[:, PARTS.index(part)] = level * noise
        whole = np.rint(parts).astype(np.int64)
        typical = tuple(reconciled(whole).tolist())
        steps = tuple((sum(one), *one) for one in whole.tolist())
        unit = UnitSummary(sum(typical), typical, self.steps, steps, tuple(works))
        return RunSummary("nsys", name, {"step": unit}, {"GPU": "simulated"})


def exact(found: Comparison) -> bool:
    """Whether the parts add up to the step on both sides, and with it their changes."""
    sums = [
        sum(getattr(one, side) or 0 for one in found.parts) for side in ("before_ns", "after_ns")
    ]
    by_launches = all(
        (one.delta_from_count_ns or 0) + (one.delta_from_duration_ns or 0) == one.delta_ns
        for one in found.kernels
    )
    return sums == [found.step.before_ns, found.step.after_ns] and by_launches


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
def test_nothing_changed_in_a_hundred_pairs(noise: float) -> None:
    model = StepModel(run_noise=noise)
    false = beyond_gate = 0
    for seed in range(100):
        sides = model.side(2 * seed), model.side(2 * seed + 1)
        found = compare_sides(*sides)
        assert exact(found)
        false += found.step.verdict not in (SAME, CANNOT_TELL)
        beyond_gate += compare_sides(*sides, GATE).step.verdict == SLOWER
    assert false <= 2
    assert beyond_gate == 0


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.02, 1.05, 1.10])
def test_a_slower_kernel_is_found_at_its_size(factor: float) -> None:
    each, count = KERNELS["attention"]
    truth = (factor - 1.0) * each * count
    covered = slower = 0
    for seed in range(40):
        before = StepModel(run_noise=0.003).side(seed)
        after = StepModel(run_noise=0.003, slower="attention", factor=factor).side(1_000 + seed)
        found = compare_sides(before, after, Limits(0.005, 1_000))
        assert exact(found)
        first = found.kernels[0]
        assert (first.name, first.matched_by) == ("attention", "full name")
        assert first.delta_from_count_ns == 0
        covered += (first.ratio_low or 2) <= factor <= (first.ratio_high or 0)
        slower += first.verdict == SLOWER
        if factor == 1.10:
            assert found.parts[0].delta_ns == pytest.approx(truth, rel=0.25)
    assert covered >= 36, "the truth lies in 95 % of the intervals"
    assert slower >= (38 if factor > 1.02 else 30)


def test_the_step_is_slower_beyond_the_gate() -> None:
    model = StepModel(run_noise=0.003, slower="attention", factor=1.25)
    found = compare_sides(StepModel(run_noise=0.003).side(1), model.side(2), GATE)
    assert (found.step.verdict, found.step.p_value) == (SLOWER, pytest.approx(2 / 252))
    for on, verdict in ((None, SLOWER), ("attention", SLOWER), ("norm", SAME)):
        made = gated(found, GATE, on, strict=on == "norm")
        assert made.gate is not None
        assert (made.gate.on, made.gate.verdict) == (on or "step", verdict)
        assert made.gate.failed == (verdict == SLOWER)


def test_a_gate_that_cannot_tell_fails_only_where_it_is_strict() -> None:
    found = compare_sides(StepModel().side(1, runs=1), StepModel().side(2, runs=1), Limits(0.0, 0))
    found = replace(found, step=replace(found.step, verdict=CANNOT_TELL, runs_needed=7))
    for strict in (False, True):
        gate = gated(found, GATE, None, strict=strict).gate
        assert gate is not None
        assert gate.failed is strict
        assert "7 runs a side would" in gate.reason


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_few_runs_are_never_significant(runs: int) -> None:
    model = StepModel(slower="attention", factor=1.3)
    found = compare_sides(StepModel().side(1, runs), model.side(2, runs))
    assert found.spread == "steps"
    assert all(one.p_value is None for one in found.quantities)
    assert "the runs' own spread is not covered" in confidence(found)
    assert found.step.ratio_low is not None
    assert exact(found)


def test_without_a_spread_nothing_can_be_told() -> None:
    def without(side: ComparedSide) -> ComparedSide:
        windows = [replace(run.units["step"], samples=(), count=1) for run in side.runs]
        runs = zip(side.runs, windows, strict=True)
        return ComparedSide(tuple(replace(run, units={"window": one}) for run, one in runs))

    slower = StepModel(slower="gemm", factor=2.0)
    found = compare_sides(without(StepModel().side(0, 2)), without(slower.side(1, 2)))
    assert (found.unit, found.spread, found.step.verdict) == ("window", "nothing", CANNOT_TELL)
    assert found.step.runs_needed == 4
    assert (found.step.ratio_low, found.step.p_value) == (None, None)
