"""What a change is made of: parts that add up to it, in whole ns."""

from __future__ import annotations

import numpy as np

from nsightpy.frames import Floats, Ints

# Fewer launches a unit than this are none.
_LEAST_COUNT = 1e-9


def reconciled(values: Ints) -> tuple[int, Ints]:
    """The median of some times and parts of it that add up to it exactly, in ns.

    values: one row for each run (or unit), one column for each part; a row's sum is its time. The
    medians of the parts need not add up to the median of the sums: the difference is given to the
    parts by the square of how far each spreads (least squares), so that a part that is the same
    everywhere stays as it is.
    """
    total = round(float(np.median(values.sum(axis=1))))
    middle = np.median(values, axis=0)
    spread = np.abs(values - middle).mean(axis=0) ** 2
    parts = _shared(middle, total - float(middle.sum()), spread)
    return total, whole_parts(parts, total)


def _shared(parts: Floats, rest: float, weights: Floats) -> Floats:
    """The parts with a rest given to them by weight; none falls below zero."""
    shared = parts.astype(np.float64)
    weights = weights.astype(np.float64)
    for _ in range(len(shared) + 1):
        if not weights.any():
            # nothing spreads: by size, as far as there is any
            weights = np.maximum(shared, 0.0) if shared.any() else np.ones(len(shared))
        moved = shared + rest * weights / weights.sum()
        rest = float(np.minimum(moved, 0.0).sum())
        shared = np.maximum(moved, 0.0)
        if rest == 0.0:
            break
        weights = np.where(shared > 0.0, weights, 0.0)
    return shared


def whole_parts(parts: Floats, total: int) -> Ints:
    """Whole numbers that add up to the total, each within one of its part."""
    floor = np.floor(parts + 1e-9).astype(np.int64)
    missing = total - int(floor.sum())
    order = np.argsort(-(parts - floor), kind="stable")
    if missing:
        each, more = divmod(missing, len(parts))
        floor += each
        floor[order[:more]] += 1
    return floor


def split_change(
    before_ns: int, after_ns: int, before_count: float, after_count: float
) -> tuple[int, int]:
    """The parts of a change by the number of launches and by the length of one, in ns.

    Change in count x mid length + change in length x mid count; the two add up exactly.
    """
    change = after_ns - before_ns
    if min(before_count, after_count) < _LEAST_COUNT:
        return change, 0
    lengths = before_ns / before_count, after_ns / after_count
    by_count = round((after_count - before_count) * (lengths[0] + lengths[1]) / 2.0)
    return by_count, change - by_count
