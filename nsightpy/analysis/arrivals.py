"""Who waits for whom in collectives: arrivals, waits, and the rank that the others wait for.

wait = latest start - own start; where clocks are not good enough to compare starts, own duration -
the shortest one, which needs no clock, because a synchronising collective ends for all together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.alignment import COLLECTIVES, Alignment
from nsightpy.analysis.clock_pairs import Floats
from nsightpy.analysis.collectives import Codes, Mask
from nsightpy.frames import Ints

# A straggler is last in most of its collectives, far beyond chance, waits less than the others,
# and without it the others would save at least this share of the time they were observed.
MOSTLY_LAST = 0.5
BEYOND_CHANCE = 4.0
MATERIAL = 0.005
LEAST_INSTANCES = 8


@dataclass(frozen=True)
class Arrivals:
    """The matched rows of a ledger, by instance (0, 1, ... `first` is each instance's first row).

    `rows` are places in the ledger; waits, durations in ns; `last` marks who arrived last.
    """

    rows: Ints
    instance: Ints
    first: Ints
    unit: Codes
    waits: Ints
    durations: Ints
    last: Mask
    synchronising: Mask

    @property
    def sizes(self) -> Ints:
        """How many took part in each instance."""
        return np.diff(np.append(self.first, len(self.rows)))

    def shortest(self) -> Ints:
        """The shortest duration in each instance: what the transfer itself took at most."""
        if len(self.rows) == 0:
            return self.durations
        found: Ints = np.minimum.reduceat(self.durations, self.first)
        return found


def arrivals_of(alignment: Alignment) -> Arrivals:
    """Everybody's arrivals in all instances that at least two units share."""
    ledger, number = alignment.ledger, alignment.instances.number
    rows = np.flatnonzero(alignment.instances.matched)
    rows = rows[np.lexsort((ledger.unit[rows], number[rows]))]
    _, first, instance = np.unique(number[rows], return_index=True, return_inverse=True)
    starts = alignment.starts[rows]
    durations = alignment.ends[rows] - starts
    synchronising = ledger.synchronising[rows]
    if len(rows) == 0:
        waits = durations
    else:
        by_start = np.maximum.reduceat(starts, first)[instance] - starts
        by_length = durations - np.minimum.reduceat(durations, first)[instance]
        comparable = _comparable(alignment, rows, first)[instance]
        waits = np.where(comparable | ~synchronising, by_start, by_length)
    return Arrivals(
        rows,
        instance,
        first,
        ledger.unit[rows],
        waits,
        durations,
        _first_zero(waits, instance),
        synchronising,
    )


def _comparable(alignment: Alignment, rows: Ints, first: Ints) -> Mask:
    """The instances in which all clocks are good enough to compare starts."""
    frames: dict[str, int] = {}
    codes = [
        frames.setdefault(frame, len(frames))
        for frame in (
            COLLECTIVES if fit.method == COLLECTIVES else host
            for fit, host in zip(alignment.fits, alignment.hosts, strict=True)
        )
    ]
    frame = np.asarray(codes, dtype=np.int64)[alignment.ledger.clock[rows]]
    found: Mask = np.minimum.reduceat(frame, first) == np.maximum.reduceat(frame, first)
    return found


def _first_zero(waits: Ints, instance: Ints) -> Mask:
    """One row of every instance: the first that waited for nobody."""
    found = np.zeros(len(waits), dtype=np.bool_)
    zero = np.flatnonzero(waits == 0)
    _, places = np.unique(instance[zero], return_index=True)
    found[zero[places]] = True
    return found


@dataclass(frozen=True)
class UnitWaits:
    """How each unit fares, by place in the ledger's units; times in ns.

    `instances`, `wait_ns` and `last` count all matched collectives; `caused_ns` is what the
    others would have saved had the unit arrived with the next to last.
    """

    instances: Ints
    wait_ns: Ints
    last: Ints
    caused_ns: Ints

    def last_share(self, unit: int) -> float | None:
        """The share of its collectives in which a unit arrived last; None without any."""
        return int(self.last[unit]) / int(self.instances[unit]) if self.instances[unit] else None


def unit_waits(arrivals: Arrivals, units: int) -> UnitWaits:
    """The sums over all instances."""

    def summed(values: Ints | Mask) -> Ints:
        weights = values.astype(np.float64)
        return np.rint(np.bincount(arrivals.unit, weights, minlength=units)).astype(np.int64)

    return UnitWaits(
        np.bincount(arrivals.unit, minlength=units).astype(np.int64),
        summed(arrivals.waits),
        summed(arrivals.last),
        summed(_caused(arrivals)),
    )


def _caused(arrivals: Arrivals) -> Ints:
    """For who arrived last: how long after the one before; 0 for the others."""
    others = np.where(arrivals.last, np.iinfo(np.int64).max, arrivals.waits)
    if len(others) == 0:
        return others
    lead = np.minimum.reduceat(others, arrivals.first)[arrivals.instance]
    return np.where(arrivals.last, lead, 0)


def straggler_of(alignment: Alignment, arrivals: Arrivals) -> int | None:
    """The unit that the others wait for, or None where there is none.

    It arrives last most often and waits least (definition of docs/definitions), both beyond what
    chance does. A late start alone (a long first wait that ends together) names nobody.
    """
    keep = arrivals.synchronising
    if not keep.any():
        return None
    units = len(alignment.ledger.units)
    sizes = arrivals.sizes[arrivals.instance]
    unit = arrivals.unit[keep]
    counted = np.bincount(unit, minlength=units)
    last = np.bincount(unit, arrivals.last[keep], minlength=units)
    chance = 1.0 / sizes[keep]
    expected = np.bincount(unit, chance, minlength=units)
    spread = np.sqrt(np.bincount(unit, chance * (1.0 - chance), minlength=units))
    share = last / np.maximum(counted, 1)
    candidate = int(np.argmax(np.where(counted >= LEAST_INSTANCES, share, -1.0)))
    waits = _usual_waits(arrivals.waits[keep], unit, units)
    rivals = np.where(counted >= LEAST_INSTANCES, waits, np.inf)
    rows = arrivals.rows[keep]
    caused = int(_caused(arrivals)[keep][unit == candidate].sum())
    observed = int(alignment.ends[rows].max() - alignment.starts[rows].min())
    named = (
        counted[candidate] >= LEAST_INSTANCES
        and share[candidate] > MOSTLY_LAST
        and last[candidate] - expected[candidate] > BEYOND_CHANCE * spread[candidate]
        and rivals[candidate] <= rivals.min()
        and caused >= MATERIAL * observed
    )
    return candidate if named else None


def _usual_waits(waits: Ints, unit: Codes, units: int) -> Floats:
    """Each unit's mean wait without its longest tenth, in which a late start shows."""
    found = np.full(units, np.inf)
    for one in np.unique(unit).tolist():
        own = np.sort(waits[unit == one])
        found[one] = float(own[: max(1, len(own) - len(own) // 10)].mean())
    return found
