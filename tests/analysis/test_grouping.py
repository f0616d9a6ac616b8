"""Groups of rows: those that there are."""

from __future__ import annotations

import numpy as np
import pytest

from nsightpy.analysis.grouping import group_by
from nsightpy.frames import Frame, Labels


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
