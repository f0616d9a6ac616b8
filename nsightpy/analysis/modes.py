"""The modes of a set of durations: values around which they cluster, told apart by valleys.

On the logarithm of the durations, since they differ by factors. A valley of their smoothed density
divides them where it is half as high as the lower of the peaks beside it, where that is no accident
of so few values, and where what it divides differs by 10 % at least; each side is then looked at
with a width of its own, so that one distant mode hides no near ones. The same durations always
have the same modes.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nsightpy.analysis.tally import Tally
from nsightpy.analysis.thresholds import APART, DEEP, DEVIATIONS, FEWEST, LEAST_SHARE, NARROWEST
from nsightpy.frames import Floats, Ints
from nsightpy.results.series import Bin, Durations

_STEPS = 4  # of the grid in one width
_POINTS = 20_000  # of the grid at most


@dataclass(frozen=True, slots=True)
class Mode:
    """One mode: its median, its least value (ns), how many values it holds."""

    median_ns: float
    low_ns: int
    count: int


def find_modes(values: Ints, counts: Ints) -> list[Mode]:
    """The modes of distinct ascending values, each occurring so many times."""
    logs = np.log2(np.maximum(values, 1).astype(np.float64))
    least = max(FEWEST, LEAST_SHARE * int(counts.sum()))
    modes = []
    undivided = [(0, len(values))] if len(values) else []
    while undivided:
        low, high = undivided.pop()
        place = _deepest(logs[low:high], counts[low:high], least)
        if place is None:
            middle = _quantile(values[low:high].astype(np.float64), counts[low:high], 0.5)
            modes.append(Mode(middle, int(values[low]), int(counts[low:high].sum())))
        else:
            undivided += [(low + place, high), (low, low + place)]
    return modes


def _deepest(logs: Floats, counts: Ints, least: float) -> int | None:
    """Where the deepest valley divides the values; None where they are one mode."""
    number = int(counts.sum())
    if number < 2 * least or logs[-1] - logs[0] < APART:
        return None
    width = _width(logs, counts, number)
    grid, density = _density(logs, counts, width)
    inner = np.arange(1, len(grid) - 1)
    low = inner[(density[inner] <= density[inner - 1]) & (density[inner] < density[inner + 1])]
    beside = np.minimum(
        np.maximum.accumulate(density)[low], np.maximum.accumulate(density[::-1])[::-1][low]
    )
    ratio = density[low] / beside
    seen = np.append(0, np.cumsum(counts))
    for valley in np.argsort(ratio, kind="stable").tolist():
        if ratio[valley] > DEEP:
            break
        # an empty valley is as deep everywhere: its middle divides
        place = int(np.searchsorted(logs, grid[low[valley]]))
        sides = seen[place], number - seen[place]
        if min(sides) < least:
            continue
        parts = ((logs[:place], counts[:place]), (logs[place:], counts[place:]))
        lower, upper = (_quantile(*part, 0.5) for part in parts)
        if upper - lower >= APART:
            near = 4 * width * np.array([density[low[valley]], beside[valley]])
            if near[1] - near[0] >= DEVIATIONS * np.sqrt(near.sum()):
                return place
    return None


def _width(logs: Floats, counts: Ints, number: int) -> float:
    """The width of the smoothing: Silverman's rule, and no less than the timer's steps.

    https://en.wikipedia.org/wiki/Kernel_density_estimation#A_rule-of-thumb_bandwidth_estimator
    """
    mean = float(np.average(logs, weights=counts))
    spread = float(np.sqrt(np.average((logs - mean) ** 2, weights=counts)))
    middle = (_quantile(logs, counts, 0.75) - _quantile(logs, counts, 0.25)) / 1.349
    scale = min(spread, middle) if middle > 0 else spread
    return max(NARROWEST, float(0.9 * scale * number**-0.2))


def _density(logs: Floats, counts: Ints, width: float) -> tuple[Floats, Floats]:
    """A grid, and how many values there are around each of its points, per unit of the logarithm.

    Each value is spread out as a normal distribution of that width.
    """
    from scipy.ndimage import gaussian_filter1d

    first, last = float(logs[0]) - 4 * width, float(logs[-1]) + 4 * width
    step = max(width / _STEPS, (last - first) / _POINTS)
    size = int((last - first) / step) + 2
    cells = np.bincount(np.rint((logs - first) / step).astype(np.int64), counts, size)
    spread = gaussian_filter1d(cells, width / step, mode="constant") / step
    return first + step * np.arange(len(cells), dtype=np.float64), spread


def _quantile(values: Floats, counts: Ints, share: float) -> float:
    """The value below which a share of all lies; the mean of the two middle ones for a median."""
    seen = np.cumsum(counts)
    last = int(seen[-1]) - 1
    low, high = int(np.floor(share * last)), int(np.ceil(share * last))
    ends = values[np.searchsorted(seen, [low, high], side="right")]
    return float(ends.mean())


def durations_by_time(every: Tally, bins: int, names: int) -> tuple[Durations, ...]:
    """How the durations of the names with most time spread, most first."""
    order = every.statistics().by_total()[:names]
    return tuple(_durations(every, group, bins) for group in order)


def _durations(every: Tally, group: int, bins: int) -> Durations:
    bounds = slice(int(every.bounds[group]), int(every.bounds[group + 1]))
    values, counts = every.values[bounds], every.counts[bounds].astype(np.int64)
    modes = find_modes(values, counts)
    edges = bin_edges(int(values[0]), int(values[-1]), bins)
    seen = np.append(0, np.cumsum(counts))
    inside = np.diff(seen[np.searchsorted(values, edges)]).tolist()
    begins = np.asarray([mode.low_ns for mode in modes], dtype=np.int64)
    mode = np.maximum(np.searchsorted(begins, edges[1:] - 1, side="right") - 1, 0).tolist()
    pairs = pairwise(edges.tolist())
    return Durations(
        str(every.keys[group][0]),
        tuple(each.median_ns for each in modes),
        tuple(each.count for each in modes),
        tuple(Bin(*pair, *about) for pair, *about in zip(pairs, inside, mode, strict=True)),
    )


def bin_edges(low: int, high: int, bins: int) -> Ints:
    """Edges of at most so many bins of equal ratio around durations, in whole ns."""
    inner = np.ceil(np.geomspace(max(low, 1), high + 1, bins + 1)[1:-1]).astype(np.int64)
    return np.unique(np.concatenate([[low], inner, [high + 1]]))
