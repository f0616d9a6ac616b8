"""From pairs of clocks to one common clock: a spanning tree over the groups that ranks share.

Ranks that share no synchronising collective, not even through others, are placed by what they
share besides: the clock of a machine, or else the wall clock.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nsightpy.analysis.clock_alignment.pairs import Ends, Line, offset_between
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Ledger, Mask
from nsightpy.analysis.collectives.matching import Instances
from nsightpy.analysis.collectives.thresholds import LEAST_SHARED, SAMPLE, TRIES
from nsightpy.analysis.grouping import connected
from nsightpy.frames import Floats, Ints


@dataclass(frozen=True)
class ClockModels:
    """How far each clock is ahead: offset[c] + drift[c] x (time - center_ns), times of level 0.

    Clocks of one component are tied by collectives; between components only level 0 holds.
    `known` marks whose drift is known.
    """

    offsets: Floats
    drifts: Floats
    components: Codes
    known: Mask
    center_ns: int

    def aligned(self, clock: Codes, times: Ints) -> Ints:
        """Times on the common clock."""
        ahead = self.offsets[clock] + self.drifts[clock] * (times - self.center_ns)
        return times - np.rint(ahead).astype(np.int64)


def clock_models_of(ledger: Ledger, sessions: Codes, machines: Sequence[str]) -> ClockModels:
    """The model of every clock to within microseconds, from its collectives with others.

    `sessions` gives the first clock of each clock's session: they are one. `machines` names what
    runs on one machine: its clocks start from one guess.
    """
    center = int((ledger.starts.min() + ledger.ends.max()) // 2) if len(ledger) else 0
    ends = _ends_of(ledger, len(sessions))
    tied = _Tied(machines, center)
    for other, first in enumerate(sessions.tolist()):
        if first != other:
            tied.join(first, other, Line(0.0, 0.0, center))
    for pairs in _pairs(ledger):
        doubtful = []
        for a, b in pairs:
            if not tied.worth_a_try(a, b):
                continue
            line = offset_between(ends[a], ends[b], tied.guess(a, b))
            if line is None:
                tied.failed(a, b)
            elif line.sure:
                tied.join(a, b, line)
            else:
                tied.failed(a, b, TRIES // 2)
                doubtful.append((line, a, b))
        for line, a, b in sorted(doubtful, key=lambda tie: -tie[0].support):
            tied.join(a, b, line)
    return tied.models()


class _Tied:
    """Which clocks are tied already, and how far each is ahead in its set."""

    def __init__(self, machines: Sequence[str], center: int) -> None:
        self._machines = [name or f"clock {clock}" for clock, name in enumerate(machines)]
        self._center = center
        self._set = np.arange(len(machines), dtype=np.int32)
        self._offsets, self._drifts = np.zeros((2, len(machines)))
        self._failures: Counter[frozenset[int]] = Counter()
        self._between: dict[tuple[str, str], float] = {}

    def worth_a_try(self, a: int, b: int) -> bool:
        """Whether nothing ties the sets of two clocks, though not for want of tries: some, and one
        for each clock of the smaller set."""
        sets = self._set[[a, b]].tolist()
        most = TRIES + min(int(np.count_nonzero(self._set == one)) for one in sets)
        return sets[0] != sets[1] and self._failures[frozenset(sets)] < most

    def failed(self, a: int, b: int, times: int = 1) -> None:
        """Count a pair of clocks whose ends show nothing, or not clearly."""
        self._failures[frozenset(self._set[[a, b]].tolist())] += times

    def guess(self, a: int, b: int) -> float:
        """How far b may be ahead of a: as other clocks of their machines are, or not at all."""
        return self._between.get((self._machines[a], self._machines[b]), 0.0)

    def join(self, a: int, b: int, line: Line) -> None:
        """Tie two clocks by the line from a to b, unless they are tied."""
        if self._set[a] == self._set[b]:
            return
        moved = self._set == self._set[b]
        step = line.offset_ns + line.drift * (self._center - line.center_ns)
        self._offsets[moved] += self._offsets[a] + step - self._offsets[b]
        self._drifts[moved] += self._drifts[a] + line.drift - self._drifts[b]
        self._set[moved] = self._set[a]
        self._between[self._machines[a], self._machines[b]] = line.offset_ns
        self._between[self._machines[b], self._machines[a]] = -line.offset_ns

    def models(self) -> ClockModels:
        """The models: the first clock of each set has none."""
        _, first, members = np.unique(self._set, return_index=True, return_inverse=True)
        leader = first[members]
        return ClockModels(
            self._offsets - self._offsets[leader],
            self._drifts - self._drifts[leader],
            leader.astype(np.int32),
            np.zeros(len(leader), dtype=np.bool_),
            self._center,
        )


def _ends_of(ledger: Ledger, clocks: int) -> list[Ends]:
    """Of each clock the ends of its synchronising collectives, ascending."""
    rows = np.flatnonzero(ledger.synchronising)
    rows = rows[np.lexsort((ledger.ends[rows], ledger.clock[rows]))]
    communicator = ledger.communicator[rows].astype(np.int64)
    kinds = (communicator + 1) * max(len(ledger.signatures), 1) + ledger.signature[rows]
    lanes = np.stack((ledger.unit[rows], ledger.stream[rows]))
    streams = np.unique(lanes, axis=1, return_inverse=True)[1].reshape(-1)
    lanes = np.where(communicator == UNKNOWN, streams, -1 - communicator)
    numbers = np.stack((communicator, ledger.operation[rows], ledger.sequences[rows]))
    exact = np.unique(numbers, axis=1, return_inverse=True)[1].reshape(-1)
    exact = np.where((communicator == UNKNOWN) | (numbers[2] == UNKNOWN), UNKNOWN, exact)
    edges = np.searchsorted(ledger.clock[rows], np.arange(clocks + 1))
    whole = Ends(ledger.ends[rows], kinds.astype(np.int32), lanes.astype(np.int32), exact)
    return [whole.take(slice(first, last)) for first, last in pairwise(edges.tolist())]


def _pairs(ledger: Ledger) -> Iterator[list[tuple[int, int]]]:
    """Pairs of clocks in one communicator, as the payload says, those of the busiest first; without
    a payload those that are powers of two apart, as groups often are; then others."""
    rows = np.flatnonzero(ledger.synchronising & (ledger.communicator != UNKNOWN))
    communicator, clock = ledger.communicator[rows], ledger.clock[rows]
    codes, counts = np.unique(communicator, return_counts=True)
    pairs: list[tuple[int, int]] = []
    for code in codes[np.argsort(-counts, kind="stable")].tolist():
        first, *others = np.unique(clock[communicator == code]).tolist()
        pairs += [*((first, other) for other in others), *pairwise(others)]
    yield pairs
    clocks = np.unique(
        ledger.clock[ledger.synchronising & (ledger.communicator == UNKNOWN)]
    ).tolist()
    powers = [1 << power for power in range(len(clocks).bit_length())]
    others = [stride for stride in range(1, len(clocks)) if stride not in powers]
    for strides in (powers, others[:SAMPLE]):
        yield [pair for far in strides for pair in zip(clocks, clocks[far:], strict=False)]


def tied_clocks(ledger: Ledger, instances: Instances, sessions: Codes) -> Codes:
    """The first clock of the set that each clock belongs to: who shares groups' collectives."""
    clocks = len(sessions)
    rows = np.flatnonzero(instances.matched & ledger.synchronising)
    pairs = ledger.communicator[rows].astype(np.int64) * clocks + sessions[ledger.clock[rows]]
    pairs, counts = np.unique(pairs, return_counts=True)
    communicator, clock = np.divmod(pairs[counts >= LEAST_SHARED], clocks)
    return connected(clock, np.unique(communicator, return_inverse=True)[1], clocks)[sessions]


def placed_together(
    models: ClockModels, tied: Mask, machines: Sequence[str]
) -> tuple[ClockModels, int]:
    """Offsets relative to the first clock, and how many sets only the wall clock holds together.

    `tied` marks clocks that collectives give.

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
    return moved, by_wall_clock if len(components) > 1 else 1
