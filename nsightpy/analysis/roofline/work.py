"""FLOP/s of each precision, and how many the machine could do.

Formulas: SpeedOfLight_(Hierarchical)RooflineChart of Nsight Compute 2020 to 2026. A fused multiply
and add is two; half precision instructions are counted as the pairs of half2 (an upper bound for
scalar half code). A precision with one of its counters missing is not computed at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from nsightpy.analysis.roofline.chips import Chip
from nsightpy.analysis.roofline.readings import Readings


@dataclass(frozen=True, slots=True)
class FlopRate:
    """Achieved and peak FLOP/s of a precision, and what to know about them."""

    precision: str
    flops_per_s: float
    peak_flops_per_s: float | None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class _Scalar:
    precision: str
    letter: str
    weight: int


_SCALARS = (_Scalar("fp64", "d", 1), _Scalar("fp32", "f", 1), _Scalar("fp16", "h", 2))
_PACKED = (("fadd2", 2), ("fmul2", 2), ("ffma2", 4))


def scalar_work(readings: Readings, clock_factor: float = 1.0) -> list[FlopRate]:
    """FP64, FP32 and FP16 outside the tensor cores, where they were counted; zero is a count."""
    works = []
    for kind in _SCALARS:
        rate = _rate(readings, kind)
        if rate is not None:
            peak = scalar_peak(readings, kind.precision)
            works.append(FlopRate(kind.precision, rate, peak and peak * clock_factor))
    return works


def scalar_peak(readings: Readings, precision: str) -> float | None:
    """Peak FLOP/s at the profiled clock: from the counters, else SMs x lanes x 2 x clock."""
    kind = next(scalar for scalar in _SCALARS if scalar.precision == precision)
    clock = readings.sm_hz
    if not clock:
        return None
    fma = readings.get(
        f"sm__sass_thread_inst_executed_op_{kind.letter}fma_pred_on.sum.peak_sustained"
    )
    if fma is not None:
        return 2 * kind.weight * fma * clock
    chip = Chip(readings.capability)
    lanes = {"fp32": chip.fp32_lanes, "fp64": chip.fp64_lanes}.get(precision)
    count = readings.sm_count
    return 2 * lanes * count * clock if lanes and count else None


def _rate(r: Readings, kind: _Scalar) -> float | None:
    weighted = ((f"{kind.letter}add", 1), (f"{kind.letter}mul", 1), (f"{kind.letter}fma", 2))
    clock = r.smsp_hz
    per_cycle = _sum(
        r, "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed", weighted
    )
    if per_cycle is not None and clock:
        per_cycle += _packed(
            r, kind, "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
        )
        return per_cycle * kind.weight * clock
    for unit in ("smsp", "sm"):
        name = f"{unit}__sass_thread_inst_executed_op_{{}}_pred_on.sum"
        amount = _sum(r, name, weighted)
        if amount is not None:
            return r.rate((amount + _packed(r, kind, name)) * kind.weight)
    return None


def _packed(r: Readings, kind: _Scalar, name: str) -> float:
    """Packed FP32 of Blackwell, where it was counted."""
    if kind.precision != "fp32":
        return 0.0
    return sum((r.get(name.format(op)) or 0.0) * weight for op, weight in _PACKED)


def _sum(r: Readings, name: str, weighted: tuple[tuple[str, int], ...]) -> float | None:
    values = [(r.get(name.format(operation)), weight) for operation, weight in weighted]
    if any(value is None for value, _ in values):
        return None
    return sum((value or 0.0) * weight for value, weight in values)
