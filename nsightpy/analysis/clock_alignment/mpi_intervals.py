"""How far clocks can be apart, by the MPI operations that their ranks took part in.

Ends of MPI calls do not agree, as they poll; but nobody leaves a barrier before all have entered
it, and no receive ends before its send began (the clock condition of Scalasca: Becker et al.,
"Scalable timestamp synchronization for event traces of message-passing applications", 2009). Each
operation bounds differences of clocks from both sides; what is left is an interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.collectives.thresholds import (
    ENOUGH,
    MOST_DRIFT,
    PLENTY,
    SAMPLE,
    SMALL_DRIFT,
    WINDOWS,
)
from nsightpy.analysis.grouping import connected
from nsightpy.analysis.mpi.functions import Mask
from nsightpy.analysis.mpi.matching import Matched
from nsightpy.frames import Floats, Ints


@dataclass(frozen=True)
class Conditions:
    """Events of operations: whose clock, when (ns since the middle), in which operation.

    No event of `exits` is before one of `enters` of the same operation. `time` is about when the
    operation was.
    """

    operation: Ints
    owner: Ints
    enter: Floats
    leave: Floats
    enters: Mask
    exits: Mask
    time: Floats
    operations: int

    def without_drift(self, drift: Floats) -> Conditions:
        moved = drift[self.owner] * self.time
        return replace(self, enter=self.enter - moved, leave=self.leave - moved)


@dataclass(frozen=True)
class Intervals:
    """Each clock is between low and high ns (at the middle) ahead of its set's first, and gains
    `drift`; infinite where nothing bounds it. `operations` counts those that it took part in."""

    low: Floats
    high: Floats
    drift: Floats
    operations: Ints

    @property
    def known(self) -> Mask:
        known: Mask = np.isfinite(self.low) & np.isfinite(self.high)
        return known

    @property
    def middle(self) -> Floats:
        return np.where(self.known, (self.low + self.high) / 2, 0.0)

    @property
    def error(self) -> Floats:
        return np.where(self.known, (self.high - self.low) / 2, np.inf)


def conditions_of(
    matched: Matched, owner: Ints, starts: Ints, ends: Ints
) -> tuple[Conditions, int]:
    """The conditions between owners of rows, and the middle of their times (ns).

    `owner`, `starts` and `ends` are by row of the calls; only operations of several owners count.
    """
    telling = matched.strict[matched.instance] & (matched.enters | matched.exits)
    owners_seen = owner[matched.row]
    owners = int(owner.max(initial=0)) + 1
    pairs = np.unique(matched.instance[telling] * owners + owners_seen[telling])
    several = np.bincount(pairs // owners, minlength=matched.count) > 1
    share = int(np.count_nonzero(telling)) // (ENOUGH * owners) + 1
    several &= np.cumsum(several) % share == 0
    rows = np.flatnonzero(telling & several[matched.instance])
    numbers, operation = np.unique(matched.instance[rows], return_inverse=True)
    enter, leave = starts[matched.row[rows]], ends[matched.row[rows]]
    middle = (int(enter.min()) + int(leave.max())) // 2 if len(rows) else 0
    first = np.full(len(numbers), np.iinfo(np.int64).max)
    np.minimum.at(first, operation, enter)
    return Conditions(
        operation.astype(np.int64),
        owners_seen[rows],
        (enter - middle).astype(np.float64),
        (leave - middle).astype(np.float64),
        matched.enters[rows],
        matched.exits[rows],
        (first - middle).astype(np.float64)[operation],
        len(numbers),
    ), middle


def intervals_of(conditions: Conditions, owners: int) -> tuple[Intervals, Ints]:
    """How far each owner is ahead of the first of its set, and which that is."""
    first = connected(conditions.owner, conditions.operation, owners).astype(np.int64)
    reference = first == np.arange(owners)
    drift, most = np.zeros(owners), MOST_DRIFT
    pairs = np.unique(conditions.operation * max(owners, 1) + conditions.owner)
    counts = np.bincount(pairs % max(owners, 1), minlength=owners)
    intervals = Intervals(
        np.where(reference, 0.0, -np.inf), np.where(reference, 0.0, np.inf), drift, counts
    )
    for number in range(3):
        times, lows, highs = _windows(conditions.without_drift(drift), reference, most)
        low, high, least, largest = _lines(times, lows, highs, most)
        low[reference] = high[reference] = 0.0
        known = np.isfinite(low) & np.isfinite(high)
        if number and (intervals.known & ~known).any():
            break  # clocks that do not drift steadily: what was found before holds
        # no drift is taken where that is as good
        steps = np.where((least <= -drift) & (-drift <= largest), -drift, (least + largest) / 2)
        drift = drift + np.where(known, steps, -drift)
        intervals = Intervals(low, high, drift, counts)
        spread = float(np.max((largest - least)[known & ~reference], initial=0.0))
        if len(times) < 2 or spread >= most:
            break
        most = max(spread, SMALL_DRIFT)
    return intervals, first


def _windows(conditions: Conditions, reference: Mask, most: float) -> tuple[Floats, Floats, Floats]:
    """The middles of windows of time; the bounds there by window (a row) and owner, of clocks that
    drift by `most` at most, infinite where conditions contradict each other."""
    count = min(max(conditions.operations // PLENTY, 1), WINDOWS)
    edges = np.linspace(
        conditions.time.min(initial=0.0), conditions.time.max(initial=0.0), count + 1
    )
    window = np.clip(np.searchsorted(edges, conditions.time, side="right") - 1, 0, count - 1)
    times = (edges[:-1] + edges[1:]) / 2
    low = np.full((count, len(reference)), -np.inf)
    high = np.full((count, len(reference)), np.inf)
    for number in range(count):
        away = np.where(reference[conditions.owner], 0.0, np.abs(conditions.time - times[number]))
        bounds = _bounds(conditions, window == number, reference, most * away)
        if bounds is not None:
            low[number], high[number] = bounds
    return times, low, high


def _bounds(
    conditions: Conditions, inside: Mask, reference: Mask, slack: Floats
) -> tuple[Floats, Floats] | None:
    """Bounds of every owner against the reference of its set, also through others; None where the
    conditions (those `inside`) contradict each other.

    Each pass hands bounds on to whoever shares an operation: shortest paths after Bellman and Ford.
    """
    low = np.where(reference, 0.0, -np.inf)
    high = np.where(reference, 0.0, np.inf)
    enters, exits = conditions.enters & inside, conditions.exits & inside
    entered, left = conditions.operation[enters], conditions.operation[exits]
    came, went = conditions.owner[enters], conditions.owner[exits]
    enter, leave = (conditions.enter - slack)[enters], (conditions.leave + slack)[exits]
    for _ in range(len(reference) + 1):
        earliest = np.full(conditions.operations, np.inf)
        latest = np.full(conditions.operations, -np.inf)
        np.minimum.at(earliest, left, leave - low[went])
        np.maximum.at(latest, entered, enter - high[came])
        lower, higher = low.copy(), high.copy()
        np.maximum.at(lower, came, enter - earliest[entered])
        np.minimum.at(higher, went, leave - latest[left])
        if (lower > higher).any():
            return None
        with np.errstate(invalid="ignore"):
            moved = np.nan_to_num(lower - low), np.nan_to_num(high - higher)
        low, high = lower, higher
        if max(part.max(initial=0.0) for part in moved) < 1.0:
            break
    return low, high


def _lines(
    times: Floats, lows: Floats, highs: Floats, most: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Of the lines through all windows' intervals: lowest and highest at the middle of all times,
    least and largest drift; infinite where no line is one."""
    owners = lows.shape[1]
    least, largest = np.full(owners, -most), np.full(owners, most)
    for a, time in enumerate(times):
        for b, other in enumerate(times[:a]):
            with np.errstate(invalid="ignore"):
                least = np.maximum(least, (lows[a] - highs[b]) / (time - other))
                largest = np.minimum(largest, (highs[a] - lows[b]) / (time - other))
    drifts = np.linspace(least, np.maximum(largest, least), SAMPLE + 1)
    moved = drifts[:, None, :] * times[None, :, None]
    low = np.max(lows[None] - moved, axis=1)
    high = np.min(highs[None] - moved, axis=1)
    possible = (low <= high) & (least <= largest)
    lines = possible.any(axis=0)
    found_low = np.where(lines, np.min(np.where(possible, low, np.inf), axis=0), -np.inf)
    found_high = np.where(lines, np.max(np.where(possible, high, -np.inf), axis=0), np.inf)
    least = np.where(lines, np.min(np.where(possible, drifts, np.inf), axis=0), -most)
    largest = np.where(lines, np.max(np.where(possible, drifts, -np.inf), axis=0), most)
    return found_low, found_high, least, largest
