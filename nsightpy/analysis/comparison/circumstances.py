"""What two sides ran on and with: facts, and no score."""

from __future__ import annotations

from collections.abc import Sequence

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
    found = []
    for name in names:
        first, second = (_values(side.runs, name) for side in (before, after))
        if first != second:
            found.append(CircumstanceDifference(name, _text(first), _text(second)))
    launches = [_launches(side.runs, unit) for side in (before, after)]
    if unit != "launch" and abs(launches[1] - launches[0]) > SAME_LAUNCHES * max(launches):
        texts = (f"{count:,.0f}" for count in launches)
        found.append(CircumstanceDifference(f"kernels a {unit}", *texts))
    if unit == "step":
        steps = [sorted({run.units[unit].count for run in side.runs}) for side in (before, after)]
        middles = [one[len(one) // 2] for one in steps]
        if abs(middles[1] - middles[0]) > SAME_STEPS * max(middles):
            first_text, second_text = (_text([str(count) for count in one]) for one in steps)
            found.append(CircumstanceDifference("steps a run", first_text, second_text))
    return tuple(found)


def _values(runs: Sequence[RunSummary], name: str) -> list[str]:
    return sorted({run.circumstances.get(name, "") for run in runs})


def _text(values: Sequence[str]) -> str:
    shown = [value or UNKNOWN for value in values[:MOST_VALUES]]
    more = len(values) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])


def _launches(runs: Sequence[RunSummary], unit: str) -> float:
    """Kernels in a unit, in the middle run."""
    counts = sorted(
        sum(work.count for work in run.units[unit].works if work.section == "kernel")
        for run in runs
    )
    return counts[(len(counts) - 1) // 2]
