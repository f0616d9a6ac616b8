"""A summary of nsys stats: what it tallies of each report, and the table of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nsightpy.analysis.ranking import TIME_FIELDS, time_values
from nsightpy.analysis.tally import Statistics, Tally, merge
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row

Tallies: TypeAlias = tuple[Tally, ...]
Shown: TypeAlias = tuple[tuple[Field, ...], list[Row]]


@dataclass(frozen=True)
class Summary:
    """How one summary is made: tallies of a report, which merge; fields and rows of them.

    `tally` gets the column of the names that kernels go by; `records` says what
    `nsys profile` must be given, where the capture holds nothing of it; `tallies` is how many a
    report gives.
    """

    help: str
    tally: Callable[[SystemReport, Scope, str], Tallies]
    shown: Callable[[Sequence[Statistics]], Shown]
    records: str
    tallies: int = 1

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its columns, whatever the reports hold."""
        return self.shown([merge([]).statistics()] * self.tallies)[0]


def times(*labels: str, count: str = "Instances") -> Callable[[Sequence[Statistics]], Shown]:
    """The eight figures of nsys, then the parts of the key under these names; by total time."""

    def shown(parts: Sequence[Statistics]) -> Shown:
        (statistics,) = parts
        whole = int(statistics.total.sum())
        groups = statistics.by_total()
        rows: list[Row] = [
            (*time_values(statistics, group, whole), *statistics.keys[group]) for group in groups
        ]
        figures = (Field(count) if f.name == "Instances" else f for f in TIME_FIELDS)
        return (*figures, *(Field(label, "text") for label in labels)), rows

    return shown


def spread_fields(prefix: str = "", unit: str = "ns") -> tuple[Field, ...]:
    """Mean, median, extremes and deviation under the names that nsys gives them."""
    whole = ("Min", "Max")
    return tuple(
        Field(f"{prefix}{name} ({unit})", unit, None if name in whole else 1)
        for name in ("Avg", "Med", *whole, "StdDev")
    )
