"""What the sides ran on or with, and that is not the same on both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median_low

from nsightpy.analysis.comparison.matching import SAME_LAUNCHES, alike
from nsightpy.analysis.comparison.sides import Side
from nsightpy.names import brief_kernel
from nsightpy.results.comparison import CircumstanceDifference, ComparedQuantity, ComparedSide
from nsightpy.results.run_summary import RunSummary
from nsightpy.units import listed

MOST_VALUES = 4
UNKNOWN = "not known"
# Steps in a capture may differ by so much between runs of one program.
SAME_STEPS = 0.1


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
    if unit == "step" and not alike(median_low(few), median_low(many), SAME_STEPS):
        texts = (_text(list(map(str, counts))) for counts in (few, many))
        yield CircumstanceDifference("steps a run", *texts)


def shape_differences(
    kernels: Iterable[ComparedQuantity], first: Side, second: Side
) -> Iterator[CircumstanceDifference]:
    """The kernels of both sides that were launched with other grids or blocks."""
    below, above = first.works("kernel"), second.works("kernel")
    for kernel in kernels:
        if kernel.before_name in below and kernel.name in above:
            shapes = below[kernel.before_name].shapes, above[kernel.name].shapes
            if all(shapes) and shapes[0] != shapes[1]:
                name = f"grid x block of {brief_kernel(kernel.name)}"
                yield CircumstanceDifference(name, *map(_text, shapes))


def _text(values: Sequence[str]) -> str:
    return listed((value or UNKNOWN for value in values), MOST_VALUES)


def launches_of(run: RunSummary, unit: str) -> float:
    """Kernels in a unit."""
    return sum(work.count for work in run.units[unit].works if work.section == "kernel")
