"""For how long anything that a group of ranges launched was running, many groups at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import Groups
from nsightpy.analysis.intervals import consecutive, union
from nsightpy.analysis.nvtx.projection import Launched, Projection
from nsightpy.frames import Frame, Ints, distinct_pairs

_AXIS = 1 << 62
_PAIRS = 500_000


def busy_by_group(
    groups: Groups, operations: Frame, *parts: tuple[Launched, Projection]
) -> tuple[Ints, int]:
    """For how long any operation of each group of ranges ran, and any operation at all, in ns.

    Each of the `parts` says which operations are a range's; in several of them the same one may be.
    Instances may nest and repeat; the times of several devices add up.
    """
    busy = np.zeros(len(groups.keys), dtype=np.int64)
    if operations.rows == 0:
        return busy, 0
    starts, ends = _on_one_axis(operations)
    order = np.argsort(starts, kind="stable")
    whole = union(starts[order], ends[order]).total
    parts = tuple(part for part in parts if part[1].found.any())
    if not parts:
        return busy, whole
    group, first, last = _operations_of(groups, parts)
    rows = np.concatenate([launches.rows for launches, _ in parts])
    # times of operations that overlap no other add up; only the others are united
    alone = _alone(starts, ends, order)
    for launches, _ in parts[1:]:
        alone[launches.rows] = False
    single = alone[rows]
    times = _sums_before((ends - starts)[rows] * single)
    np.add.at(busy, group, times[last] - times[first])
    shared = _sums_before(~single)
    rows, first, last = rows[~single], shared[first], shared[last]
    # groups are laid one after another on the axis of time, as many at once as int64 holds
    width = int(ends.max()) + 1
    sizes = np.bincount(group, last - first, len(busy)).astype(np.int64)
    for low, high in _portions(sizes, max(_AXIS // width, 1)):
        part = slice(*np.searchsorted(group, (low, high)).tolist())
        count = last[part] - first[part]
        own = rows[consecutive(first[part], count)]
        shift = np.repeat(group[part] - low, count) * width
        spans = union(starts[own] + shift, ends[own] + shift)
        np.add.at(busy, low + spans.starts // width, spans.ends - spans.starts)
    return busy, whole


def _operations_of(
    groups: Groups, parts: Sequence[tuple[Launched, Projection]]
) -> tuple[Ints, Ints, Ints]:
    """Disjoint stretches of the operations of all parts, one part after another, by group.

    For each its group, and between which places its operations are.
    """
    codes, lows, highs, firsts = [], [], [], []
    calls = rows = 0
    for launches, projection in parts:
        found = np.flatnonzero(projection.found)
        codes.append(groups.codes[found])
        lows.append(projection.low[found] + calls)
        highs.append(projection.high[found] + calls)
        firsts.append(launches.first[:-1] + rows)
        calls, rows = calls + len(launches), rows + len(launches.rows)
    first = np.append(np.concatenate(firsts), rows)
    # the calls of a group behind those of the group before
    shift = np.concatenate(codes).astype(np.int64) * (calls + 1)
    stretches = union(np.concatenate(lows) + shift, np.concatenate(highs) + shift)
    group, begin = np.divmod(stretches.starts, calls + 1)
    return group, first[begin], first[begin + (stretches.ends - stretches.starts)]


def _alone(starts: Ints, ends: Ints, order: Ints) -> NDArray[np.bool_]:
    """Which operations overlap no other; `order` is that by start."""
    reach = np.maximum.accumulate(ends[order])
    clear = np.append(True, starts[order][1:] >= reach[:-1])
    alone = np.empty(len(order), dtype=np.bool_)
    alone[order] = clear & np.append(clear[1:], True)
    return alone


def _sums_before(values: NDArray[np.generic]) -> Ints:
    """Sums of everything before each place, one longer than the values."""
    return np.append(np.int64(0), np.cumsum(values, dtype=np.int64))


def _on_one_axis(operations: Frame) -> tuple[Ints, Ints]:
    """Starts and ends from 0 on, every device's time after another's."""
    starts, ends = operations.ints("start_ns"), operations.ints("end_ns")
    _, device = distinct_pairs(operations.ints("pid"), operations.ints("device"))
    base = int(starts.min())
    shift = device.astype(np.int64) * (int(ends.max()) - base + 1) - base
    return starts + shift, ends + shift


def _portions(sizes: Ints, at_once: int) -> Iterator[tuple[int, int]]:
    """Groups low to high (exclusive), as many at a time as fit; a large one alone."""
    before, low = _sums_before(sizes), 0
    while low < len(sizes):
        fitting = int(np.searchsorted(before, before[low] + _PAIRS, side="right")) - 1
        high = min(max(fitting, low + 1), low + at_once, len(sizes))
        yield low, high
        low = high
