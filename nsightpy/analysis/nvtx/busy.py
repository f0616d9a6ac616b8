"""For how long anything that a group of ranges launched was running, many groups at once.

Operations that overlap no other are summed; only the rest is united, group by group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import Groups
from nsightpy.analysis.intervals import Spans, consecutive, union
from nsightpy.analysis.nvtx.projection import LaunchOrder, Projection
from nsightpy.frames import Frame, Ints, distinct_pairs, is_constant

# Groups are laid one after another on the axis of time, as many at once as int64 holds.
_AXIS_BITS = 62
_SMALL = 32_767
_PAIRS = 500_000


def busy_by_group(
    groups: Groups, operations: Frame, *parts: tuple[LaunchOrder, Projection]
) -> tuple[Ints, int]:
    """For how long any operation of each group of ranges ran, and any operation at all, in ns.

    Each of the `parts` says which operations are a range's; in several of them the same one may be.
    Instances may nest and repeat; the times of several devices add up.
    """
    busy = np.zeros(len(groups.keys), dtype=np.int64)
    if operations.rows == 0:
        return busy, 0
    starts, ends = _on_one_axis(operations)
    alone, whole = _alone(starts, ends)
    parts = tuple(part for part in parts if part[1].found.any())
    if not parts:
        return busy, whole
    for done, _ in parts[1:]:
        alone[done.rows] = False
    group, first, last = _operations_of(groups, parts)
    rows = np.concatenate([done.rows for done, _ in parts])
    single = alone[rows]
    before = _running((ends - starts)[rows] * single)
    busy += _sums(group, before[last] - before[first], len(busy))
    shared = _running(~single)
    chosen = rows[~single]
    busy += _united(group, shared[first], shared[last], starts[chosen], ends[chosen], len(busy))
    return busy, whole


def _operations_of(
    groups: Groups, parts: Sequence[tuple[LaunchOrder, Projection]]
) -> tuple[Ints, Ints, Ints]:
    """Disjoint stretches of the operations of all parts, one part after another, by group.

    For each its group, and between which places its operations are.
    """
    codes, lows, highs, firsts = [], [], [], []
    calls = rows = 0
    for done, projection in parts:
        found = np.flatnonzero(projection.found)
        codes.append(groups.codes[found])
        lows.append(projection.low[found] + calls)
        highs.append(projection.high[found] + calls)
        firsts.append(done.first[:-1] + rows)
        calls, rows = calls + len(done), rows + len(done.rows)
    first = np.append(np.concatenate(firsts), rows)
    low, high = np.concatenate(lows), np.concatenate(highs)
    stretches = _stretches(np.concatenate(codes), low, high, calls)
    group, begin = np.divmod(stretches.starts, calls + 1)
    return group, first[begin], first[begin + (stretches.ends - stretches.starts)]


def _on_one_axis(operations: Frame) -> tuple[Ints, Ints]:
    """Starts and ends, every device's time after another's."""
    starts, ends = operations.ints("start_ns"), operations.ints("end_ns")
    pids, devices = operations.ints("pid"), operations.ints("device")
    if not (is_constant(pids) and is_constant(devices)):
        place = distinct_pairs(pids, devices)[1]
        base = int(starts.min())
        shift = place.astype(np.int64) * (int(ends.max()) - base + 1) - base
        return starts + shift, ends + shift
    return starts, ends


def _fresh(begins: Ints, finishes: Ints, reach: Ints) -> Ints:
    """What each interval adds to the union of those before it; rows by start."""
    added = finishes - begins
    added[1:] = finishes[1:] - np.maximum(begins[1:], reach[:-1])
    added[added < 0] = 0
    return added


def _alone(starts: Ints, ends: Ints) -> tuple[NDArray[np.bool_], int]:
    """Which operations overlap no other, so that their times simply add up; and the union of all.

    The union is what lies between the first start and the last end without the gaps.
    """
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    gaps = starts[order]
    whole = int(reach[-1] - gaps[0])
    gaps[1:] -= reach[:-1]
    clear = np.ones(len(order), dtype=np.bool_)
    clear[1:] = gaps[1:] >= 0
    np.maximum(gaps, 0, out=gaps)
    whole -= int(gaps[1:].sum())
    clear[:-1] &= clear[1:]
    alone = np.empty(len(order), dtype=np.bool_)
    alone[order] = clear
    return alone, whole


def _stretches(group: NDArray[np.int32], low: Ints, high: Ints, calls: int) -> Spans:
    """The calls of each group as disjoint stretches; group g's are shifted by g * (calls + 1)."""
    small = group.astype(np.int16) if int(group.max()) <= _SMALL else group
    order = np.argsort(small, kind="stable")
    shift = group[order].astype(np.int64) * (calls + 1)
    return union(low[order] + shift, high[order] + shift)


def _united(group: Ints, first: Ints, last: Ints, starts: Ints, ends: Ints, groups: int) -> Ints:
    """Per group the measure of the union of intervals first:last of each of its stretches."""
    total = np.zeros(groups, dtype=np.int64)
    some = last > first
    group, first, last = group[some], first[some], last[some]
    if len(group) == 0:
        return total
    order = np.argsort(starts, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    base = int(starts[order[0]])
    begins, finishes = starts[order] - base, ends[order] - base
    places = len(order).bit_length()
    width = int(finishes.max()).bit_length()
    at_once = max((1 << _AXIS_BITS) >> max(width, places), 1)
    for low, high in _portions(_sums(group, last - first, groups), at_once):
        part = slice(*np.searchsorted(group, (low, high)).tolist())
        count = last[part] - first[part]
        packed = rank[consecutive(first[part], count)]
        packed |= np.repeat((group[part] - low) << places, count)
        packed.sort(kind="stable")
        place = packed & ((1 << places) - 1)
        packed >>= places
        shift = packed << width
        start, end = begins[place] + shift, finishes[place] + shift
        total[low:high] = _sums(packed, _fresh(start, end, np.maximum.accumulate(end)), high - low)
    return total


def _portions(sizes: Ints, at_once: int) -> Iterator[tuple[int, int]]:
    """Groups low to high (exclusive), as many at a time as fit; a large one alone."""
    before, low = _running(sizes), 0
    while low < len(sizes):
        fitting = int(np.searchsorted(before, before[low] + _PAIRS, side="right")) - 1
        high = min(max(fitting, low + 1), low + at_once, len(sizes))
        yield low, high
        low = high


def _sums(group: Ints, values: Ints, groups: int) -> Ints:
    """Exact sums per group; groups ascend."""
    before = _running(values)
    edges = np.searchsorted(group, np.arange(groups + 1))
    return before[edges[1:]] - before[edges[:-1]]


def _running(values: NDArray[np.generic]) -> Ints:
    """Sums of everything before each place, one longer than the values."""
    sums = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(values, dtype=np.int64, out=sums[1:])
    return sums
