"""How sure a change is: the test by hand, the interval, what a change is called."""

from __future__ import annotations

import pytest

from nsightpy.analysis.comparison.verdicts import (
    Interval,
    Sample,
    change_interval,
    mann_whitney,
    noise_floor,
    runs_needed,
    verdict_of,
)
from nsightpy.results.comparison import CANNOT_TELL, FASTER, SAME, SLOWER, Limits

LIMITS = Limits(0.03, 1_000)


def test_p_values_are_those_of_scipy_and_need_four_runs_a_side() -> None:
    assert mann_whitney(range(3), range(9)) is None
    # the least that four a side can say: 2 of 70
    assert mann_whitney(range(4), range(9, 13)) == pytest.approx(2 / 70)
    assert mann_whitney([7] * 5, [7] * 5) == 1.0


def test_intervals_are_the_same_every_time_and_need_a_spread() -> None:
    before, after = Sample((100, 101, 99, 102, 98)), Sample((110,) * 5)
    found = change_interval(before, after)
    assert found == change_interval(before, after)
    assert found is not None
    assert found.ratios is not None
    assert 110 / 102 <= found.ratios[0] <= 1.10 <= found.ratios[1] <= 110 / 98
    assert change_interval(Sample((100,)), Sample((110,))) is None


def test_steps_stand_in_for_runs_below_four() -> None:
    steps, later = (99, 100, 101, 100, 100), (119, 120, 121, 120, 120)
    found = change_interval(Sample((100,), (steps,)), Sample((120,), (later,)))
    assert found is not None
    assert found.ratios is not None
    assert 1.15 < found.ratios[0] <= 1.2
    # a fourth run counts by itself, whatever its steps say
    runs, slower = Sample((90, 110, 95, 105), (steps,) * 4), Sample((110, 130, 115, 125))
    wide = change_interval(runs, slower)
    assert wide is not None
    assert wide.ratios is not None
    assert wide.ratios[0] < 1.05


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
