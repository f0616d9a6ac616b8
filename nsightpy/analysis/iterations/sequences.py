"""Iterations that the order of the launches shows: cycles of kernels, collectives and waits.

Each cycle is a level. In a solver the finest level counts that holds nearly all of the work; in a
neural network a level is a step only where something shows it (evidence.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.boundaries import after_waits, cuts, graph_launches, widest
from nsightpy.analysis.iterations.candidates import (
    COLLECTIVES,
    GRAPHS,
    KERNELS,
    WAITS,
    Candidate,
    Other,
    of_units,
)
from nsightpy.analysis.iterations.evidence import (
    COVERED,
    DOMINATES,
    HOST_WAITS,
    LARGE_COVERED,
    Level,
    Roles,
    judged,
    waits_once,
)
from nsightpy.analysis.iterations.ranges import ProgramRanges
from nsightpy.analysis.iterations.repetition import (
    LOOKED_AT,
    REPEATS,
    Cycle,
    find_cycles,
    places_of_run,
)
from nsightpy.analysis.iterations.vocabulary import is_learning, products_folded
from nsightpy.analysis.iterations.work import LaunchedWork, same_share, units_of
from nsightpy.frames import Ints

NEARLY = 0.03
NEARLY_STEPS = 0.4
# Of those that the host waits for one by one so much less may be alike: now and then they do more.
NEARLY_AWAITED, MOSTLY = 0.2, 0.8
# Of levels that hold nearly all of the work those count whose units are nearly as much alike.
NEARLY_ALIKE = 0.2
# Fewer units that leave much of the work out may be alike by chance.
FEW = 8
LEARNING = 0.2
MOST_OTHERS = 6
# Launches of one kernel that take this many times as long as others are no steps.
MOST_UNLIKE = 4.0
# Fewer identical units are parts of a larger one, of so many at most.
IDENTICAL, MOST_PARTS, PARTS_APART = 0.6, 4, 0.2
SOURCES = {
    KERNELS: "repeated kernel sequence",
    COLLECTIVES: "repeated collective sequence",
    WAITS: "work between synchronising calls",
    GRAPHS: "CUDA graph launches",
}


@dataclass(frozen=True, slots=True)
class LevelsFound:
    """The levels of repetition in the part of some work that was looked at, finest first."""

    looked_at: LaunchedWork
    levels: list[Level]


def from_sequences(
    work: LaunchedWork, found: LevelsFound, ranges: ProgramRanges, first_ns: int | None = None
) -> tuple[Candidate | None, list[Other]]:
    """The iterations that the order of launches shows, and the other levels of repetition.

    `found`: the levels of the work. `first_ns`: when the process's first operation on a GPU began,
    copies among them.
    """
    looked_at = found.looked_at
    levels = _judged(found, ranges)
    chosen, why = _choose(levels, looked_at)
    if chosen is None and not levels and is_learning(looked_at.name).any():
        work = replace(work, name=products_folded(work.name))
        found = find_levels(work)
        looked_at = found.looked_at
        levels = _judged(found, ranges)
        chosen, why = _choose(levels, looked_at)
    others = _without_near_copies(
        _other(level, looked_at, why[id(level)])
        for level in levels
        if chosen is None or level.cycle is not chosen.cycle
    )
    if chosen is None:
        return None, others
    units = chosen.units
    sampled = len(looked_at) < len(work)
    if sampled:
        places = _places(chosen, work)
        if places is None:
            return None, others
        units = units_of(work, places)
    if units.coverage < COVERED or len(units) < REPEATS:
        return None, others
    source = SOURCES[chosen.kind]
    return of_units(chosen.kind, source, units, work, sampled, first_ns), others


def _middle(work: LaunchedWork) -> LaunchedWork:
    """The middle of long work, which is looked at for all of it."""
    if len(work) <= LOOKED_AT:
        return work
    low = (len(work) - LOOKED_AT) // 2
    return work.take(np.arange(low, low + LOOKED_AT))


def find_levels(work: LaunchedWork) -> LevelsFound:
    """All levels that cover the work, of which only the middle is looked at where it is long."""
    work = _middle(work)
    levels = [
        Level(KERNELS, cycle, units_of(work, places))
        for cycle in find_cycles(work.name.codes)
        if (places := cuts(cycle, work)) is not None
    ]
    levels += _collective_levels(work)
    for kind, between in ((WAITS, after_waits(work)), (GRAPHS, graph_launches(work))):
        period = int(np.median(np.diff(between))) if len(between) >= REPEATS else 0
        if period > 1:
            cycle = Cycle(period, len(between), (), False)
            levels.append(Level(kind, cycle, units_of(work, between)))
    return LevelsFound(work, [level for level in levels if level.good])


def _judged(found: LevelsFound, ranges: ProgramRanges) -> list[Level]:
    """The levels with what shows whether they are steps."""
    if not found.levels:
        return []
    roles = Roles.of(found.looked_at)
    return [judged(level, roles, found.looked_at, ranges) for level in found.levels]


def _collective_levels(work: LaunchedWork) -> list[Level]:
    """The cycles of the communication kernels alone."""
    rows = np.flatnonzero(is_communication(work.name))
    if len(rows) < REPEATS or len(rows) == len(work):
        return []
    some = work.take(rows)
    levels = []
    for cycle in find_cycles(some.name.codes):
        runs = [rows[places_of_run(some.name.codes, run)] for run in cycle.marks]
        places = widest([marks for marks in runs if len(marks) >= REPEATS], work)
        if places is not None:
            size = int(np.median(np.diff(places)))
            levels.append(
                Level(COLLECTIVES, replace(cycle, period=size, marks=()), units_of(work, places))
            )
    return levels


def _places(level: Level, work: LaunchedWork) -> Ints | None:
    """Where the units of a level begin in all the work, of which it was found in some."""
    if level.kind == WAITS:
        return after_waits(work)
    return graph_launches(work) if level.kind == GRAPHS else cuts(level.cycle, work)


def _choose(levels: Sequence[Level], work: LaunchedWork) -> tuple[Level | None, dict[int, str]]:
    """The level whose units are steps, and why the others are not."""
    # by launches: libraries' matrix products, which hold most of the work, are in solvers as well
    learning = len(work) > 0 and float(is_learning(work.name).mean()) >= LEARNING
    shown = any(level.step and not level.layer for level in levels)
    reasons = {id(level): _no_step(level, work, learning, shown) for level in levels}
    possible = [level for level in levels if not reasons[id(level)]]
    if not possible:
        return None, reasons
    near = _most_likely(possible, NEARLY_STEPS if learning else NEARLY)
    finest = min(near, key=lambda level: level.cycle.period)
    return _best_of_period(_of_whole_turns(finest, possible, work), near), reasons


def _no_step(level: Level, work: LaunchedWork, learning: bool, shown: bool) -> str:
    """Why the units of a level cannot be steps; empty where they can."""
    if level.layer:
        return f"layers: {level.layer}"
    if learning and not level.step and (shown or not level.many):
        return "nothing shows that it is more than a layer"
    edges = level.units.edges
    spent = np.add.reduceat(work.lengths[: edges[-1]], edges[:-1])
    if level.kind == WAITS and _most_unlike(spent):
        return "their kernels take very different times"
    if level.cycle.period == 1 and not _launches_are_steps(level, work):
        return "single launches"
    return ""


def _most_likely(levels: Sequence[Level], slack: float) -> list[Level]:
    """The levels that hold nearly the most work, by the strongest evidence among them."""
    sure = [level for level in levels if level.kind != WAITS] or levels
    covering = [
        level for level in sure if len(level.units) >= FEW or level.units.coverage >= LARGE_COVERED
    ]
    covering = covering or list(sure)
    best = max(level.units.coverage for level in covering)
    near = [level for level in covering if level.units.coverage >= best - _slack(level, slack)]
    most = max(level.units.regular for level in near)
    near = [level for level in near if level.units.regular >= most - NEARLY_ALIKE]
    strongest = max(level.rank for level in near)
    return [level for level in near if strongest < 2 or level.rank == strongest]


def _slack(level: Level, slack: float) -> float:
    """By how much less than the best a level may cover."""
    awaited = level.step == HOST_WAITS and level.units.regular >= MOSTLY
    return max(slack, NEARLY_AWAITED) if awaited else slack


def _best_of_period(chosen: Level, near: Sequence[Level]) -> Level:
    """The level with the best edges among those whose period is the chosen one's."""
    low, high = 0.9 * chosen.cycle.period, 1.1 * chosen.cycle.period
    alike = [level for level in (*near, chosen) if low <= level.cycle.period <= high]
    best = max(
        alike,
        key=lambda level: (
            level.kind != WAITS,
            level.kind == KERNELS,
            level.units.coverage * level.units.regular,
        ),
    )
    if best.kind == KERNELS and any(level.kind == COLLECTIVES for level in alike):
        # the collectives agree: they are the stronger evidence, the kernels the better edges
        return replace(best, kind=COLLECTIVES)
    return best


def _of_whole_turns(finest: Level, levels: Sequence[Level], work: LaunchedWork) -> Level:
    """The finest level, or the next above it where its units are a few parts of those.

    A step of a solver has two to four parts that hold nearly the same kernels; or just the same, as
    the stages of a Runge-Kutta method, and something that comes once in a step: another kernel, or
    a wait of the host.
    """
    if finest.kind != KERNELS:
        return finest
    alike = _identical(finest, work) >= IDENTICAL
    if alike and waits_once(finest.units, work):
        return finest
    parents = [
        level
        for level in levels
        if level.units.coverage >= finest.units.coverage - NEARLY and _holds_whole(level, finest)
        if _identical(level, work) >= DOMINATES
        if not alike or _holds_more(level, finest) or waits_once(level.units, work)
    ]
    return min(parents, key=lambda level: level.cycle.period, default=finest)


def _holds_more(level: Level, part: Level) -> bool:
    """Whether a unit of one level is more than whole units of the other."""
    return level.cycle.period % part.cycle.period > 0


def _holds_whole(level: Level, part: Level) -> bool:
    """Whether a unit of one level is a few units of the other."""
    parts = len(part.units) / len(level.units)
    return 1 < round(parts) <= MOST_PARTS and abs(parts - round(parts)) <= PARTS_APART


def _identical(level: Level, work: LaunchedWork) -> float:
    """The share of the units that hold just the same kernels."""
    edges = level.units.edges
    return same_share(work, edges[:-1], edges[1:], np.arange(len(level.units)), overlap=1.0)


def _launches_are_steps(level: Level, work: LaunchedWork) -> bool:
    """Whether single launches are what repeats: they are nearly all, and about as long.

    They are many, or the host waits for each.
    """
    awaited = level.step == HOST_WAITS
    if level.units.work_share < (MOSTLY if awaited else DOMINATES):
        return False
    if _most_unlike(work.lengths[level.units.edges[:-1]]):
        return False
    return len(level.units) >= 5 or waits_once(level.units, work)


def _most_unlike(lengths: Ints) -> bool:
    """Whether the longest take far longer than the shortest, a tenth of each apart."""
    short, long = np.quantile(lengths, (0.1, 0.9))
    return bool(long > MOST_UNLIKE * short)


def _other(level: Level, work: LaunchedWork, why: str) -> Other:
    starts = work.start[level.units.edges[:-1]]
    period = float(np.median(np.diff(starts))) if len(starts) > 1 else 0.0
    source = f"{SOURCES[level.kind]} of {level.cycle.period}"
    return Other(level.kind, source, len(level.units), period, why, starts)


def _without_near_copies(others: Iterable[Other]) -> list[Other]:
    """The others without those that are the same but for a launch or two."""
    kept: list[Other] = []
    for other in sorted(others, key=lambda other: -other.count * other.period_ns):
        if not any(abs(other.count - near.count) <= 1 for near in kept):
            kept.append(other)
    return kept[:MOST_OTHERS]
