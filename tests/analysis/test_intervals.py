"""Interval arithmetic against a model that cannot be wrong: a set of integer points in time."""

from collections import Counter

import numpy as np
from hypothesis import given, settings, strategies as st

from nsightpy.analysis.intervals import (
    Spans,
    clip,
    complement,
    concurrency,
    measure_before,
    measure_inside,
    overlap_total,
    union,
)

LOW, HIGH = -6, 18
# Around zero, and where float64 only knows multiples of 256: UTC in ns, and near int64's half.
OFFSETS = (0, -3, 1_800_000_000_000_000_001, -1_800_000_000_000_000_007, 4_611_000_000_000_000_003)

Pairs = list[tuple[int, int]]

properties = settings(max_examples=150, deadline=None)
moments = st.integers(LOW, HIGH)
# Any order; empty where both ends agree, and reversed ones, which cover nothing either.
pairs = st.lists(st.tuples(moments, moments), max_size=9)
offsets = st.sampled_from(OFFSETS)


def columns(intervals: Pairs, offset: int = 0) -> tuple[np.ndarray, np.ndarray]:
    starts = np.asarray([start + offset for start, _ in intervals], dtype=np.int64)
    ends = np.asarray([end + offset for _, end in intervals], dtype=np.int64)
    return starts, ends


def spans(intervals: Pairs, offset: int = 0) -> Spans:
    return union(*columns(intervals, offset))


def points(intervals: Pairs) -> set[int]:
    return {point for start, end in intervals for point in range(start, end)}


def normal_form(covered: set[int], offset: int = 0) -> Spans:
    """The only Spans of these points, built without any of the code under test."""
    starts = sorted(point + offset for point in covered if point - 1 not in covered)
    ends = sorted(point + 1 + offset for point in covered if point + 1 not in covered)
    return Spans(np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64))


@properties
@given(pairs, pairs, offsets)
def test_set_operations_are_those_of_point_sets(a: Pairs, b: Pairs, offset: int) -> None:
    left, right = spans(a, offset), spans(b, offset)
    inside, outside = points(a), points(b)
    assert left == normal_form(inside, offset)
    assert left | right == normal_form(inside | outside, offset)
    assert left & right == normal_form(inside & outside, offset)
    assert left - right == normal_form(inside - outside, offset)
    assert left.total == len(inside)
    assert overlap_total(left, right) == len(inside & outside)


@properties
@given(pairs, moments, moments, offsets)
def test_windows_are_those_of_point_sets(a: Pairs, start: int, end: int, offset: int) -> None:
    covered, window = points(a), set(range(start, end))
    whole, low, high = spans(a, offset), start + offset, end + offset
    assert clip(whole, low, high) == normal_form(covered & window, offset)
    assert complement(whole, low, high) == normal_form(window - covered, offset)


@properties
@given(pairs, st.lists(st.integers(LOW - 3, HIGH + 3), max_size=8), offsets)
def test_moments_are_in_the_set_or_after_a_measure_of_it(
    intervals: Pairs, times: list[int], offset: int
) -> None:
    asked = np.asarray([time + offset for time in times], dtype=np.int64)
    covered, found = points(intervals), spans(intervals, offset)
    expected = [sum(point < time for point in covered) for time in times]
    assert measure_before(found, asked).tolist() == expected
    assert found.holds(asked).tolist() == [time in covered for time in times]


# 2 x time must fit int64 in concurrency, so the last offset is left out.
@properties
@given(pairs, pairs, offsets)
def test_measure_inside(intervals: Pairs, others: Pairs, offset: int) -> None:
    parts = spans(others, offset)
    found = measure_inside(spans(intervals, offset), parts.starts, parts.ends)
    covered = points(intervals)
    assert found.tolist() == [
        sum(low <= point + offset < high for point in covered)
        for low, high in zip(parts.starts.tolist(), parts.ends.tolist(), strict=True)
    ]


@properties
@given(pairs, st.sampled_from(OFFSETS[:-1]))
def test_concurrency_counts_open_intervals(intervals: Pairs, offset: int) -> None:
    times, counts = concurrency(*columns(intervals, offset))
    depth = Counter(point for start, end in intervals for point in range(start, end))
    assert counts.max(initial=0) == max(depth.values(), default=0)
    # the step function itself: strictly later times, and the count from each until the next
    assert (np.diff(times) > 0).all()
    for time, count in zip(times.tolist(), counts.tolist(), strict=True):
        assert count == depth[time - offset]
