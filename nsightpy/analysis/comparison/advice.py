"""What differs besides times, what a reader of a comparison must know, and what to run next."""

import shlex
from collections.abc import Iterator, Sequence
from statistics import median_low

from nsightpy.analysis.comparison.matching import alike
from nsightpy.analysis.comparison.thresholds import MATERIAL, SAME_LAUNCHES
from nsightpy.results.comparison import (
    LAUNCH_SPREAD,
    CircumstanceDifference,
    ComparedQuantity,
    ComparedSide,
    Comparison,
)
from nsightpy.results.run_summary import RunSummary
from nsightpy.units import format_time, listed

# What must be known where the unit is no step.
BY_UNIT = {
    "window": "Not all runs have iterations: the windows of the captures are compared, from the "
    "first to the last GPU work, so that a longer capture counts as slower.",
    "repetition": "Not all runs have iterations: what repeats in all of them is compared, a part "
    "of a step (a layer, say); no warm-up is left out.",
    "launch": "Reports of ncu: times of single launches, which do not add up to a step. Below four "
    f"runs a side each is taken to be within {100 * LAUNCH_SPREAD:g} %.",
}
_OF_PARTS = (
    ("compute", "kernels", "which kernels the time went to"),
    ("exposed communication", "collectives", "bandwidth and waits of every collective"),
    ("copies alone", "memory", "copies by size and kind of memory"),
    ("opaque CUDA graphs", "launches", "what launches the graphs"),
    ("idle: ", "gaps", "the longest idle intervals and their causes"),
)
_WAITS = ("ranks", "which rank the others wait for")


def notes_on(comparison: Comparison) -> tuple[str, ...]:
    """What must be known to trust the figures; without what single runs say."""
    notes = [BY_UNIT[comparison.unit]] if comparison.unit in BY_UNIT else []
    changes = [_change_of(comparison.collectives, kind) for kind in ("wait", "transfer")]
    whole = sum(collective.before_ns or 0 for collective in comparison.collectives)
    if max(map(abs, changes)) > 0.01 * whole:
        wait, transfer = (f"{'+' if ns > 0 else ''}{format_time(ns)}" for ns in changes)
        notes.append(
            f"Collectives: waiting for the last rank changed by {wait}, the transfers themselves "
            f"by {transfer} (mean over ranks)."
        )
    runs = (*comparison.before.runs, *comparison.after.runs)
    named = [f"{run.name}: {note}" for run in runs for note in run.notes]
    return tuple(dict.fromkeys([*notes, *named]))


def _change_of(collectives: Sequence[ComparedQuantity], kind: str) -> int:
    """By how much waiting for other ranks, or the transfers, changed, in ns."""
    return sum(one.delta_ns for one in collectives if one.name.endswith(f": {kind}"))


def next_steps(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """The commands to run next, of the parts that changed most first."""
    if comparison.after.baseline:
        return ()
    after = shlex.quote(comparison.after.runs[0].name)
    if comparison.unit == "launch":
        return ((f"nsightpy roofline {after}", "what limits each kernel"),)
    collectives = comparison.collectives
    waits = abs(_change_of(collectives, "wait")) > abs(_change_of(collectives, "transfer"))
    largest = max((abs(part.delta_ns) for part in comparison.parts), default=0)
    steps: dict[str, str] = {}
    for part in sorted(comparison.parts, key=lambda part: -abs(part.delta_ns)):
        if not part.delta_ns or abs(part.delta_ns) < MATERIAL * max(comparison.limit_ns, largest):
            break
        command, why = next(step for name, *step in _OF_PARTS if part.name.startswith(name))
        if command == "collectives" and waits:
            command, why = _WAITS
        steps.setdefault(f"nsightpy {command} {after}", f"{part.name}: {why}")
    return tuple(list(steps.items())[:3])


MOST_VALUES = 4
UNKNOWN = "not known"


def differences(
    before: ComparedSide, after: ComparedSide, unit: str
) -> Iterator[CircumstanceDifference]:
    """The circumstances that are not the same on both sides, as texts."""
    sides = before.runs, after.runs
    for name in dict.fromkeys(name for runs in sides for run in runs for name in run.circumstances):
        first, second = (
            sorted({run.circumstances.get(name, "") for run in runs}) for runs in sides
        )
        if first != second:
            yield CircumstanceDifference(name, _text(first), _text(second))
    below, above = (median_low(launches_of(run, unit) for run in runs) for runs in sides)
    if unit != "launch" and not alike(below, above, SAME_LAUNCHES):
        yield CircumstanceDifference(f"kernels a {unit}", f"{below:,.0f}", f"{above:,.0f}")
    few, many = (sorted({run.units[unit].count for run in runs}) for runs in sides)
    if unit == "step" and not alike(median_low(few), median_low(many), MATERIAL):
        texts = (_text(list(map(str, counts))) for counts in (few, many))
        yield CircumstanceDifference("steps a run", *texts)


def _text(values: Sequence[str]) -> str:
    return listed((value or UNKNOWN for value in values), MOST_VALUES)


def launches_of(run: RunSummary, unit: str) -> float:
    """Kernels in a unit."""
    return sum(work.count for work in run.units[unit].works if work.section == "kernel")
