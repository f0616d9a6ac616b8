"""Which clocks collectives tie, and where the sets that they do not tie are put.

Ranks that share no synchronising collective, not even through others, are placed by what they
share besides: the clock of a machine, or else the wall clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.clock_alignment.tree import ClockModels
from nsightpy.analysis.collectives.log import Codes, Ledger, Mask
from nsightpy.analysis.collectives.matching import Instances
from nsightpy.analysis.collectives.thresholds import LEAST_SHARED
from nsightpy.analysis.grouping import connected


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
    machine = np.unique(np.asarray(machines), return_inverse=True)[1]
    placed = ~tied & (np.arange(len(tied)) == 0)
    by_wall_clock = int(np.count_nonzero(placed))
    components = np.unique(models.components[tied])
    left = [np.flatnonzero(tied & (models.components == component)) for component in components]
    while left:
        here = (n for n, own in enumerate(left) if np.isin(machine[own], machine[placed]).any())
        members = left.pop(next(here, 0))
        shared = np.intersect1d(machine[members], machine[placed])
        by_wall_clock += not len(shared)
        steps = [
            np.median(offsets[members[machine[members] == one]])
            - np.median(offsets[placed & (machine == one)])
            for one in shared
        ]
        shift = np.median(steps or offsets[members])
        offsets[members] -= offsets[0] if members[0] == 0 else shift
        drifts[members] -= drifts[members[0]]
        placed[members] = True
    for clock in np.flatnonzero(~placed):
        mates = placed & (machine == machine[clock])
        if mates.any():
            offsets[clock], drifts[clock] = np.median(offsets[mates]), np.median(drifts[mates])
    moved = replace(models, offsets=offsets, drifts=drifts)
    return Placed(moved, len(components), by_wall_clock if len(components) > 1 else 1)
