"""Kernels beside communication against the same kernels alone."""

import numpy as np
import pytest

from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.ranks.kernels import overlap_costs
from nsightpy.frames import KERNELS, Frame, Labels, constant

STEP_NS = 1_000_000


def steps(count: int, beside: int, factor: float, noise: float = 0.02) -> tuple[Frame, Spans]:
    """Steps of one product each; communication covers the first `beside` of them."""
    numbers = np.random.default_rng(1)
    starts = STEP_NS * np.arange(count)
    slower = np.where(np.arange(count) < beside, factor, 1.0)
    durations = (50_000 * slower * numbers.uniform(1 - noise, 1 + noise, count)).astype(np.int64)
    blank = Frame.blank(KERNELS, count)
    times = {"start_ns": starts, "end_ns": starts + durations}
    names = {"name": Labels.constant("gemm", count)}
    sizes = {"blocks": constant(108, count), "threads": constant(256, count)}
    return Frame({**blank, **times, **names, **sizes}), Spans.of(0, beside * STEP_NS)


@pytest.mark.parametrize("factor", [1.2, 1.5, 8.0])
def test_factor_and_excess(factor: float) -> None:
    (cost,) = overlap_costs(*steps(60, 20, factor))
    # the first has no kernel before it: it is a variant of its own
    assert (cost.alone, cost.beside) == (40, 19)
    assert cost.factor == pytest.approx(factor, rel=0.05)
    assert cost.excess_ns == pytest.approx(19 * 50_000 * (factor - 1), rel=0.05)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (steps(60, 20, 1.0), "no slower"),
        (steps(60, 20, 1.05, noise=0.3), "slower by less than the launches differ"),
        (steps(60, 4, 2.0), "too few beside communication"),
        (steps(24, 20, 2.0), "too few alone"),
        (steps(60, 0, 1.0), "nothing beside communication"),
    ],
)
def test_silent(job: tuple[Frame, Spans], why: str) -> None:
    assert overlap_costs(*job) == [], why


def test_the_kernel_before_tells_products_apart() -> None:
    """Forward products run alone, backward ones of the same name take longer in themselves."""
    frame, communication = steps(80, 40, 1.5)
    order = np.arange(80)
    codes = np.where(order % 2, 0, np.where(order < 40, 1, 2)).astype(np.int32)
    named = Frame({**frame, "name": Labels(codes, ("gemm", "backward", "forward"))})
    assert overlap_costs(named, communication) == []
