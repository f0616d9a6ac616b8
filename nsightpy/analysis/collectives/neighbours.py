"""Which lanes' ends agree: how often and how closely, by a sample of the ends of each.

A lane is one unit's collectives of one signature on one stream.
"""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.collectives.log import UNKNOWN
from nsightpy.analysis.collectives.thresholds import (
    LEAST_JITTER_NS,
    LEAST_SHARE,
    LEAST_SHARED,
    NEARLY_ALL,
    SAMPLE,
)
from nsightpy.analysis.intervals import consecutive
from nsightpy.frames import Floats, Ints


def grouped_lanes(ends: Ints, lanes: Ints, tolerance: int, units: Ints) -> list[list[int]]:
    """Lanes put together by how often, and how closely, their ends agree; ends ascending, units by
    lane.

    Each lane goes with its closest neighbour, and what is as close to that: so a lane whose own
    partners were not captured is not taken for one of another group. A group has no two lanes of
    one unit.
    """
    neighbours = Neighbours(ends, lanes, tolerance, units)
    label = np.full(len(units), UNKNOWN)
    order = np.argsort(-neighbours.counts, kind="stable")
    for lane in order[neighbours.counts[order] > 0].tolist():
        mates = neighbours.of(lane) if label[lane] == UNKNOWN else []
        group = np.asarray([mates[0], *neighbours.of(mates[0])]) if mates else np.empty(0, np.int64)
        if lane not in group:
            continue
        others = np.unique(label[group])
        label[group[label[group] == UNKNOWN]] = lane
        for other in others[others != UNKNOWN].tolist():
            both = (label == lane) | (label == other)
            if len(np.unique(units[both])) == np.count_nonzero(both):
                label[both] = lane
    names = np.unique(label[label != UNKNOWN]).tolist()
    return [np.flatnonzero(label == name).tolist() for name in names]


class Neighbours:
    """Whose ends lie near those of a lane, by a sample of them; ends ascending."""

    def __init__(self, ends: Ints, lanes: Ints, tolerance: int, units: Ints) -> None:
        self._ends, self._lanes, self._tolerance, self._unit = ends, lanes, tolerance, units
        self.counts = np.bincount(lanes, minlength=len(units))
        self._rows = np.split(np.argsort(lanes, kind="stable"), np.cumsum(self.counts)[:-1])

    def of(self, lane: int) -> list[int]:
        """The lanes that belong to one, the closest first: at most one of each other unit.

        Their share of ends is nearly the best that there is, and their distance (median) no farther
        from the closest than chance explains: many ends give a median better than few.
        """
        distances = self._distances(lane)
        near = np.isfinite(distances)
        seen = near.sum(axis=1)
        fewer = np.minimum(self.counts, self.counts[lane]) / self.counts[lane]
        shares = np.minimum(seen / distances.shape[1] / np.maximum(fewer, 1e-9), 1.0)
        possible = (shares >= LEAST_SHARE) & (seen >= np.minimum(LEAST_SHARED - 1, self.counts))
        if not possible.any():
            return []
        possible &= shares >= NEARLY_ALL * shares[possible].max() - 1.5 / distances.shape[1]
        ordered = np.sort(distances[possible], axis=1)
        apart = np.full(len(distances), np.inf)
        apart[possible] = ordered[np.arange(len(ordered)), seen[possible] // 2]
        chance = 3.5 / np.sqrt(np.maximum(seen, 1))  # three standard errors of a median, relative
        times = (1.0 + chance) / np.maximum(1.0 - chance, 0.25)
        farthest = times * apart.min() + 5 * LEAST_JITTER_NS
        order = np.argsort(apart, kind="stable")
        order = order[(apart <= farthest)[order]]
        _, first = np.unique(self._unit[order], return_index=True)
        mates: list[int] = order[np.sort(first)].tolist()
        return mates

    def _distances(self, lane: int) -> Floats:
        """By lane and sampled end of one lane: how far the nearest end is, ns; infinite if far."""
        rows = self._rows[lane]
        sampled = self._ends[rows[:: max(1, len(rows) // SAMPLE)]]
        low = np.searchsorted(self._ends, sampled - self._tolerance)
        sizes = np.searchsorted(self._ends, sampled + self._tolerance, side="right") - low
        near, sample = consecutive(low, sizes), np.repeat(np.arange(len(sampled)), sizes)
        kept = self._unit[self._lanes[near]] != self._unit[lane]
        near, sample = near[kept], sample[kept]
        distances = np.full((len(self.counts), len(sampled)), np.inf)
        away = np.abs(self._ends[near] - sampled[sample]).astype(np.float64)
        np.minimum.at(distances, (self._lanes[near], sample), away)
        return distances
