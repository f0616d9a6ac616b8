"""Levels that a program's ranges name: its steps, and other ranges that repeat and hold the work.

Ranges of one name but for numbers in it are the same. Layers, operators, epochs and warm-up are
never iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.iterations.batches import engine_step
from nsightpy.analysis.iterations.thresholds import ABOUT, DEEPEST, LISTED, MOST, REPEATS
from nsightpy.analysis.iterations.vocabulary import LIBRARY_DOMAINS, Role, numbers_folded, role_of
from nsightpy.analysis.iterations.windows import Level, level_of_spans, owner_of
from nsightpy.analysis.iterations.work import LaunchedWork
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints

# What ranges are that are never steps, for people.
NEVER_STEPS = {
    Role.BLOCK: "a layer",
    Role.PART: "a part of a layer",
    Role.EPOCH: "an epoch",
    Role.WARM_UP: "warm-up",
}


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


@dataclass(frozen=True)
class NamedLevels:
    """Ranges called steps, others that hold the work, likeliest first; and what is no step."""

    steps: list[Level]
    others: list[Level]
    rejected: list[Level]


def range_groups(ranges: Frame) -> list[RangeGroup]:
    """The ranges of one process (RANGE_COLUMNS) that are its own, no library's."""
    own = ~ranges.labels("domain").equals(LIBRARY_DOMAINS)
    ranges = ranges.take(own & (ranges.ints("tid") == ranges.ints("end_tid")))
    names = folded(ranges.labels("name"))
    plain = names.renamed(lambda name: engine_step(name) or numbers_folded(name))
    keyed = Frame({**ranges, "name": plain, "level": nest(ranges).level})
    groups = group_by(keyed, ("tid", "domain", "level", "name"))
    order = np.lexsort((ranges.ints("start_ns"), groups.codes))
    edges = np.searchsorted(groups.codes[order], np.arange(len(groups.keys) + 1))
    start, end = ranges.ints("start_ns")[order], ranges.ints("end_ns")[order]
    return [
        RangeGroup(
            *(str(name), role_of(str(name)), int(level or 0), int(thread or 0)),
            *(start[low:high], end[low:high]),
        )
        for (thread, _, level, name), low, high in zip(
            groups.keys, edges[:-1], edges[1:], strict=True
        )
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


def named_levels(groups: Sequence[RangeGroup], work: LaunchedWork) -> NamedLevels:
    """What the ranges of a process say of its steps."""
    measured = work.take(~within(groups, Role.WARM_UP, work.issued))
    measured = measured if len(measured) else work
    steps = [group for group in groups if group.role in (Role.STEP, Role.ENGINE)]
    plain = [group for group in groups if group.role in (Role.PLAIN, Role.PASS, Role.PHASE)]
    never = [group for group in groups if group.role in NEVER_STEPS and len(group) >= REPEATS]
    never.sort(key=lambda group: int((group.start - group.end).sum()))
    rejected = [
        replace(level, why=f"named as {NEVER_STEPS[group.role]}")
        for group in never[:LISTED]
        if (level := level_of_spans(_source([group.name]), group.start, group.end, work))
        and level.coverage >= MOST
    ]
    found = _good(steps, measured, ABOUT) or list(_engine_steps(groups, work))
    # what the profiler counts goes before what the program does
    found.sort(key=lambda level: "ProfilerStep" not in level.source)
    return NamedLevels(found, _good(plain, measured, MOST), rejected)


def within(groups: Sequence[RangeGroup], role: Role, times: Ints) -> np.ndarray:
    """Mask of the times that lie in ranges of a role."""
    inside = np.zeros(len(times), dtype=np.bool_)
    for group in groups:
        if group.role is role:
            inside |= owner_of(group.start, group.end, times) >= 0
    return inside


def _engine_steps(groups: Sequence[RangeGroup], work: LaunchedWork) -> Iterator[Level]:
    """An inference engine's steps, too few to repeat, that launched most of the work: what repeats
    in it are their layers."""
    for group in groups:
        if group.role is Role.ENGINE:
            level = level_of_spans(f"range {group.name!r}", group.start, group.end, work)
            if level is not None and level.launches.sum() > MOST * len(work):
                yield level


def _good(groups: Sequence[RangeGroup], work: LaunchedWork, least: float) -> list[Level]:
    """Repeated ranges among some groups, outermost first, best covered first on a level."""
    sets: dict[tuple[int, int, int], list[RangeGroup]] = {}
    for group in groups:
        if len(group) >= REPEATS and group.level < DEEPEST:
            sets.setdefault((group.level, group.thread, len(group)), []).append(group)
    good = []
    for (depth, _, _), members in sorted(sets.items()):
        level = _taking_turns(members, work)
        if level is not None and level.coverage >= least and level.regular >= least:
            steps = any(group.role in (Role.STEP, Role.ENGINE) for group in members)
            if steps or level.per_unit > 1:
                good.append((depth, -level.coverage, -len(level), level))
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
