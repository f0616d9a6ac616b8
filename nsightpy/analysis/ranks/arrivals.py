"""Who waits for whom in collectives: arrivals, waits, and the rank that the others wait for.

wait = latest start - own start; where clocks are not good enough to compare starts, own duration -
the shortest one, which needs no clock, because a synchronising collective ends for all together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.ranks.alignment import COLLECTIVES, Alignment
from nsightpy.analysis.ranks.clock_pairs import Floats
from nsightpy.analysis.ranks.collectives import Codes, Mask
from nsightpy.frames import Ints

# A straggler is last in most of its collectives, this many deviations beyond what the unluckiest
# of all ranks reaches by chance, and costs the others at least this share of the time observed. Who
# waited for a neighbour for this part of what it costs others is held up itself.
MOSTLY_LAST = 0.5
BEYOND_CHANCE = 1.8
MATERIAL = 0.005
HELD_UP = 0.2
LEAST_INSTANCES = 6
# Arrivals within this are one.
TOGETHER_NS = 2_000
# The part of the collectives, from the first on, that may be warm-up.
WARM_UP = 1 / 3


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
        summed(caused_ns(arrivals)),
    )


def caused_ns(arrivals: Arrivals) -> Ints:
    """For who arrived last: how long after the one before; 0 for the others."""
    others = np.where(arrivals.last, np.iinfo(np.int64).max, arrivals.waits)
    if len(others) == 0:
        return others
    lead = np.minimum.reduceat(others, arrivals.first)[arrivals.instance]
    return np.where(arrivals.last, lead, 0)


def straggler_of(alignment: Alignment, arrivals: Arrivals) -> int | None:
    """The unit that the others wait for, or None where there is none.

    It is last in most of its synchronising collectives, far beyond chance, so that it usually
    waits for nobody there, and it costs the others a material share of the time. Of several it is
    the one that is last most often; but not one that is late because a neighbour kept it waiting.
    A late start is no lateness: the first part of the capture, warm-up, does not count.
    """
    if len(arrivals.rows) == 0:
        return None
    counts = _steady(alignment, arrivals) & _waited_for(arrivals)
    keep = arrivals.synchronising & counts[arrivals.instance]
    if not keep.any():
        return None
    units = len(alignment.ledger.units)
    unit, rows, last = arrivals.unit[keep], arrivals.rows[keep], arrivals.last[keep]
    counted = np.bincount(unit, minlength=units)
    chance = 1.0 / arrivals.sizes[arrivals.instance[keep]]
    beyond = np.bincount(unit, last - chance, minlength=units)
    spread = np.sqrt(np.bincount(unit, chance * (1.0 - chance), minlength=units))
    share = np.bincount(unit, last, minlength=units) / np.maximum(counted, 1)
    caused = _lasting(caused_ns(arrivals)[keep], unit, units)
    observed = int(alignment.ends[rows].max() - alignment.starts[rows].min())
    late = (
        (counted >= LEAST_INSTANCES)
        & (share > MOSTLY_LAST)
        & (beyond > (BEYOND_CHANCE + (2.0 * np.log(units)) ** 0.5) * spread)
        & (caused >= MATERIAL * observed)
        & (_kept_waiting(arrivals, units) < HELD_UP * caused)
    )
    candidates = np.flatnonzero(late)
    return int(candidates[np.argmax(share[candidates])]) if len(candidates) else None


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
    group = np.bincount(arrivals.instance, waited[arrivals.unit]) / arrivals.sizes
    keep = arrivals.synchronising
    found = np.full(units, np.inf)
    np.minimum.at(
        found, arrivals.unit[keep], (waited[arrivals.unit] - group[arrivals.instance])[keep]
    )
    return found
