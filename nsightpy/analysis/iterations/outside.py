"""What lies outside of the steady state: start-up, one-off copies, warm-up; and why there is none.

Facts for summaries and findings. Times in ns; what a device did is given as sets of time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import Spans, clip, union, union_of
from nsightpy.analysis.iterations.candidates import Cause
from nsightpy.analysis.iterations.steady import WARM_UP, Iterations, SteadyState, steady_state
from nsightpy.analysis.time_budget import Activity


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a device's time outside of the steady state, in ns.

    `kernels_ns`: any kernel or graph ran; `copies_ns`: only memory operations did; the rest is
    idle. `warm_up_ns`: how much of the stretch warm-up iterations last, whatever ran in them.
    """

    start_ns: int
    end_ns: int
    kernels_ns: int = 0
    copies_ns: int = 0
    warm_up_ns: int = 0

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def idle_ns(self) -> int:
        return self.length_ns - self.kernels_ns - self.copies_ns

    @property
    def mostly(self) -> str:
        """What fills most of it: warm-up, one-off copies, start-up (idle), or other kernels."""
        if self.warm_up_ns >= self.length_ns / 2:
            return "warm-up"
        parts = {
            "start-up": self.idle_ns,
            "one-off copies": self.copies_ns,
            "other kernels": self.kernels_ns,
        }
        return max(parts, key=lambda name: parts[name])


@dataclass(frozen=True, slots=True)
class Outside:
    """What a device did before and after its steady state, within its whole window."""

    before: Stretch
    after: Stretch
    steady_ns: int

    @property
    def window_ns(self) -> int:
        return self.before.length_ns + self.steady_ns + self.after.length_ns

    @property
    def share(self) -> float:
        """The share of the whole window that is not steady."""
        outside = self.before.length_ns + self.after.length_ns
        return outside / self.window_ns if self.window_ns else 0.0

    @property
    def busy_ns(self) -> int:
        """For how long the device worked outside of the steady state."""
        parts = (self.before, self.after)
        return sum(part.kernels_ns + part.copies_ns for part in parts)


def outside_of(
    state: SteadyState, found: Iterations, done: Activity, start_ns: int, end_ns: int
) -> Outside:
    """What a device did outside of the steady state, in its window from start_ns to end_ns."""
    warm = np.flatnonzero(np.asarray(found.phase) == WARM_UP)
    warming = union(found.start[warm], found.end[warm])
    low, high = min(start_ns, state.start_ns), max(end_ns, state.end_ns)
    return Outside(
        _stretch(low, state.start_ns, done, warming),
        _stretch(state.end_ns, high, done, warming),
        state.window_ns,
    )


def _stretch(start: int, end: int, done: Activity, warming: Spans) -> Stretch:
    kernels = union_of((done.compute, done.communication, done.graphs))
    busy = clip(done.busy, start, end).total
    copies = clip(done.memory - kernels, start, end).total
    return Stretch(start, end, busy - copies, copies, clip(warming, start, end).total)


@dataclass(frozen=True, slots=True)
class NoSteadyState:
    """Why a process has no steady state: the cause, and its text for people."""

    cause: Cause
    text: str
    iterations: int = 0


def no_steady_state(found: Iterations) -> NoSteadyState | None:
    """Why there is no steady state; None where there is one."""
    if steady_state(found) is not None:
        return None
    text = " ".join(found.notes)
    if len(found):
        count = len(found.steady)
        said = f"{len(found)} iterations by {found.source}, {count} of them steady"
        return NoSteadyState(Cause.TOO_FEW, said, len(found))
    return NoSteadyState(found.cause or Cause.NOTHING_REPEATS, text)
