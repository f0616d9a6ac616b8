"""What is taken for the same kernel, and by what; how sure a change is, and what it is called."""

from collections.abc import Iterable, Sequence

import pytest

from nsightpy.analysis.comparison.matching import Match, match
from nsightpy.analysis.comparison.verdicts import (
    Interval,
    Sample,
    change_interval,
    mann_whitney,
    noise_floor,
    runs_needed,
    verdict_of,
)
from nsightpy.results.comparison import (
    BASE_NAME,
    CANNOT_TELL,
    FASTER,
    FULL_NAME,
    ORDER,
    SAME,
    SLOWER,
    Limits,
)

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


LIMITS = Limits(0.03, 1_000)


def test_p_values_are_those_of_scipy_and_need_four_runs_a_side() -> None:
    assert mann_whitney(range(3), range(9)) is None
    # the least that four a side can say: 2 of 70
    assert mann_whitney(range(4), range(9, 13)) == pytest.approx(2 / 70)
    assert mann_whitney([7] * 5, [7] * 5) == 1.0


def bounds(before: Sample, after: Sample) -> tuple[float, float]:
    """The interval of the ratio."""
    found = change_interval(before, after)
    assert found is not None
    assert found == change_interval(before, after), "the same every time"
    assert found.ratios is not None
    return found.ratios


def test_intervals_need_a_spread() -> None:
    low, high = bounds(Sample((100, 101, 99, 102, 98)), Sample((110,) * 5))
    assert 110 / 102 <= low <= 1.10 <= high <= 110 / 98
    assert change_interval(Sample((100,)), Sample((110,))) is None


def test_steps_stand_in_for_runs_below_four() -> None:
    steps, later = (99, 100, 101, 100, 100), (119, 120, 121, 120, 120)
    assert 1.15 < bounds(Sample((100,), (steps,)), Sample((120,), (later,)))[0] <= 1.2
    # a fourth run counts by itself, whatever its steps say
    runs, slower = Sample((90, 110, 95, 105), (steps,) * 4), Sample((110, 130, 115, 125))
    assert bounds(runs, slower)[0] < 1.05


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.031, 1.2, SLOWER),
        (1.02, 1.2, CANNOT_TELL),
        (0.99, 1.02, SAME),
        (0.90, 0.969, FASTER),
        (0.90, 0.98, CANNOT_TELL),
    ],
)
def test_verdicts_need_the_whole_interval(low: float, high: float, verdict: str) -> None:
    before = 1_000_000.0
    interval = Interval((low - 1) * before, (high - 1) * before, (low, high))
    assert verdict_of(before, interval, LIMITS) == verdict
    # an absolute limit beyond it all makes it the same
    assert verdict_of(before, interval, Limits(0.03, 1_000_000)) == SAME
    if verdict in (SLOWER, FASTER):
        assert verdict_of(before, interval, LIMITS, p_value=0.08) == CANNOT_TELL


def test_runs_that_would_tell() -> None:
    interval = Interval(0.0, 80_000.0, (1.0, 1.08))
    # half of 80 us must fit between 40 and 30 us: four times as narrow, sixteen times the runs
    assert runs_needed(1_000_000, 40_000, interval, 5, LIMITS) == 80
    assert runs_needed(1_000_000, 30_000, interval, 5, LIMITS) is None
    assert runs_needed(1_000_000, 40_000, None, 1, LIMITS) == 4


def test_the_floor_of_noise_is_what_halves_differ_by() -> None:
    floor = noise_floor([100_000, 101_000, 99_000, 100_500, 99_500, 100_200])
    assert 0.005 < floor.relative <= 0.0155
    assert floor.absolute_ns == pytest.approx(floor.relative * 100_000, rel=0.05)
    assert noise_floor([100, 100, 100, 100]).relative == 0.0
    with_outlier = noise_floor([100, 100, 100, 100, 100, 100, 100, 900])
    assert with_outlier.relative == 0.0, "one of eight runs moves no median"
