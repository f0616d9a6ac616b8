"""Groups that work in lockstep, distinguished: each ends when its own last member has come.

Groups whose members wait for each other elsewhere end almost together. A job's ranks form a grid
(tensor, data, pipeline), and a group is a line along one of its axes: each such layout is tried,
and the one taken whose ends follow the last arrivals of its groups best. Where members come within
the jitter of ends, these do not decide: what else the same streams carry does, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.collectives.matching import nearest
from nsightpy.frames import Floats, Ints

# So many collectives are enough, and too few ends show nothing; most lanes must be in each.
MOST_SHARED, LEAST_ENDS, PRESENT = 64, 24, 0.6
# Ends that are so many times further apart than usual agree by chance.
UNUSUAL = 4.0
# Several groups must explain the ends better than one, or one better than several: the more so the
# fewer collectives there are. The worst part does not count: who came last may not be captured.
BEYOND_CHANCE, COUNTED = 0.7, 0.75

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Collectives by end (ns of the common clock), the lane of each, and the lanes' ranks.

    `world` is the number of ranks in the whole job, as far as is known.
    """

    starts: Ints
    ends: Ints
    lanes: Ints
    positions: dict[int, int]
    world: int


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of each lane; all 0 where they are one, or where nothing decides (not sure)."""

    labels: Labels
    sure: bool = True


def apart(
    view: Lanes, several: Sequence[int], tolerance_ns: int, likely: dict[int, int] | None = None
) -> tuple[list[list[int]], bool]:
    """The groups of two and more that some lanes with common ends are made of, and whether sure.

    `likely` is the group of each lane as other operations show it.
    """
    if len(several) < 3:
        return [list(several)], True
    lanes = sorted(several, key=lambda lane: view.positions[lane])
    starts, ends = _shared(view, lanes, tolerance_ns)
    positions = np.asarray([view.positions[lane] for lane in lanes], dtype=np.int64)
    elsewhere = None
    if likely is not None:
        elsewhere = np.asarray([likely[lane] for lane in lanes], dtype=np.int64)
    among = groups_among(starts, ends, positions, view.world, elsewhere)
    groups = [np.flatnonzero(among.labels == label).tolist() for label in np.unique(among.labels)]
    return [[lanes[place] for place in group] for group in groups if len(group) > 1], among.sure


def _shared(view: Lanes, lanes: Sequence[int], tolerance_ns: int) -> tuple[Floats, Floats]:
    """Starts and ends of what most of some lanes share, as groups_among takes them."""
    order = np.argsort(view.lanes, kind="stable")
    edges = (np.searchsorted(view.lanes[order], lanes, side) for side in ("left", "right"))
    rows = [order[first:last] for first, last in zip(*edges, strict=True)]
    about = max(rows, key=len)
    about = about[:: max(1, len(about) // MOST_SHARED)]
    starts, ends = np.full((2, len(lanes), len(about)), np.nan)
    for place, of_lane in enumerate(rows):
        near = of_lane[nearest(view.ends[of_lane], view.ends[about])]
        there = np.abs(view.ends[near] - view.ends[about]) <= tolerance_ns
        starts[place, there] = (view.starts[near] - view.ends[about])[there]
        ends[place, there] = (view.ends[near] - view.ends[about])[there]
    whole = np.mean(~np.isnan(ends), axis=0) >= PRESENT
    return starts[:, whole], ends[:, whole]


def groups_among(
    starts: Floats, ends: Floats, positions: Ints, world: int, likely: Labels | None = None
) -> Grouping:
    """The groups of lanes: as their ends show; where these do not decide, the likely ones.

    starts, ends: a row per lane, a column per collective that they seem to share, in ns from any
    moment of that column; NaN where a lane took no part. positions: the lanes' ranks, ascending.
    """
    together = np.zeros(len(positions), dtype=np.int64)
    undecided = Grouping(together, sure=False) if likely is None else Grouping(likely)
    if np.count_nonzero(~np.isnan(ends)) < LEAST_ENDS:
        return undecided
    spread = np.nanmax(ends, axis=0) - np.nanmin(ends, axis=0)
    usual = spread <= UNUSUAL * np.median(spread)
    starts, ends = starts[:, usual], ends[:, usual]
    rest = _unexplained(starts, ends, together)
    as_one = _misfit(rest)
    best, least = together, math.inf
    for labels in _layouts(positions, world):
        misfit = _misfit_of(labels, starts, ends, rest)
        if misfit < least:
            best, least = labels, misfit
    clearly = 1.0 - BEYOND_CHANCE * ends.shape[1] ** -0.5
    if least < clearly * as_one:
        return Grouping(best)
    return Grouping(together) if as_one < clearly * least else undecided


def _misfit_of(labels: Labels, starts: Floats, ends: Floats, as_one: Floats) -> float:
    """The misfit of some groups; lanes that are alone count as if all were one."""
    rest, several = as_one.copy(), np.bincount(labels)[labels] > 1
    rest[several] = _unexplained(starts[several], ends[several], labels[several])
    return _misfit(rest)


def _layouts(positions: Ints, world: int) -> Iterator[Labels]:
    """Groups along each axis of any grid, of the lanes and of the whole job; two are needed."""
    seen = set()
    for places, count in ((np.arange(len(positions)), len(positions)), (positions, world)):
        for size, inner in _axes(count):
            labels = places // (inner * size) * inner + places % inner
            _, labels = np.unique(labels, return_inverse=True)
            several = np.count_nonzero(np.bincount(labels) > 1) > 1
            if several and labels.tobytes() not in seen:
                seen.add(labels.tobytes())
                yield labels


def _axes(count: int) -> Iterator[tuple[int, int]]:
    """The length of an axis and of what lies inside it, for all axes of all grids of so many."""
    for size in (n for n in range(2, count + 1) if count % n == 0):
        yield from ((size, n) for n in range(1, count // size + 1) if count // size % n == 0)


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
    missing = np.isnan(values)
    if missing.any():
        nothing = missing.all(axis=axis, keepdims=True)
        middle = np.nanmedian(np.where(nothing, 0.0, values), axis=axis, keepdims=True)
    else:
        middle = np.median(values, axis=axis, keepdims=True)
    centred: Floats = values - middle
    return centred


def _misfit(unexplained: Floats) -> float:
    """The mean of what is unexplained, but for the worst."""
    sizes = np.sort(np.abs(unexplained[~np.isnan(unexplained)]))
    return float(np.mean(sizes[: math.ceil(COUNTED * len(sizes))]))
