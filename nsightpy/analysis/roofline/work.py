"""FLOP/s of each precision, and how many the machine could do.

Formulas: SpeedOfLight_(Hierarchical)RooflineChart of Nsight Compute 2020 to 2026. A fused multiply
and add is two; half precision instructions are counted as the pairs of half2 (an upper bound for
scalar half code). A precision with one of its counters missing is not computed at all.
"""

from __future__ import annotations

from nsightpy.analysis.roofline.readings import Rate, Readings

# The letter of the counters, and what one instruction does: of half2 two.
_SCALARS = {"fp64": ("d", 1), "fp32": ("f", 1), "fp16": ("h", 2)}
# Packed FP32 of Blackwell, where it was counted.
_PACKED = (("fadd2", 2), ("fmul2", 2), ("ffma2", 4))
_COUNTER = "{}__sass_thread_inst_executed_op_{}_pred_on.sum{}"


def scalar_work(readings: Readings, clock_factor: float = 1.0) -> list[Rate]:
    """FP64, FP32 and FP16 outside the tensor cores, where they were counted; zero is a count."""
    works = []
    for precision in _SCALARS:
        rate = _rate(readings, precision)
        if rate is not None:
            peak = scalar_peak(readings, precision)
            works.append(Rate(precision, rate, peak and peak * clock_factor))
    return works


def scalar_peak(readings: Readings, precision: str) -> float | None:
    """Peak FLOP/s at the profiled clock: from the counters, else SMs x lanes x 2 x clock."""
    letter, weight = _SCALARS[precision]
    clock = readings.sm_hz
    if not clock:
        return None
    fma = readings.get(_COUNTER.format("sm", f"{letter}fma", ".peak_sustained"))
    if fma is not None:
        return 2 * weight * fma * clock
    lanes, count = readings.lanes(precision), readings.sm_count
    return 2 * lanes * count * clock if lanes and count else None


def _rate(r: Readings, precision: str) -> float | None:
    weight = _SCALARS[precision][1]
    per_cycle = _instructions(r, precision, "smsp", ".per_cycle_elapsed")
    if per_cycle is not None and r.smsp_hz:
        return per_cycle * weight * r.smsp_hz
    for unit in ("smsp", "sm"):
        amount = _instructions(r, precision, unit)
        if amount is not None:
            return r.rate(amount * weight)
    return None


def _instructions(r: Readings, precision: str, unit: str, rollup: str = "") -> float | None:
    """The instructions counted, a fused one as two; None where a counter is missing."""
    letter = _SCALARS[precision][0]
    add, mul, fma = (
        r.get(_COUNTER.format(unit, f"{letter}{name}", rollup)) for name in ("add", "mul", "fma")
    )
    if add is None or mul is None or fma is None:
        return None
    amount = add + mul + 2 * fma
    if precision != "fp32":
        return amount
    packed = ((r.get(_COUNTER.format(unit, name, rollup)) or 0.0) * n for name, n in _PACKED)
    return amount + sum(packed)
