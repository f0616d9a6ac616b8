"""Which iterations stand out by their length, and what grew in them."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.iterations.budgets import IterationBudgets, slow_iterations
from nsightpy.analysis.iterations.steady import STEADY, Iterations
from nsightpy.frames import Frame, Labels

KERNELS = Frame(
    {
        "start_ns": np.asarray([5], dtype=np.int64),
        "end_ns": np.asarray([95], dtype=np.int64),
        "name": Labels.constant("k", 1),
    }
)


def slow(*durations: int) -> list[tuple[int, float]]:
    end = np.cumsum(np.asarray(durations, dtype=np.int64))
    length = np.asarray(durations, dtype=np.int64)
    none = np.zeros_like(length)
    found = Iterations("range", end - length, end, none, (STEADY,) * len(durations))
    budgets = IterationBudgets(length, none, none, none)
    return [(one.iteration, one.ratio) for one in slow_iterations(found, budgets, KERNELS)]


def test_the_long_one_stands_out() -> None:
    assert slow(100, 100, 250, 100) == [(2, 2.5)]


def test_none_is_so_many_times_as_long_as_nothing() -> None:
    assert slow(0, 0, 90, 0, 0) == []
