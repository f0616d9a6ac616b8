"""Who waits for whom in collectives: everybody's arrivals, waits and who came last.

wait = latest start - own start, never more than the own duration; where clocks are not good enough
to compare starts, own duration - the shortest one, which needs no clock, because a synchronising
collective ends for all together. From other operations (Broadcast, Reduce, point to point) a rank
may be gone before the last one comes: it waited no longer than it lasted beyond the shortest.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.clock_alignment.clocks import COLLECTIVES, machines_of
from nsightpy.analysis.collectives.log import Codes, Ledger, Mask
from nsightpy.analysis.intervals import Spans, overlap_total, union
from nsightpy.frames import Ints, distinct

# Report, process and device.
Device = tuple[str, int, int]


@dataclass(frozen=True)
class Arrivals:
    """The matched rows of a ledger, by instance (0, 1, ... `first` is each instance's first row).

    `rows` are places in the ledger; waits, durations in ns; `last` marks who arrived last, nobody
    where clocks do not say.
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
        shortest: Ints = np.minimum.reduceat(self.durations, self.first)
        return shortest


def arrivals_of(alignment: Alignment) -> Arrivals:
    """Everybody's arrivals in all instances that at least two units share."""
    ledger, number = alignment.ledger, alignment.instances.number
    rows = np.flatnonzero(alignment.instances.matched)
    rows = rows[np.lexsort((ledger.unit[rows], number[rows]))]
    _, first, instance = np.unique(number[rows], return_index=True, return_inverse=True)
    starts = alignment.starts[rows]
    durations = alignment.ends[rows] - starts
    synchronising = ledger.synchronising[rows]
    by_start = np.maximum.reduceat(starts, first)[instance] - starts
    by_length = durations - np.minimum.reduceat(durations, first)[instance]
    comparable = _comparable(alignment, rows, first)[instance]
    late = np.where(comparable, by_start, np.where(synchronising, by_length, 1))
    waits = np.minimum(late, np.where(synchronising, durations, by_length))
    waits = np.where(comparable | synchronising, waits, by_length)
    # of those that came before nobody the first
    last, zero = np.zeros(len(rows), dtype=np.bool_), np.flatnonzero(late == 0)
    last[zero[np.unique(instance[zero], return_index=True)[1]]] = True
    unit = ledger.unit[rows]
    return Arrivals(rows, instance, first, unit, waits, durations, last, synchronising)


def members_of(ledger: Ledger, arrivals: Arrivals) -> dict[int, tuple[int, ...]]:
    """By communicator the units, ascending, that any of its instances brought together."""
    units = len(ledger.units)
    pairs, _ = distinct(ledger.communicator[arrivals.rows].astype(np.int64) * units + arrivals.unit)
    members: dict[int, list[int]] = defaultdict(list)
    for pair in pairs.tolist():
        members[pair // units].append(pair % units)
    return {communicator: tuple(units_of) for communicator, units_of in members.items()}


def _comparable(alignment: Alignment, rows: Ints, first: Ints) -> Mask:
    """The instances in which all clocks are good enough to compare starts."""
    frames = [
        COLLECTIVES if fit.method == COLLECTIVES else machine
        for fit, machine in zip(alignment.fits, machines_of(alignment.clocks), strict=True)
    ]
    frame = np.unique(frames, return_inverse=True)[1][alignment.ledger.clock[rows]]
    comparable: Mask = np.minimum.reduceat(frame, first) == np.maximum.reduceat(frame, first)
    return comparable


def unit_waits(arrivals: Arrivals) -> dict[int, tuple[int, float]]:
    """By unit how long it waited in all its instances (ns), and the share to which it came last."""
    counts = np.bincount(arrivals.unit).tolist()
    waits = np.bincount(arrivals.unit, arrivals.waits).astype(np.int64).tolist()
    last = np.bincount(arrivals.unit, arrivals.last).tolist()
    return {unit: (waits[unit], last[unit] / n) for unit, n in enumerate(counts) if n}


def caused_ns(arrivals: Arrivals) -> Ints:
    """For who arrived last: how long the one before waited for it; 0 for the others."""
    others = np.where(arrivals.last, np.iinfo(np.int64).max, arrivals.waits)
    lead = np.minimum.reduceat(others, arrivals.first)[arrivals.instance]
    return np.where(arrivals.last, lead, 0)


def exposed_waits(
    alignment: Alignment, arrivals: Arrivals, exposed: Mapping[Device, Spans]
) -> dict[Device, int]:
    """For how long each device's exposed communication waited for others, in ns.

    `exposed` is each one's time in communication with nothing beside it, in its report's own time.
    Devices without a collective that others share are left out.
    """
    ledger, waits = alignment.ledger, {}
    for unit, participant in enumerate(ledger.units):
        device = (alignment.clocks[participant.clock].report, participant.pid, participant.device)
        own = arrivals.unit == unit
        if device not in exposed or not own.any():
            continue
        began = ledger.starts[arrivals.rows[own]] - alignment.ledger_ahead_ns(unit)
        ended = began + np.asarray(arrivals.waits[own])
        waits[device] = overlap_total(exposed[device], union(began, ended))
    return waits
