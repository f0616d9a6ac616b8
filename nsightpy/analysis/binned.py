"""What happened in each of many stretches of time that follow one another: shares and means.

Stretch i lies between edges[i] and edges[i + 1], in ns. Where nothing is known a figure is NaN.
"""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.frames import Floats, Ints

# A sample speaks for the time since the one before, at most for so many usual intervals.
MOST_INTERVALS = 2.0


def edges_of(low: int, high: int, bins: int) -> Ints:
    """The edges of that many equal stretches, of fewer where one would be shorter than 1 ns."""
    bins = max(1, min(bins, high - low))
    # whole numbers without bounds: their products may be beyond int64
    return np.asarray([low + (high - low) * k // bins for k in range(bins + 1)], dtype=np.int64)


def covered(spans: Spans, edges: Ints) -> Ints:
    """How much of each stretch lies in the set, in ns: exact."""
    return np.diff(measure_before(spans, edges))


def shares(spans: Spans, window: Spans, edges: Ints) -> Floats:
    """The share of the known time (`window`) of each stretch in which a set was: 0 to 1.

    The set must lie inside the window.
    """
    return _ratio(covered(spans, edges).astype(np.float64), covered(window, edges))


def sample_means(times: Ints, values: Floats, edges: Ints) -> Floats:
    """The mean over time of what was sampled at a fixed rate, in each stretch.

    times: ascending, in ns. A sample speaks for the time since the one before it, unless samples
    are missing there.
    """
    if len(times) < 2:
        return np.full(len(edges) - 1, np.nan)
    interval = np.diff(times)
    longest = int(MOST_INTERVALS * float(np.median(interval)))
    first = np.append(times[:1] - int(np.median(interval)), times[:-1])
    return mean_rates(np.maximum(first, times - max(longest, 1)), times, values, edges)


def mean_rates(starts: Ints, ends: Ints, values: Floats, edges: Ints) -> Floats:
    """The mean over time of values that hold from start to end, in each stretch.

    Intervals are ascending and do not overlap.
    """
    known = np.diff(_before(starts, ends, np.ones(len(values)), edges))
    return _ratio(np.diff(_before(starts, ends, values, edges)), known)


def _before(starts: Ints, ends: Ints, values: Floats, times: Ints) -> Floats:
    """The integral of the values up to each time."""
    if len(starts) == 0:
        return np.zeros(len(times))
    lengths = ends - starts
    whole = np.concatenate([[0.0], np.cumsum(values * lengths)])
    index = np.searchsorted(starts, times, side="right")
    last = np.maximum(index - 1, 0)
    beyond = np.maximum(ends[last] - times, 0) * values[last]
    return np.asarray(np.where(index > 0, whole[index] - beyond, 0.0), dtype=np.float64)


def _ratio(part: Floats, whole: Ints | Floats) -> Floats:
    known = whole > 0
    return np.where(known, part / np.where(known, whole, 1), np.nan)
