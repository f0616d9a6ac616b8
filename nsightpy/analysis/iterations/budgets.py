"""What a device did in each iteration, how iterations spread, and what grew in the slow ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.iterations.thresholds import (
    DEVIATION,
    MOST_SLOW,
    REPEATS,
    SLOW_DEVIATIONS,
    SLOW_SHARE,
)
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.time_budget import Activity
from nsightpy.frames import Frame, Ints

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


def slow_iterations(
    iterations: Iterations, budgets: IterationBudgets, kernels: Frame
) -> list[SlowIteration]:
    """The slowest steady iterations that stand out, slowest first.

    One stands out from 5 % and three deviations (1.4826 x the median deviation) above the median.
    kernels: start_ns, end_ns and name of the device.
    """
    steady, every = iterations.steady, iterations.duration
    median = float(np.median(every[steady])) if len(steady) >= REPEATS else 0.0
    if not median:  # most begin and end at once: none is so many times as long
        return []
    deviation = DEVIATION * float(np.median(np.abs(every[steady] - median)))
    slow = steady[every[steady] > median + max(SLOW_SHARE * median, SLOW_DEVIATIONS * deviation)]
    slow = slow[np.argsort(-every[slow], kind="stable")][:MOST_SLOW]
    return [_grown(iterations, budgets, kernels, place, median) for place in slow.tolist()]


def _grown(
    iterations: Iterations, budgets: IterationBudgets, kernels: Frame, place: int, median: float
) -> SlowIteration:
    grew = {
        name: int(figure[place] - np.median(figure[iterations.steady]))
        for name, figure in budgets.parts().items()
    }
    part = max(grew, key=lambda name: grew[name])
    kernel, more = ("", 0)
    if part in PARTS[:2] and kernels.rows:
        kernel, more = _grown_kernel(iterations, kernels, place)
    lasted = int(iterations.duration[place])
    return SlowIteration(place, lasted, lasted / median, part, grew[part], kernel, more)


def _grown_kernel(iterations: Iterations, kernels: Frame, place: int) -> tuple[str, int]:
    """The kernel whose work in an iteration exceeds its mean over the steady ones most, and by
    how many ns."""
    names, lengths = kernels.labels("name").merged(), durations(kernels)

    def mean(rows: Ints) -> NDArray[np.float64]:
        windows = Spans(iterations.start[rows], iterations.end[rows])
        inside = windows.holds(kernels.ints("start_ns"))
        return np.bincount(names.codes[inside], lengths[inside], len(names.values)) / len(rows)

    grew = mean(np.asarray([place])) - mean(iterations.steady)
    most = int(np.argmax(grew))
    return names.values[most], int(grew[most])
