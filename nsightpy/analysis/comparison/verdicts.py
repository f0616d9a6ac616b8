"""What a change is called: slower, faster, same, or that one cannot tell, and with how many runs.

A change is one where its whole interval lies beyond the relative and the absolute limit, and none
where it lies within; a p-value, where there is one, must be significant as well.
"""

from __future__ import annotations

import math

from nsightpy.analysis.comparison.statistics import FEWEST_RUNS, SIGNIFICANT, Interval
from nsightpy.results.comparison import CANNOT_TELL, FASTER, SAME, SLOWER, Limits

# More runs than this nobody makes.
MOST_RUNS = 1_000


def verdict_of(
    before_ns: float, interval: Interval | None, limits: Limits, p_value: float | None = None
) -> str:
    """The verdict on a time of `before_ns` whose change lies in the interval."""
    if interval is None:
        return CANNOT_TELL
    limit = limit_of(before_ns, limits)
    significant = p_value is None or p_value < SIGNIFICANT
    if significant and interval.least_ns > limit and _beyond(interval.low, 1 + limits.relative):
        return SLOWER
    if significant and interval.most_ns < -limit and _beyond(1 - limits.relative, interval.high):
        return FASTER
    within = interval.least_ns >= -limit and interval.most_ns <= limit
    return SAME if within else CANNOT_TELL


def _beyond(value: float | None, limit: float | None) -> bool:
    """Whether a ratio is above a limit; true where there is no ratio."""
    return value is None or limit is None or value > limit


def limit_of(before_ns: float, limits: Limits) -> float:
    """What a change must pass to be one, in ns: both limits."""
    return max(limits.relative * before_ns, float(limits.absolute_ns))


def runs_needed(
    before_ns: float, change_ns: float, interval: Interval | None, runs: int, limits: Limits
) -> int | None:
    """How many runs a side would tell, where `runs` cannot; None where no number would.

    The width of an interval shrinks as one by the square root of the number of runs: what is needed
    is that half of it fits between the change and the limit.
    """
    if interval is None:
        return FEWEST_RUNS if runs < FEWEST_RUNS else None
    margin = abs(abs(change_ns) - limit_of(before_ns, limits))
    half = (interval.most_ns - interval.least_ns) / 2.0
    if margin <= 0.0:
        return None
    needed = math.ceil(max(runs, 1) * (half / margin) ** 2)
    return None if needed > MOST_RUNS else max(needed, runs + 1, FEWEST_RUNS)
