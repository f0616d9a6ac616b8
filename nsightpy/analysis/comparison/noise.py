"""A against A: how far halves of the same runs lie apart, and so what a gate must exceed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice

import numpy as np

from nsightpy.results.comparison import NoiseFloor

# Of all ways to divide the runs in two, so many are looked at.
MOST_SPLITS = 2_000
SHARE = 0.95


def noise_floor(times_ns: Sequence[int]) -> NoiseFloor:
    """The change between halves of runs that 95 % of all ways to divide them stay below.

    times_ns: the unit of each run, two runs at least. Of an odd number one run is left out in turn.
    """
    times = np.asarray(times_ns, dtype=np.float64)
    size = len(times) // 2
    ratios, changes = [], []
    for first in islice(_halves(len(times), size), MOST_SPLITS):
        rest = np.setdiff1d(np.arange(len(times)), first)
        for second in [rest] if len(rest) == size else combinations(rest.tolist(), size):
            below, above = np.median(times[list(first)]), np.median(times[list(second)])
            low, high = sorted((float(below), float(above)))
            ratios.append(high / low - 1.0 if low else 0.0)
            changes.append(high - low)
    relative, absolute = (float(np.quantile(deviations, SHARE)) for deviations in (ratios, changes))
    return NoiseFloor(relative, round(absolute), len(times))


def _halves(count: int, size: int) -> list[tuple[int, ...]]:
    """Ways to choose half of the runs; evenly taken where there are many."""
    every = list(islice(combinations(range(count), size), 200_000))
    step = max(1, len(every) // MOST_SPLITS)
    return every[::step]
