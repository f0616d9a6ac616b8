"""Exact statistics of durations per group, in a form that merges across processes and reports.

A Tally keeps every distinct value of each group with its count: small, because GPU timers tick
coarsely, and lossless, so that medians over thousands of reports stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints

_VALUE_BITS = 44
_COUNTS = (np.uint8, np.uint16, np.uint32)
AT_ONCE = 4

Key: TypeAlias = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Distinct values (ns or bytes) and their counts; group g owns rows bounds[g]:bounds[g+1].

    The counts are of the smallest type that holds them: most values are rare.
    """

    keys: tuple[Key, ...]
    bounds: Ints
    values: Ints
    counts: NDArray[np.integer]

    def statistics(self) -> Statistics:
        """Count, total, mean, median, extremes and sample deviation of each group."""
        if not self.keys:
            no, none = np.empty(0, dtype=np.int64), np.empty(0)
            return Statistics((), no, no, none, none, no, no, none)
        first, last = self.bounds[:-1], self.bounds[1:] - 1
        instances = np.add.reduceat(self.counts, first, dtype=np.int64)
        total = np.add.reduceat(self.counts * self.values, first)
        mean = total / instances
        squares = (self.values - np.repeat(mean, np.diff(self.bounds))) ** 2
        squares *= self.counts
        squares = np.add.reduceat(squares, first)
        spread = np.sqrt(squares / np.maximum(instances - 1, 1))
        return Statistics(
            self.keys,
            total,
            instances,
            mean,
            self._medians(instances),
            self.values[first],
            self.values[last],
            np.where(instances > 1, spread, 0.0),
        )

    def _medians(self, instances: Ints) -> NDArray[np.float64]:
        seen = np.cumsum(self.counts, dtype=np.int64)
        before = seen[self.bounds[:-1]] - self.counts[self.bounds[:-1]]
        lower = self.values[np.searchsorted(seen, before + (instances - 1) // 2, side="right")]
        upper = self.values[np.searchsorted(seen, before + instances // 2, side="right")]
        # the mean of the two middle values, free of overflow
        return lower + (upper - lower) / 2


@dataclass(frozen=True, slots=True)
class Statistics:
    """Per group, in the order of `keys`; totals and extremes exact, in the unit of the values."""

    keys: tuple[Key, ...]
    total: Ints
    instances: Ints
    mean: NDArray[np.float64]
    median: NDArray[np.float64]
    minimum: Ints
    maximum: Ints
    deviation: NDArray[np.float64]

    @property
    def share(self) -> NDArray[np.float64]:
        """Each group's percentage of the total of all."""
        return 100.0 * self.total / max(int(self.total.sum()), 1)

    def by_total(self) -> list[int]:
        """The groups by total, largest first, then by key."""
        return sorted(
            range(len(self.keys)), key=lambda group: (-int(self.total[group]), self.keys[group])
        )

    def rows(self, *figures: str) -> list[tuple[Any, ...]]:
        """The key and these figures of each group, largest total first, then by key."""
        columns = [getattr(self, name).tolist() for name in figures]
        return [(*self.keys[g], *(column[g] for column in columns)) for g in self.by_total()]


def tally(
    codes: NDArray[np.int32],
    values: Ints,
    keys: Sequence[Key],
    counts: NDArray[np.integer] | None = None,
) -> Tally:
    """Tally values by group; codes[i] is the place of row i's group in keys.

    Each row counts once, or so often as `counts` says. Groups without rows are left out.
    """
    rows = len(codes)
    least, most = (int(values.min()), int(values.max())) if rows else (0, 0)
    if least >= 0 and most < 1 << _VALUE_BITS and len(keys) < 1 << (63 - _VALUE_BITS):
        # the group above the value, as one number
        packed = codes.astype(np.int64)
        packed <<= _VALUE_BITS
        packed |= values
        if counts is None:
            packed.sort()
        else:
            order = np.argsort(packed)
            packed, counts = packed[order], counts[order]
        starts = _starts(packed[1:] != packed[:-1], rows)
        packed = packed[starts]
        codes = (packed >> _VALUE_BITS).astype(np.int32)
        values = packed & ((1 << _VALUE_BITS) - 1)
    else:
        order = np.lexsort((values, codes))
        codes, values = codes[order], values[order]
        counts = None if counts is None else counts[order]
        starts = _starts((codes[1:] != codes[:-1]) | (values[1:] != values[:-1]), rows)
        codes, values = codes[starts], values[starts]
    sums = np.diff(starts, append=rows)
    if counts is not None and rows:
        sums = np.add.reduceat(counts, starts, dtype=np.int64)
    bounds = _starts(codes[1:] != codes[:-1], len(codes))
    small = next((t for t in _COUNTS if sums.max(initial=0) <= np.iinfo(t).max), np.int64)
    present = tuple(keys[code] for code in codes[bounds].tolist())
    return Tally(present, np.append(bounds, len(codes)), values, sums.astype(small))


def summed(parts: Iterable[Mapping[Key, Sequence[float]]]) -> dict[Key, list[float]]:
    """Figures by key, those under one key added up place by place."""
    sums: dict[Key, list[float]] = {}
    for part in parts:
        for key, figures in part.items():
            sums_so_far = sums.setdefault(key, [0] * len(figures))
            sums[key] = [a + b for a, b in zip(sums_so_far, figures, strict=True)]
    return sums


def merge(tallies: Sequence[Tally]) -> Tally:
    """One tally of all values of several; groups with equal keys become one."""
    if len(tallies) == 1 and len(set(tallies[0].keys)) == len(tallies[0].keys):
        return tallies[0]
    if len(tallies) > AT_ONCE:
        # a few at a time, so that what many have in common is never held for each of them
        parts = range(0, len(tallies), AT_ONCE)
        return merge([merge(tallies[part : part + AT_ONCE]) for part in parts])
    places: dict[Key, int] = {}
    none = np.empty(0, dtype=np.int64)
    codes = [
        np.repeat([places.setdefault(key, len(places)) for key in part.keys], np.diff(part.bounds))
        for part in tallies
    ]
    values = np.concatenate([none, *(part.values for part in tallies)])
    counts = np.concatenate([none.astype(np.uint8), *(part.counts for part in tallies)])
    return tally(np.concatenate([none, *codes]).astype(np.int32), values, tuple(places), counts)


def _starts(changes: NDArray[np.bool_], rows: int) -> Ints:
    """Where sorted rows begin to differ from those before, the first one among them."""
    return np.flatnonzero(np.concatenate([[True], changes])) if rows else np.empty(0, np.int64)
