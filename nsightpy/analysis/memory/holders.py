"""Who holds memory: the allocations of one device and kind of memory, by who made them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.frames import Ints


@dataclass(frozen=True, slots=True)
class Holder:
    """What one allocator holds: at the peak, at the end, and of how many allocations it has made.

    `name` is None where nothing says who allocated; the numbers in between where only sums are
    known.
    """

    name: str | None
    at_peak_bytes: int
    at_peak_allocations: int | None
    allocations: int | None
    largest_bytes: int | None
    at_end_bytes: int


def holders(
    codes: Ints, names: Sequence[str], size: Ints, at_peak: np.ndarray, at_end: np.ndarray
) -> list[Holder]:
    """The holders, most bytes at the peak first.

    codes: an index of `names` for each allocation, of `size` bytes; an empty name is unknown.
    at_peak, at_end: masks of the allocations that were live then.
    """
    count = len(names)
    made = np.bincount(codes, minlength=count)
    peak, end = (
        np.bincount(codes[mask], size[mask], count).astype(np.int64) for mask in (at_peak, at_end)
    )
    pieces = np.bincount(codes[at_peak], minlength=count)
    largest = np.zeros(count, dtype=np.int64)
    np.maximum.at(largest, codes, size)
    held = [
        Holder(
            names[code] or None,
            *(int(column[code]) for column in (peak, pieces, made, largest, end)),
        )
        for code in np.flatnonzero(made).tolist()
    ]
    return sorted(
        held, key=lambda one: (-one.at_peak_bytes, -(one.largest_bytes or 0), str(one.name))
    )
