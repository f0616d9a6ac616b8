"""What shows that the units of a level of repetition are steps, or layers of one.

Inner loops and layers lie in steps: a step has layers inside of it, a loss or an optimizer, or a
host that waits once in each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.iterations.boundaries import cuts, within_launches
from nsightpy.analysis.iterations.ranges import ProgramRanges
from nsightpy.analysis.iterations.repetition import REPEATS, Cycle, find_cycles
from nsightpy.analysis.iterations.vocabulary import (
    Role,
    is_layer_kernel,
    is_optimizer_kernel,
    is_product,
    is_step_kernel,
    names_a_layer,
    names_a_pass,
)
from nsightpy.analysis.iterations.work import LaunchedWork, Units, units_of

COVERED = 0.5
REGULAR = 0.6
DOMINATES = 0.9
DELIMITED = 0.8
MOST_WAITS = 3
NESTED = 0.55
# a transformer's layer has about ten matrix products, its backward pass twice as many, and unfused
# some 25 different kernels
PRODUCTS, DIFFERENT = 32, 50
LARGE_COVERED = 0.8
LAYERS, BLOCKS = 150, 20
APART = 3.0
IDLE_SHARE = 0.03
HOST_WAITS = "the host waits once in each"


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
class Roles:
    """Which kernels come once a training step, once a pass, in layers; which are matrix products.

    A mask each.
    """

    optimizer: NDArray[np.bool_]
    step: NDArray[np.bool_]
    layer: NDArray[np.bool_]
    product: NDArray[np.bool_]

    @classmethod
    def of(cls, work: LaunchedWork) -> Roles:
        return cls(
            *(is_optimizer_kernel(work.name), is_step_kernel(work.name)),
            *(is_layer_kernel(work.name), is_product(work.name)),
        )


def judged(level: Level, roles: Roles, work: LaunchedWork, ranges: ProgramRanges) -> Level:
    """A level with what shows whether its units are steps or layers."""
    low, high = level.units.edges[level.units.usual], level.units.edges[level.units.usual + 1]
    if within_launches(level.units.edges[1:-1], work):
        return replace(level, layer="several lie in one CUDA graph launch")
    if _in_each(level.units, roles.optimizer):
        return replace(level, step="an optimizer runs in each", rank=2)
    step, sure, many = "", True, False
    # a transformer's layer multiplies matrices beside its attention and normalisation
    layered = bool(roles.layer[low:high].any() and roles.product[low:high].any())
    if _repeats_inside(work, int(low), int(high)):
        step = "a shorter sequence repeats inside of it"
    elif _in_each(level.units, roles.step):
        step = "it holds kernels that come once a step"
    elif level.units.coverage >= LARGE_COVERED and _is_large(
        work.name.codes[low:high], int(roles.product[low:high].sum())
    ):
        step, sure = "it is too large for a layer", False
    elif not layered and waits_once(level.units, work):
        step, sure = HOST_WAITS, False
    elif not layered and _apart(level.units, work):
        step, sure = "the device is idle between them", False
    elif len(level.units) >= (LAYERS if layered else BLOCKS) and level.units.coverage >= DOMINATES:
        many = True
    layer = "" if step and sure else _layers_named(level, work, ranges)
    return replace(level, step=step, layer=layer, rank=1 if step else 0, many=many)


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
    gap = np.maximum(work.idle_before[1:], 0)
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


def waits_once(units: Units, work: LaunchedWork) -> bool:
    """Whether the host waits in nearly every unit, and only about once."""
    if not len(work.waits):
        return False
    edges = np.append(work.issued[units.edges[:-1]], work.issued[units.edges[-1] - 1])
    count = np.diff(np.searchsorted(work.waits, edges))[:-1]
    return len(count) > 0 and bool(
        (count >= 1).mean() >= DELIMITED and float(np.median(count)) <= MOST_WAITS
    )


def _layers_named(level: Level, work: LaunchedWork, ranges: ProgramRanges) -> str:
    """Which ranges say that the units are parts of one pass; empty if none does."""
    edges = level.units.edges
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
