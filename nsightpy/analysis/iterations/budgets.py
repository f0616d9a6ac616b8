"""What a device did in each iteration, how iterations spread, and what grew in the slow ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.time_budget import Activity
from nsightpy.frames import Frame, Ints

SLOW_SHARE = 0.05
SLOW_DEVIATIONS = 3.0
PARTS = ("compute", "exposed communication", "copies", "idle")


@dataclass(frozen=True)
class IterationBudgets:
    """The time of each iteration on one device, in ns; one entry an iteration.

    Copies are what is busy and neither compute nor exposed communication.
    """

    duration: Ints
    busy: Ints
    compute: Ints
    exposed_communication: Ints

    @property
    def idle(self) -> Ints:
        return self.duration - self.busy

    @property
    def copies(self) -> Ints:
        return self.busy - self.compute - self.exposed_communication

    def parts(self) -> dict[str, Ints]:
        """The partition of each iteration, under the names of PARTS."""
        figures = (self.compute, self.exposed_communication, self.copies, self.idle)
        return dict(zip(PARTS, figures, strict=True))


@dataclass(frozen=True, slots=True)
class Spread:
    """How long the steady iterations last, in ns."""

    count: int
    median: float
    minimum: int
    maximum: int
    p95: float


@dataclass(frozen=True, slots=True)
class SlowIteration:
    """A steady iteration far above the median: what grew most against it, in ns."""

    iteration: int
    duration_ns: int
    ratio: float
    part: str
    grew_ns: int
    kernel: str = ""
    kernel_grew_ns: int = 0


def iteration_budgets(iterations: Iterations, done: Activity) -> IterationBudgets:
    """The budget of each iteration from what one device did (sets of time, in ns)."""
    # compute has millions of intervals: the others, without it, are few
    copies = done.memory - done.compute
    exposed = done.communication - done.compute - done.memory
    compute, uncovered = _within(iterations, done.compute), _within(iterations, exposed)
    busy = compute + uncovered + _within(iterations, copies)
    return IterationBudgets(iterations.duration, busy, compute, uncovered)


def _within(iterations: Iterations, time: Spans) -> Ints:
    return measure_before(time, iterations.end) - measure_before(time, iterations.start)


def spread(iterations: Iterations) -> Spread | None:
    """The spread of the steady iterations; None without several."""
    steady = iterations.duration[iterations.steady]
    if len(steady) < 2:
        return None
    return Spread(
        len(steady),
        float(np.median(steady)),
        int(steady.min()),
        int(steady.max()),
        float(np.quantile(steady, 0.95)),
    )


def slow_iterations(
    iterations: Iterations, budgets: IterationBudgets, kernels: Frame, most: int = 3
) -> list[SlowIteration]:
    """The slowest steady iterations that stand out, slowest first.

    One stands out from 5 % and three deviations (1.4826 x the median deviation) above the median.
    kernels: start_ns, end_ns and name of the device.
    """
    steady = iterations.steady
    duration = iterations.duration[steady]
    if len(steady) < 3:
        return []
    median = float(np.median(duration))
    if not median:  # most begin and end at once: none is so many times as long
        return []
    deviation = 1.4826 * float(np.median(np.abs(duration - median)))
    limit = median + max(SLOW_SHARE * median, SLOW_DEVIATIONS * deviation)
    slow = steady[duration > limit]
    order = slow[np.argsort(-iterations.duration[slow], kind="stable")][:most]
    return [_grown(iterations, budgets, kernels, place, median) for place in order.tolist()]


def _grown(
    iterations: Iterations, budgets: IterationBudgets, kernels: Frame, place: int, median: float
) -> SlowIteration:
    steady = iterations.steady
    grew = {
        name: int(figure[place] - np.median(figure[steady]))
        for name, figure in budgets.parts().items()
    }
    part = max(grew, key=lambda name: grew[name])
    kernel, kernel_grew = "", 0
    if part in PARTS[:2]:
        kernel, kernel_grew = _grown_kernel(iterations, kernels, place)
    duration = int(iterations.duration[place])
    return SlowIteration(place, duration, duration / median, part, grew[part], kernel, kernel_grew)


def _grown_kernel(iterations: Iterations, kernels: Frame, place: int) -> tuple[str, int]:
    """The kernel whose work in an iteration exceeds its mean over the steady ones most, and by
    how many ns."""
    names = kernels.labels("name").merged()
    start, lengths = kernels.ints("start_ns"), kernels.ints("end_ns") - kernels.ints("start_ns")
    if len(names) == 0:
        return "", 0
    steady = iterations.steady
    usual = Spans(iterations.start[steady], iterations.end[steady]).holds(start)
    mine = (start >= iterations.start[place]) & (start < iterations.end[place])
    size = len(names.values)
    mean = np.bincount(names.codes[usual], lengths[usual], size) / len(steady)
    grew = np.bincount(names.codes[mine], lengths[mine], size) - mean
    most = int(np.argmax(grew))
    return names.values[most], int(grew[most])
