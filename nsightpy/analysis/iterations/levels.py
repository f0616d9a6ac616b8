"""The levels on which launches repeat, and which of them is the program's step.

In a solver the finest level counts that holds nearly all of the work; in a neural network, where
layers repeat, too, a level is a step only where something shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.iterations.named import RangeGroup
from nsightpy.analysis.iterations.recurrence import places_of, recurring
from nsightpy.analysis.iterations.thresholds import (
    ABOUT,
    APART,
    BLOCKS,
    DIFFERENT,
    FEW,
    FEWEST_LAUNCHES,
    LAYERS,
    MOST,
    MOST_PARTS,
    MOST_WAITS,
    MOSTLY,
    NEARLY_ALL,
    REPEATS,
    SLIGHT,
    UNLIKE,
)
from nsightpy.analysis.iterations.vocabulary import (
    Role,
    comes_once,
    is_attention,
    is_learning,
    is_optimizer,
    numbers_folded,
)
from nsightpy.analysis.iterations.windows import Level, level_of_units
from nsightpy.analysis.iterations.work import LaunchedWork, Units, same_share, units_of
from nsightpy.frames import Ints

# How strong the evidence is that a unit is a step.
MANY, LIKELY, SURE = 1, 2, 3


def find_levels(
    work: LaunchedWork, groups: Sequence[RangeGroup], first_ns: int | None = None
) -> tuple[Level | None, list[Level]]:
    """The step of a process's work, None where nothing supports one, and all its levels.

    `groups`: its ranges. `first_ns`: when its first operation on a GPU began.
    """
    levels, least = _levels(work, first_ns), MANY
    learning = len(work) > 0 and float(is_learning(work.name).mean()) >= ABOUT
    if not levels and learning:
        # libraries choose products by shape: names but for numbers, by which layers are more alike
        work = replace(work, name=work.name.renamed(numbers_folded))
        levels, least = _levels(work, first_ns), LIKELY
    if learning:
        levels = [_judged(level, work, groups) for level in levels]
        strongest = max((level.evidence for level in levels), default=0)
        possible = [level for level in levels if level.evidence == strongest >= least]
    else:
        levels = [replace(level, why=_unlike(level, work)) for level in levels]
        possible = _fullest([level for level in levels if not level.why], work)
    return _step(possible, levels, work), levels


def _levels(work: LaunchedWork, first_ns: int | None) -> list[Level]:
    """The levels that hold most of the work in units that are alike."""
    marked = [(run, places_of(work.name.codes, run)) for run in recurring(work.name.codes)]
    levels = []
    for run, places in (*marked, ((), _after_waits(work))):
        if len(places) < REPEATS or (not run and len(work) < 2 * len(places)):
            continue
        units = units_of(work, places)
        least = MOST if len(units) >= FEW else MOSTLY
        if units.coverage >= least and units.regular >= MOST:
            levels.append(level_of_units(units, run, work, first_ns))
    return levels


def _after_waits(work: LaunchedWork) -> Ints:
    """Positions of the first work launched after each wait of the host."""
    places = np.unique(np.searchsorted(work.issued, work.waits))
    return np.unique(np.append(0, places[places < len(work)])).astype(np.int64)


def _judged(level: Level, work: LaunchedWork, groups: Sequence[RangeGroup]) -> Level:
    """A level of a neural network with what shows whether its units are steps or layers."""
    units = level.units
    assert units is not None
    usual = work.take(units.usual)
    if _in_each(units, is_optimizer(work.name)):
        return replace(level, evidence=SURE + 1)
    if _repeats(usual) or _in_each(units, comes_once(work.name)):
        return replace(level, evidence=SURE)
    if why := _layers_named(units, work, groups):
        return replace(level, why=f"layers: {why}")
    layered = bool(is_attention(usual.name).any())
    waited = not layered and (_waits_once(units, work) or _apart(units, work))
    large = level.coverage >= MOSTLY and len(np.unique(usual.name.codes)) >= DIFFERENT
    if waited or large:
        return replace(level, evidence=LIKELY)
    if len(units) >= (LAYERS if layered else BLOCKS) and level.coverage >= NEARLY_ALL:
        return replace(level, evidence=MANY)
    return replace(level, why="nothing shows that it is more than a layer")


def _in_each(units: Units, mask: NDArray[np.bool_]) -> bool:
    """Whether nearly all units hold some of the launches, which then are few in each."""
    count = np.diff(np.append(0, np.cumsum(mask))[units.edges])
    return bool((count > 0).mean() >= MOSTLY and count.sum() < MOST * units.sizes.sum())


def _repeats(unit: LaunchedWork) -> bool:
    """Whether a sequence of some launches comes three times or more within a unit, and more.

    A unit of whole turns and nothing else is no step, but some layers that differ a little.
    """
    if len(unit) < REPEATS * REPEATS:
        return False
    for run in recurring(unit.name.codes):
        places = places_of(unit.name.codes, run)
        if len(places) >= REPEATS:
            parts = units_of(unit, places)
            period = int(np.median(parts.sizes))
            alike = parts.coverage >= MOST and parts.regular >= MOSTLY
            if alike and period >= REPEATS and len(unit) % period:
                return True
    return False


def _apart(units: Units, work: LaunchedWork) -> bool:
    """Whether the device is idle before each unit for much longer than anywhere inside of one."""
    gap = np.maximum(work.idle_before, 0)
    inside = np.ones(len(work), dtype=np.bool_)
    inside[units.edges[:-1]] = False
    inside[: units.edges[0]], inside[units.edges[-1] :] = False, False
    between = gap[units.edges[1:-1]]
    if not inside.any() or not len(between):
        return False
    length = float(np.median(np.diff(work.start[units.edges[:-1]])))
    usual = float(np.median(between))
    return usual >= APART * float(np.quantile(gap[inside], 0.95)) and usual >= SLIGHT * length


def _waits(units: Units, work: LaunchedWork) -> Ints:
    """How often the host waits in each unit but the last."""
    return np.diff(np.searchsorted(work.waits, work.issued[units.edges[:-1]]))


def _waits_once(units: Units, work: LaunchedWork) -> bool:
    """Whether the host waits in nearly every unit, and only about once."""
    count = _waits(units, work)
    return len(count) > 0 and bool(
        (count >= 1).mean() >= MOSTLY and float(np.median(count)) <= MOST_WAITS
    )


def _layers_named(units: Units, work: LaunchedWork, groups: Sequence[RangeGroup]) -> str:
    """Which ranges say that the units are parts of one pass; empty if none does."""
    start = work.issued[units.edges[:-1]]
    for group in groups:
        if group.role is Role.BLOCK and abs(len(group) - len(start)) <= ABOUT * len(start) + 1:
            return f"each is one range {group.name!r}"
        if group.role in (Role.PASS, Role.STEP):
            place = np.searchsorted(group.start, start, side="right") - 1
            inside = (place >= 0) & (start <= group.end[np.maximum(place, 0)])
            if inside.mean() >= MOSTLY and len(np.unique(place[inside])) <= MOST * len(start):
                return f"several lie in one range {group.name!r}"
    return ""


def _unlike(level: Level, work: LaunchedWork) -> str:
    """Why units that a name or a wait alone marks cannot be steps; empty where they can."""
    units = level.units
    assert units is not None
    single = level.per_unit == 1
    if level.run and not single:
        return ""
    spent = np.add.reduceat(work.spent[: units.edges[-1]], units.edges[:-1])
    short, long = np.quantile(spent, (0.1, 0.9))
    if long > UNLIKE * short:
        return "their kernels take very different times"
    least = MOSTLY if _waits_once(units, work) else NEARLY_ALL
    rare = len(units) < FEWEST_LAUNCHES or level.coverage < least
    return "single launches" if single and rare else ""


def _fullest(levels: Sequence[Level], work: LaunchedWork) -> list[Level]:
    """The levels of a solver that leave out next to nothing that another holds.

    Those that the host waits for one by one may leave out more: now and then they do more.
    """
    marked = [level for level in levels if level.run] or levels
    held = [_held(level, work) for level in marked]
    least = max(held, default=0.0) - SLIGHT
    return [
        level
        for level, share in zip(marked, held, strict=True)
        if share >= least
        or (share >= least - ABOUT and level.units and _waits_once(level.units, work))
    ]


def _held(level: Level, work: LaunchedWork) -> float:
    """The share of the work in units that are alike and in kernels that a usual one has."""
    units = level.units
    assert units is not None
    known = np.zeros(len(work.name.values), dtype=np.bool_)
    known[work.name.codes[units.usual]] = True
    spent = int(work.spent.sum())
    return level.coverage * (
        int(work.spent[known[work.name.codes]].sum()) / spent if spent else 0.0
    )


def _step(possible: Sequence[Level], levels: Sequence[Level], work: LaunchedWork) -> Level | None:
    """The finest of the levels that may be steps, or the next above where those are its parts."""
    marked = [level for level in possible if level.run] or possible
    if not marked:
        return None
    finest = min(marked, key=lambda level: (level.per_unit, -level.coverage * level.regular))
    parents = [
        level
        for level in levels
        if not level.why
        and level.coverage >= finest.coverage - SLIGHT
        and _holds_parts(level, finest)
        and _identical(level, work) >= NEARLY_ALL > _identical(finest, work)
    ]
    return min(parents, key=lambda level: level.per_unit, default=finest)


def _holds_parts(level: Level, part: Level) -> bool:
    """Whether a unit of one level is a few units of the other."""
    parts = len(part) / len(level)
    return 1 < round(parts) <= MOST_PARTS and abs(parts - round(parts)) <= ABOUT


def _identical(level: Level, work: LaunchedWork) -> float:
    """The share of the units that hold just the same launches and waits."""
    units = level.units
    assert units is not None
    edges, waits = units.edges, _waits(units, work)
    same = same_share(work, edges[:-1], edges[1:], np.arange(len(units)), overlap=1.0)
    return min(same, float((waits == np.median(waits)).mean()))
