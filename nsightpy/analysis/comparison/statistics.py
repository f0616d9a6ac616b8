"""How sure a change is: the interval of the change of medians, and the Mann-Whitney U test.

The run is the sample. The interval is a percentile bootstrap that draws whole runs with
replacement; where a side has fewer than four, the units inside each drawn run are drawn, too, and
stand in for what is not known of the runs. Nothing is random: the draws have a fixed seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nsightpy.frames import Floats, Ints

# Below four runs a side no p-value can fall below 0.05.
FEWEST_RUNS = 4
DRAWS = 2_000
SEED = 20_250_601
CONFIDENCE = 0.95
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """One time of one side: its value in each run, and in single units of each run (or nothing).

    `within` is the part by which a single value may be off, where that is known of its kind.
    """

    runs: Floats
    units: tuple[Floats, ...] = ()
    within: float = 0.0

    @property
    def median(self) -> float:
        return float(np.median(self.runs)) if len(self.runs) else 0.0

    @property
    def has_units(self) -> bool:
        """Whether every run has several units to draw from."""
        return bool(self.units) and all(len(unit) > 1 for unit in self.units)


@dataclass(frozen=True, slots=True)
class Interval:
    """The 95 % interval of a change: in ns, and as a ratio where there is one."""

    least_ns: float
    most_ns: float
    low: float | None = None
    high: float | None = None


def covers_runs(before: int, after: int) -> bool:
    """Whether there are enough runs on both sides for their own spread to be known."""
    return min(before, after) >= FEWEST_RUNS


def change_interval(before: Sample, after: Sample) -> Interval | None:
    """The interval of the change of the median; None where nothing shows a spread.

    Two-stage where a side has fewer than four runs: runs, then units in each; where there are no
    units, by what single values are known to be off.
    """
    if not len(before.runs) or not len(after.runs):
        return None
    if covers_runs(len(before.runs), len(after.runs)):
        below, above = _drawn_runs(before.runs, 0), _drawn_runs(after.runs, 1)
    elif before.has_units and after.has_units:
        below, above = _drawn_units(before.units, 0), _drawn_units(after.units, 1)
    else:
        return _interval_within(before, after) if before.within and after.within else None
    tails = ((1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0)
    least, most = np.quantile(above - below, tails)
    if not (below > 0).all():
        return Interval(float(least), float(most))
    low, high = np.quantile(above / below, tails)
    return Interval(float(least), float(most), float(low), float(high))


def _interval_within(before: Sample, after: Sample) -> Interval:
    """The interval of the change where both values are off by what they may be."""
    lowest, low = before.median * (1 - before.within), after.median * (1 - after.within)
    highest, high = before.median * (1 + before.within), after.median * (1 + after.within)
    if lowest <= 0:
        return Interval(low - highest, high - lowest)
    return Interval(low - highest, high - lowest, low / highest, high / lowest)


@lru_cache(maxsize=16)
def _draws(size: int, stream: int) -> Ints:
    """Which runs each draw takes: DRAWS rows of `size`."""
    random = np.random.default_rng((SEED, stream))
    return random.integers(0, size, (DRAWS, size))


def _drawn_runs(runs: Floats, side: int) -> Floats:
    """The medians of the draws."""
    drawn: Floats = np.median(runs[_draws(len(runs), side)], axis=1)
    return drawn


def _drawn_units(units: Sequence[Floats], side: int) -> Floats:
    """The same where the units of each drawn run are drawn again."""
    size = len(units)
    chosen = _draws(size, side)
    medians = np.empty((DRAWS, size), dtype=np.float64)
    for slot in range(size):
        every = np.stack(
            [np.median(unit[_draws(len(unit), 2 + 2 * slot + side)], axis=1) for unit in units]
        )
        medians[:, slot] = every[chosen[:, slot], np.arange(DRAWS)]
    drawn: Floats = np.median(medians, axis=1)
    return drawn


def mann_whitney(before: Floats, after: Floats) -> float | None:
    """The two-sided p-value of the rank-sum test; None below four a side.

    Exact where a side has eight runs or fewer and no two are equal, else by the normal
    approximation, ties corrected.
    """
    if not covers_runs(len(before), len(after)):
        return None
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(before, after).pvalue)
