"""Events that overlap, laid out on levels on which none do."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints

# What is nested deeper is drawn there.
DEEPEST = 10_000


def levels_of(starts: Ints, ends: Ints) -> NDArray[np.int16]:
    """The level of each event, as few as nesting needs; events by start, longest first.

    An event's level is the number of events open when it starts; where that makes two meet, as
    ranges that cross each other do, each takes the lowest free level. One that has no length
    keeps its place to itself.
    """
    solid = np.maximum(ends, starts + 1)
    if len(starts) < 2 or bool(np.all(starts[1:] >= solid[:-1])):
        return np.zeros(len(starts), dtype=np.int16)
    closed = np.searchsorted(np.sort(solid), starts, side="right")
    levels = np.minimum(np.arange(len(starts)) - closed, DEEPEST).astype(np.int16)
    return levels if _disjoint(starts, solid, levels) else _first_free(starts, solid)


def is_nested(starts: Ints, ends: Ints, levels: NDArray[np.int16]) -> bool:
    """Whether every event of a deeper level lies inside one event of the level above."""
    outer = np.flatnonzero(levels == 0)
    for level in range(1, int(levels.max()) + 1 if len(levels) else 0):
        inner = np.flatnonzero(levels == level)
        place = np.searchsorted(outer, inner) - 1
        if bool(np.any(place < 0)) or bool(np.any(ends[outer[place]] < ends[inner])):
            return False
        outer = inner
    return True


def by_start(starts: Ints, ends: Ints) -> Ints:
    """The order of events by start, longest first."""
    if bool(np.all(starts[1:] > starts[:-1])):
        return np.arange(len(starts))
    return np.lexsort((-ends, starts))


def _disjoint(starts: Ints, ends: Ints, levels: NDArray[np.int16]) -> bool:
    order = np.argsort(levels, kind="stable")
    same = levels[order][1:] == levels[order][:-1]
    overlaps = starts[order][1:] < ends[order][:-1]
    return not bool(np.any(same & overlaps))


def _first_free(starts: Ints, ends: Ints) -> NDArray[np.int16]:
    open_until: list[tuple[int, int]] = []
    free: list[int] = []
    levels = np.empty(len(starts), dtype=np.int16)
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while open_until and open_until[0][0] <= start:
            heappush(free, heappop(open_until)[1])
        level = heappop(free) if free else len(open_until)
        heappush(open_until, (end, level))
        levels[row] = min(level, DEEPEST)
    return levels
