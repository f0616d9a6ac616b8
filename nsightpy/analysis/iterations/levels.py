"""The levels on which launches repeat, and which of them is the program's step.

In a solver the finest level counts that holds nearly all of the work; in a neural network, where
layers repeat, too, a level is a step only where something shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.iterations import vocabulary
from nsightpy.analysis.iterations.named import RangeGroup
from nsightpy.analysis.iterations.recurrence import places_of, recurring
from nsightpy.analysis.iterations.thresholds import (
    ABOUT,
    BLOCKS,
    CLOSE,
    DIFFERENT,
    FEW,
    FEWEST_LAUNCHES,
    LAYERS,
    MOST,
    MOST_PARTS,
    MOSTLY,
    NEARLY_ALL,
    REPEATS,
    SLIGHT,
    UNLIKE,
)
from nsightpy.analysis.iterations.vocabulary import Role
from nsightpy.analysis.iterations.windows import Level, level_of_units
from nsightpy.analysis.iterations.work import LaunchedWork, Units, units_of

# How strong the evidence is that a unit is a step.
NOTHING, MANY, LIKELY, SURE, SUREST = range(5)


def find_levels(
    work: LaunchedWork, groups: Sequence[RangeGroup], first_ns: int | None = None
) -> tuple[Level | None, list[Level]]:
    """The step of a process's work, None where nothing supports one, and all its levels.

    `groups`: its ranges. `first_ns`: when its first operation on a GPU began.
    """
    found, least = _repeated(work), MANY
    learning = len(work) > 0 and float(work.named(vocabulary.LEARNING).mean()) >= ABOUT
    if not found and learning:
        # libraries choose products by shape: names but for numbers, by which layers are more alike
        work = replace(work, name=work.name.renamed(vocabulary.numbers_folded))
        found, least = _repeated(work), LIKELY
    judged = [_evidence(units, groups) if learning else _of_solver(units) for units in found]
    strongest = max((evidence for evidence, _ in judged), default=NOTHING)
    possible = [
        units
        for units, (evidence, _) in zip(found, judged, strict=True)
        if evidence == strongest >= least
    ]
    possible = [units for units in possible if units.run] or possible
    others = [units for units, (_, why) in zip(found, judged, strict=True) if not why]
    step = _step(_fullest(possible, learning=learning), others)
    levels = [
        level_of_units(units, first_ns, why) for units, (_, why) in zip(found, judged, strict=True)
    ]
    return next((level for level in levels if level.units is step), None), levels


def _repeated(work: LaunchedWork) -> list[Units]:
    """What holds most of the work in units that are alike: after each run, after each wait."""
    runs = recurring(work.name.codes)
    marked = [units_of(work, places_of(work.name.codes, run), run) for run in runs]
    waits = np.unique(np.searchsorted(work.issued, work.waits))
    # the first work launched after each wait of the host
    waits = np.unique(np.append(0, waits[waits < len(work)])).astype(np.int64)
    marked += [units_of(work, waits)] if 2 * len(waits) <= len(work) else []
    return [
        units
        for units in marked
        if len(units) >= REPEATS
        and units.coverage >= (MOST if len(units) >= FEW else MOSTLY)
        and units.regular >= MOST
    ]


def _evidence(units: Units, groups: Sequence[RangeGroup]) -> tuple[int, str]:
    """How strongly a neural network's units are shown to be steps, and why they are none."""
    usual = units.work.take(units.usual)
    if _in_each(units, units.work.named(vocabulary.OPTIMIZER)):
        return SUREST, ""
    if _repeats(usual) or _in_each(units, units.work.named(vocabulary.ONCE)):
        return SURE, ""
    if why := _layers_named(units, groups):
        return NOTHING, f"layers: {why}"
    layered = bool(usual.named(vocabulary.ATTENTION).any())
    large = units.coverage >= MOSTLY and len(np.unique(usual.name.codes)) >= DIFFERENT
    if large or (units.waited_once and not layered):
        return LIKELY, ""
    if len(units) >= (LAYERS if layered else BLOCKS) and units.coverage >= NEARLY_ALL:
        return MANY, ""
    return NOTHING, "nothing shows that it is more than a layer"


def _in_each(units: Units, mask: NDArray[np.bool_]) -> bool:
    """Whether nearly all units hold some of the launches, which then are few in each."""
    count = np.diff(np.append(0, np.cumsum(mask))[units.edges])
    return bool((count > 0).mean() >= MOSTLY and count.sum() < MOST * units.sizes.sum())


def _repeats(unit: LaunchedWork) -> bool:
    """Whether a sequence of some launches comes three times or more within a unit, and more.

    A unit of whole turns and nothing else is no step, but some layers that differ a little.
    """
    for run in recurring(unit.name.codes):
        parts = units_of(unit, places_of(unit.name.codes, run))
        alike = len(parts) >= REPEATS and parts.coverage >= MOST and parts.regular >= MOSTLY
        if alike and parts.size >= REPEATS and len(unit) % parts.size:
            return True
    return False


def _layers_named(units: Units, groups: Sequence[RangeGroup]) -> str:
    """Which ranges say that the units are parts of one pass; empty if none does."""
    start = units.work.issued[units.edges[:-1]]
    for group in groups:
        if group.role is Role.BLOCK and abs(len(group) - len(start)) <= ABOUT * len(start) + 1:
            return f"each is one range {group.name!r}"
        if group.role in (Role.PASS, Role.STEP):
            place = np.searchsorted(group.start, start, side="right") - 1
            inside = (place >= 0) & (start <= group.end[np.maximum(place, 0)])
            if inside.mean() >= MOSTLY and len(np.unique(place[inside])) <= MOST * len(start):
                return f"several lie in one range {group.name!r}"
    return ""


def _of_solver(units: Units) -> tuple[int, str]:
    """Why units that a name or a wait alone marks cannot be steps; empty where they can."""
    single = units.size == 1
    if units.run and not single:
        return MANY, ""
    short, long = np.quantile(units.spent, (CLOSE, NEARLY_ALL))
    if long > UNLIKE * short:
        return NOTHING, "their kernels take very different times"
    least = MOSTLY if units.waited_once else NEARLY_ALL
    rare = len(units) < FEWEST_LAUNCHES or units.coverage < least
    return (NOTHING, "single launches") if single and rare else (MANY, "")


def _fullest(possible: Sequence[Units], *, learning: bool) -> list[Units]:
    """The units that leave out next to nothing that others hold; steps of a network a fifth.

    Those that the host waits for one by one may leave out more: now and then they do more.
    """
    held = [units.coverage if learning else _held(units) for units in possible]
    least = max(held, default=0.0) - (ABOUT if learning else SLIGHT)
    return [
        units
        for units, share in zip(possible, held, strict=True)
        if share >= least or (share >= least - ABOUT and units.waited_once)
    ]


def _held(units: Units) -> float:
    """The share of the work in units that are alike and in kernels that a usual one has."""
    known = np.isin(units.work.name.codes, units.work.name.codes[units.usual])
    return units.coverage * float(units.work.spent[known].sum() / max(units.work.spent.sum(), 1))


def _step(possible: Sequence[Units], every: Sequence[Units]) -> Units | None:
    """The finest of the units that may be steps, or the next larger where they are its parts.

    Those hold the same each, as their parts do not: sweeps, or stages of which one does more.
    """
    order = sorted(possible, key=lambda units: (units.size, -units.coverage * units.regular))
    if not order or order[0].identical >= NEARLY_ALL:
        return order[0] if order else None
    parents = [
        units
        for units in every
        if units.coverage >= order[0].coverage - SLIGHT
        and 1 < round(parts := len(order[0]) / len(units)) <= MOST_PARTS
        and abs(parts - round(parts)) <= ABOUT
        and units.identical >= NEARLY_ALL
    ]
    return min(parents, key=lambda units: units.size, default=order[0])
