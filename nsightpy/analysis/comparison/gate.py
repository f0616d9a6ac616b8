"""Whether a gate holds, beyond limits and noise; and what a gate must exceed: A against A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsightpy.analysis.comparison.compare import with_p_value
from nsightpy.analysis.comparison.thresholds import DRAWS, LEVEL
from nsightpy.analysis.comparison.verdicts import SEED
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
        for section in ("parts", "kernels", "collectives", "ranges", "categories")
    }
    gate = _outcome(tested, limits, strict)
    comparison = replace(comparison, gate=gate, **changed)  # type: ignore[arg-type]
    return replace(comparison, rows=tuple(each.row for each in comparison.quantities))


def _called(comparison: Comparison, name: str) -> ComparedQuantity:
    """What has a name: the whole name, else the only one whose name holds it."""
    every = [quantity for quantity in comparison.quantities if quantity.section != "step"]
    for quantity in every:
        if name in (quantity.name, quantity.before_name):
            return quantity
    holding = [quantity for quantity in every if name.lower() in quantity.name.lower()]
    if len(holding) == 1:
        return holding[0]
    which = "more than one kernel, range or collective is" if holding else "nothing is"
    among = ", ".join(quantity.name for quantity in (holding or every)[:MOST_NAMED])
    raise UsageError(f"--gate-on {name!r}: {which} called so; there are {among}, ...")


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
    """The change between halves of runs that 95 % of the ways to divide them stay below.

    times_ns: the unit of each run, two runs at least; of an odd number one is left out. Runs are
    shuffled with a fixed seed (scipy.stats.permutation_test takes no halves of one run).
    """
    times = np.tile(np.maximum(times_ns, 1.0), (DRAWS, 1))
    shuffled = np.random.default_rng(SEED).permuted(times, axis=1)
    half = len(times_ns) // 2
    medians = [np.median(shuffled[:, part : part + half], axis=1) for part in (0, half)]
    low, high = np.sort(medians, axis=0)
    relative, absolute = (
        float(np.quantile(each, 1 - LEVEL)) for each in (high / low - 1, high - low)
    )
    return NoiseFloor(relative, round(absolute), len(times_ns))
