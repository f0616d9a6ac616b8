"""Which iterations stand out by their length, and what grew in them."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.iterations.budgets import IterationBudgets, slow_iterations


def slow(*durations: int) -> list[tuple[int, float]]:
    length = np.asarray(durations, dtype=np.int64)
    budgets = IterationBudgets(length, *(np.zeros_like(length),) * 3)
    return [(one.iteration, one.ratio) for one in slow_iterations(np.arange(len(length)), budgets)]


def test_the_long_one_stands_out() -> None:
    assert slow(100, 100, 250, 100) == [(2, 2.5)]


def test_none_is_so_many_times_as_long_as_nothing() -> None:
    assert slow(0, 0, 90, 0, 0) == []
