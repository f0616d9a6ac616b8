"""Which of the levels on which a program repeats is its step, by the evidence for each.

Ranges called steps are; then what holds nearly all of the work, ranges first. Where neural networks
run, whose layers repeat, too, a level is a step only where something shows that it is more. Ranges
of one name but for numbers in it are the same.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.iterations import vocabulary
from nsightpy.analysis.iterations.levels import (
    SEQUENCE,
    WAITS,
    LaunchedWork,
    Level,
    level_of_marks,
    level_of_ranges,
)
from nsightpy.analysis.iterations.recurrence import places_of, recurring
from nsightpy.analysis.iterations.thresholds import (
    DIFFERENT,
    DIFFERENT_ALONE,
    FEW,
    MOST_PARTS,
    REPEATS,
    UNLIKE,
)
from nsightpy.analysis.iterations.vocabulary import NO_STEPS, STEPS, Role, role_of
from nsightpy.analysis.nvtx.nesting import nest
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.analysis.thresholds import ABOUT, CLOSE, MOST, MOSTLY, NEARLY_ALL
from nsightpy.frames import Frame, Ints, distinct
from nsightpy.names import without_numbers

# How strong the evidence is that a unit is a step; one more where the program names it.
NOTHING, LIKELY, SURE, SUREST, NAMED = 0, 1, 2, 3, 5


class RangeGroup(NamedTuple):
    """The ranges of one name, thread and nesting level of a process, by start; times in ns."""

    name: str
    role: Role
    level: int
    thread: int
    start: Ints
    end: Ints


def range_groups(ranges: Frame) -> list[RangeGroup]:
    """The ranges of one process (RANGE_COLUMNS) that are its own, no library's or operator's."""
    own = ~ranges.labels("domain").equals(vocabulary.LIBRARY_DOMAINS)
    ranges = ranges.take(own & (ranges.ints("tid") == ranges.ints("end_tid")))
    names = folded(ranges.labels("name"))
    plain = names.renamed(vocabulary.step_name)
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
    alike: dict[tuple[int, int, int, object], list[RangeGroup]] = {}
    for group in groups:
        if len(group.start) >= (1 if group.role is Role.ENGINE else REPEATS):
            kind = group.role if group.role in NO_STEPS else group.role in STEPS
            alike.setdefault((group.level, -len(group.start), group.thread, kind), []).append(group)
    found: list[tuple[tuple[object, ...], Level]] = []
    for (depth, *_), members in alike.items():
        level = _taking_turns(members, work)
        least = ABOUT if members[0].role in STEPS else MOST
        if level is not None and min(level.coverage, level.regular) >= least:
            counted = "ProfilerStep" in level.source
            order = (not counted, len(level) < REPEATS, depth, -level.coverage, len(found))
            found.append((order, level))
    return [level for _, level in sorted(found, key=lambda each: each[0])]


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


def find_levels(
    work: LaunchedWork, groups: Sequence[RangeGroup] = ()
) -> tuple[Level | None, list[Level]]:
    """The step of a process's work and ranges, None where nothing supports one; all its levels."""
    # the order on one device is the program's, that of all depends on which thread was faster
    devices, codes = distinct(work.device)
    busiest = np.argmax(np.bincount(codes, work.spent))
    alone = work.take(codes == busiest) if len(devices) > 1 else work
    # a neural network, whose layers repeat, too, computes products
    learns, multiplies = (vocabulary.LEARNING.search, vocabulary.PRODUCT.search)
    layered = alone.name.where(learns).mean() >= ABOUT and alone.name.where(multiplies).any()
    found = _repeated(alone)
    if layered and _best(found) < MOSTLY:
        # libraries choose products by shape: names but for numbers may be more alike
        unnumbered = replace(alone, name=alone.name.renamed(without_numbers))
        found = max(found, _repeated(unnumbered), key=_best)
    found = [level for level in found if level.coverage >= MOST] or [
        level for level in found if len(level) >= FEW
    ]
    levels = [_judged(level, bool(layered)) for level in (*levels_of_ranges(groups, work), *found)]
    strongest = max((level.evidence for level in levels), default=NOTHING)
    possible = [level for level in levels if level.evidence == strongest > NOTHING]
    named = [level for level in possible if level.role]
    return named[0] if named else _finest(possible, levels), levels


def _best(levels: Sequence[Level]) -> float:
    """The largest coverage of levels."""
    return max((level.coverage for level in levels), default=0.0)


def _repeated(work: LaunchedWork) -> list[Level]:
    """What holds much of the work in units that are alike: after each run, after each wait."""
    runs = recurring(work.name.codes)
    marked = [level_of_marks(SEQUENCE, work, places_of(work.name.codes, run)) for run in runs]
    # the first work launched after each wait of the host
    waits = np.unique(np.append(0, np.searchsorted(work.issued, work.waits)))
    marked.append(level_of_marks(WAITS, work, waits[waits < len(work)]))
    repeated = (level for level in marked if len(level) >= REPEATS and level.regular >= MOST)
    return [level for level in repeated if level.coverage >= ABOUT]


def _judged(level: Level, layered: bool) -> Level:
    """The level with the evidence that its units are steps, or why they are none."""
    if level.role in STEPS:
        return replace(level, evidence=NAMED)
    if level.role in NO_STEPS:
        return replace(level, why=f"named as {level.role.value}")
    if level.coverage < MOST:
        return replace(level, why="it holds less than half of the work")
    evidence, why = _of_network(level) if layered else _of_solver(level)
    return replace(level, evidence=0 if why else evidence + bool(level.role), why=why)


def _in_each(level: Level, names: re.Pattern[str]) -> bool:
    """Whether kernels of such names run in nearly every unit, and are few of all."""
    found = level.sums(level.work.name.where(names.search))
    return bool((found > 0).mean() >= MOSTLY and found.sum() < MOST * level.launches.sum())


def _of_network(level: Level) -> tuple[int, str]:
    """The evidence that the units of a neural network are no layers."""
    if _in_each(level, vocabulary.OPTIMIZER):
        return SUREST, ""
    full = level.coverage >= MOSTLY
    if full and (_in_each(level, vocabulary.ONCE) or _repeats(level.usual)):
        return SURE, ""
    attends = bool(level.usual.name.where(vocabulary.ATTENTION.search).any())
    different = len(np.unique(level.usual.name.codes))
    large = different >= (DIFFERENT if attends else DIFFERENT_ALONE)
    if (full and large) or (level.waited and not attends):
        return LIKELY, ""
    return NOTHING, "" if level.role else "nothing shows that it is more than a layer"


def _repeats(unit: LaunchedWork) -> bool:
    """Whether a sequence of some launches comes three times or more within a unit, and more.

    A unit of whole turns and nothing else is no step, but some layers that differ a little.
    """
    for run in recurring(unit.name.codes):
        parts = level_of_marks(SEQUENCE, unit, places_of(unit.name.codes, run))
        alike = len(parts) >= REPEATS and parts.coverage >= MOST and parts.regular >= MOSTLY
        if alike and parts.size >= REPEATS and len(unit) % parts.size:
            return True
    return False


def _of_solver(level: Level) -> tuple[int, str]:
    """Why units that a name or a wait alone marks cannot be steps; empty where they can."""
    single = level.size == 1
    short, long = np.quantile(level.spent, (CLOSE, NEARLY_ALL))
    if long > UNLIKE * short and (level.source == WAITS or single):
        return NOTHING, "their kernels take very different times"
    few = level.coverage < MOSTLY or not (level.waited or len(level) >= FEW)
    return (NOTHING, "single launches") if single and few else (LIKELY, "")


def _finest(possible: Sequence[Level], every: Sequence[Level]) -> Level | None:
    """The finest of the levels that leave out next to nothing that others hold.

    Those that the host waits for one by one may leave out more: now and then they do more. The
    next larger level is the step where the finest are its parts: it holds the same each time, as
    its parts do not, which are sweeps, or stages of which one does more.
    """
    possible = [level for level in possible if level.source == SEQUENCE] or list(possible)
    most = max((level.held for level in possible), default=0.0)
    full = [level for level in possible if level.held >= most - CLOSE - ABOUT * level.waited]
    finest = min(
        full, key=lambda level: (level.size, -level.coverage * level.regular), default=None
    )
    if finest is None or finest.identical >= NEARLY_ALL:
        return finest
    parents = [
        level
        for level in every
        if not level.why
        and level.coverage >= finest.coverage - CLOSE
        and 1 < round(parts := len(finest) / len(level)) <= MOST_PARTS
        and abs(parts - round(parts)) <= ABOUT
        and level.identical >= NEARLY_ALL
    ]
    return min(parents, key=lambda level: level.size, default=finest)
