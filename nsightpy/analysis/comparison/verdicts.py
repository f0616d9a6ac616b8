"""How sure a change is, and what it is called: slower, faster, same, or that one cannot tell.

The run is the sample. The interval of the change of medians is a percentile bootstrap that draws
whole runs with replacement; where a side has fewer than four, the units inside each run are drawn,
too, and stand in for what is not known of the runs (scipy.stats.bootstrap draws in one stage only).
Nothing is random: the draws have a fixed seed.

A change is one where its whole interval lies beyond the relative and the absolute limit, and none
where it lies within; a p-value, where there is one, must be significant as well.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.comparison.thresholds import DRAWS, FEWEST_RUNS, LEVEL, MOST_RUNS
from nsightpy.frames import Floats
from nsightpy.results.comparison import CANNOT_TELL, FASTER, SAME, SLOWER, Limits, NoiseFloor

SEED = 20_250_601


@dataclass(frozen=True, slots=True)
class Sample:
    """One time of one side, in ns: in each run, and in single units of each run (or nothing).

    `within` is the part by which a single value may be off, where that is known of its kind.
    """

    runs: tuple[int, ...]
    units: tuple[tuple[int, ...], ...] = ()
    within: float = 0.0

    @property
    def median(self) -> float:
        return float(np.median(self.runs))

    @property
    def has_units(self) -> bool:
        """Whether every run has several units to draw from."""
        return bool(self.units) and all(len(unit) > 1 for unit in self.units)


@dataclass(frozen=True, slots=True)
class Interval:
    """The 95 % interval of a change: in ns, and as a ratio where there is one."""

    least_ns: float
    most_ns: float
    ratios: tuple[float, float] | None = None


def covers_runs(before: int, after: int) -> bool:
    """Whether there are enough runs on both sides for their own spread to be known."""
    return min(before, after) >= FEWEST_RUNS


def change_interval(before: Sample, after: Sample) -> Interval | None:
    """The interval of the change of the median; None where nothing shows a spread.

    Where there are neither runs nor units enough, it is what single values are known to be off by.
    """
    whole = covers_runs(len(before.runs), len(after.runs))
    if whole or (before.has_units and after.has_units):
        below, above = (
            _drawn_medians(sample, whole, np.random.default_rng((SEED, side)))
            for side, sample in enumerate((before, after), start=0 if whole else 2)
        )
        return _interval(below, above, (LEVEL / 2, 1 - LEVEL / 2))
    if before.within and after.within:
        off = np.array([1.0, -1.0])
        below = before.median * (1 + before.within * off)
        return _interval(below, after.median * (1 - after.within * off), (0.0, 1.0))
    return None


def _interval(below: Floats, above: Floats, tails: tuple[float, float]) -> Interval:
    ratios = None
    if (below > 0).all():
        low, high = np.quantile(above / below, tails).tolist()
        ratios = low, high
    least, most = np.quantile(above - below, tails).tolist()
    return Interval(least, most, ratios)


def _drawn_medians(sample: Sample, whole: bool, random: np.random.Generator) -> Floats:
    """The median of each draw of the runs; unless they are taken whole, of their units drawn."""
    runs = np.broadcast_to(sample.runs, (DRAWS, len(sample.runs)))
    if not whole:
        drawn = [random.choice(unit, (DRAWS, len(unit))) for unit in sample.units]
        runs = np.stack([np.median(units, axis=1) for units in drawn], axis=1)
    chosen = random.integers(0, runs.shape[1], runs.shape)
    medians: Floats = np.median(np.take_along_axis(runs, chosen, axis=1), axis=1)
    return medians


def mann_whitney(before: Sequence[int], after: Sequence[int]) -> float | None:
    """The two-sided p-value of the rank-sum test; None below four a side."""
    if not covers_runs(len(before), len(after)):
        return None
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(before, after).pvalue)


def verdict_of(
    before_ns: float, interval: Interval | None, limits: Limits, p_value: float | None = None
) -> str:
    """The verdict on a time of `before_ns` whose change lies in the interval."""
    if interval is None:
        return CANNOT_TELL
    limit = limits.at(before_ns)
    significant = p_value is None or p_value < LEVEL
    if significant and interval.least_ns > limit:
        return SLOWER
    if significant and interval.most_ns < -limit:
        return FASTER
    return SAME if interval.least_ns >= -limit and interval.most_ns <= limit else CANNOT_TELL


def runs_needed(
    before_ns: float, change_ns: float, interval: Interval | None, runs: int, limits: Limits
) -> int | None:
    """How many runs a side would tell, where `runs` cannot; None where no number would.

    The width of an interval shrinks as one by the square root of the number of runs: what is needed
    is that half of it fits between the change and the limit.
    """
    if interval is None:
        return FEWEST_RUNS if runs < FEWEST_RUNS else None
    margin = abs(abs(change_ns) - limits.at(before_ns))
    half = (interval.most_ns - interval.least_ns) / 2.0
    if margin <= 0.0:
        return None
    needed = math.ceil(max(runs, 1) * (half / margin) ** 2)
    return None if needed > MOST_RUNS else max(needed, runs + 1, FEWEST_RUNS)


def noise_floor(times_ns: Sequence[int]) -> NoiseFloor:
    """The change between halves of runs that 95 % of the ways to divide them stay below.

    times_ns: the unit of each run, two runs at least; of an odd number one is left out. Runs are
    shuffled with a fixed seed (scipy.stats.permutation_test takes no halves of one run).
    """
    times = np.tile(np.maximum(times_ns, 1.0), (DRAWS, 1))
    shuffled = np.random.default_rng(SEED).permuted(times, axis=1)
    half = len(times_ns) // 2
    medians = [np.median(shuffled[:, part : part + half], axis=1) for part in (0, half)]
    low, high = np.sort(medians, axis=0)
    both = np.stack([high / low - 1, high - low])
    relative, absolute = np.quantile(both, 1 - LEVEL, axis=1).tolist()
    return NoiseFloor(relative, round(absolute), len(times_ns))
