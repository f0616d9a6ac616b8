"""The rank that the others wait for: a straggler, not a late start or a single delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Codes, Mask
from nsightpy.analysis.ranks.arrivals import Arrivals, caused_ns
from nsightpy.analysis.ranks.own_work import work_segments_of
from nsightpy.analysis.ranks.stages import peer_rows, point_to_point
from nsightpy.analysis.ranks.thresholds import (
    BEYOND_CHANCE,
    FEW,
    LATE_ONCE,
    LEAST_LATE,
    MATERIAL,
    MATERIAL_IN_PIPELINES,
    MOST_ALIKE,
    MOSTLY_LAST,
    ONCE,
    TOGETHER_NS,
    WAITS_LESS,
    WARM_UP,
)
from nsightpy.frames import Floats, Ints


@dataclass(frozen=True, slots=True)
class Straggler:
    """A unit that keeps the others waiting in synchronising collectives.

    After the warm-up it is last in `last_share` of those with ranks that do the same work. `saved`
    is what the others had waited less had it come with the next to last, by row of the arrivals, in
    ns; warm-up and the worst single time count for no more than what is usual for it.
    """

    unit: int
    last_share: float
    saved: Ints


@dataclass(frozen=True, slots=True)
class LateOnce:
    """A unit that came late a few times only, and how long the others waited then in all (ns).

    `worst`: the row of the arrivals in which they waited longest.
    """

    unit: int
    times: int
    cost_ns: int
    worst: int


def straggler_of(alignment: Alignment, arrivals: Arrivals) -> Straggler | None:
    """The unit that the others wait for, or None where there is none.

    It is last in most of the synchronising collectives of ranks that do the same work, and that by
    its own doing: it works longest between one collective and the next, far beyond chance, whereas
    who was kept waiting is late without. It costs the others a material share of the time, far more
    than it waits itself. Of several it is the one that works longest most often.
    A late start is no lateness: the first part of the capture, warm-up, does not count.
    """
    if len(arrivals.rows) == 0:
        return None
    peers = peer_rows(alignment, arrivals)
    # collectives queued behind another begin together: nobody waited in them
    waited_for = np.maximum.reduceat(arrivals.waits, arrivals.first) >= TOGETHER_NS
    ends = alignment.ends[arrivals.rows]
    steady_ns = int(np.quantile(ends[arrivals.first], WARM_UP))
    keep = np.flatnonzero(peers & waited_for[arrivals.instance] & (ends >= steady_ns))
    if len(keep) == 0:
        return None
    units = len(alignment.ledger.units)
    keep = keep[np.lexsort((alignment.starts[arrivals.rows[keep]], arrivals.unit[keep]))]
    unit = arrivals.unit[keep]
    costs = caused_ns(arrivals)
    caused = _lasting(costs[keep], unit, units)
    segments = work_segments_of(alignment, arrivals, peers, steady_ns)
    chance = 1.0 / arrivals.sizes[arrivals.instance[keep]]
    passing = np.isin(np.arange(units), alignment.ledger.unit[point_to_point(alignment.ledger)])
    material = np.where(passing, MATERIAL_IN_PIPELINES, MATERIAL)
    last = _share(unit, arrivals.last[keep], units)
    longest = _share(segments.unit, segments.longest, units)
    late = (
        (np.bincount(unit, minlength=units) >= LEAST_LATE)
        & (last > MOSTLY_LAST)
        & (longest > MOSTLY_LAST)
        & _beyond_chance(segments.unit, segments.longest, 1.0 / segments.sizes, units)
        & (_beyond_chance(unit, arrivals.last[keep], chance, units) | passing)
        & (caused >= material * _observed(alignment, arrivals.rows[keep]))
        & (_lasting(arrivals.waits[keep], unit, units) < WAITS_LESS * caused)
    )
    candidates = np.flatnonzero(late)
    if len(candidates) == 0:
        return None
    worst = int(candidates[np.argmax(longest[candidates])])
    usual = np.sort(costs[keep[unit == worst]])[-2]
    of_worst = arrivals.synchronising & (arrivals.unit == worst)
    return Straggler(worst, float(last[worst]), np.where(of_worst, np.minimum(costs, usual), 0))


def late_once(
    alignment: Alignment, arrivals: Arrivals, *, pairs: bool = True, inside: Mask | None = None
) -> list[LateOnce]:
    """Units that kept the others waiting long, but only a few times; the most costly first.

    Without `pairs`, transfers between two count for nothing: a receiver waits for data, as it must.
    `inside` masks the rows of the ledger to count.
    """
    if len(arrivals.rows) == 0:
        return []
    caused = caused_ns(arrivals)
    if not pairs:
        passed = point_to_point(alignment.ledger)[arrivals.rows]
        caused = np.where(passed & (arrivals.sizes[arrivals.instance] == 2), 0, caused)
    if inside is not None:
        caused = np.where(inside[arrivals.rows], caused, 0)
    long = caused >= max(LATE_ONCE * _observed(alignment, arrivals.rows), 1)
    units, times = np.unique(arrivals.unit[long], return_counts=True)
    stragglers = []
    for unit, count in zip(units.tolist(), times.tolist(), strict=True):
        if count <= ONCE:
            cost = np.where(long & (arrivals.unit == unit), caused, 0)
            stragglers.append(LateOnce(unit, count, int(cost.sum()), int(np.argmax(cost))))
    return sorted(stragglers, key=lambda late: (-late.cost_ns, late.unit))


def _share(unit: Codes, marked: Mask, units: int) -> Floats:
    """The share of its rows in which each unit is marked; 0 without any."""
    counted = np.bincount(unit, minlength=units)
    share: Floats = np.bincount(unit, marked, minlength=units) / np.maximum(counted, 1)
    return share


def _observed(alignment: Alignment, rows: Ints) -> int:
    """From the first start to the last end of some collectives, in ns."""
    return int(alignment.ends[rows].max() - alignment.starts[rows].min())


def _beyond_chance(unit: Codes, marked: Mask, chance: Floats, units: int) -> Mask:
    """Which units are marked more often than the unluckiest by chance; rows by unit and time.

    Slowness lasts: the same rank is the last several times in a row, and such a run proves less
    than as many separate times. Variance x (1 + r) / (1 - r), r: correlation with the time before,
    beyond that of few times by chance.
    """
    counted = np.maximum(np.bincount(unit, minlength=units), 1)
    beyond = np.bincount(unit, marked - chance, minlength=units)
    excess = marked - _share(unit, marked, units)[unit]
    follows = np.flatnonzero(np.diff(unit) == 0) + 1
    alike = np.bincount(unit[follows], excess[follows] * excess[follows - 1], minlength=units)
    whole = np.bincount(unit, excess**2, minlength=units)
    alike = np.clip(alike / np.maximum(whole, 1e-9) - FEW * counted**-0.5, 0.0, MOST_ALIKE)
    spread = np.sqrt(np.bincount(unit, chance * (1.0 - chance), minlength=units))
    spread = spread * np.sqrt((1.0 + alike) / (1.0 - alike))
    beyond_chance: Mask = beyond > (BEYOND_CHANCE + (2.0 * np.log(units)) ** 0.5) * spread
    return beyond_chance


def _lasting(caused: Ints, unit: Codes, units: int) -> Floats:
    """What each unit cost the others, in ns, without the worst single time."""
    worst = np.zeros(units)
    np.maximum.at(worst, unit, caused)
    lasting: Floats = np.bincount(unit, caused, minlength=units) - worst
    return lasting
