"""The rank that the others wait for: a straggler, not a late start or a single delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Codes, Mask
from nsightpy.analysis.collectives.thresholds import (
    LEAST_SHARE,
    LEAST_SHARED,
    TIGHT_NS,
)
from nsightpy.analysis.ranks.arrivals import Arrivals, caused_ns
from nsightpy.analysis.ranks.own_work import work_segments_of
from nsightpy.analysis.ranks.stages import peer_rows, point_to_point
from nsightpy.analysis.ranks.thresholds import BEYOND_CHANCE, MATERIAL, MOSTLY_LAST
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
    waited_for = np.maximum.reduceat(arrivals.waits, arrivals.first) >= TIGHT_NS
    ends = alignment.ends[arrivals.rows]
    steady_ns = int(np.quantile(ends[arrivals.first], 1 / 3))
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
    last = _share(unit, arrivals.last[keep], units)
    longest = _share(segments.unit, segments.longest, units)
    late = (
        (np.bincount(unit, minlength=units) >= LEAST_SHARED)
        & (last > MOSTLY_LAST)
        & (longest > MOSTLY_LAST)
        & _beyond_chance(segments.unit, segments.longest, 1.0 / segments.sizes, units)
        & (_beyond_chance(unit, arrivals.last[keep], chance, units) | passing)
        & (caused >= MATERIAL * _observed(alignment, arrivals.rows[keep]))
        & (_lasting(arrivals.waits[keep], unit, units) < caused)
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
    long = caused >= max(MATERIAL * _observed(alignment, arrivals.rows), 1)
    units, times = np.unique(arrivals.unit[long], return_counts=True)
    stragglers = []
    for unit, count in zip(units.tolist(), times.tolist(), strict=True):
        if count < LEAST_SHARED:
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

    Slowness lasts, and a run of the same rank proves less than as many separate times: so it must
    be marked in most of each third of its rows as well.
    """
    beyond = np.bincount(unit, marked - chance, minlength=units)
    spread = np.sqrt(np.bincount(unit, chance * (1.0 - chance), minlength=units))
    counted = np.bincount(unit, minlength=units)
    place = np.arange(len(unit)) - (np.cumsum(counted) - counted)[unit]
    third = (3 * unit + 3 * place // counted[unit]).astype(np.int32)
    thirds = _share(third, marked, 3 * units).reshape(-1, 3)
    least = (BEYOND_CHANCE + (2.0 * np.log(units)) ** 0.5) * spread
    beyond_chance: Mask = (beyond > least) & (thirds > LEAST_SHARE).all(axis=1)
    return beyond_chance


def _lasting(caused: Ints, unit: Codes, units: int) -> Floats:
    """What each unit cost the others, in ns, without the worst single time."""
    worst = np.zeros(units)
    np.maximum.at(worst, unit, caused)
    lasting: Floats = np.bincount(unit, caused, minlength=units) - worst
    return lasting
