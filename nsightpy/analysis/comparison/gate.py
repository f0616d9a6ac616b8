"""Whether a gate holds, beyond limits and noise; and what a gate must exceed: A against A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from nsightpy.analysis.comparison.compare import with_p_value
from nsightpy.errors import UsageError
from nsightpy.results.comparison import (
    CANNOT_TELL,
    SLOWER,
    ComparedQuantity,
    Comparison,
    GateOutcome,
    Limits,
    NoiseFloor,
)
from nsightpy.units import format_time

MOST_NAMED = 4
# Of all ways to divide the runs in two, so many are looked at.
MOST_SPLITS = 2_000
SHARE = 0.95


def gated(comparison: Comparison, limits: Limits, on: str | None, strict: bool) -> Comparison:
    """The comparison with the outcome of a gate on its step, or on what is called `on`.

    It fails where that is slower; where one cannot tell only with `strict`. Raises UsageError for a
    name that nothing has.
    """
    if on is None:
        return replace(comparison, gate=_outcome(comparison.step, limits, strict))
    quantity = _called(comparison, on)
    tested = with_p_value(quantity, limits)
    changed = {
        section: tuple(
            tested if each is quantity else each for each in getattr(comparison, section)
        )
        for section in ("parts", "kernels", "collectives", "ranges")
    }
    gate = _outcome(tested, limits, strict)
    comparison = replace(comparison, gate=gate, **changed)  # type: ignore[arg-type]
    return replace(comparison, rows=tuple(each.row for each in comparison.quantities))


def _called(comparison: Comparison, name: str) -> ComparedQuantity:
    """What has a name: the whole name, else the only one whose name holds it."""
    every = [quantity for quantity in comparison.quantities if quantity.section != "step"]
    for quantity in every:
        if name in (quantity.name, *quantity.other_names):
            return quantity
    holding = [quantity for quantity in every if name.lower() in quantity.name.lower()]
    if len(holding) == 1:
        return holding[0]
    what = "more than one kernel, range or collective is" if holding else "nothing is"
    among = ", ".join(quantity.name for quantity in (holding or every)[:MOST_NAMED])
    raise UsageError(f"--gate-on {name!r}: {what} called so; there are {among}, ...")


def _outcome(quantity: ComparedQuantity, limits: Limits, strict: bool) -> GateOutcome:
    unclear = quantity.verdict == CANNOT_TELL
    failed = quantity.verdict == SLOWER or (strict and unclear)
    limit = f"{100 * limits.relative:g} % and {format_time(limits.absolute_ns)}"
    if quantity.verdict == SLOWER:
        reason = f"{quantity.name} is slower, beyond {limit} and its interval"
    elif unclear:
        runs = f"; {quantity.runs_needed} runs a side would" if quantity.runs_needed else ""
        reason = f"{quantity.name}: whether it is slower by {limit} cannot be told{runs}"
    else:
        reason = f"{quantity.name}: {quantity.verdict}, not slower by {limit}"
    return GateOutcome(limits, quantity.name, strict, quantity.verdict, failed, reason)


def noise_floor(times_ns: Sequence[int]) -> NoiseFloor:
    """The change between halves of runs that 95 % of all ways to divide them stay below.

    times_ns: the unit of each run, two runs at least. Of an odd number one run is left out in turn.
    """
    times = np.asarray(times_ns, dtype=np.float64)
    size = len(times) // 2
    ratios, changes = [], []
    for first in islice(_halves(len(times), size), MOST_SPLITS):
        rest = np.setdiff1d(np.arange(len(times)), first)
        for second in [rest] if len(rest) == size else combinations(rest.tolist(), size):
            below, above = np.median(times[list(first)]), np.median(times[list(second)])
            low, high = sorted((float(below), float(above)))
            ratios.append(high / low - 1.0 if low else 0.0)
            changes.append(high - low)
    relative, absolute = (float(np.quantile(deviations, SHARE)) for deviations in (ratios, changes))
    return NoiseFloor(relative, round(absolute), len(times))


def _halves(count: int, size: int) -> list[tuple[int, ...]]:
    """Ways to choose half of the runs; evenly taken where there are many."""
    every = list(islice(combinations(range(count), size), 200_000))
    step = max(1, len(every) // MOST_SPLITS)
    return every[::step]
