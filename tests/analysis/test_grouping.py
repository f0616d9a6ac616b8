"""Groups of rows: those that there are."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nsightpy.analysis.grouping import group_by, rows_before
from nsightpy.frames import Frame, Labels, last_before
from tests.support.frames import frame


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
