"""What a reader of a comparison must know, and what to run next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from nsightpy.analysis.comparison.verdicts import limit_of
from nsightpy.results.comparison import LAUNCH_SPREAD, ComparedQuantity, Comparison
from nsightpy.units import format_time

FEW_RUNS = (
    "Fewer than four runs a side: the {unit}s of each stand in for their spread, so intervals say "
    "nothing of how runs differ (the runs' own spread is not covered), and there is no p-value."
)
NO_SPREAD = (
    "One value a run and fewer than four runs a side: nothing shows a spread, so there are no "
    "intervals, and slower or faster cannot be told from noise."
)
WINDOWS = (
    "Not all runs have iterations: the windows of the captures are compared, from the first to the "
    "last GPU work, so that a longer capture counts as slower."
)
REPETITIONS = (
    "Not all runs have iterations: what repeats in all of them is compared, a part of a step (a "
    "layer, say) with as many launches on both sides; no warm-up is left out."
)
LAUNCHES = (
    "Reports of ncu: times of single launches, each measured alone; they do not add up to a step. "
    f"Below four runs a side each is taken to be within {100 * LAUNCH_SPREAD:g} %, as far as "
    "launches of one kernel lie apart in captures: profile again (four runs a side) to know it."
)
# Of the change of the unit, what is worth a command.
MATERIAL = 0.1
_OF_PARTS = (
    ("compute", "kernels", "which kernels the time went to"),
    ("exposed communication", "collectives", "bandwidth and waits of every collective"),
    ("copies alone", "memory", "copies by size and kind of memory"),
    ("opaque CUDA graphs", "launches", "what launches the graphs"),
    ("idle: ", "gaps", "the longest idle intervals and their causes"),
)
_WAITS = ("ranks", "which rank the others wait for")
MOST_STEPS = 3


def notes_on(comparison: Comparison) -> tuple[str, ...]:
    """What must be known to trust the figures; without what single runs say."""
    notes = []
    by_unit = {"window": WINDOWS, "repetition": REPETITIONS, "launch": LAUNCHES}
    if comparison.unit in by_unit:
        notes.append(by_unit[comparison.unit])
    if comparison.spread == "steps":
        notes.append(FEW_RUNS.format(unit=comparison.unit))
    if comparison.spread == "nothing" and comparison.unit != "launch":
        notes.append(NO_SPREAD)
    notes += _collective_notes(comparison.collectives)
    runs = (*comparison.before.runs, *comparison.after.runs)
    named = [f"{run.name}: {note}" for run in runs for note in run.notes]
    return tuple(dict.fromkeys([*notes, *named]))


def _collective_notes(collectives: Sequence[ComparedQuantity]) -> list[str]:
    """Whether collectives changed because ranks wait, or because the transfer changed."""
    sums = _waits_and_transfers(collectives)
    whole = sum(collective.before_ns or 0 for collective in collectives)
    if max(map(abs, sums)) <= 0.01 * whole:
        return []
    wait, transfer = (f"{'+' if ns > 0 else ''}{format_time(ns)}" for ns in sums)
    text = (
        f"Collectives: waiting for the last rank changed by {wait}, the transfers themselves by "
        f"{transfer} (mean over ranks)."
    )
    return [text]


def _waits_and_transfers(collectives: Sequence[ComparedQuantity]) -> tuple[int, int]:
    """By how much waiting for other ranks and the transfers changed, in ns."""
    wait, transfer = (
        sum(
            collective.delta_ns
            for collective in collectives
            if collective.name.endswith(f": {kind}")
        )
        for kind in ("wait", "transfer")
    )
    return wait, transfer


def next_steps(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """The commands to run next, of the parts that changed most first."""
    paths = [run.name for run in comparison.after.runs[:1]]
    if not paths or comparison.after.baseline:
        return ()
    after = shlex.quote(paths[0])
    if comparison.unit == "launch":
        return ((f"nsightpy roofline {after}", "what limits each kernel"),)
    steps: dict[str, str] = {}
    wait, transfer = _waits_and_transfers(comparison.collectives)
    ordered = sorted(comparison.parts, key=lambda quantity: -abs(quantity.delta_ns))
    limit = limit_of(comparison.step.before_ns or 0, comparison.limits)
    least = MATERIAL * max([limit, *(abs(quantity.delta_ns) for quantity in ordered)])
    for quantity in ordered:
        if not quantity.delta_ns or abs(quantity.delta_ns) < least:
            continue
        for part, command, why in _OF_PARTS:
            if quantity.name.startswith(part):
                waits = command == "collectives" and abs(wait) > abs(transfer)
                what = _WAITS if waits else (command, why)
                steps.setdefault(f"nsightpy {what[0]} {after}", f"{quantity.name}: {what[1]}")
    return tuple(list(steps.items())[:MOST_STEPS])
