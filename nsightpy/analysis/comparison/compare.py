"""One side of runs against another: the unit, its parts, what ran in it; whether a gate holds."""

from collections.abc import Sequence
from dataclasses import replace

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.comparison.advice import differences, launches_of, next_steps, notes_on
from nsightpy.analysis.comparison.matching import Match, alike, match
from nsightpy.analysis.comparison.sides import Side, Work
from nsightpy.analysis.comparison.thresholds import SAME_LAUNCHES
from nsightpy.analysis.comparison.verdicts import (
    Sample,
    change_interval,
    covers_runs,
    mann_whitney,
    runs_needed,
    verdict_of,
)
from nsightpy.errors import UsageError
from nsightpy.frames import Labels
from nsightpy.results.comparison import (
    CANNOT_TELL,
    COMPARE_FIELDS,
    GONE,
    LAUNCH_SPREAD,
    LEAST_SHARE,
    NEW,
    SLOWER,
    ComparedQuantity,
    ComparedSide,
    Comparison,
    GateOutcome,
    Limits,
)
from nsightpy.results.run_summary import CATEGORY, PARTS, SECTIONS, UNITS, RunSummary
from nsightpy.units import format_time


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
    name = "all launches" if unit == "launch" else unit
    step = _quantity(name, "step", first.time(0), second.time(0), limits)
    least = round(LEAST_SHARE * min(step.before_ns or 0, step.after_ns or 0))
    inner = replace(limits, absolute_ns=max(limits.absolute_ns, least))
    whole = covers_runs(len(first.units), len(second.units))
    has_units = first.time(0).has_units and second.time(0).has_units
    kernels, collectives, ranges = (_works(first, second, section, inner) for section in SECTIONS)
    comparison = Comparison(
        "compare",
        COMPARE_FIELDS,
        (),
        before=before,
        after=after,
        unit=unit,
        step=step,
        parts=() if unit == "launch" else _parts(first, second, inner),
        kernels=kernels,
        collectives=collectives,
        ranges=ranges,
        categories=_works(first, second, CATEGORY, inner),
        circumstances=tuple(differences(before, after, unit)),
        limits=limits,
        spread="runs" if whole else "steps" if has_units else "nothing",
    )
    return replace(
        comparison.cut(None),
        inputs=(*before.names, *after.names),
        notes=notes_on(comparison),
        next_steps=next_steps(comparison),
    )


def _parts(first: Side, second: Side, limits: Limits) -> tuple[ComparedQuantity, ...]:
    """The parts of the unit that are there on a side; they add up to it on both."""
    medians = zip(first.parts.tolist(), second.parts.tolist(), strict=True)
    parts = []
    for column, (name, times) in enumerate(zip(PARTS, medians, strict=True), start=1):
        before, after = first.time(column), second.time(column)
        if any((*times, *before.runs, *after.runs)):
            parts.append(_quantity(name, "time", before, after, limits, times))
    return tuple(parts)


def _quantity(
    name: str,
    section: str,
    before: Sample,
    after: Sample,
    limits: Limits,
    times: tuple[int, int] | None = None,
) -> ComparedQuantity:
    """A time of both sides with its interval, which holds what is said of it, and the verdict.

    `times` are what is said of it in ns, medians of runs unless given. The step alone is tested.
    """
    first, last = times or (round(before.median), round(after.median))
    bare = ComparedQuantity(name, section, first, last, before.runs, after.runs)
    p_value = mann_whitney(before.runs, after.runs) if section == "step" else None
    interval, ratio = change_interval(before, after), bare.ratio
    low = high = needed = None
    verdict = verdict_of(first, interval, limits, p_value)
    if ratio is not None and interval is not None and interval.ratios is not None:
        low, high = min(interval.ratios[0], ratio), max(interval.ratios[1], ratio)
    if verdict == CANNOT_TELL:
        fewest = min(len(before.runs), len(after.runs))
        needed = runs_needed(first, bare.delta_ns, interval, fewest, limits)
    return replace(
        bare, p_value=p_value, verdict=verdict, ratio_low=low, ratio_high=high, runs_needed=needed
    )


def _works(first: Side, second: Side, section: str, limits: Limits) -> tuple[ComparedQuantity, ...]:
    """What ran in the units, matched; the greatest change first."""
    below, above = (side.works(section) for side in (first, second))
    counts, others = ({name: work.count for name, work in side.items()} for side in (below, above))
    orders = (first.order, second.order) if section == "kernel" else ((), ())
    quantities = [
        _matched(
            section,
            pair,
            below.get(pair.before, first.nothing),
            above.get(pair.after, second.nothing),
            limits,
        )
        for pair in match(counts, others, orders)
    ]
    quantities.sort(key=lambda one: (-abs(one.delta_ns), -(one.after_ns or 0), one.name))
    return tuple(quantities)


def _matched(
    section: str, pair: Match, below: Work, above: Work, limits: Limits
) -> ComparedQuantity:
    """What became of a kernel, collective or range."""
    name = pair.after or pair.before
    both = _quantity(name, section, below.total, above.total, limits)
    times = both.before_ns or 0, both.after_ns or 0
    by_count, by_length = split_change(*times, below.count, above.count)
    measured, again = below.figures, above.figures
    both = replace(
        both,
        before_count=below.count,
        after_count=above.count,
        delta_from_count_ns=by_count,
        delta_from_duration_ns=by_length,
        matched_by=pair.matched_by,
        before_name=pair.before or name,
        communicates=section == "kernel" and bool(is_communication(Labels.of([name]))[0]),
        figures=tuple(
            (figure, measured.get(figure), again.get(figure))
            for figure in dict.fromkeys([*measured, *again])
        ),
    )
    if pair.matched_by:
        return both
    alone = replace(both, runs_needed=None, ratio_low=None, ratio_high=None)
    if pair.after:
        return replace(alone, before_ns=None, before_count=None, verdict=NEW)
    return replace(alone, after_ns=None, after_count=None, verdict=GONE)


def split_change(
    before_ns: int, after_ns: int, before_count: float, after_count: float
) -> tuple[int, int]:
    """The parts of a change by the number of launches and by the length of one, in ns.

    Change in count x mid length + change in length x mid count; the two add up exactly.
    """
    change = after_ns - before_ns
    if not (before_count and after_count):
        return change, 0
    lengths = before_ns / before_count, after_ns / after_count
    by_count = round((after_count - before_count) * (lengths[0] + lengths[1]) / 2.0)
    return by_count, change - by_count


def gated(comparison: Comparison, limits: Limits, on: str | None, strict: bool) -> Comparison:
    """The comparison with the outcome of a gate on its step, or on what is called `on`.

    It fails where that is slower; where one cannot tell only with `strict`. Raises UsageError for a
    name that nothing has.
    """
    quantity = comparison.step if on is None else _called(comparison, on)
    return replace(comparison, gate=_outcome(quantity, limits, strict))


def _called(comparison: Comparison, name: str) -> ComparedQuantity:
    """What has a name: the whole name, else the only one whose name holds it."""
    every = [quantity for quantity in comparison.quantities if quantity.section != "step"]
    whole = [quantity for quantity in every if name in (quantity.name, quantity.before_name)]
    holding = [quantity for quantity in every if name.lower() in quantity.name.lower()]
    if not whole and len(holding) != 1:
        names = "kernels, ranges or collectives"
        raise UsageError(f"--gate-on {name!r}: {len(holding)} {names} are called so; give one")
    return (whole or holding)[0]


def _outcome(quantity: ComparedQuantity, limits: Limits, strict: bool) -> GateOutcome:
    unclear = quantity.verdict == CANNOT_TELL
    failed = quantity.verdict == SLOWER or (strict and unclear)
    limit = f"{100 * limits.relative:g} % and {format_time(limits.absolute_ns)}"
    reason = f"{quantity.name}: {quantity.verdict}, not slower by {limit}"
    if quantity.verdict == SLOWER:
        reason = f"{quantity.name} is slower, beyond {limit} and its interval"
    elif unclear:
        runs = f"; {quantity.runs_needed} runs a side would" if quantity.runs_needed else ""
        reason = f"{quantity.name}: whether it is slower by {limit} cannot be told{runs}"
    return GateOutcome(limits, quantity.name, strict, quantity.verdict, failed, reason)
