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
from nsightpy.analysis.collectives.thresholds import (
    APART,
    BEYOND_CHANCE,
    LEAST_SHARE,
    NEARLY_ALL,
    PLENTY,
    SAMPLE,
)
from nsightpy.frames import Floats, Ints

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of each lane; all 0 where they are one, or where nothing decides (not sure)."""

    labels: Labels
    sure: bool = True


def shared(times: Sequence[tuple[Ints, Ints]], tolerance_ns: int) -> tuple[Floats, Floats]:
    """Starts and ends of what most of some lanes share, as groups_among takes them, from starts and
    ends of each lane (by end)."""
    about = max((ends for _, ends in times), key=len)
    about = about[:: max(1, len(about) // SAMPLE)]
    starts, ends = np.full((2, len(times), len(about)), np.nan)
    for place, (began, ended) in enumerate(times):
        near = nearest(ended, about)
        there = np.abs(ended[near] - about) <= tolerance_ns
        starts[place, there] = (began[near] - about)[there]
        ends[place, there] = (ended[near] - about)[there]
    whole = np.mean(~np.isnan(ends), axis=0) >= LEAST_SHARE
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
    usual = spread <= APART * np.median(spread)
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
    return float(np.mean(sizes[: math.ceil(NEARLY_ALL * len(sizes))]))
