"""What happened in each of many stretches of time that follow one another: shares and means.

Stretch i lies between edges[i] and edges[i + 1], in ns. Where nothing is known a figure is NaN.
"""

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


def shares(spans: Spans, window: Spans, edges: Ints) -> Floats:
    """The share of the known time (`window`) of each stretch in which a set was: 0 to 1.

    The set must lie inside the window.
    """
    part, whole = (np.diff(measure_before(each, edges)) for each in (spans, window))
    return _ratio(part.astype(np.float64), whole)


def sample_means(times: Ints, values: Floats, edges: Ints) -> Floats:
    """The mean over time of what was sampled at a fixed rate, in each stretch.

    times: ascending, in ns. A sample speaks for the time since the one before it, unless samples
    are missing there.
    """
    if len(times) < 2:
        return np.full(len(edges) - 1, np.nan)
    usual = float(np.median(np.diff(times)))
    first = np.append(times[:1] - int(usual), times[:-1])
    starts = np.maximum(first, times - max(int(MOST_INTERVALS * usual), 1))
    index = np.searchsorted(starts, edges, side="right")
    last = np.maximum(index - 1, 0)
    whole = np.append(0.0, np.cumsum(values * (times - starts)))
    beyond = np.maximum(times[last] - edges, 0) * values[last]
    before = np.where(index > 0, whole[index] - beyond, 0.0)
    return _ratio(np.diff(before), np.diff(measure_before(Spans(starts, times), edges)))


def _ratio(part: Floats, whole: Ints | Floats) -> Floats:
    known = whole > 0
    return np.where(known, part / np.where(known, whole, 1), np.nan)
