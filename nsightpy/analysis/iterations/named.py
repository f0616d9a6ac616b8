"""Levels that a program's ranges name: its steps, and other ranges that repeat and hold the work.

Ranges of one name but for numbers in it are the same. Layers, operators, epochs and warm-up are
never iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.iterations.batches import engine_step
from nsightpy.analysis.iterations.thresholds import ABOUT, DEEPEST, LISTED, MOST, REPEATS
from nsightpy.analysis.iterations.vocabulary import (
    LIBRARY_DOMAINS,
    NO_STEPS,
    Role,
    numbers_folded,
    role_of,
)
from nsightpy.analysis.iterations.windows import Level, level_of_spans, owner_of
from nsightpy.analysis.iterations.work import LaunchedWork
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints


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


def range_groups(ranges: Frame) -> list[RangeGroup]:
    """The ranges of one process (RANGE_COLUMNS) that are its own, no library's."""
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
        RangeGroup(str(name), role_of(str(name)), int(level or 0), int(thread or 0), start, end)
        for (thread, _, level, name), start, end in zip(groups.keys, *spans, strict=False)
    ]


def named_by_user(ranges: Frame, work: LaunchedWork, text: str) -> Level | None:
    """The instances of ranges that the user named, those of the busiest thread."""
    if not ranges.rows:
        return None
    threads, counts = np.unique(ranges.ints("tid"), return_counts=True)
    ordered = ranges.at(tid=int(threads[np.argmax(counts)])).ordered()
    start, end = ordered.ints("start_ns"), ordered.ints("end_ns")
    outer = np.append(True, end[1:] > np.maximum.accumulate(end)[:-1])
    return level_of_spans(f"range {text!r}", start[outer], end[outer], work)


def named_levels(
    groups: Sequence[RangeGroup], work: LaunchedWork
) -> tuple[list[Level], list[Level], list[Level]]:
    """Ranges called steps, others that hold the work, likeliest first; and what is no step.

    Of an inference engine's steps, too few to repeat, those count that launched most of the work:
    what repeats in them are their layers.
    """
    measured = work.take(~within(groups, Role.WARM_UP, work.issued))
    measured = measured if len(measured) else work
    steps = _good([g for g in groups if g.role in (Role.STEP, Role.ENGINE)], measured, ABOUT)
    if not steps:
        engine = [group for group in groups if group.role is Role.ENGINE]
        alone = (level_of_spans(f"range {g.name!r}", g.start, g.end, work) for g in engine)
        steps = [level for level in alone if level and level.launches.sum() > MOST * len(work)]
    # what the profiler counts goes before what the program does
    steps.sort(key=lambda level: "ProfilerStep" not in level.source)
    others = _good([g for g in groups if g.role in (Role.PLAIN, Role.PASS)], measured, MOST)
    never = [g for g in groups if g.role in NO_STEPS and len(g) >= REPEATS]
    never.sort(key=lambda group: int((group.start - group.end).sum()))
    rejected = [
        replace(level, why=f"named as {group.role.value}")
        for group in never[:LISTED]
        if (level := level_of_spans(_source([group.name]), group.start, group.end, work))
        and level.coverage >= MOST
    ]
    return steps, others, rejected


def within(groups: Sequence[RangeGroup], role: Role, times: Ints) -> np.ndarray:
    """Mask of the times that lie in ranges of a role."""
    inside = np.zeros(len(times), dtype=np.bool_)
    for group in groups:
        if group.role is role:
            inside |= owner_of(group.start, group.end, times) >= 0
    return inside


def _good(groups: Sequence[RangeGroup], work: LaunchedWork, least: float) -> list[Level]:
    """Repeated ranges among some groups, outermost first, best covered first on a level."""
    sets: dict[tuple[int, int, int], list[RangeGroup]] = {}
    for group in groups:
        if len(group) >= REPEATS and group.level < DEEPEST:
            sets.setdefault((group.level, -len(group), group.thread), []).append(group)
    levels = [(key, members, _taking_turns(members, work)) for key, members in sets.items()]
    good = [
        (key[0], -level.coverage, key, level)
        for key, members, level in levels
        if level is not None and min(level.coverage, level.regular) >= least
        if level.per_unit > 1 or members[0].role in (Role.STEP, Role.ENGINE)
    ]
    return [level for *_, level in sorted(good, key=lambda entry: entry[:3])]


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
    return level_of_spans(_source(names), first.start, end, work)


def _source(names: Sequence[str]) -> str:
    return f"repeated range {', '.join(map(repr, names))}"
