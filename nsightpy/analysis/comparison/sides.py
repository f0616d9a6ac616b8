"""The times of one side: samples of runs for its unit, the unit's parts and what ran in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.comparison.verdicts import Sample
from nsightpy.analysis.kernel_categories import category_of
from nsightpy.frames import Floats, Ints
from nsightpy.results.run_summary import CATEGORY, PARTS, UnitSummary, WorkSummary


@dataclass(frozen=True)
class Side:
    """The units of the runs of one side; `within` as in Sample."""

    units: tuple[UnitSummary, ...]
    within: float = 0.0

    def time(self, column: int) -> Sample:
        """The time of a unit (column 0), or of one of PARTS (from column 1 on)."""
        runs = ((unit.duration_ns, *unit.parts)[column] for unit in self.units)
        units = (tuple(row[column] for row in unit.samples) for unit in self.units)
        return Sample(tuple(runs), tuple(units), self.within)

    @property
    def parts(self) -> Ints:
        """The parts of the median unit, in ns."""
        parts = np.asarray([unit.parts for unit in self.units], dtype=np.int64)
        return reconciled(parts.reshape(-1, len(PARTS)))

    def works(self, section: str) -> dict[str, Work]:
        """What ran in the units, of one section, by name; kernels by CATEGORY of what they do."""
        found: dict[str, list[WorkSummary]] = {}
        absent = self.nothing.runs
        for number, unit in enumerate(self.units):
            for work in unit.works:
                if work.section == section:
                    found.setdefault(work.name, list(absent))[number] = work
                elif section == CATEGORY and work.section == "kernel":
                    runs = found.setdefault(category_of(work.name), list(absent))
                    sofar, units = runs[number], len(runs[number].samples)
                    # what is not known of single units is the same in all
                    known = len(work.samples) == units
                    samples = work.samples if known else (work.total_ns,) * units
                    runs[number] = replace(
                        sofar,
                        count=sofar.count + work.count,
                        total_ns=sofar.total_ns + work.total_ns,
                        samples=tuple(map(sum, zip(sofar.samples, samples, strict=True))),
                    )
        return {name: Work(tuple(runs), self.within) for name, runs in found.items()}

    @property
    def nothing(self) -> Work:
        """What no run spent any time in."""
        samples = ((0,) * len(unit.samples) for unit in self.units)
        return Work(tuple(WorkSummary("", "", 0.0, 0, each) for each in samples), self.within)

    @property
    def order(self) -> tuple[str, ...]:
        """The names in the order of launches, of the run in which most of them are kept."""
        fullest = max(self.units, key=lambda unit: len(unit.order))
        return tuple(fullest.works[number].name for number in fullest.order)


@dataclass(frozen=True)
class Work:
    """A kernel, collective or range in each run of a side."""

    runs: tuple[WorkSummary, ...]
    within: float = 0.0

    @property
    def total(self) -> Sample:
        """Its time a unit, in single units where all runs keep those."""
        runs = tuple(run.total_ns for run in self.runs)
        return Sample(runs, tuple(run.samples for run in self.runs), self.within)

    @property
    def count(self) -> float:
        """Its launches a unit, in the median run."""
        return float(np.median([run.count for run in self.runs]))

    @property
    def figures(self) -> Mapping[str, float]:
        """What ncu measured of it, medians over runs."""
        measured: dict[str, list[float]] = {}
        for run in self.runs:
            for figure, value in run.figures.items():
                measured.setdefault(figure, []).append(value)
        return {figure: float(np.median(values)) for figure, values in measured.items()}


def reconciled(values: Ints) -> Ints:
    """What units of median length are made of: parts that add up to the median exactly, in ns.

    values: one row for each unit (or run), one column for each part; a row's sum is its time. The
    medians of the parts need not add up to the median of the sums: the difference is given to the
    parts by the square of how far each spreads (least squares), so that a part that is the same in
    all of them stays as it is.
    """
    total = float(np.median(values.sum(axis=1)))
    parts = np.median(values, axis=0)
    spread = np.abs(values - parts).mean(axis=0) ** 2
    varies = spread > 0
    if varies.any():
        moved = np.maximum(parts + (total - parts.sum()) * spread / spread.sum(), 0.0)
        rest, given = total - parts[~varies].sum(), moved[varies].sum()
        parts[varies] = moved[varies] * (rest / given if given else 0.0)
    return whole_parts(parts, round(total))


def whole_parts(parts: Floats, total: int) -> Ints:
    """Whole numbers that add up to the total, each within one of its part."""
    whole = np.floor(parts).astype(np.int64)
    upwards = np.argsort(whole - parts, kind="stable")[: total - whole.sum()]
    whole[upwards] += 1
    return whole
