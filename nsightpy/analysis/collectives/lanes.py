"""Which lanes are one group: those whose ends agree, in lockstep or not.

A lane is one unit's collectives of one signature on one stream. A sample of its ends shows how
often, and how closely, those of other lanes agree with them.

Groups whose members wait for each other elsewhere end almost together. A job's ranks form a grid
(tensor, data, pipeline), and a group is a line along one of its axes: each such layout is tried,
and the one taken whose ends follow the last arrivals of its groups best. Where members come within
the jitter of ends, these do not decide: what else the same streams carry does, or nothing.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.log import UNKNOWN
from nsightpy.analysis.collectives.matching import nearest
from nsightpy.analysis.collectives.thresholds import (
    BEYOND_CHANCE,
    LEAST_JITTER_NS,
    LEAST_SHARED,
    PLENTY,
    REACH_NS,
    SAMPLE,
    SIGNIFICANT,
)
from nsightpy.analysis.grouping import rows_of_groups
from nsightpy.analysis.intervals import consecutive
from nsightpy.analysis.thresholds import MOST, MOSTLY
from nsightpy.frames import Floats, Ints

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of each lane; all 0 where they are one, or where nothing decides (not sure)."""

    labels: Labels
    sure: bool = True


def shared(times: Sequence[tuple[Ints, Ints]]) -> tuple[Floats, Floats]:
    """Starts and ends of what most of some lanes share, as groups_among takes them, from starts and
    ends of each lane (by end)."""
    about = max((ends for _, ends in times), key=len)
    about = about[:: max(1, len(about) // SAMPLE)]
    starts, ends = np.full((2, len(times), len(about)), np.nan)
    for place, (began, ended) in enumerate(times):
        near = nearest(ended, about)
        there = np.abs(ended[near] - about) <= REACH_NS
        starts[place, there] = (began[near] - about)[there]
        ends[place, there] = (ended[near] - about)[there]
    whole = np.mean(~np.isnan(ends), axis=0) >= MOST
    return starts[:, whole], ends[:, whole]


def groups_among(
    starts: Floats, ends: Floats, positions: Ints, world: int, likely: Labels | None = None
) -> Grouping:
    """The groups of lanes: as their ends show; where these do not decide, the likely ones.

    starts, ends: a row per lane, a column per collective that they seem to share, in ns from any
    moment of that column; NaN where a lane took no part. positions: the lanes' ranks, ascending.
    """
    together = np.zeros(len(positions), dtype=np.int64)
    if len(positions) < 3:
        return Grouping(together)
    undecided = Grouping(together, sure=False) if likely is None else Grouping(likely)
    if np.count_nonzero(~np.isnan(ends)) < PLENTY:
        return undecided
    spread = np.nanmax(ends, axis=0) - np.nanmin(ends, axis=0)
    usual = spread <= SIGNIFICANT * np.median(spread)
    starts, ends = starts[:, usual], ends[:, usual]
    rest = _unexplained(starts, ends, together)
    as_one = _misfit(rest)
    best, least = together, math.inf
    for labels in _layouts(positions, world):
        # lanes that are alone count as if all were one
        unexplained, several = rest.copy(), np.bincount(labels)[labels] > 1
        unexplained[several] = _unexplained(starts[several], ends[several], labels[several])
        misfit = _misfit(unexplained)
        if misfit < least:
            best, least = labels, misfit
    clearly = 1.0 - BEYOND_CHANCE * ends.shape[1] ** -0.5
    if least < clearly * as_one:
        return Grouping(best)
    return Grouping(together) if as_one < clearly * least else undecided


def _layouts(positions: Ints, world: int) -> Iterator[Labels]:
    """Groups along each axis of any grid, of the lanes and of the whole job; two are needed."""
    seen = set()
    for places, count in ((np.arange(len(positions)), len(positions)), (positions, world)):
        # the length of an axis and of what lies inside it
        divisors = [n for n in range(1, count + 1) if count % n == 0]
        for size, inner in product(divisors[1:], divisors):
            if count // size % inner:
                continue
            labels = places // (inner * size) * inner + places % inner
            _, labels = np.unique(labels, return_inverse=True)
            several = np.count_nonzero(np.bincount(labels) > 1) > 1
            if several and labels.tobytes() not in seen:
                seen.add(labels.tobytes())
                yield labels


def _unexplained(starts: Floats, ends: Floats, labels: Labels) -> Floats:
    """How much later each lane ended than its group's last arrival and what is usual explain."""
    order = np.argsort(labels, kind="stable")
    first = np.flatnonzero(np.diff(labels[order], prepend=-1))
    last = np.fmax.reduceat(starts[order], first, axis=0)
    rest = np.empty_like(ends)
    rest[order] = ends[order] - np.repeat(last, np.diff(first, append=len(order)), axis=0)
    return _centred(_centred(rest, 1), 0)


def _centred(values: Floats, axis: int) -> Floats:
    """Values less their median along an axis; what is missing stays so."""
    moved = np.moveaxis(values, axis, -1)
    centred: Floats = np.moveaxis(moved - medians(moved)[..., None], -1, axis)
    return centred


def medians(values: Floats) -> Floats:
    """The medians along the last axis of what is not missing (numpy's nanmedian takes longer)."""
    ordered = np.sort(values, axis=-1)
    count = np.count_nonzero(~np.isnan(ordered), axis=-1)
    places = np.stack([np.maximum(count - 1, 0) // 2, np.minimum(count // 2, values.shape[-1] - 1)])
    middle = np.take_along_axis(ordered, np.moveaxis(places, 0, -1), axis=-1)
    found: Floats = middle.mean(axis=-1)
    return found


def _misfit(unexplained: Floats) -> float:
    """The mean of what is unexplained, but for the worst."""
    sizes = np.sort(np.abs(unexplained[~np.isnan(unexplained)]))
    return float(np.mean(sizes[: math.ceil(MOSTLY * len(sizes))]))


def grouped_lanes(ends: Ints, lanes: Ints, units: Ints) -> list[list[int]]:
    """Lanes put together by how often, and how closely, their ends agree; ends ascending, units by
    lane.

    Each lane goes with its closest neighbour, and what is as close to that: so a lane whose own
    partners were not captured is not taken for one of another group. A group has no two lanes of
    one unit.
    """
    neighbours = Neighbours(ends, lanes, units)
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

    def __init__(self, ends: Ints, lanes: Ints, units: Ints) -> None:
        self._ends, self._lanes, self._unit = ends, lanes, units
        self.counts = np.bincount(lanes, minlength=len(units))
        self._rows = rows_of_groups(lanes, len(units))

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
        possible = (shares >= MOST) & (seen >= np.minimum(LEAST_SHARED - 1, self.counts))
        if not possible.any():
            return []
        possible &= shares >= MOSTLY * shares[possible].max() - 1.5 / distances.shape[1]
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
        low = np.searchsorted(self._ends, sampled - REACH_NS)
        sizes = np.searchsorted(self._ends, sampled + REACH_NS, side="right") - low
        near, sample = consecutive(low, sizes), np.repeat(np.arange(len(sampled)), sizes)
        kept = self._unit[self._lanes[near]] != self._unit[lane]
        near, sample = near[kept], sample[kept]
        distances = np.full((len(self.counts), len(sampled)), np.inf)
        away = np.abs(self._ends[near] - sampled[sample]).astype(np.float64)
        np.minimum.at(distances, (self._lanes[near], sample), away)
        return distances
