"""Iterations that the order of the launches shows: cycles of kernels, collectives and waits.

Each cycle is a level: inner loops and layers lie in steps. In a solver the finest level counts
that holds nearly all of the work; in a neural network a level is a step only where something
shows it: layers inside of it, a loss or an optimizer, or a host that waits once in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.iterations.boundaries import (
    after_waits,
    cuts,
    graph_launches,
    widest,
    within_launches,
)
from nsightpy.analysis.iterations.candidates import (
    COLLECTIVES,
    GRAPHS,
    KERNELS,
    WAITS,
    Candidate,
    Other,
    of_units,
)
from nsightpy.analysis.iterations.ranges import ProgramRanges
from nsightpy.analysis.iterations.repetition import (
    LOOKED_AT,
    REPEATS,
    Cycle,
    find_cycles,
    places_of_run,
)
from nsightpy.analysis.iterations.vocabulary import (
    Role,
    is_layer_kernel,
    is_learning,
    is_optimizer_kernel,
    is_product,
    is_step_kernel,
    names_a_layer,
    names_a_pass,
    products_folded,
)
from nsightpy.analysis.iterations.work import LaunchedWork, Units, units_of
from nsightpy.frames import Ints

COVERED = 0.5
REGULAR = 0.6
NEARLY = 0.03
NEARLY_STEPS = 0.4
# Of levels that hold nearly all of the work those count whose units are nearly as much alike.
NEARLY_ALIKE = 0.2
# Fewer units that leave much of the work out may be alike by chance.
FEW = 8
DOMINATES = 0.9
DELIMITED = 0.8
MOST_WAITS = 3
LEARNING = 0.2
NESTED = 0.55
# a transformer's layer has about ten matrix products, its backward pass twice as many, and unfused
# some 25 different kernels
PRODUCTS, DIFFERENT = 32, 50
LARGE_COVERED = 0.8
LAYERS, BLOCKS = 150, 20
APART = 3.0
IDLE_SHARE = 0.03
SOURCES = {
    KERNELS: "repeated kernel sequence",
    COLLECTIVES: "repeated collective sequence",
    WAITS: "work between synchronising calls",
    GRAPHS: "CUDA graph launches",
}


@dataclass(frozen=True)
class Level:
    """One level of repetition in a process's work.

    `step`, `layer`: why its units are steps, or layers of one; empty where nothing says so.
    `rank`: how strong that evidence is; 2 for an optimizer in each unit. `many`: more units than a
    model has layers, which counts where no level has better evidence.
    """

    kind: str
    cycle: Cycle
    units: Units
    step: str = ""
    layer: str = ""
    rank: int = 0
    many: bool = False

    @property
    def good(self) -> bool:
        return (
            len(self.units) >= REPEATS
            and self.units.coverage >= COVERED
            and self.units.regular >= REGULAR
        )


@dataclass(frozen=True)
class _Roles:
    """Which kernels come once a training step, once a pass, in layers; which are matrix products.

    A mask each.
    """

    optimizer: NDArray[np.bool_]
    step: NDArray[np.bool_]
    layer: NDArray[np.bool_]
    product: NDArray[np.bool_]


def from_sequences(
    work: LaunchedWork, ranges: ProgramRanges, first_ns: int | None = None
) -> tuple[Candidate | None, list[Other]]:
    """The iterations that the order of launches shows, and the other levels of repetition.

    `first_ns`: when the process's first operation on a GPU began, copies among them.
    """
    looked_at = _middle(work)
    levels = _levels(looked_at, ranges)
    chosen, why = _choose(levels, looked_at)
    if chosen is None and not levels and is_learning(looked_at.name).any():
        work = replace(work, name=products_folded(work.name))
        looked_at = _middle(work)
        levels = _levels(looked_at, ranges)
        chosen, why = _choose(levels, looked_at)
    others = [
        _other(one, looked_at, why.get(id(one), ""))
        for one in levels
        if chosen is None or one.cycle is not chosen.cycle
    ]
    if chosen is None:
        return None, _without_near_copies(others)
    units = chosen.units
    if len(looked_at) < len(work):
        places = _places(chosen, work)
        if places is None:
            return None, _without_near_copies(others)
        units = units_of(work, places)
    if units.coverage < COVERED or len(units) < REPEATS:
        return None, _without_near_copies(others)
    sampled = len(looked_at) < len(work)
    source = SOURCES[chosen.kind]
    found = of_units(chosen.kind, source, units, work, sampled, first_ns)
    return found, _without_near_copies(others)


def _middle(work: LaunchedWork) -> LaunchedWork:
    """The middle of long work, which is looked at for all of it."""
    if len(work) <= LOOKED_AT:
        return work
    low = (len(work) - LOOKED_AT) // 2
    return work.take(np.arange(low, low + LOOKED_AT))


def _levels(work: LaunchedWork, ranges: ProgramRanges) -> list[Level]:
    """All levels that cover the work, finest first, with what shows whether they are steps."""
    found = [
        Level(KERNELS, cycle, units_of(work, places))
        for cycle in find_cycles(work.name.codes)
        if (places := cuts(cycle, work)) is not None
    ]
    found += _collective_levels(work)
    for kind, between in ((WAITS, after_waits(work)), (GRAPHS, graph_launches(work))):
        period = int(np.median(np.diff(between))) if len(between) > REPEATS else 0
        if period > 1:
            cycle = Cycle(period, len(between), (), False)
            found.append(Level(kind, cycle, units_of(work, between)))
    found = [one for one in found if one.good]
    if not found:
        return []
    names = work.name
    roles = _Roles(
        *(is_optimizer_kernel(names), is_step_kernel(names), is_layer_kernel(names)),
        is_product(names),
    )
    return [_judged(one, roles, work, ranges) for one in found]


def _collective_levels(work: LaunchedWork) -> list[Level]:
    """The cycles of the communication kernels alone."""
    rows = np.flatnonzero(is_communication(work.name))
    if len(rows) < REPEATS or len(rows) == len(work):
        return []
    some = work.take(rows)
    found = []
    for cycle in find_cycles(some.name.codes):
        runs = [rows[places_of_run(some.name.codes, run)] for run in cycle.marks]
        places = widest([marks for marks in runs if len(marks) >= REPEATS], work)
        if places is not None:
            size = int(np.median(np.diff(places)))
            found.append(
                Level(COLLECTIVES, replace(cycle, period=size, marks=()), units_of(work, places))
            )
    return found


def _places(level: Level, work: LaunchedWork) -> Ints | None:
    """Where the units of a level begin in all the work, of which it was found in some."""
    if level.kind == WAITS:
        return after_waits(work)
    return graph_launches(work) if level.kind == GRAPHS else cuts(level.cycle, work)


def _judged(one: Level, roles: _Roles, work: LaunchedWork, ranges: ProgramRanges) -> Level:
    """A level with what shows whether its units are steps or layers."""
    low, high = one.units.edges[one.units.usual], one.units.edges[one.units.usual + 1]
    if within_launches(one.units, work):
        return replace(one, layer="several lie in one CUDA graph launch")
    if _in_each(one.units, roles.optimizer):
        return replace(one, step="an optimizer runs in each", rank=2)
    step, sure, many = "", True, False
    # a transformer's layer multiplies matrices beside its attention and normalisation
    layered = bool(roles.layer[low:high].any() and roles.product[low:high].any())
    if _repeats_inside(work, int(low), int(high)):
        step = "a shorter sequence repeats inside of it"
    elif roles.step[low:high].any():
        step = "it holds kernels that come once a step"
    elif one.units.coverage >= LARGE_COVERED and _is_large(
        work.name.codes[low:high], int(roles.product[low:high].sum())
    ):
        step, sure = "it is too large for a layer", False
    elif not layered and _waits_once(one.units, work):
        step, sure = "the host waits once in each", False
    elif not layered and _apart(one.units, work):
        step, sure = "the device is idle between them", False
    elif len(one.units) >= (LAYERS if layered else BLOCKS) and one.units.coverage >= DOMINATES:
        many = True
    layer = "" if step and sure else _layers_named(one, work, ranges)
    return replace(one, step=step, layer=layer, rank=1 if step else 0, many=many)


def _in_each(units: Units, mask: NDArray[np.bool_]) -> bool:
    """Whether nearly all units hold some of the kernels, which then are few in each."""
    before = np.concatenate([[0], np.cumsum(mask)])
    count = np.diff(before[units.edges])
    return bool((count > 0).mean() >= DELIMITED) and bool(count.sum() < 0.5 * units.sizes.sum())


def _repeats_inside(work: LaunchedWork, low: int, high: int) -> bool:
    """Whether a sequence of some kernels comes three times or more within one unit, and more.

    A unit of whole turns and nothing else is no step, but some layers that differ a little.
    """
    if high - low < REPEATS * REPEATS:
        return False
    inside = work.take(np.arange(low, high))
    for cycle in find_cycles(inside.name.codes):
        whole = (high - low) % cycle.period == 0
        if whole or not REPEATS <= cycle.period <= NESTED * (high - low):
            continue
        places = cuts(cycle, inside)
        if places is not None and len(places) >= REPEATS:
            units = units_of(inside, places)
            if units.work_share >= COVERED and units.regular >= REGULAR:
                return True
    return False


def _is_large(codes: NDArray[np.int32], products: int) -> bool:
    """Whether a unit holds more different kernels, or more matrix products, than a layer does."""
    return products >= PRODUCTS or len(np.unique(codes)) >= DIFFERENT


def _apart(units: Units, work: LaunchedWork) -> bool:
    """Whether the device is idle before each unit for much longer than anywhere inside of one."""
    busy_until = np.maximum.accumulate(work.end)
    gap = np.maximum(work.start[1:] - busy_until[:-1], 0)
    first, last = int(units.edges[0]), int(units.edges[-1])
    between = units.edges[1:-1] - 1
    inside = np.ones(len(gap), dtype=np.bool_)
    inside[between] = False
    inside[:first], inside[last - 1 :] = False, False
    if not inside.any() or not len(between):
        return False
    length = float(np.median(np.diff(work.start[units.edges[:-1]])))
    usual = float(np.median(gap[between]))
    return usual >= APART * float(np.quantile(gap[inside], 0.95)) and usual >= IDLE_SHARE * length


def _waits_once(units: Units, work: LaunchedWork) -> bool:
    """Whether the host waits in nearly every unit, and only about once."""
    if not len(work.waits):
        return False
    edges = np.append(work.issued[units.edges[:-1]], work.issued[units.edges[-1] - 1])
    count = np.diff(np.searchsorted(work.waits, edges))[:-1]
    return len(count) > 0 and bool(
        (count >= 1).mean() >= DELIMITED and float(np.median(count)) <= MOST_WAITS
    )


def _layers_named(one: Level, work: LaunchedWork, ranges: ProgramRanges) -> str:
    """Which ranges say that the units are parts of one pass; empty if none does."""
    edges = one.units.edges
    start = work.issued[edges[:-1]]
    count = len(start)
    counts = ranges.counts
    for code in ranges.of_roles(Role.LAYER, Role.OPERATOR):
        name = ranges.names[code]
        if names_a_layer(name) and abs(int(counts[code]) - count) <= 0.25 * count + 1:
            return f"each is one range {name!r}"
    for code, name in enumerate(ranges.names):
        if not names_a_pass(name):
            continue
        begin, end = ranges.spans(code)
        place = np.searchsorted(begin, start, side="right") - 1
        inside = (place >= 0) & (start <= end[np.maximum(place, 0)])
        if inside.mean() >= DELIMITED and len(np.unique(place[inside])) <= 0.5 * count:
            return f"several lie in one range {name!r}"
    return ""


def _choose(levels: Sequence[Level], work: LaunchedWork) -> tuple[Level | None, dict[int, str]]:
    """The level whose units are steps, and why the others are not."""
    why = {id(one): f"layers: {one.layer}" for one in levels if one.layer}
    # by launches: libraries' matrix products, which hold most of the work, are in solvers as well
    learning = len(work) > 0 and float(is_learning(work.name).mean()) >= LEARNING
    shown = any(one.step and not one.layer for one in levels)
    open_ones = []
    for one in levels:
        if one.layer:
            continue
        if learning and not one.step and (shown or not one.many):
            why[id(one)] = "nothing shows that it is more than a layer"
        elif one.cycle.period == 1 and not _launches_are_steps(one, work):
            why[id(one)] = "single launches"
        else:
            open_ones.append(one)
    if not open_ones:
        return None, why
    sure = [one for one in open_ones if one.kind != WAITS] or open_ones
    many = [one for one in sure if len(one.units) >= FEW or one.units.coverage >= LARGE_COVERED]
    sure = many or sure
    best = max(one.units.coverage for one in sure)
    slack = NEARLY_STEPS if learning else NEARLY
    near = [one for one in sure if one.units.coverage >= best - slack]
    most = max(one.units.regular for one in near)
    near = [one for one in near if one.units.regular >= most - NEARLY_ALIKE]
    strongest = max(one.rank for one in near)
    near = [one for one in near if strongest < 2 or one.rank == strongest]
    chosen = min(near, key=lambda one: one.cycle.period)
    alike = [one for one in near if one.cycle.period <= 1.1 * chosen.cycle.period]
    kinds = {one.kind for one in alike}
    chosen = max(
        alike, key=lambda one: (one.kind != WAITS, one.kind == KERNELS, one.units.coverage)
    )
    if COLLECTIVES in kinds and chosen.kind == KERNELS:
        # the collectives agree: they are the stronger evidence, the kernels the better edges
        chosen = replace(chosen, kind=COLLECTIVES)
    return chosen, why


def _launches_are_steps(one: Level, work: LaunchedWork) -> bool:
    """Whether single launches are what repeats: they are nearly all, or the host waits for each."""
    if one.units.work_share < DOMINATES:
        return False
    return len(one.units) >= 5 or _waits_once(one.units, work)


def _other(one: Level, work: LaunchedWork, why: str) -> Other:
    starts = work.start[one.units.edges[:-1]]
    period = float(np.median(np.diff(starts))) if len(starts) > 1 else 0.0
    source = f"{SOURCES[one.kind]} of {one.cycle.period}"
    return Other(one.kind, source, len(one.units), period, why, starts)


def _without_near_copies(others: Sequence[Other], most: int = 6) -> list[Other]:
    """The others without those that are the same but for a launch or two."""
    kept: list[Other] = []
    for one in sorted(others, key=lambda one: -one.count * one.period_ns):
        if not any(abs(one.count - kept_one.count) <= 1 for kept_one in kept):
            kept.append(one)
    return kept[:most]
