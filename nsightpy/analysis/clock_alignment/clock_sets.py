"""Which clocks collectives tie, and where the sets that they do not tie are put.

Ranks that share no synchronising collective, not even through others, are placed by what they
share besides: the clock of a machine, or else the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.clock_alignment.clock_graph import ClockModels
from nsightpy.analysis.clock_alignment.clock_pairs import LEAST_SHARED
from nsightpy.analysis.collectives.log import Codes, Ledger, Mask
from nsightpy.analysis.collectives.matching import Instances
from nsightpy.analysis.grouping import connected
from nsightpy.frames import Floats, Ints


@dataclass(frozen=True, slots=True)
class Placed:
    """All clocks on one time line, and how: sets that collectives tie, and how many of them only
    the wall clock holds together."""

    models: ClockModels
    sets: int
    by_wall_clock: int


def tied_clocks(ledger: Ledger, instances: Instances, sessions: Codes) -> Codes:
    """The first clock of the set that each clock belongs to: who shares groups' collectives."""
    clocks = len(sessions)
    rows = np.flatnonzero(instances.matched & ledger.synchronising)
    pairs = ledger.communicator[rows].astype(np.int64) * clocks + sessions[ledger.clock[rows]]
    pairs, counts = np.unique(pairs, return_counts=True)
    communicator, clock = np.divmod(pairs[counts >= LEAST_SHARED], clocks)
    return connected(clock, np.unique(communicator, return_inverse=True)[1], clocks)[sessions]


def placed_together(models: ClockModels, tied: Mask, machines: Sequence[str]) -> Placed:
    """Offsets relative to the first clock; `tied` marks clocks that collectives give.

    A set is put where the machines that it shares with what is placed already say; where there is
    none, its median stays at the wall clock. Clocks that are not tied go with their machine.
    """
    offsets, drifts = np.where(tied, models.offsets, 0.0), np.where(tied, models.drifts, 0.0)
    sets = [
        np.flatnonzero(tied & (models.components == component)) for component in _sets(models, tied)
    ]
    by_wall_clock = 0
    by_machine: dict[str, list[int]] = {}
    if len(tied) and not tied[0]:
        by_wall_clock += 1
        by_machine[machines[0]] = [0]
    for members, joined in _in_order(sets, machines, by_machine):
        drifts[members] -= drifts[members[0]]
        if members[0] == 0:
            shift = float(offsets[0])
        elif joined:
            shift = _shift(offsets, members, machines, by_machine)
        else:
            shift = float(np.median(offsets[members]))
        by_wall_clock += not joined
        offsets[members] -= shift
        for clock in members.tolist():
            by_machine.setdefault(machines[clock], []).append(clock)
    for clock in np.flatnonzero(~tied).tolist():
        mates = [other for other in by_machine.get(machines[clock], ()) if other != clock]
        if clock and mates:
            offsets[clock] = np.median(offsets[mates])
            drifts[clock] = np.median(drifts[mates])
    moved = replace(models, offsets=offsets, drifts=drifts)
    return Placed(moved, len(sets), by_wall_clock if len(sets) > 1 else 1)


def _sets(models: ClockModels, tied: Mask) -> list[int]:
    sets: list[int] = np.unique(models.components[tied]).tolist()
    return sets


def _in_order(
    sets: Sequence[Ints], machines: Sequence[str], placed: dict[str, list[int]]
) -> Iterable[tuple[Ints, bool]]:
    """Sets that share a machine with what is placed before others, and whether they do."""
    left = dict(enumerate({machines[clock] for clock in members.tolist()} for members in sets))
    while left:
        joined = [place for place, hosts in left.items() if not hosts.isdisjoint(placed)]
        chosen = joined or [next(iter(left))]
        for place in chosen:
            del left[place]
            yield sets[place], bool(joined)


def _shift(
    offsets: Floats, members: Ints, machines: Sequence[str], placed: dict[str, list[int]]
) -> float:
    """How far a set is ahead of what is placed, by the clocks of the machines that they share."""
    by_machine: dict[str, list[int]] = {}
    for clock in members.tolist():
        by_machine.setdefault(machines[clock], []).append(clock)
    steps = [
        float(np.median(offsets[mine]) - np.median(offsets[placed[machine]]))
        for machine, mine in by_machine.items()
        if machine in placed
    ]
    return float(np.median(steps))
