"""Windows of iterations: when the work of each began and ended, on the report's time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.thresholds import CLOSE, MOST, REPEATS
from nsightpy.analysis.iterations.work import LaunchedWork, Units, same_share
from nsightpy.frames import Ints

SEQUENCE = "repeated kernel sequence"


@dataclass(frozen=True, eq=False)
class Level:
    """One level on which a program repeats: windows in ns, and how many launches are in each.

    `coverage`: the share of work, or of time if that is less, in units that are alike; `regular`:
    the share of units that are. `units`: of what the order of the launches shows. `why`: why it is
    no step.
    """

    source: str
    start: Ints
    end: Ints
    launches: Ints
    coverage: float = 1.0
    regular: float = 1.0
    units: Units | None = None
    why: str = ""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def period_ns(self) -> float:
        """Median time from the end of one unit to the end of the next; the length of one alone."""
        return float(np.median(np.diff(self.end, prepend=self.start[:1])[-len(self) + 1 :]))

    @property
    def per_unit(self) -> int:
        """Launches in a usual unit."""
        return int(np.median(self.launches))

    @property
    def text(self) -> str:
        """What shows it, for people."""
        return f"{self.source} of {self.per_unit}" if self.units else self.source


def level_of_spans(source: str, start: Ints, end: Ints, work: LaunchedWork) -> Level | None:
    """The level of units whose host spans are known (ascending, disjoint); None without work.

    A unit lasts until the host and the GPU are done with it, and begins with the host's, but not
    before the one before it is over: for a host that runs ahead these are the times from
    completion to completion, for one that waits they are its own.
    """
    low = np.searchsorted(work.issued, start)
    high = np.searchsorted(work.issued, end, side="right")
    launches = high - low
    if not launches.any():
        return None
    slices = np.stack([low, high], axis=1).ravel()
    last, spent = (
        np.where(launches > 0, reduced.reduceat(np.append(figure, 0), slices)[::2], 0)
        for reduced, figure in ((np.maximum, work.end), (np.add, work.spent))
    )
    done = np.maximum.accumulate(np.maximum(end, last))
    begin = np.maximum(start, np.append(start[:1], done[:-1]))
    near = np.abs(launches - np.median(launches)) <= 2 * CLOSE * np.median(launches)
    same = same_share(work, low, high, np.flatnonzero(near)) if near.any() else 0.0
    worked = spent.sum() / max(work.spent.sum(), 1)
    lasted = (done - begin).sum() / max(done[-1] - begin[0], 1)
    coverage = float(min(worked, lasted, 1.0))
    return Level(source, begin, done, launches, coverage, float(near.mean()) * same)


def level_of_units(units: Units, first_ns: int | None = None, why: str = "") -> Level:
    """The level of units of work: each from the completion of the one before to its own.

    The first begins as long before its first kernel as the others usually do, but not before
    `first_ns` (default: its first kernel), where the process's first operation on a GPU began.
    """
    work, edges = units.work, units.edges
    end = np.maximum.accumulate(np.maximum.reduceat(work.end[: edges[-1]], edges[:-1]))
    start = np.concatenate([work.start[edges[:1]], end[:-1]])
    if first_ns is not None and first_ns < start[0] and len(end) > REPEATS:
        lead = float(np.median(work.start[edges[1:-1]] - end[:-1]))
        start[0] = max(int(start[0]) - max(int(lead), 0), first_ns)
    if edges[0] > 0:
        before = min(int(work.end[: edges[0]].max()), int(work.start[edges[0]]))
        start[0] = max(int(start[0]), before)
    source = SEQUENCE if units.run else "work between synchronising calls"
    return Level(source, start, end, units.sizes, units.coverage, units.regular, units, why)


def owner_of(start: Ints, end: Ints, times: Ints) -> Ints:
    """Which of disjoint ascending spans each time lies in; -1 for none."""
    place = np.searchsorted(start, times, side="right") - 1
    # The last limit is that of -1, what lies before the first span.
    limits = np.append(end, np.iinfo(np.int64).min)
    return np.where((place >= 0) & (times <= limits[place]), place, -1)


def compute_within(start: Ints, end: Ints, work: LaunchedWork) -> Ints:
    """The work that is no communication and begins in each window, in ns."""
    owner = owner_of(start, end - 1, work.start)
    inside = (owner >= 0) & ~is_communication(work.name)
    weights = work.spent[inside].astype(np.float64)
    return np.bincount(owner[inside], weights, minlength=len(start)).astype(np.int64)


def related(one: Level, other: Level) -> bool:
    """Whether the periods agree, one is a whole multiple of the other, or each holds as many."""
    inner, outer = sorted((one, other), key=lambda level: level.period_ns)
    if inner.period_ns <= 0:
        return False
    times = outer.period_ns / inner.period_ns
    if abs(times - round(times)) <= CLOSE * min(round(times), 2):
        return True
    # programs may pause between the longer ones
    owner = owner_of(outer.start, outer.end, (inner.start + inner.end) // 2)
    held = np.bincount(owner[owner >= 0], minlength=len(outer))
    whole = np.abs(held - np.median(held)) <= CLOSE * np.median(held)
    return bool((owner >= 0).mean() > MOST and whole.mean() > MOST)
