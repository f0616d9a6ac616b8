"""Sides whose truth is known: nothing changed, one kernel became slower, few runs, no spread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nsightpy.analysis.comparison.compare import compare_sides, gated, with_p_value
from nsightpy.errors import UsageError
from nsightpy.results.comparison import (
    CANNOT_TELL,
    SAME,
    SLOWER,
    ComparedSide,
    Comparison,
    Limits,
)
from tests.support.run_summaries import KERNELS, StepModel

GATE = Limits(0.03, 50_000)


def exact(found: Comparison) -> bool:
    """Whether the parts add up to the step on both sides, and with it their changes."""
    sums = (
        sum(one.before_ns or 0 for one in found.parts),
        sum(one.after_ns or 0 for one in found.parts),
    )
    by_launches = all(
        (one.delta_from_count_ns or 0) + (one.delta_from_duration_ns or 0) == one.delta_ns
        for one in found.kernels
    )
    return sums == (found.step.before_ns, found.step.after_ns) and by_launches


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
        beyond_gate += with_p_value(found.step, GATE).verdict == SLOWER
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
        assert (first.name, first.matched_by, first.delta_from_count_ns) == (
            "attention",
            "full name",
            0,
        )
        covered += (first.ratio_low or 2) <= factor <= (first.ratio_high or 0)
        slower += first.verdict == SLOWER
        if factor == 1.10:
            assert found.parts[0].delta_ns == pytest.approx(truth, rel=0.25)
    assert covered >= 36, "the truth lies in 95 % of the intervals"
    assert slower >= (38 if factor > 1.02 else 30)


def test_the_step_is_slower_beyond_the_gate() -> None:
    model = StepModel(run_noise=0.003, slower="attention", factor=1.25)
    found = compare_sides(StepModel(run_noise=0.003).side(1), model.side(2), GATE)
    assert found.step.verdict == SLOWER
    assert found.step.p_value == pytest.approx(2 / 252)
    made = gated(found, GATE, None, strict=False)
    assert made.gate is not None
    assert made.gate.failed
    assert (made.gate.on, made.gate.verdict) == ("step", SLOWER)
    on = gated(found, GATE, "attention", strict=False)
    assert on.gate is not None
    assert (on.gate.on, on.gate.failed) == ("attention", True)
    assert next(one for one in on.kernels if one.name == "attention").p_value == pytest.approx(
        2 / 252
    )
    other = gated(found, GATE, "norm", strict=True)
    assert other.gate is not None
    assert (other.gate.failed, other.gate.verdict) == (False, SAME)
    with pytest.raises(UsageError, match="nothing is called so; there are"):
        gated(found, GATE, "no such kernel", strict=False)


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
    assert any("the runs' own spread is not covered" in note for note in found.notes)
    assert found.step.ratio_low is not None
    assert exact(found)


def test_without_a_spread_nothing_can_be_told() -> None:
    sides = [
        ComparedSide(
            tuple(
                replace(run, units={"window": replace(run.units["step"], samples=(), count=1)})
                for run in model.side(seed, 2).runs
            )
        )
        for seed, model in enumerate((StepModel(), StepModel(slower="gemm", factor=2.0)))
    ]
    found = compare_sides(*sides)
    assert (found.unit, found.spread, found.step.verdict) == ("window", "nothing", CANNOT_TELL)
    assert found.step.runs_needed == 4
    assert (found.step.ratio_low, found.step.p_value) == (None, None)
