"""Groups of rows, and their tallies against plain Python and the statistics module."""

import math
import statistics
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nsightpy.analysis.grouping import group_by, rows_before
from nsightpy.analysis.tally import Statistics, Tally, merge, tally
from nsightpy.frames import Frame, Labels, last_before
from tests.support.frames import frame

Rows = list[tuple[int, int]]

properties = settings(max_examples=120, deadline=None)
small = st.integers(0, 6)
# Durations; then what the packed path cannot hold: negative and 2^44 and up.
durations = st.integers(0, 2**43)
unusual = st.one_of(durations, st.integers(-(2**46), -1), st.integers(2**44 - 1, 2**48), small)
KEYS = tuple((f"kernel {i}", i) for i in range(6))
rows_of = st.lists(st.tuples(st.integers(0, len(KEYS) - 1), durations | small), max_size=40)
unusual_rows = st.lists(st.tuples(st.integers(0, len(KEYS) - 1), unusual), max_size=40)


def tallied(rows: Rows, keys: tuple[tuple[str, int], ...] = KEYS) -> Tally:
    codes = np.asarray([code for code, _ in rows], dtype=np.int32)
    return tally(codes, np.asarray([value for _, value in rows], dtype=np.int64), keys)


def by_key(rows: Rows) -> dict[tuple[str, int], list[int]]:
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for code, value in rows:
        groups[KEYS[code]].append(value)
    return groups


def check(found: Statistics, groups: dict[tuple[str, int], list[int]]) -> None:
    """Every figure of every group, computed from the values themselves."""
    assert sorted(found.keys) == sorted(groups)
    for place, key in enumerate(found.keys):
        values = groups[key]
        assert found.instances[place] == len(values)
        assert found.total[place] == sum(values)
        assert found.minimum[place] == min(values)
        assert found.maximum[place] == max(values)
        assert found.mean[place] == sum(values) / len(values)
        assert found.median[place] == statistics.median(values)
        wanted = statistics.stdev(values) if len(values) > 1 else 0.0
        # no closer than the mean is known
        near = max(1e-6, math.ulp(found.mean[place]))
        assert math.isclose(found.deviation[place], wanted, rel_tol=1e-9, abs_tol=near)


def contents(one: Tally) -> list[object]:
    """Distinct values and counts by group, whatever their order."""
    parts = [np.split(column, one.bounds[1:-1]) for column in (one.values, one.counts)]
    columns = ([part.tolist() for part in column] for column in parts)
    return sorted(zip(one.keys, *columns, strict=False))


@properties
@given(rows_of | unusual_rows)
def test_statistics_of_durations_and_of_what_is_not_packed(rows: Rows) -> None:
    check(tallied(rows).statistics(), by_key(rows))


@properties
@given(st.lists(unusual_rows, min_size=1, max_size=5))
def test_merging_is_tallying_everything_at_once(parts: list[Rows]) -> None:
    merged = merge([tallied(part) for part in parts])
    together = tallied([row for part in parts for row in part])
    assert contents(merged) == contents(together) == contents(merge([merged]))
    check(merged.statistics(), by_key([row for part in parts for row in part]))


def test_merging_joins_equal_keys_of_one_tally() -> None:
    """Two processes shown as one rank: their groups get one key before they are merged."""
    one = tallied([(0, 10), (0, 30), (1, 20), (1, 30)])
    renamed = Tally((("a", 0), ("a", 0)), one.bounds, one.values, one.counts)
    found = merge([renamed])
    assert found.keys == (("a", 0),)
    assert found.values.tolist() == [10, 20, 30]
    assert found.counts.tolist() == [1, 1, 2]


def test_groups_without_rows_are_left_out_and_no_rows_are_no_groups() -> None:
    assert tallied([(4, 1), (1, 1)]).keys == (KEYS[1], KEYS[4])
    for nothing in (tallied([]), merge([]), merge([tallied([]), tallied([])])):
        assert nothing.keys == ()
        assert nothing.statistics().keys == ()
        assert nothing.statistics().total.sum() == 0


@pytest.mark.parametrize("groups", [30_000, (1 << 19) + 1])
def test_many_groups(groups: int) -> None:
    """The second number of groups is more than the packed path can hold."""
    codes = np.repeat(np.arange(groups, dtype=np.int32), 2)[::-1].copy()
    values = np.arange(2 * groups, dtype=np.int64)[::-1].copy()
    found = tally(codes, values, [(code,) for code in range(groups)]).statistics()
    assert len(found.keys) == groups
    for place in (0, 1, groups // 2, groups - 1):
        assert found.keys[place] == (place,)
        assert found.total[place] == 4 * place + 1
        assert found.median[place] == 2 * place + 0.5
        assert found.deviation[place] == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize("times", [255, 256, 70_000])
def test_frequent_values_are_counted_whole(times: int) -> None:
    one = tally(np.zeros(times, dtype=np.int32), np.full(times, 7), KEYS)
    both = merge([one, one, tallied([(1, 3)])]).statistics()
    assert dict(zip(both.keys, both.instances.tolist(), strict=True))[KEYS[0]] == 2 * times
    assert int(both.total[both.keys.index(KEYS[0])]) == 14 * times


@pytest.mark.parametrize("numbering", [(0, 1), (1, 0)])
def test_groups_are_in_the_order_of_their_names(numbering: tuple[int, int]) -> None:
    """However the names are numbered: which of equals is first is decided by them."""
    names = ("FSDP::post_forward", "FSDP::pre_forward")
    codes = np.asarray(numbering, dtype=np.int32)
    labels = Labels(codes, tuple(names[place] for place in numbering))
    groups = group_by(Frame({"name": labels}), ("name",))
    assert groups.keys == tuple((name,) for name in names)
    assert groups.codes.tolist() == [0, 1]


table = st.lists(
    st.tuples(
        st.sampled_from(["gemm", "", "softmax", "gem"]),
        st.sampled_from([0, 1, -1, 7, 2**40]),
        st.sampled_from(["a", "b"]),
    ),
    max_size=30,
)
COLUMNS = ("name", "device", "label")


@given(table, st.lists(st.sampled_from(COLUMNS), max_size=3, unique=True))
def test_grouping_by_several_columns(rows: list[tuple[str, int, str]], by: list[str]) -> None:
    # a name without a row is no group
    whole = frame(COLUMNS, [*rows, ("no row", 3, "c")]).take(np.arange(len(rows)))
    places = [COLUMNS.index(column) for column in by]
    found = group_by(whole, by)
    assert [found.keys[code] for code in found.codes] == [
        tuple(row[place] for place in places) for row in rows
    ]
    assert len(found.keys) == len(set(found.keys))
    assert not by or len(found.keys) == len(set(found.codes.tolist()))


def test_different_ids_with_one_text_are_one_group() -> None:
    names = Labels(np.array([0, 1, 2, 0], dtype=np.int32), ("gemm", "copy", "gemm"))
    found = group_by(Frame({"name": names, "n": np.array([5, 5, 5, 5])}), ("name", "n"))
    named = [found.keys[code] for code in found.codes]
    assert named == [("gemm", 5), ("copy", 5), ("gemm", 5), ("gemm", 5)]
    assert len(found.keys) == 2


@given(st.lists(st.tuples(st.integers(0, 3) | st.just(1 << 17), st.booleans())))
def test_rows_of_a_group_before_each(rows: list[tuple[int, bool]]) -> None:
    codes = np.asarray([code for code, _ in rows], dtype=np.int64)
    counted = np.asarray([of_those for _, of_those in rows], dtype=np.bool_)
    for mask in (None, counted):
        assert rows_before(codes, mask).tolist() == [
            sum(code == rows[at][0] and (mask is None or one) for code, one in rows[:at])
            for at in range(len(rows))
        ]


moments = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 9) | st.sampled_from([-(2**63), 2**62]))
)


@given(moments, moments, st.sampled_from(["left", "right"]))
def test_the_last_row_of_a_group_before_a_time(
    rows: list[tuple[int, int]], wanted: list[tuple[int, int]], side: str
) -> None:
    rows.sort()

    def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        table = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def fits(row: tuple[int, int], group: int, time: int) -> bool:
        return row[0] == group and (row[1] < time or (row[1] == time and side == "right"))

    truth = [
        max((n for n, row in enumerate(rows) if fits(row, *each)), default=-1) for each in wanted
    ]
    found = last_before(columns(rows), columns(wanted), "left" if side == "left" else "right")
    assert found.tolist() == truth
