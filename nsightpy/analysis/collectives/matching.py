"""Which collectives of different ranks are one: the instances of every communicator.

NCCL's own sequence number of an operation decides where a payload has it. Else the order in the
communicator does, shifted for ranks whose capture began elsewhere; the shift is read from ends that
agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Ledger, Mask
from nsightpy.analysis.collectives.thresholds import REACH_NS
from nsightpy.analysis.thresholds import MOSTLY
from nsightpy.frames import Floats, Ints, distinct


@dataclass(frozen=True)
class Instances:
    """The instance of every row of a ledger, -1 where no other rank's collective belongs to it."""

    number: Ints
    count: int

    @property
    def matched(self) -> Mask:
        matched: Mask = self.number != UNKNOWN
        return matched

    def about(self, shown: Mask) -> Instances:
        """Only the instances to which any of the rows belongs."""
        wanted = np.zeros(self.count, dtype=np.bool_)
        wanted[self.number[self.matched & shown]] = True
        keep = self.matched & wanted[np.maximum(self.number, 0)] if self.count else self.matched
        return Instances(np.where(keep, self.number, UNKNOWN), self.count)


def instances_of(ledger: Ledger, ends: Ints) -> Instances:
    """The instances of a ledger; ends on the common clock, as good as it is."""
    numbers = np.full(len(ledger), UNKNOWN, dtype=np.int64)
    known = ledger.sequences != UNKNOWN
    exact = ledger.sequences * len(ledger.signatures) + ledger.operation
    count = 0
    order = np.argsort(ledger.communicator, kind="stable")
    order = order[np.searchsorted(ledger.communicator[order], 0) :]
    edges = np.flatnonzero(np.diff(ledger.communicator[order], prepend=UNKNOWN, append=-2))
    for first, last in pairwise(edges.tolist()):
        rows = order[first:last]
        if known[rows].all():
            local = _shared(exact[rows], ledger.unit[rows])
        else:
            local = _by_order(ledger, rows, ends)
        used, places = distinct(local[local != UNKNOWN])
        numbers[rows[local != UNKNOWN]] = places + count
        count += len(used)
    return Instances(numbers, count)


def _by_order(ledger: Ledger, rows: Ints, ends: Ints) -> Ints:
    """Instance numbers of one communicator's rows; -1 for those that are alone."""
    local = np.full(len(rows), UNKNOWN, dtype=np.int64)
    left, base = np.arange(len(rows)), 0
    for _ in range(3):
        numbers, length = _one_round(ledger, rows[left], ends)
        found = numbers != UNKNOWN
        local[left[found]] = numbers[found] + base
        base += length
        left = left[~found]
        if not found.any() or len(np.unique(ledger.unit[rows[left]])) < 2:
            break
    return local


def _one_round(ledger: Ledger, rows: Ints, ends: Ints) -> tuple[Ints, int]:
    """Match every unit's rows with those of the unit that has most."""
    _, bounds, counts = np.unique(ledger.unit[rows], return_index=True, return_counts=True)
    parts = [slice(b, b + n) for b, n in zip(bounds.tolist(), counts.tolist(), strict=True)]
    reference = parts[int(np.argmax(counts))]
    signatures, times, sync = ledger.signature[rows], ends[rows], ledger.synchronising[rows]
    length = reference.stop - reference.start
    numbers = np.full(len(rows), UNKNOWN, dtype=np.int64)
    for part in parts:
        if part == reference:
            numbers[part] = np.arange(length)
            continue
        own = signatures[part], times[part], sync[part]
        shift, timed = _shifts(signatures[reference], times[reference], *own)
        target = np.arange(part.stop - part.start) + shift
        inside = (target >= 0) & (target < length)
        place = np.where(inside, target, 0)
        fits = inside & (signatures[reference][place] == signatures[part])
        if timed:
            near = np.abs(times[reference][place] - times[part]) <= REACH_NS
            fits &= near | ~sync[part]
        numbers[part] = np.where(fits, target, UNKNOWN)
    return _shared(numbers, ledger.unit[rows]), length


def _shifts(
    signatures: Codes, times: Ints, own_signatures: Codes, own_times: Ints, sync: Mask
) -> tuple[Ints, bool]:
    """How far each of a unit's rows lies behind its place in the reference; whether ends decide."""
    places = np.arange(len(own_signatures))
    shift, seen = np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=np.bool_)
    for signature in np.unique(own_signatures[sync]).tolist():
        own_rows = np.flatnonzero((own_signatures == signature) & sync)
        others = np.flatnonzero(signatures == signature)
        others = others[np.argsort(times[others], kind="stable")]
        if len(others):
            near = others[nearest(times[others], own_times[own_rows])]
            close = np.abs(times[near] - own_times[own_rows]) <= REACH_NS
            shift[own_rows[close]], seen[own_rows[close]] = near[close] - own_rows[close], True
    if not seen.any():
        return shift, False
    values, votes = np.unique(shift[seen], return_counts=True)
    if votes.max() >= MOSTLY * votes.sum():
        return np.full(len(own_signatures), values[np.argmax(votes)]), True
    last = np.maximum.accumulate(np.where(seen, places, int(np.argmax(seen))))
    return shift[last], True


def nearest(ascending: Ints, wanted: Ints | Floats) -> Ints:
    """Places of the times nearest to some others."""
    place = np.searchsorted(ascending, wanted)
    after = np.minimum(place, len(ascending) - 1)
    before = np.maximum(place - 1, 0)
    closer = np.abs(ascending[before] - wanted) < np.abs(ascending[after] - wanted)
    return np.where(closer, before, after)


def _shared(numbers: Ints, units: Codes) -> Ints:
    """The numbers that at least two units have; -1 for the others, and for a unit's second."""
    shared = numbers.copy()
    order = np.lexsort((units, numbers))
    again = (np.diff(numbers[order]) == 0) & (np.diff(units[order]) == 0)
    shared[order[1:][again]] = UNKNOWN
    values, places, counts = np.unique(shared, return_inverse=True, return_counts=True)
    alone = (counts < 2) | (values == UNKNOWN)
    return np.where(alone[places], UNKNOWN, shared)
