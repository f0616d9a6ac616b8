"""Gains against the truth of simulated jobs of which one cause is taken away."""

from __future__ import annotations

import pytest

from tests.support.twins import order_is_right, random_job, told_of

pytestmark = pytest.mark.slow


# `python -m tests.support.twins 60 1000` asks the same of as many jobs as wanted
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_gains_are_near_the_truth_and_in_its_order(seed: int) -> None:
    told = told_of(random_job(seed))
    wrong = [(one.cause.name, one.gain, one.truth) for one in told if not one.right]
    assert not wrong
    assert order_is_right(told)
