"""FLOP by shapes of each of the profiler's steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.frames import Floats, Frame, Ints
from nsightpy.units import counted

STEP = "ProfilerStep#"


@dataclass(frozen=True, slots=True)
class StepFlop:
    """For each step: its length in ns, the FLOP of operators that began in it, and the seconds
    that they take at the device's peak (NaN where that is not known)."""

    length_ns: Ints
    flop: Floats
    ideal_s: Floats


def step_flop(operators: Frame, flop: Floats, ideal_s: Floats, ranges: Frame) -> StepFlop:
    """The FLOP of the steps among the ranges (start_ns, end_ns, name), by start."""
    steps = ranges.take(ranges.labels("name").where(lambda name: name.startswith(STEP)))
    counted = np.flatnonzero(~np.isnan(flop))
    start = operators.ints("start_ns")[counted]
    sums = [np.concatenate([[0.0], np.cumsum(values[counted])]) for values in (flop, ideal_s)]
    low, high = (np.searchsorted(start, steps.ints(name)) for name in ("start_ns", "end_ns"))
    return StepFlop(
        steps.ints("end_ns") - steps.ints("start_ns"),
        sums[0][high] - sums[0][low],
        sums[1][high] - sums[1][low],
    )


def step_notes(parts: Sequence[StepFlop]) -> list[str]:
    """What is said of the median step of all parts; nothing where no step has FLOP."""
    flop = np.concatenate([part.flop for part in parts])
    length = np.concatenate([part.length_ns for part in parts]) * 1e-9
    ideal = np.concatenate([part.ideal_s for part in parts])
    some = (flop > 0) & (length > 0)
    if not some.any():
        return []
    rate = float(np.median(flop[some] / length[some])) * 1e-12
    use = float(np.median(ideal[some] / length[some]))
    text = (
        f"Model FLOP by shapes, median of {counted(int(np.count_nonzero(some)), 'step')}: "
        f"{float(np.median(flop[some])) * 1e-12:.4g} TFLOP a step, {rate:.4g} TFLOP/s"
    )
    return [text + ("." if np.isnan(use) else f", MFU {100 * use:.1f} %.")]
