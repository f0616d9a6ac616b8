"""One side of runs against another: the unit, its parts, what ran in it, and what to make of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from nsightpy.analysis.comparison.advice import next_steps, notes_on
from nsightpy.analysis.comparison.attribution import split_change
from nsightpy.analysis.comparison.matching import GONE, NEW, Match, match
from nsightpy.analysis.comparison.sides import Side, Works
from nsightpy.analysis.comparison.statistics import (
    Interval,
    Sample,
    change_interval,
    covers_runs,
    mann_whitney,
)
from nsightpy.analysis.comparison.verdicts import runs_needed, verdict_of
from nsightpy.names import brief_kernel
from nsightpy.results.comparison import (
    CANNOT_TELL,
    COMPARE_FIELDS,
    LAUNCH_SPREAD,
    LEAST_SHARE,
    CircumstanceDifference,
    ComparedQuantity,
    ComparedSide,
    Comparison,
    Limits,
)
from nsightpy.results.run_summary import PARTS, SECTIONS, UNITS, RunSummary

MOST_VALUES = 4
UNKNOWN = "not known"
# Launches in a unit may differ by so much between runs of one program.
SAME_LAUNCHES = 0.02
# And steps in a capture by so much.
SAME_STEPS = 0.1


def unit_of(runs: Sequence[RunSummary]) -> str:
    """What all runs can be compared by: launches of ncu, steps where all have them, or windows.

    Where there are no steps, what repeats in all runs with the same number of launches.
    """
    common = set(UNITS).intersection(*(run.units for run in runs))
    if "repetition" in common:
        launches = [launches_of(run, "repetition") for run in runs]
        if not alike(min(launches), max(launches), SAME_LAUNCHES):
            common -= {"repetition"}
    return next((unit for unit in UNITS if unit in common), "window")


def compare_sides(
    before: ComparedSide, after: ComparedSide, limits: Limits | None = None
) -> Comparison:
    """The comparison of two sides with runs of one kind; see docs/comparison.md."""
    limits = limits or Limits()
    unit = unit_of((*before.runs, *after.runs))
    within = LAUNCH_SPREAD if unit == "launch" else 0.0
    first, second = (
        Side(tuple(run.units[unit] for run in side.runs), within) for side in (before, after)
    )
    step = _step(first, second, unit, limits)
    least = round(LEAST_SHARE * min(step.before_ns or 0, step.after_ns or 0))
    inner = replace(limits, absolute_ns=max(limits.absolute_ns, least))
    sections = [_works(first, second, section, inner) for section in SECTIONS]
    comparison = Comparison(
        "compare",
        COMPARE_FIELDS,
        (),
        before=before,
        after=after,
        unit=unit,
        step=step,
        parts=() if unit == "launch" else _parts(first, second, inner),
        kernels=sections[0],
        collectives=sections[1],
        ranges=sections[2],
        circumstances=(
            *differences(before, after, unit),
            *shape_differences(sections[0], first, second),
        ),
        limits=limits,
        spread=_spread(first, second),
    )
    return replace(
        comparison,
        rows=tuple(quantity.row for quantity in comparison.quantities),
        inputs=(*before.names, *after.names),
        notes=notes_on(comparison),
        next_steps=next_steps(comparison),
    )


def with_p_value(quantity: ComparedQuantity, limits: Limits) -> ComparedQuantity:
    """A quantity that is tested by itself, as the step is; nothing changes below four runs."""
    runs = [
        np.asarray(values, np.float64) for values in (quantity.before_runs, quantity.after_runs)
    ]
    p_value = mann_whitney(*runs)
    if p_value is None or quantity.before_ns is None or quantity.after_ns is None:
        return quantity
    interval = change_interval(Sample(runs[0]), Sample(runs[1]))
    verdict = verdict_of(quantity.before_ns, interval, limits, p_value)
    needed = _needed(verdict, quantity.before_ns, quantity.after_ns, interval, runs, limits)
    return replace(quantity, p_value=p_value, verdict=verdict, runs_needed=needed)


def _spread(first: Side, second: Side) -> str:
    """What intervals are made of: runs, units in runs, or nothing."""
    if covers_runs(len(first.units), len(second.units)):
        return "runs"
    return "steps" if first.step.has_units and second.step.has_units else "nothing"


def _step(first: Side, second: Side, unit: str, limits: Limits) -> ComparedQuantity:
    before, after = first.step, second.step
    name = "all launches" if unit == "launch" else unit
    times = (round(before.median), round(after.median))
    made = _quantity(name, "step", before, after, times, limits)
    return with_p_value(made, limits)


def _parts(first: Side, second: Side, limits: Limits) -> tuple[ComparedQuantity, ...]:
    """The parts of the unit that are there on a side; they add up to it on both."""
    (_, below), (_, above) = first.medians, second.medians
    parts = []
    for place, name in enumerate(PARTS):
        before, after = first.part(place), second.part(place)
        if before.runs.any() or after.runs.any() or below[place] or above[place]:
            times = (int(below[place]), int(above[place]))
            parts.append(_quantity(name, "time", before, after, times, limits))
    return tuple(parts)


def _quantity(
    name: str,
    section: str,
    before: Sample,
    after: Sample,
    times: tuple[int, int],
    limits: Limits,
) -> ComparedQuantity:
    """A time that both sides have; `times` are what is said of it in ns."""
    interval = change_interval(before, after)
    verdict = verdict_of(times[0], interval, limits)
    low, high = _ratios(interval, times)
    return ComparedQuantity(
        name,
        section,
        *times,
        before_runs=tuple(np.rint(before.runs).astype(np.int64).tolist()),
        after_runs=tuple(np.rint(after.runs).astype(np.int64).tolist()),
        ratio_low=low,
        ratio_high=high,
        verdict=verdict,
        runs_needed=_needed(verdict, *times, interval, (before.runs, after.runs), limits),
    )


def _ratios(interval: Interval | None, times: tuple[int, int]) -> tuple[float | None, float | None]:
    """The interval, with what is said inside it."""
    if interval is None or interval.low is None or interval.high is None or not times[0]:
        return None, None
    ratio = times[1] / times[0]
    return min(interval.low, ratio), max(interval.high, ratio)


def _needed(
    verdict: str,
    before_ns: float,
    after_ns: float,
    interval: Interval | None,
    runs: Sequence[np.ndarray],
    limits: Limits,
) -> int | None:
    if verdict != CANNOT_TELL:
        return None
    fewest = min(len(side) for side in runs)
    return runs_needed(before_ns, after_ns - before_ns, interval, fewest, limits)


def _works(first: Side, second: Side, section: str, limits: Limits) -> tuple[ComparedQuantity, ...]:
    """What ran in the units, matched; the greatest change first."""
    below, above = first.works(section), second.works(section)
    orders = (first.order, second.order) if section == "kernel" else ((), ())
    matches = match(below.items, above.items, orders)
    quantities = [_matched(section, pair, below, above, limits) for pair in matches]
    return tuple(
        sorted(
            quantities,
            key=lambda quantity: (
                -abs(quantity.delta_ns),
                -(quantity.after_ns or 0),
                quantity.name,
            ),
        )
    )


def _matched(
    section: str, pair: Match, below: Works, above: Works, limits: Limits
) -> ComparedQuantity:
    before, after = below.totals(pair.before), above.totals(pair.after)
    times = (round(before.median), round(after.median))
    counts = below.count(pair.before), above.count(pair.after)
    by_count, by_length = split_change(*times, *counts)
    made = _quantity((pair.after or pair.before)[0], section, before, after, times, limits)
    figures = below.figures(pair.before), above.figures(pair.after)
    made = replace(
        made,
        before_count=counts[0],
        after_count=counts[1],
        delta_from_count_ns=by_count,
        delta_from_duration_ns=by_length,
        matched_by=pair.matched_by,
        change=pair.change,
        before_names=(*pair.before, *pair.context),
        after_names=pair.after,
        category=(above if pair.after else below).category(pair.after or pair.before),
        figures=tuple(
            (name, figures[0].get(name), figures[1].get(name))
            for name in dict.fromkeys([*figures[0], *figures[1]])
        ),
    )
    if pair.before and pair.after:
        return made
    if pair.after:
        absent: dict[str, object] = {"before_ns": None, "before_count": None, "verdict": NEW}
    else:
        absent = {"after_ns": None, "after_count": None, "verdict": GONE}
    return replace(made, runs_needed=None, ratio_low=None, ratio_high=None, **absent)  # type: ignore[arg-type]


def differences(
    before: ComparedSide, after: ComparedSide, unit: str
) -> tuple[CircumstanceDifference, ...]:
    """The circumstances that are not the same on both sides, as texts."""
    names = dict.fromkeys(name for run in (*before.runs, *after.runs) for name in run.circumstances)
    differing = []
    for name in names:
        first, second = (
            sorted({run.circumstances.get(name, "") for run in side.runs})
            for side in (before, after)
        )
        if first != second:
            differing.append(CircumstanceDifference(name, _text(first), _text(second)))
    sides = (before.runs, after.runs)
    below, above = (_middle(launches_of(run, unit) for run in runs) for runs in sides)
    if unit != "launch" and not alike(below, above, SAME_LAUNCHES):
        name = f"kernels a {unit}"
        differing.append(CircumstanceDifference(name, f"{below:,.0f}", f"{above:,.0f}"))
    if unit == "step":
        few, many = (sorted({run.units[unit].count for run in runs}) for runs in sides)
        if not alike(_middle(few), _middle(many), SAME_STEPS):
            texts = (_text(list(map(str, counts))) for counts in (few, many))
            differing.append(CircumstanceDifference("steps a run", *texts))
    return tuple(differing)


def shape_differences(
    kernels: Iterable[ComparedQuantity], first: Side, second: Side
) -> tuple[CircumstanceDifference, ...]:
    """The kernels of both sides that were launched with other grids or blocks."""
    below, above = first.works("kernel"), second.works("kernel")
    differing = []
    for kernel in kernels:
        shapes = below.shapes(kernel.before_names), above.shapes(kernel.after_names)
        if all(shapes) and shapes[0] != shapes[1]:
            name = f"grid x block of {brief_kernel(kernel.name)}"
            differing.append(CircumstanceDifference(name, *map(_text, shapes)))
    return tuple(differing)


def _text(values: Sequence[str]) -> str:
    shown = [value or UNKNOWN for value in values[:MOST_VALUES]]
    more = len(values) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def launches_of(run: RunSummary, unit: str) -> float:
    """Kernels in a unit."""
    return sum(work.count for work in run.units[unit].works if work.section == "kernel")


def alike(value: float, other: float, share: float) -> bool:
    """Whether two numbers differ by no more than a share of the larger."""
    return abs(other - value) <= share * max(value, other)


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]
