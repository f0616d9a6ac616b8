"""The times of one side: a sample of runs for its unit, for the parts of it, for what ran in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.comparison.attribution import reconciled
from nsightpy.analysis.comparison.matching import Item
from nsightpy.analysis.comparison.statistics import Sample
from nsightpy.frames import Ints
from nsightpy.results.run_summary import PARTS, UnitSummary, WorkSummary


@dataclass(frozen=True)
class Side:
    """The units of the runs of one side; `within` as in Sample."""

    units: tuple[UnitSummary, ...]
    within: float = 0.0

    @property
    def step(self) -> Sample:
        """The time of a unit."""
        runs = np.asarray([unit.duration_ns for unit in self.units], dtype=np.float64)
        return Sample(runs, self._units(0), self.within)

    def part(self, place: int) -> Sample:
        """The time of one of PARTS."""
        runs = np.asarray([unit.parts[place] for unit in self.units], dtype=np.float64)
        return Sample(runs, self._units(1 + place))

    def _units(self, column: int) -> tuple[np.ndarray, ...]:
        return tuple(
            np.asarray([row[column] for row in unit.samples], dtype=np.float64)
            for unit in self.units
        )

    @property
    def medians(self) -> tuple[int, Ints]:
        """The median unit, and parts that add up to it, in ns."""
        parts = np.asarray([unit.parts for unit in self.units], dtype=np.int64)
        return reconciled(parts.reshape(-1, len(PARTS)))

    def works(self, section: str) -> Works:
        """What ran in the units, of one section."""
        named = [
            {work.name: work for work in unit.works if work.section == section}
            for unit in self.units
        ]
        return Works(tuple(named), tuple(len(unit.samples) for unit in self.units), self.within)

    @property
    def order(self) -> tuple[str, ...]:
        """The names in the order of launches, of the run in which most of them are kept."""
        fullest = max(self.units, key=lambda unit: len(unit.order))
        return tuple(fullest.works[place].name for place in fullest.order)


@dataclass(frozen=True)
class Works:
    """What ran in the units of one side, by run and name; `sampled`: units kept of each run."""

    runs: tuple[Mapping[str, WorkSummary], ...]
    sampled: tuple[int, ...]
    within: float = 0.0

    @property
    def items(self) -> dict[str, Item]:
        """Everything by name, as it typically is."""
        names = dict.fromkeys(name for run in self.runs for name in run)
        return {name: self._item(name) for name in names}

    def _item(self, name: str) -> Item:
        known = [run[name] for run in self.runs if name in run]
        count = float(np.median([summary.count for summary in known]))
        total = float(np.median([summary.total_ns for summary in known]))
        first = known[0]
        length = total / count if count else 0.0
        return Item(name, count, length, first.path, first.position, first.category)

    def totals(self, names: Sequence[str]) -> Sample:
        """The time of some names together."""
        runs = np.asarray(
            [sum(run[name].total_ns for name in names if name in run) for run in self.runs],
            dtype=np.float64,
        )
        units = [
            self._sampled(run, count, names)
            for run, count in zip(self.runs, self.sampled, strict=True)
        ]
        known = tuple(unit for unit in units if unit is not None)
        return Sample(runs, known if len(known) == len(units) else (), self.within)

    def _sampled(
        self, run: Mapping[str, WorkSummary], count: int, names: Sequence[str]
    ) -> np.ndarray | None:
        every = [run[name].samples for name in names if name in run]
        if any(len(samples) != count for samples in every):
            return None
        whole = np.zeros(count, dtype=np.float64)
        for samples in every:
            whole += np.asarray(samples, dtype=np.float64)
        return whole

    def count(self, names: Sequence[str]) -> float:
        """Launches a unit of some names together, in the median run."""
        return float(
            np.median([sum(run[name].count for name in names if name in run) for run in self.runs])
        )

    def category(self, names: Sequence[str]) -> str:
        """The class of the first of some names."""
        return next((run[name].category for name in names for run in self.runs if name in run), "")

    def shapes(self, names: Sequence[str]) -> list[str]:
        """The grids and blocks that some names were launched with, as far as they are known."""
        works = [run[name] for run in self.runs for name in names if name in run]
        return sorted({shape for work in works for shape in work.shapes})

    def figures(self, names: Sequence[str]) -> dict[str, float]:
        """What ncu measured of some names, medians over runs."""
        measured: dict[str, list[float]] = {}
        for run in self.runs:
            for name in names:
                for figure, value in run[name].figures.items() if name in run else ():
                    measured.setdefault(figure, []).append(value)
        return {figure: float(np.median(values)) for figure, values in measured.items()}
