"""What two sides ran on and with: facts, and no score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nsightpy.results.comparison import CircumstanceDifference, ComparedSide
from nsightpy.results.run_summary import RunSummary

MOST_VALUES = 4
UNKNOWN = "not known"
# Launches in a unit may differ by so much between runs of one program.
SAME_LAUNCHES = 0.02
# And steps in a capture by so much.
SAME_STEPS = 0.1


def differences(
    before: ComparedSide, after: ComparedSide, unit: str
) -> tuple[CircumstanceDifference, ...]:
    """The circumstances that are not the same on both sides, as texts."""
    names = dict.fromkeys(name for run in (*before.runs, *after.runs) for name in run.circumstances)
    differing = []
    for name in names:
        first, second = (_values(side.runs, name) for side in (before, after))
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


def _values(runs: Sequence[RunSummary], name: str) -> list[str]:
    return sorted({run.circumstances.get(name, "") for run in runs})


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
