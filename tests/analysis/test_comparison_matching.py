"""What is taken for the same kernel, and by what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from nsightpy.analysis.comparison.matching import Match, match
from nsightpy.results.comparison import BASE_NAME, FULL_NAME, ORDER

ADD = "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int, T2)"
ADD8 = ADD.replace("<4", "<8")
HALF, HALF8 = ADD.replace("float", "__half"), ADD8.replace("float", "__half")
MUL = ADD.replace("Add", "Mul")
GEMM, TILE, OTHER_TILE = (f"ampere_sgemm_{tile}_nn" for tile in ("128x64", "64x64", "32x32"))


def once(*names: str) -> dict[str, float]:
    return dict.fromkeys(names, 1.0)


def renamed(found: Iterable[Match]) -> set[tuple[str, str, str]]:
    """What has no name in common."""
    return {(m.before, m.after, m.matched_by) for m in found if m.matched_by != FULL_NAME}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([ADD, GEMM], [ADD8, TILE], {(ADD, ADD8, BASE_NAME), (GEMM, TILE, BASE_NAME)}),
        ([ADD], [HALF], {(ADD, HALF, BASE_NAME)}),
        # numbers count before types
        ([ADD, HALF], [ADD8, HALF8], {(ADD, ADD8, BASE_NAME), (HALF, HALF8, BASE_NAME)}),
        # another functor is another kernel
        ([ADD], [MUL], {(ADD, "", ""), ("", MUL, "")}),
        ([ADD, MUL], [ADD8, MUL], {(ADD, ADD8, BASE_NAME)}),
        # a name that several have tells nothing
        ([GEMM], [TILE, OTHER_TILE], {(GEMM, "", ""), ("", TILE, ""), ("", OTHER_TILE, "")}),
        (["a", "old"], ["a", "new"], {("old", "", ""), ("", "new", "")}),
        (["alpha"], ["alpha"], set()),
    ],
)
def test_names_tell(
    before: list[str], after: list[str], expected: set[tuple[str, str, str]]
) -> None:
    assert renamed(match(once(*before), once(*after))) == expected


def in_order(before: Sequence[str], after: Sequence[str]) -> set[tuple[str, str, str]]:
    """What has no name in common, of sides that launch in an order."""
    counts = [{name: float(order.count(name)) for name in order} for order in (before, after)]
    return renamed(match(counts[0], counts[1], (before, after)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("axb" * 3, "ayb" * 3, {("x", "y", ORDER)}),
        ("xab", "yab", {("x", "y", ORDER)}),
        # two for one, one for two, in different places, or more often: new and gone
        ("axxb", "ayb", {("x", "", ""), ("", "y", "")}),
        ("awxb", "ayb", {("w", "", ""), ("x", "", ""), ("", "y", "")}),
        ("axb", "awyb", {("x", "", ""), ("", "w", ""), ("", "y", "")}),
        ("axbc", "abyc", {("x", "", ""), ("", "y", "")}),
        ("axbaxb", "ayb", {("x", "", ""), ("", "y", "")}),
        ("", "ab", {("", "a", ""), ("", "b", "")}),
    ],
)
def test_one_in_the_place_of_one_replaces_it(
    before: str, after: str, expected: set[tuple[str, str, str]]
) -> None:
    assert in_order(list(before), list(after)) == expected


def test_launches_must_agree_where_names_differ() -> None:
    launches = {ADD: 100.0}
    for count, same in ((101.0, True), (110.0, False)):
        found = match(launches, {ADD8: count})
        assert (found[0].matched_by == BASE_NAME) is same
    assert match(launches, {ADD: 1.0}) == [Match(ADD, ADD, FULL_NAME)]
