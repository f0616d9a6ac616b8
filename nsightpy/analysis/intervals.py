"""Interval arithmetic on int64 nanoseconds: what every time figure stands on.

Intervals are half-open, [start, end). A Spans is a set of them in its one normal form: sorted,
disjoint, not touching, none empty; so equal sets are equal arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Ints


@dataclass(frozen=True, slots=True)
class Spans:
    """A set of points in time as sorted, disjoint, non-empty intervals. Times in ns."""

    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, start: int, end: int) -> Spans:
        """One interval; nothing where it does not end after its start."""
        return union(np.asarray([start], dtype=np.int64), np.asarray([end], dtype=np.int64))

    @property
    def total(self) -> int:
        """The measure of the set, in ns."""
        return int((self.ends - self.starts).sum())

    def holds(self, times: Ints) -> NDArray[np.bool_]:
        """Mask of the moments (ns) that lie in the set, starts included, ends not."""
        return owners(self.starts, self.ends, times) >= 0

    def __len__(self) -> int:
        return len(self.starts)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Spans)
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.ends, other.ends)
        )

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Spans) -> Spans:
        return union_of((self, other))

    def __and__(self, other: Spans) -> Spans:
        if len(self) == 0 or len(other) == 0:
            return NOTHING
        for single, several in ((self, other), (other, self)):
            if len(single) == 1:
                return clip(several, int(single.starts[0]), int(single.ends[0]))
        low = np.searchsorted(other.ends, self.starts, side="right")
        overlaps = np.searchsorted(other.starts, self.ends, side="left") - low
        left, right = np.repeat(np.arange(len(self)), overlaps), consecutive(low, overlaps)
        return Spans(
            np.maximum(self.starts[left], other.starts[right]),
            np.minimum(self.ends[left], other.ends[right]),
        )

    def __sub__(self, other: Spans) -> Spans:
        if len(self) == 0 or len(other) == 0:
            return self
        return self & complement(other, int(self.starts[0]), int(self.ends[-1]))


NOTHING = Spans(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def spans_of(frame: Frame) -> Spans:
    """When any row of a frame was in progress (start_ns, end_ns)."""
    return union(frame.ints("start_ns"), frame.ints("end_ns"))


def union(starts: Ints, ends: Ints) -> Spans:
    """The set covered by any number of intervals in any order; empty ones cover nothing."""
    solid = ends > starts
    if not solid.all():
        starts, ends = starts[solid], ends[solid]
    if len(starts) == 0:
        return NOTHING
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    apart = starts[1:] > reach[:-1]
    return Spans(starts[np.append(True, apart)], reach[np.append(apart, True)])


def union_of(sets: Iterable[Spans]) -> Spans:
    """The union of several sets."""
    parts = [part for part in sets if len(part)]
    if len(parts) <= 1:
        return parts[0] if parts else NOTHING
    return union(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.ends for part in parts]),
    )


def complement(a: Spans, start: int, end: int) -> Spans:
    """The gaps: the points of [start, end) that are not in the set."""
    inside = clip(a, start, end)
    starts = np.concatenate([np.asarray([start], dtype=np.int64), inside.ends])
    ends = np.concatenate([inside.starts, np.asarray([end], dtype=np.int64)])
    open_gaps = ends > starts
    return Spans(starts[open_gaps], ends[open_gaps])


def clip(a: Spans, start: int, end: int) -> Spans:
    """The part of a set inside [start, end)."""
    low = np.searchsorted(a.ends, start, side="right")
    high = np.searchsorted(a.starts, end, side="left")
    if low >= high or start >= end:
        return NOTHING
    starts, ends = a.starts[low:high], a.ends[low:high]
    # views, but for an end that is cut
    if starts[0] < start:
        starts = starts.copy()
        starts[0] = start
    if ends[-1] > end:
        ends = ends.copy()
        ends[-1] = end
    return Spans(starts, ends)


def overlap_total(a: Spans, b: Spans) -> int:
    """The measure of the intersection, in ns, without building it."""
    before = measure_before(b, np.concatenate([a.ends, a.starts]))
    return int((before[: len(a)] - before[len(a) :]).sum())


def measure_before(a: Spans, times: Ints) -> Ints:
    """How much of the set lies before each time, in ns."""
    if len(a) == 0:
        return np.zeros(len(times), dtype=np.int64)
    before = np.append(0, np.cumsum(a.ends - a.starts))
    index = np.searchsorted(a.starts, times, side="right")
    beyond = np.maximum(a.ends[np.maximum(index - 1, 0)] - times, 0)
    return np.where(index > 0, before[index] - beyond, 0)


def consecutive(first: Ints, counts: Ints) -> Ints:
    """The numbers of some stretches, one stretch after the other: from `first` on, so many."""
    numbers: Ints = np.arange(int(counts.sum()))
    numbers += np.repeat(first - (np.cumsum(counts) - counts), counts)
    return numbers


def measure_inside(a: Spans, starts: Ints, ends: Ints) -> Ints:
    """How much of the set lies in each of some intervals, in ns."""
    return measure_before(a, ends) - measure_before(a, starts)


def owners(starts: Ints, ends: Ints, times: Ints) -> Ints:
    """Which of ascending, disjoint intervals each moment lies in; -1 for none."""
    owner = np.searchsorted(starts, times, side="right") - 1
    # the last limit is that of -1, what lies before the first interval
    return np.where(times < np.append(ends, np.iinfo(np.int64).min)[owner], owner, -1)


def concurrency(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Ascending times, and how many intervals are open from each until the next.

    An end and a start at one moment do not overlap.
    """
    solid = ends > starts
    starts, ends = starts[solid], ends[solid]
    edges = np.concatenate([2 * ends, 2 * starts + 1])
    edges.sort()
    times = edges >> 1
    open_after = np.cumsum(np.where(edges & 1, 1, -1))
    last = np.append(np.diff(times) != 0, True)[: len(times)]
    return times[last], open_after[last].astype(np.int64)
