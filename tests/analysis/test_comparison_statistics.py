"""How sure a change is: the test by hand, the interval, what a change is called."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nsightpy.analysis.comparison.gate import noise_floor
from nsightpy.analysis.comparison.verdicts import (
    Interval,
    Sample,
    change_interval,
    mann_whitney,
    runs_needed,
    verdict_of,
)
from nsightpy.results.comparison import CANNOT_TELL, FASTER, SAME, SLOWER, Limits

LIMITS = Limits(0.03, 1_000)


def by_hand(before: list[int], after: list[int]) -> float:
    """The p-value by looking at every way to divide the values."""
    values = np.asarray([*before, *after], dtype=np.float64)
    ranks = np.asarray([(values < v).sum() + (values <= v).sum() + 1 for v in values])
    mean = ranks.sum() * len(before) / len(values)
    seen = abs(ranks[: len(before)].sum() - mean)
    every = [
        abs(ranks[list(chosen)].sum() - mean) >= seen - 1e-9
        for chosen in combinations(range(len(values)), len(before))
    ]
    return sum(every) / len(every)


@pytest.mark.slow
@given(st.lists(st.integers(0, 99), min_size=10, max_size=12, unique=True), st.integers(4, 6))
def test_p_values_count_every_way_to_divide_the_runs(values: list[int], size: int) -> None:
    before, after = values[:size], values[size:]
    found = mann_whitney(before, after)
    assert found == pytest.approx(by_hand(before, after))


def test_runs_that_took_as_long_are_counted() -> None:
    assert mann_whitney([7] * 5, [7] * 5) == 1.0
    assert mann_whitney([7] * 5, [8] * 5) == pytest.approx(by_hand([7] * 5, [8] * 5), abs=0.005)


def test_many_runs_are_tested_in_a_moment() -> None:
    runs = range(150)
    mann_whitney(runs[:4], runs[:4])  # loads the library
    began = time.process_time()
    assert mann_whitney(runs, range(1, 151)) == pytest.approx(0.83, abs=0.02)
    assert mann_whitney(runs, range(50, 200)) == pytest.approx(0.0, abs=1e-9)
    assert time.process_time() - began < 1.0


def test_fewer_than_four_runs_have_no_p_value() -> None:
    assert mann_whitney(range(3), range(9)) is None
    # the least that four a side can say: 2 of 70
    assert mann_whitney(range(4), range(9, 13)) == pytest.approx(2 / 70)


def test_intervals_are_the_same_every_time_and_need_a_spread() -> None:
    before, after = Sample((100, 101, 99, 102, 98)), Sample((110,) * 5)
    found = change_interval(before, after)
    assert found == change_interval(before, after)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 110 / 102 <= found.low <= 1.10 <= found.high <= 110 / 98
    assert change_interval(Sample((100,)), Sample((110,))) is None


def test_steps_stand_in_for_runs_below_four() -> None:
    steps, later = (99, 100, 101, 100, 100), (119, 120, 121, 120, 120)
    found = change_interval(Sample((100,), (steps,)), Sample((120,), (later,)))
    assert found is not None
    assert found.low is not None
    assert 1.15 < found.low <= 1.2
    # a fourth run counts by itself, whatever its steps say
    runs, slower = Sample((90, 110, 95, 105), (steps,) * 4), Sample((110, 130, 115, 125))
    wide = change_interval(runs, slower)
    assert wide is not None
    assert wide.low is not None
    assert wide.low < 1.05


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
    interval = Interval((low - 1) * before, (high - 1) * before, low, high)
    assert verdict_of(before, interval, LIMITS) == verdict
    # an absolute limit beyond it all makes it the same
    assert verdict_of(before, interval, Limits(0.03, 1_000_000)) == SAME
    if verdict in (SLOWER, FASTER):
        assert verdict_of(before, interval, LIMITS, p_value=0.08) == CANNOT_TELL


def test_runs_that_would_tell() -> None:
    interval = Interval(0.0, 80_000.0, 1.0, 1.08)
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
