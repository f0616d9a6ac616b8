"""Groups of rows: those that there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nsightpy.analysis.grouping import group_by
from nsightpy.frames import Frame, Labels, last_before


@pytest.mark.parametrize("threads", [[7, 7], [7, 8]])
def test_a_name_that_no_row_has_is_no_group(threads: list[int]) -> None:
    """A frame that was taken of another one keeps the other's names."""
    names = Labels(np.asarray([2, 2], dtype=np.int32), ("forward", "layer", "step"))
    groups = group_by(Frame({"tid": np.asarray(threads), "name": names}), ("tid", "name"))
    assert groups.keys == tuple((thread, "step") for thread in dict.fromkeys(threads))


@pytest.mark.parametrize("numbering", [(0, 1), (1, 0)])
def test_groups_are_in_the_order_of_their_names(numbering: tuple[int, int]) -> None:
    """However the names are numbered: which of equals is first is decided by them."""
    names = ("FSDP::post_forward", "FSDP::pre_forward")
    codes = np.asarray(numbering, dtype=np.int32)
    labels = Labels(codes, tuple(names[place] for place in numbering))
    groups = group_by(Frame({"name": labels}), ("name",))
    assert groups.keys == tuple((name,) for name in names)
    assert groups.codes.tolist() == [0, 1]


def test_no_rows_are_no_group() -> None:
    frame = Frame({"tid": np.empty(0, dtype=np.int64), "name": Labels.constant("", 0)})
    assert group_by(frame, ("tid", "name")).keys == ()
    assert group_by(frame, ("name",)).keys == ()


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
