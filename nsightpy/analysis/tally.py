"""Exact statistics of durations per group, in a form that merges across processes and reports.

A Tally keeps every distinct value of each group with its count: small, because GPU timers tick
coarsely, and lossless, so that medians over thousands of reports stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Ints

_VALUE_BITS = 44
AT_ONCE = 4

Key: TypeAlias = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """Distinct values (ns or bytes) and their counts; group g owns rows bounds[g]:bounds[g+1]."""

    keys: tuple[Key, ...]
    bounds: Ints
    values: Ints
    counts: Ints

    def statistics(self) -> Statistics:
        """Count, total, mean, median, extremes and sample deviation of each group."""
        if not self.keys:
            return Statistics.none()
        first, last = self.bounds[:-1], self.bounds[1:] - 1
        instances = np.add.reduceat(self.counts, first)
        total = np.add.reduceat(self.counts * self.values, first)
        mean = total / instances
        group = np.repeat(np.arange(len(self.keys)), np.diff(self.bounds))
        squares = np.add.reduceat(self.counts * (self.values - mean[group]) ** 2, first)
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
        seen = np.cumsum(self.counts)
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

    def by_total(self) -> list[int]:
        """The groups by total, largest first, then by key."""
        return sorted(
            range(len(self.keys)), key=lambda group: (-int(self.total[group]), self.keys[group])
        )

    @classmethod
    def none(cls) -> Statistics:
        no, none = np.empty(0, dtype=np.int64), np.empty(0)
        return cls((), no, no, none, none, no, no, none)


def tally(codes: NDArray[np.int32], values: Ints, keys: Sequence[Key]) -> Tally:
    """Tally values by group; codes[i] is the place of row i's group in keys.

    Groups without rows are left out.
    """
    if len(values) == 0:
        return _from_sorted(codes, values, np.empty(0, dtype=np.int64), keys)
    fits = int(values.min()) >= 0 and int(values.max()) < 1 << _VALUE_BITS
    if fits and len(keys) < 1 << (63 - _VALUE_BITS):
        packed = codes.astype(np.int64)
        packed <<= _VALUE_BITS
        packed |= values
        packed.sort()
        starts = np.flatnonzero(np.concatenate([[True], packed[1:] != packed[:-1]]))
        counts = np.diff(np.append(starts, len(packed)))
        distinct = packed[starts]
        return _from_sorted(
            distinct >> _VALUE_BITS, distinct & ((1 << _VALUE_BITS) - 1), counts, keys
        )
    return _counted(codes.astype(np.int64), values, np.ones(len(values), dtype=np.int64), keys)


def summed(parts: Iterable[Mapping[Key, Sequence[int]]]) -> dict[Key, list[int]]:
    """Figures by key, those under one key added up place by place."""
    sums: dict[Key, list[int]] = {}
    for part in parts:
        for key, figures in part.items():
            known = sums.setdefault(key, [0] * len(figures))
            sums[key] = [a + b for a, b in zip(known, figures, strict=True)]
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
    codes = [
        np.repeat(
            np.asarray([places.setdefault(key, len(places)) for key in part.keys], dtype=np.int64),
            np.diff(part.bounds),
        )
        for part in tallies
    ]
    if not places:
        return tally(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), ())
    return _counted(
        np.concatenate(codes),
        np.concatenate([part.values for part in tallies]),
        np.concatenate([part.counts for part in tallies]),
        tuple(places),
    )


def _counted(codes: Ints, values: Ints, counts: Ints, keys: Sequence[Key]) -> Tally:
    order = np.lexsort((values, codes))
    codes, values, counts = codes[order], values[order], counts[order]
    changes = (codes[1:] != codes[:-1]) | (values[1:] != values[:-1])
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    return _from_sorted(codes[starts], values[starts], np.add.reduceat(counts, starts), keys)


def _from_sorted(
    codes: NDArray[np.integer], values: Ints, counts: Ints, keys: Sequence[Key]
) -> Tally:
    present, bounds = np.unique(codes, return_index=True)
    return Tally(
        tuple(keys[code] for code in present.tolist()),
        np.append(bounds, len(codes)).astype(np.int64),
        values,
        counts,
    )
