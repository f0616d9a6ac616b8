"""What a device did in each iteration, and what grew in the slow ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.analysis.iterations.thresholds import (
    MOST_SLOW,
    REPEATS,
    SLOW_DEVIATIONS,
    SLOW_SHARE,
)
from nsightpy.analysis.time_budget import Activity
from nsightpy.frames import Ints


@dataclass(frozen=True)
class IterationBudgets:
    """The time of each iteration on one device, in ns; one entry an iteration."""

    duration: Ints
    busy: Ints
    compute: Ints
    exposed_communication: Ints

    @property
    def idle(self) -> Ints:
        return self.duration - self.busy

    @property
    def parts(self) -> dict[str, Ints]:
        """What each iteration is made of, by name."""
        return {
            "compute": self.compute,
            "exposed communication": self.exposed_communication,
            "copies": self.busy - self.compute - self.exposed_communication,
            "idle": self.idle,
        }


class SlowIteration(NamedTuple):
    """A steady iteration far above the median: which part grew most against it, by how many ns."""

    ratio: float
    iteration: int
    part: str
    grew_ns: int


def iteration_budgets(iterations: Iterations, activity: Activity) -> IterationBudgets:
    """The budget of each iteration from what one device did (sets of time, in ns)."""

    def within(time: Spans) -> Ints:
        return measure_before(time, iterations.end) - measure_before(time, iterations.start)

    # compute has millions of intervals: the others, without it, are few
    compute, copies = within(activity.compute), within(activity.memory - activity.compute)
    exposed = within(activity.communication - activity.compute - activity.memory)
    return IterationBudgets(iterations.duration, compute + exposed + copies, compute, exposed)


def slow_iterations(steady: Ints, budgets: IterationBudgets) -> list[SlowIteration]:
    """The slowest of the steady iterations (places) that stand out, slowest first.

    One stands out from 5 % and three standard deviations (4.45 median deviations) above the median.
    """
    every = budgets.duration
    median = float(np.median(every[steady])) if len(steady) >= REPEATS else 0.0
    if not median:  # most begin and end at once: none is so many times as long
        return []
    deviation = float(np.median(np.abs(every[steady] - median)))
    slow = steady[every[steady] > median + max(SLOW_SHARE * median, SLOW_DEVIATIONS * deviation)]
    found = []
    for number in slow[np.argsort(-every[slow], kind="stable")][:MOST_SLOW].tolist():
        parts = budgets.parts.items()
        grew, part = max(
            (int(part[number] - np.median(part[steady])), name) for name, part in parts
        )
        found.append(SlowIteration(float(every[number]) / median, number, part, grew))
    return found
