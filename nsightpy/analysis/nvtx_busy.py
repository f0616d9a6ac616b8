"""For how long anything that a group of ranges launched was running, many groups at once.

Operations that overlap no other are summed; only the rest is united, group by group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import Groups
from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.nvtx_projection import Launched, Projection
from nsightpy.frames import Frame, Ints, distinct

# Groups are laid one after another on the axis of time, as many at once as int64 holds.
_AXIS_BITS = 62


def busy_by_group(
    groups: Groups, found: Projection, done: Launched, operations: Frame
) -> tuple[Ints, int]:
    """For how long any operation of each group of ranges ran, and any operation at all, in ns.

    Instances may nest and repeat; the times of several devices add up.
    """
    starts, ends, whole = _on_one_axis(operations)
    busy = np.zeros(len(groups.keys), dtype=np.int64)
    rows = np.flatnonzero(found.found)
    if len(rows) == 0:
        return busy, whole
    mine = _stretches(groups.codes[rows], found.low[rows], found.high[rows], len(done))
    group, low = np.divmod(mine.starts, len(done) + 1)
    first, last = done.first[low], done.first[low + (mine.ends - mine.starts)]
    alone = _alone(starts, ends)[done.rows]
    lengths = (ends - starts)[done.rows]
    before = _running(np.where(alone, lengths, 0))
    busy += _sums(group, before[last] - before[first], len(busy))
    crowd = _running(~alone)
    shared = done.rows[~alone]
    busy += _united(group, crowd[first], crowd[last], starts[shared], ends[shared], len(busy))
    return busy, whole


def _on_one_axis(operations: Frame) -> tuple[Ints, Ints, int]:
    """Starts and ends with every device's time after another's, from 0; and all busy time."""
    starts, ends = operations.ints("start_ns"), operations.ints("end_ns")
    if operations.rows == 0:
        return starts, ends, 0
    place = distinct((operations.ints("pid") << 16) | operations.ints("device"))[1]
    base = int(starts.min())
    shift = place.astype(np.int64) * (int(ends.max()) - base + 1) - base
    starts, ends = starts + shift, ends + shift
    return starts, ends, union(starts, ends).total


def _stretches(group: NDArray[np.int32], low: Ints, high: Ints, calls: int) -> Spans:
    """The calls of each group as disjoint stretches; group g's are shifted by g * (calls + 1)."""
    shift = group.astype(np.int64) * (calls + 1)
    return union(low + shift, high + shift)


def _alone(starts: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Which operations overlap no other: their times simply add up."""
    order = np.argsort(starts, kind="stable")
    begins = starts[order]
    reach = np.maximum.accumulate(ends[order])
    clear = np.ones(len(starts), dtype=np.bool_)
    clear[1:] = begins[1:] >= reach[:-1]
    clear[:-1] &= clear[1:]
    found = np.empty_like(clear)
    found[order] = clear
    return found


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
    begins, finishes = starts[order], ends[order]
    width = int(finishes.max()) + 1
    at_once = max((1 << _AXIS_BITS) // width, 1)
    for low in range(0, groups, at_once):
        a, b = np.searchsorted(group, (low, low + at_once))
        count = last[a:b] - first[a:b]
        ahead = np.repeat(np.cumsum(count) - count - first[a:b], count)
        member = np.arange(len(ahead)) - ahead
        owner = np.repeat(group[a:b], count)
        packed = owner * len(order) + rank[member]
        packed.sort()
        owner, place = np.divmod(packed, len(order))
        shift = (owner - low) * width
        spans = union(begins[place] + shift, finishes[place] + shift)
        total += _sums(low + spans.starts // width, spans.ends - spans.starts, groups)
    return total


def _sums(group: Ints, values: Ints, groups: int) -> Ints:
    """Exact sums per group; groups ascend."""
    before = _running(values)
    edges = np.searchsorted(group, np.arange(groups + 1))
    return before[edges[1:]] - before[edges[:-1]]


def _running(values: NDArray[np.generic]) -> Ints:
    """Sums of everything before each place, one longer than the values."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
