"""The rank that the others wait for: a straggler, told from a late start and from a hiccup."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.ranks.alignment import Alignment
from nsightpy.analysis.ranks.arrivals import Arrivals, caused_ns
from nsightpy.analysis.ranks.clock_pairs import Floats
from nsightpy.analysis.ranks.collectives import Codes, Mask
from nsightpy.frames import Ints

# A straggler is last in most of its collectives, this many deviations beyond what the unluckiest
# of all ranks reaches by chance, and costs the others at least this share of the time observed. Who
# waited for a neighbour for this part of what it costs others is held up itself.
MOSTLY_LAST = 0.7
BEYOND_CHANCE = 1.5
MATERIAL = 0.002
HELD_UP = 0.2
# It waits itself for less than this part of what it costs.
WAITS_LESS = 0.5
LEAST_INSTANCES = 6
# Arrivals within this are one.
TOGETHER_NS = 2_000
# The part of the collectives, from the first on, that may be warm-up.
WARM_UP = 1 / 3
# Who is last now tends to be last next time as well, but not more than this.
FEW, MOST_ALIKE = 1.5, 0.98
# A single late arrival is told of when it costs this share of the time observed.
LATE_ONCE, ONCE = 0.01, 3


@dataclass(frozen=True, slots=True)
class Straggler:
    """A unit that keeps the others waiting in synchronising collectives.

    After the warm-up it is last in `last_share` of them. `saved` is what the others had waited less
    had it come with the next to last, by row of the arrivals, in ns; warm-up and the worst single
    time count for no more than what is usual for it.
    """

    unit: int
    last_share: float
    saved: Ints

    @property
    def saved_ns(self) -> int:
        return int(self.saved.sum())


@dataclass(frozen=True, slots=True)
class LateOnce:
    """A unit that came late a few times only, and how long the others waited then in all (ns)."""

    unit: int
    times: int
    cost_ns: int


def straggler_of(alignment: Alignment, arrivals: Arrivals) -> Straggler | None:
    """The unit that the others wait for, or None where there is none.

    It is last in most of its synchronising collectives, far beyond chance, so that it usually
    waits for nobody there, and it costs the others a material share of the time, far more than it
    waits itself. Of several it is the one that is last most often; but not one that is late because
    a neighbour kept it waiting.
    A late start is no lateness: the first part of the capture, warm-up, does not count.
    """
    if len(arrivals.rows) == 0:
        return None
    counts = _steady(alignment, arrivals) & _waited_for(arrivals)
    keep = np.flatnonzero(arrivals.synchronising & counts[arrivals.instance])
    if len(keep) == 0:
        return None
    units = len(alignment.ledger.units)
    keep = keep[np.lexsort((alignment.starts[arrivals.rows[keep]], arrivals.unit[keep]))]
    unit, last = arrivals.unit[keep], arrivals.last[keep]
    counted = np.bincount(unit, minlength=units)
    share = np.bincount(unit, last, minlength=units) / np.maximum(counted, 1)
    chance = 1.0 / arrivals.sizes[arrivals.instance[keep]]
    costs = caused_ns(arrivals)
    caused = _lasting(costs[keep], unit, units)
    waited = _lasting(arrivals.waits[keep], unit, units)
    late = (
        (counted >= LEAST_INSTANCES)
        & (share > MOSTLY_LAST)
        & _beyond_chance(unit, last, chance, units)
        & (caused >= MATERIAL * _observed(alignment, arrivals.rows[keep]))
        & (waited < WAITS_LESS * caused)
        & (_kept_waiting(arrivals, units) < HELD_UP * caused)
    )
    candidates = np.flatnonzero(late)
    if len(candidates) == 0:
        return None
    worst = int(candidates[np.argmax(share[candidates])])
    usual = np.sort(costs[keep[unit == worst]])[-2]
    own = arrivals.synchronising & (arrivals.unit == worst)
    return Straggler(worst, float(share[worst]), np.where(own, np.minimum(costs, usual), 0))


def late_once(alignment: Alignment, arrivals: Arrivals) -> list[LateOnce]:
    """Units that kept the others waiting long, but only a few times; the most costly first."""
    if len(arrivals.rows) == 0:
        return []
    caused = caused_ns(arrivals)
    long = caused >= LATE_ONCE * _observed(alignment, arrivals.rows)
    units, times = np.unique(arrivals.unit[long], return_counts=True)
    found = [
        LateOnce(unit, count, int(caused[long & (arrivals.unit == unit)].sum()))
        for unit, count in zip(units.tolist(), times.tolist(), strict=True)
        if count <= ONCE
    ]
    return sorted(found, key=lambda one: (-one.cost_ns, one.unit))


def _observed(alignment: Alignment, rows: Ints) -> int:
    """From the first start to the last end of some collectives, in ns."""
    return int(alignment.ends[rows].max() - alignment.starts[rows].min())


def _beyond_chance(unit: Codes, last: Mask, chance: Floats, units: int) -> Mask:
    """Which units are last more often than the unluckiest by chance; rows by unit and time.

    Lateness lasts: the same rank is last several times in a row, and such a run proves less than
    as many separate arrivals. Variance x (1 + r) / (1 - r), r: correlation with the time before,
    beyond that of few arrivals by chance.
    """
    counted = np.maximum(np.bincount(unit, minlength=units), 1)
    beyond = np.bincount(unit, last - chance, minlength=units)
    own = last - (np.bincount(unit, last, minlength=units) / counted)[unit]
    follows = np.append(False, np.diff(unit) == 0)
    alike = np.bincount(unit[follows], (own * np.roll(own, 1))[follows], minlength=units)
    whole = np.bincount(unit, own**2, minlength=units)
    alike = np.clip(alike / np.maximum(whole, 1e-9) - FEW * counted**-0.5, 0.0, MOST_ALIKE)
    spread = np.sqrt(np.bincount(unit, chance * (1.0 - chance), minlength=units))
    spread = spread * np.sqrt((1.0 + alike) / (1.0 - alike))
    found: Mask = beyond > (BEYOND_CHANCE + (2.0 * np.log(units)) ** 0.5) * spread
    return found


def _steady(alignment: Alignment, arrivals: Arrivals) -> Mask:
    """The instances after the first part of the capture."""
    ends = alignment.ends[arrivals.rows[arrivals.first]]
    found: Mask = ends >= np.quantile(ends, WARM_UP)
    return found


def _waited_for(arrivals: Arrivals) -> Mask:
    """The instances in which somebody waited; collectives queued behind another begin together."""
    found: Mask = np.maximum.reduceat(arrivals.waits, arrivals.first) >= TOGETHER_NS
    return found


def _lasting(caused: Ints, unit: Codes, units: int) -> Floats:
    """What each unit cost the others, in ns, without the worst single time."""
    worst = np.zeros(units)
    np.maximum.at(worst, unit, caused)
    found: Floats = np.bincount(unit, caused, minlength=units) - worst
    return found


def _kept_waiting(arrivals: Arrivals, units: int) -> Floats:
    """How much longer each unit waits for neighbours (point to point) than its peers do, in ns.

    Its peers are those of the group, of all that it meets in, in which it stands out least.
    """
    neighbours = ~arrivals.synchronising
    waited = np.bincount(
        arrivals.unit[neighbours], arrivals.waits[neighbours], minlength=units
    ).astype(np.float64)
    whole = np.bincount(arrivals.instance, waited[arrivals.unit])[arrivals.instance]
    own = waited[arrivals.unit]
    longer = own - (whole - own) / (arrivals.sizes[arrivals.instance] - 1)
    keep = arrivals.synchronising
    found = np.full(units, np.inf)
    np.minimum.at(found, arrivals.unit[keep], longer[keep])
    return found
