"""What a program's NVTX ranges name: its steps, and other ranges that repeat and hold the work.

Ranges of one name but for numbers in it are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.iterations.batches import engine_step
from nsightpy.analysis.iterations.levels import Level, level_of_ranges, owner_of
from nsightpy.analysis.iterations.thresholds import ABOUT, MOST, REPEATS
from nsightpy.analysis.iterations.vocabulary import (
    LIBRARY_DOMAINS,
    NO_STEPS,
    Role,
    numbers_folded,
    role_of,
)
from nsightpy.analysis.iterations.work import LaunchedWork
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints

STEPS = (Role.STEP, Role.ENGINE)


@dataclass(frozen=True, slots=True)
class RangeGroup:
    """The ranges of one name, thread and nesting level of a process, by start; times in ns."""

    name: str
    role: Role
    level: int
    thread: int
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.start)

    def holds(self, times: Ints) -> Ints:
        """Which of the ranges each time lies in; -1 for none."""
        return owner_of(self.start, self.end, times)


def range_groups(ranges: Frame) -> list[RangeGroup]:
    """The ranges of one process (RANGE_COLUMNS) that are its own, no library's or operator's."""
    own = ~ranges.labels("domain").equals(LIBRARY_DOMAINS)
    ranges = ranges.take(own & (ranges.ints("tid") == ranges.ints("end_tid")))
    names = folded(ranges.labels("name"))
    plain = names.renamed(lambda name: engine_step(name) or numbers_folded(name))
    keyed = Frame({**ranges, "name": plain, "level": nest(ranges).level})
    groups = group_by(keyed, ("tid", "domain", "level", "name"))
    order = np.lexsort((ranges.ints("start_ns"), groups.codes))
    edges = np.searchsorted(groups.codes[order], np.arange(1, len(groups.keys)))
    spans = (np.split(ranges.ints(column)[order], edges) for column in ("start_ns", "end_ns"))
    return [
        RangeGroup(str(name), role, int(level or 0), int(thread or 0), start, end)
        for (thread, _, level, name), start, end in zip(groups.keys, *spans, strict=False)
        if (role := role_of(str(name))) is not Role.OPERATOR
    ]


def level_that_user_named(ranges: Frame, work: LaunchedWork, text: str) -> Level | None:
    """The instances of ranges that the user named, those of the busiest thread."""
    if not ranges.rows:
        return None
    threads, counts = np.unique(ranges.ints("tid"), return_counts=True)
    ordered = ranges.at(tid=int(threads[np.argmax(counts)])).ordered()
    start, end = ordered.ints("start_ns"), ordered.ints("end_ns")
    outer = np.append(True, end[1:] > np.maximum.accumulate(end)[:-1])
    return level_of_ranges(f"range {text!r}", Role.STEP, start[outer], end[outer], work)


def levels_of_ranges(groups: Sequence[RangeGroup], work: LaunchedWork) -> list[Level]:
    """Ranges that repeat and hold the work, the likeliest steps first.

    What the profiler counts goes before what the program does, outer ranges before inner ones.
    Steps of an inference engine count when they are few: what repeats in them are their layers.
    """
    alike: dict[tuple[object, ...], list[RangeGroup]] = {}
    for group in groups:
        if len(group) >= (1 if group.role is Role.ENGINE else REPEATS):
            kind = group.role if group.role in NO_STEPS else group.role in STEPS
            alike.setdefault((group.level, -len(group), group.thread, kind), []).append(group)
    found = [
        (level, members[0].level)
        for members in alike.values()
        if (level := _taking_turns(members, work))
        and min(level.coverage, level.regular) >= (ABOUT if level.role in STEPS else MOST)
    ]
    found.sort(
        key=lambda each: (
            "ProfilerStep" not in each[0].source,
            len(each[0]) < REPEATS,
            *(each[1], -each[0].coverage),
        )
    )
    return [level for level, _ in found]


def within(groups: Sequence[RangeGroup], role: Role, times: Ints) -> NDArray[np.bool_]:
    """Mask of the times that lie in ranges of a role."""
    inside = np.zeros(len(times), dtype=np.bool_)
    for group in groups:
        if group.role is role:
            inside |= group.holds(times) >= 0
    return inside


def _taking_turns(members: Sequence[RangeGroup], work: LaunchedWork) -> Level | None:
    """From the first to the last of groups that take turns; who does not is left out."""
    first, *rest = sorted(members, key=lambda group: (int(group.start[0]), -int(group.end[0])))
    end, names = first.end, [first.name]
    for other in rest:
        reach = np.maximum(end, other.end)
        if np.all(other.start >= first.start) and np.all(reach[:-1] <= first.start[1:]):
            end = reach
            names.append(other.name)
    if np.any(end[:-1] > first.start[1:]):
        return None
    repeated = "repeated range" if len(end) >= REPEATS else "range"
    source = f"{repeated} {', '.join(map(repr, names))}"
    return level_of_ranges(source, first.role, first.start, end, work)
