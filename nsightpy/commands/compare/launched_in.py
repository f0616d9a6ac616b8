"""What of a program its kernels were launched in: order, ranges, operators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nsightpy.analysis.comparison.alignment import MOST_LAUNCHES
from nsightpy.analysis.comparison.kernel_names import without_numbers
from nsightpy.analysis.comparison.launch_paths import innermost, most_frequent, path_of
from nsightpy.analysis.comparison.unit_works import UnitWorks, owners, unit_works
from nsightpy.analysis.launches import NO_TIME, matched
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.projection import (
    OPERATION_COLUMNS,
    Projection,
    launched,
    project,
)
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.query.launched_work import FollowedWork, Work
from nsightpy.reports.system import SystemReport

OPERATOR_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "parent")
# Its ranges are calls of the library, not parts of a program.
LIBRARY_DOMAINS = ("NCCL",)


@dataclass(frozen=True)
class Around:
    """The launches of a report and the ranges around them."""

    report: SystemReport
    followed: FollowedWork | None
    work: Work
    ranges: Frame

    @cached_property
    def projection(self) -> Projection | None:
        """What each range launched; None where no calls were recorded, or there are no ranges."""
        if self.followed is None or not self.ranges.rows:
            return None
        operations = Frame.concatenate([part.select(OPERATION_COLUMNS) for part in self.work])
        return project(self.ranges, launched(operations, self.followed.calls))

    def placed(self, works: UnitWorks, rows: Ints) -> UnitWorks:
        """The works with the order and the places of the launches of one unit, rows of kernels."""
        kernels = self.work.kernels
        start = kernels.ints("start_ns")[rows]
        if self.followed is not None:
            begun = self.followed.work.launch[rows]
            start = np.where(begun == NO_TIME, start, begun)
        rows = rows[np.argsort(start, kind="stable")]
        labels = kernels.labels("name").take(rows)
        names = [labels[row] for row in range(len(rows))]
        places: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            places.setdefault(name, []).append(place)
        positions = {
            name: sum(numbers) / len(numbers) / len(names) for name, numbers in places.items()
        }
        order = tuple(names[:MOST_LAUNCHES])
        return replace(works, positions=positions, order=order, paths=self._paths(rows, names))

    def _paths(self, rows: Ints, names: list[str]) -> dict[str, str]:
        """The path of each name, where launches are known and there are ranges or operators."""
        if self.followed is None or not len(rows):
            return {}
        calls = self.followed.calls
        kernels = self.work.kernels
        wanted = kernels.ints("pid")[rows], kernels.ints("correlation_id")[rows]
        keys = calls.ints("pid"), calls.ints("correlation_id")
        tid = matched(keys, calls.ints("tid"), wanted, -1)
        begun = self.followed.work.launch[rows]
        known = (tid >= 0) & (begun != NO_TIME)
        if not known.any():
            return {}
        thread = (wanted[0][known] << 24) | tid[known]
        ranges, parent = self._nested(int(begun[known].min()), int(begun[known].max()))
        enclosing = innermost(ranges, parent, thread, begun[known])
        texts = {row: path_of(ranges, parent, row) for row in np.unique(enclosing).tolist()}
        kept = [name for name, is_known in zip(names, known.tolist(), strict=True) if is_known]
        return most_frequent(kept, [texts[row] for row in enclosing.tolist()])

    def _nested(self, low: int, high: int) -> tuple[Frame, Ints]:
        """The operators of a framework, or else the ranges that are open in a stretch of time."""
        operators = self.report.frame("operators", OPERATOR_COLUMNS)
        if operators.rows:
            return operators, operators.ints("parent")
        start, end = self.ranges.ints("start_ns"), self.ranges.ints("end_ns")
        library = self.ranges.labels("domain").equals(LIBRARY_DOMAINS)
        ranges = self.ranges.take((start <= high) & (end >= low) & ~library)
        return ranges, nest(ranges).parent


def typical_unit(durations: Ints) -> int:
    """The unit of median length; the first of several."""
    order = np.argsort(durations, kind="stable")
    return int(order[(len(order) - 1) // 2]) if len(order) else 0


def ranges_in(around: Around, place: tuple[int, int], start: Ints, end: Ints) -> UnitWorks | None:
    """The ranges of a place's process by the GPU time they span, in the unit that it begins in."""
    projection = around.projection
    if projection is None:
        return None
    ranges = around.ranges
    library = ranges.labels("domain").equals(LIBRARY_DOMAINS)
    rows = np.flatnonzero(projection.found & (ranges.ints("pid") == place[0]) & ~library)
    owner = owners(start, end, projection.start[rows])
    names = _without_counters(folded(ranges.labels("name").take(rows)), owner)
    return unit_works(names, owner, projection.length[rows], len(start))


def _without_counters(names: Labels, owner: Ints) -> Labels:
    """Names that occur once only, in one unit of several, without the numbers that count them."""
    inside = owner >= 0
    often = np.bincount(names.codes[inside], minlength=len(names.values))
    texts = tuple(
        without_numbers(text) if count == 1 else text
        for text, count in zip(names.values, often.tolist(), strict=True)
    )
    several = {text for text in texts if texts.count(text) > 1} if len(texts) < 5_000 else set()
    values = tuple(
        new if new in several or len(texts) >= 5_000 else old
        for new, old in zip(texts, names.values, strict=True)
    )
    return Labels(names.codes, values).merged()
