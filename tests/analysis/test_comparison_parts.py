"""Parts add up to what they are parts of, to the ns, whatever the times are."""

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from nsightpy.analysis.comparison.compare import split_change
from nsightpy.analysis.comparison.device_units import (
    some_units,
    unit_times,
    unit_works,
)
from nsightpy.analysis.comparison.sides import reconciled
from nsightpy.analysis.intervals import Spans, complement, owners, union, union_of
from nsightpy.analysis.time_budget import Activity
from nsightpy.analysis.work_graph.idle_intervals import CAUSES, IdleIntervals
from nsightpy.frames import Labels
from nsightpy.results.run_summary import PARTS

TIMES = arrays.arrays(
    np.int64,
    st.tuples(st.integers(1, 7), st.integers(1, 6)),
    elements=st.integers(0, 10**12),
)


def spans(found: list[tuple[int, int]]) -> Spans:
    start = np.asarray([one for one, _ in found], dtype=np.int64)
    return union(start, start + np.asarray([length for _, length in found], dtype=np.int64))


COUNTS = st.one_of(st.just(0.0), st.floats(1e-6, 1e4))
SPANS = st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 200)), max_size=12).map(spans)


@given(TIMES, st.integers(0, 10**12))
def test_parts_add_up_to_the_median_and_one_that_is_the_same_everywhere_stays(
    values: np.ndarray, same: int
) -> None:
    fixed = np.concatenate([values, np.full((len(values), 1), same)], axis=1)
    for times in (values, fixed):
        parts = reconciled(times)
        assert parts.sum() == round(float(np.median(times.sum(axis=1))))
        assert (parts >= 0).all()
        assert len(times) > 1 or (parts == times[0]).all()
    assert abs(int(parts[-1]) - same) <= 1


@given(st.integers(0, 10**12), st.integers(0, 10**12), COUNTS, COUNTS)
def test_a_change_divides_in_count_and_length(
    before: int, after: int, first: float, second: float
) -> None:
    by_count, by_length = split_change(before, after, first, second)
    assert by_count + by_length == after - before
    assert by_count == 0 or first != second or not first
    assert split_change(300, 600, 3, 6) == (300, 0)


@given(SPANS, SPANS, SPANS, SPANS, st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_the_parts_of_units_add_up(
    compute: Spans, graphs: Spans, memory: Spans, communication: Spans, lengths: list[int]
) -> None:
    edges = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    start, end = edges[:-1], edges[1:]
    did = Activity(compute | graphs, communication, memory, graphs)
    alone = unit_times(start, end, did, None)
    idle = complement(union_of([compute, graphs, memory, communication]), 0, int(edges[-1]))
    caused = unit_times(start, end, did, gaps_in(idle))
    for times in (alone, caused):
        assert (times.sum(axis=1) == end - start).all()
        assert (times >= 0).all()
    assert (caused[:, :4] == alone[:, :4]).all()
    # with a cause for every gap, nothing is unknown
    assert caused[:, PARTS.index("idle: unknown")].sum() == 0
    assert caused[:, 4:].sum() == alone[:, -1].sum()


def gaps_in(idle: Spans) -> IdleIntervals:
    """Idle intervals, each half queued and half launched late."""
    length, nothing = idle.ends - idle.starts, np.zeros(len(idle), dtype=np.int64)
    times = np.zeros((len(idle), len(CAUSES)), dtype=np.int64)
    times[:, CAUSES.index("launch-bound")] = length // 2
    times[:, CAUSES.index("queued")] = length - length // 2
    return IdleIntervals(idle.starts, idle.ends, *[nothing] * 6, times=times)


def test_what_runs_in_every_third_unit_is_typical_by_its_mean() -> None:
    names = Labels.of(["often"] * 6 + ["rare"] * 2 + ["outside"])
    owner = np.asarray([0, 1, 2, 3, 4, 5, 2, 5, -1])
    found = unit_works(names, owner, np.full(9, 30), 6)
    assert found.names == ("often", "rare")
    assert found.counts.tolist() == [1.0, 2 / 6]
    assert found.regular.tolist() == [True, False]
    assert found.means.tolist() == [30.0, 10.0]
    assert found.times.tolist() == [[30] * 6, [0, 0, 30, 0, 0, 30]]


def test_counts_and_means_are_of_all_units_and_samples_of_some() -> None:
    owner = np.repeat(np.arange(1_000), 2)
    found = unit_works(Labels.constant("kernel", 2_000), owner, np.arange(2_000), 1_000)
    assert (found.counts[0], found.means[0]) == (2.0, 1999.0)
    assert found.times.shape == (1, 64)
    assert some_units(5).tolist() == [0, 1, 2, 3, 4]
    assert (found.times[0, 0], found.times[0, -1]) == (1, 1_998 + 1_999)


def test_moments_belong_to_units_where_there_are_any() -> None:
    times = np.array([-5, 0, 9, 10, 25, 30], dtype=np.int64)
    start, end = np.array([0, 20]), np.array([10, 30])
    assert owners(start, end, times).tolist() == [-1, 0, 0, -1, 1, -1]
    nothing = np.empty(0, dtype=np.int64)
    assert owners(nothing, nothing, times).tolist() == [-1] * 6
