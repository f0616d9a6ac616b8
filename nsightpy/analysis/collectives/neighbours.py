"""Which lanes' ends agree: how often and how closely, by a sample of the ends of each.

A lane is one unit's collectives of one signature on one stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.collectives.log import UNKNOWN, Mask
from nsightpy.analysis.intervals import consecutive
from nsightpy.frames import Floats, Ints

SAMPLE = 64
# Lanes are tied by this share of their ends and three of them, and by nearly the best share that
# either has.
LEAST_SHARE, LEAST_SHARED, NEARLY = 0.5, 3, 0.75
# Ends that agree this often agree always; so many lanes are compared with all others at once.
ALWAYS, CHUNK, MOST_NEAR = 0.9, 32, 2_000_000
# Lanes that are far from another one at so many samples are not looked at closely.
FIRST_SIGHT = 16
# A tie is no chance where its ends are so many times further apart than the closest at most: many
# ends give the median of their distance better than few.
FARTHER, CLOSE_NS, MEDIAN_ERROR = 2.5, 100.0, 1.17


@dataclass(frozen=True, slots=True)
class _Tie:
    """Two lanes, the share of their ends that agree, and how far apart those are (median, ns)."""

    share: float
    apart_ns: float
    a: int
    b: int
    seen: int

    def nearly(self, best: float) -> bool:
        """Whether the share is as good as the best, but for what a capture lacks."""
        return bool(self.share >= NEARLY * best - 1.5 / self.seen)

    def farthest_ns(self, closest_ns: float) -> float:
        """How far apart its ends may be, by chance, where the closest are so far apart."""
        return _farther(self.seen) * closest_ns + CLOSE_NS


def _farther(seen: int) -> float:
    """How many times farther the median distance of so many ends may be than another one's."""
    chance = 3.0 * MEDIAN_ERROR / math.sqrt(seen)
    return max(FARTHER, (1.0 + chance) / max(0.25, 1.0 - chance))


def grouped_lanes(
    ends: Ints, lanes: Ints, tolerance: int, units: dict[int, int]
) -> list[list[int]]:
    """Lanes put together by how often, and how well, their ends agree; ends ascending.

    A tie counts only when it is nearly as good as the best that either lane has.
    """
    ties = _ties(ends, lanes, tolerance, units)
    best: dict[int, float] = {}
    closest: dict[int, float] = {}
    for tie in ties:
        for lane in (tie.a, tie.b):
            best[lane] = max(best.get(lane, 0.0), tie.share)
    for tie in ties:
        for lane in (tie.a, tie.b):
            if tie.nearly(best[lane]):
                closest[lane] = min(closest.get(lane, tolerance), tie.apart_ns)
    # by unit: a group has no two lanes of one
    members = {lane: {unit: lane} for lane, unit in units.items()}
    for tie in ties:
        smaller, larger = sorted((members[tie.a], members[tie.b]), key=len)
        if not tie.nearly(max(best[tie.a], best[tie.b])) or smaller is larger:
            continue
        if tie.apart_ns > tie.farthest_ns(min(closest[tie.a], closest[tie.b])):
            continue
        if smaller.keys().isdisjoint(larger.keys()):
            larger |= smaller
            members |= dict.fromkeys(smaller.values(), larger)
    unique = {id(group): group for group in members.values() if len(group) > 1}
    return sorted(sorted(group.values()) for group in unique.values())


def _ties(ends: Ints, lanes: Ints, tolerance: int, units: dict[int, int]) -> list[_Tie]:
    """The ties that are worth it, best first; the share is that of the lane that has fewer.

    A lane whose ends agree with those of one before, nearly always and closely, is not looked at.
    """
    view = Neighbours(ends, lanes, tolerance, units)
    known = np.zeros(int(lanes.max()) + 1, dtype=np.bool_)
    nearness: dict[tuple[int, int], list[tuple[float, float]]] = {}
    # in no order, so that lanes of one group are not looked at side by side
    left = np.random.default_rng(0).permutation(view.present)
    at_once = max(1, min(CHUNK, MOST_NEAR // (SAMPLE * len(left))))
    while len(left):
        for a, others, shares, distances in view.of(left[:at_once]):
            near = shares >= NEARLY * shares.max(initial=0.0)
            most = FARTHER * distances[near].min(initial=tolerance) + CLOSE_NS
            known[others[(shares >= ALWAYS) & (distances <= most)]] = True
            kept = zip(others.tolist(), shares.tolist(), distances.tolist(), strict=True)
            for b, share, distance in kept:
                nearness.setdefault((min(a, b), max(a, b)), []).append((share, distance))
        left = left[at_once:]
        left = left[~known[left]]
    ties = []
    for (a, b), seen in nearness.items():
        share = max(share for share, _ in seen)
        distance = sum(distance for _, distance in seen) / len(seen)
        if share >= LEAST_SHARE:
            ties.append(_Tie(share, distance, a, b, int(min(view.sampled[a], view.sampled[b]))))
    return sorted(ties, key=lambda tie: (-round(tie.share, 2), tie.apart_ns, tie.a, tie.b))


class Neighbours:
    """Whose ends lie near those of a lane, by a sample of them; ends ascending."""

    def __init__(self, ends: Ints, lanes: Ints, tolerance: int, units: dict[int, int]) -> None:
        self._ends, self._lanes, self._tolerance = ends, lanes, tolerance
        order = np.argsort(lanes, kind="stable")
        self.present, bounds = np.unique(lanes[order], return_index=True)
        parts = np.split(order, bounds[1:])
        self._samples = {
            lane: rows[:: max(1, len(rows) // SAMPLE)]
            for lane, rows in zip(self.present.tolist(), parts, strict=True)
        }
        self._unit = np.full(int(lanes.max()) + 1, UNKNOWN, dtype=np.int64)
        self.sampled = np.zeros(len(self._unit), dtype=np.int64)
        self.sampled[self.present] = [len(rows) for rows in self._samples.values()]
        self._unit[self.present] = [units[lane] for lane in self.present.tolist()]

    def of(self, wanted: Ints) -> Iterator[tuple[int, Ints, Floats, Floats]]:
        """(lane, others, share of its ends that agree with each, median distance in ns)."""
        counts = self.sampled[wanted]
        near = self._near(wanted, counts)
        near = near[:, self._close(near, counts)]
        pairs, seen, middle = self._pairs(near)
        mine, others = np.divmod(pairs, len(self._unit))
        share = seen / counts[mine]
        enough = seen >= np.minimum(LEAST_SHARED, np.minimum(self.sampled[others], counts[mine]))
        kept = np.flatnonzero(enough & (share >= LEAST_SHARE))
        edges = np.searchsorted(mine[kept], np.arange(len(wanted) + 1))
        for lane, part in zip(wanted.tolist(), np.split(kept, edges[1:-1]), strict=True):
            yield lane, others[part], share[part], middle[part]

    def _near(self, wanted: Ints, counts: Ints) -> Ints:
        """Each end near a sample: place of the lane, sample, lane of the end, distance in ns."""
        rows = np.concatenate([self._samples[lane] for lane in wanted.tolist()])
        lane_place = np.repeat(np.arange(len(wanted)), counts)
        sample = consecutive(np.zeros_like(counts), counts)
        low = np.searchsorted(self._ends, self._ends[rows] - self._tolerance)
        size = np.searchsorted(self._ends, self._ends[rows] + self._tolerance, side="right") - low
        row = consecutive(low, size)
        lane_place, sample, middle = (
            np.repeat(values, size) for values in (lane_place, sample, self._ends[rows])
        )
        other = self._lanes[row]
        apart = self._unit[other] != self._unit[wanted][lane_place]
        distance = np.abs(self._ends[row] - middle)
        return np.stack([values[apart] for values in (lane_place, sample, other, distance)])

    def _pairs(self, near: Ints) -> tuple[Ints, Ints, Floats]:
        """Pairs (place x lanes + other lane), how many samples see each, median distance in ns."""
        lane_place, sample, other, distance = near
        # the nearest end of every other lane to each sample, then all of a pair of lanes together
        pair = lane_place * len(self._unit) + other
        order = np.lexsort((distance, sample, pair))
        pair, sample, distance = pair[order], sample[order], distance[order]
        first = (np.diff(pair, prepend=-1) != 0) | (np.diff(sample, prepend=-1) != 0)
        pair, distance = pair[first], distance[first]
        order = np.lexsort((distance, pair))
        pair, distance = pair[order], distance[order]
        pairs, begin, seen = np.unique(pair, return_index=True, return_counts=True)
        middle = (distance[begin + (seen - 1) // 2] + distance[begin + seen // 2]) / 2
        return pairs, seen, middle

    def _close(self, near: Ints, counts: Ints) -> Mask:
        """What is near by lanes that may be partners, as some of the samples show.

        Others are farther from them than the closest by more than chance, or seldom there.
        """
        step = np.maximum(1, counts // FIRST_SIGHT)
        pairs, seen, middle = self._pairs(near[:, near[1] % step[near[0]] == 0])
        mine = pairs // len(self._unit)
        often = seen >= LEAST_SHARE / 2 * (counts / step)[mine]
        closest = np.full(len(counts), float(self._tolerance))
        np.minimum.at(closest, mine[often], middle[often])
        farther = np.asarray([_farther(looked_at) for looked_at in (counts // step).tolist()])
        # twice, since the mean of both lanes' distances is what counts later
        most = 2 * (farther * closest + CLOSE_NS)
        kept = np.zeros(len(counts) * len(self._unit), dtype=np.bool_)
        kept[pairs[often & (middle <= most[mine])]] = True
        close: Mask = kept[near[0] * len(self._unit) + near[2]]
        return close
