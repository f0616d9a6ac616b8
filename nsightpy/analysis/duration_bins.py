"""How durations spread: bins of equal ratio, and the modes that they belong to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from nsightpy.analysis.modes import find_modes
from nsightpy.analysis.tally import Tally
from nsightpy.frames import Ints
from nsightpy.results.series import Bin, Durations


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
