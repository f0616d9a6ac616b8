"""From pairs of clocks to one common clock: a spanning tree over the groups that ranks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nsightpy.analysis.clock_alignment.clock_ends import Ends, Line
from nsightpy.analysis.clock_alignment.clock_pairs import (
    KNOWN_GROUP,
    SURE_SUPPORT,
    SURE_TIE,
    offset_between,
)
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Ledger, Mask
from nsightpy.frames import Floats, Ints

# Beside powers of two, so many distances between clocks are tried without a payload.
OTHER_STRIDES = 20
# Between two sets of clocks that are tied within, more failures than these, and one for each clock
# of the smaller set, show that nothing is to be found; a doubtful tie counts as more of them.
FAILURES, DOUBTFUL = 8, 4
# Ties this good are taken as they come, without a communicator with this support; of others the
# best that are needed.
# Ends agree within this many usual scatters.
SCATTERS, LEAST_TOLERANCE_NS, MOST_TOLERANCE_NS = 6.0, 3_000, 50_000


@dataclass(frozen=True)
class ClockModels:
    """How far each clock is ahead: offset[c] + drift[c] x (time - center_ns), times of level 0.

    Clocks of one component are tied by collectives; between components only level 0 holds.
    `known` marks whose drift is known. Ends that belong together are within tolerance_ns.
    """

    offsets: Floats
    drifts: Floats
    components: Codes
    known: Mask
    center_ns: int
    tolerance_ns: int = LEAST_TOLERANCE_NS

    def errors(self, clock: Codes, times: Ints) -> Floats:
        """How far ahead the clock of each row is at its time, in ns."""
        ahead: Floats = self.offsets[clock] + self.drifts[clock] * (times - self.center_ns)
        return ahead

    def aligned(self, clock: Codes, times: Ints) -> Ints:
        """Times on the common clock."""
        return times - np.rint(self.errors(clock, times)).astype(np.int64)


def clock_models_of(ledger: Ledger, sessions: Codes, hosts: Sequence[str]) -> ClockModels:
    """The model of every clock to within microseconds, from its collectives with others.

    `sessions` gives the first clock of each clock's session: they are one. `hosts` names what
    runs on one machine: its clocks start from one guess.
    """
    clocks = len(sessions)
    center = int((ledger.starts.min() + ledger.ends.max()) // 2) if len(ledger) else 0
    ends = clock_ends(ledger, clocks)
    tied = _Tied(clocks, hosts, center)
    for other, first in enumerate(sessions.tolist()):
        if first != other:
            tied.join(first, other, _one_clock(ends[first], ends[other], center))
    for pairs in (_of_groups(ledger), *_of_strides(ledger)):
        _tie(tied, ends, pairs)
    return tied.models()


def _tie(tied: _Tied, ends: Sequence[Ends], pairs: Iterable[tuple[int, int, bool]]) -> None:
    """Tie pairs of clocks (whether they have one communicator): doubtful ties last, best first."""
    doubtful: list[tuple[float, int, int, Line]] = []
    for a, b, known_group in pairs:
        if not tied.worth_a_try(a, b):
            continue
        line = offset_between(ends[a], ends[b], tied.guesses(a, b))
        if line is None:
            tied.failed(a, b)
        elif line.score >= SURE_TIE and (known_group or line.support >= SURE_SUPPORT):
            tied.join(a, b, line)
        else:
            tied.failed(a, b, DOUBTFUL)
            doubtful.append((line.support, a, b, line))
    for _, a, b, line in sorted(doubtful, key=lambda tie: (-tie[0], tie[1], tie[2])):
        if tied.apart(a, b):
            tied.join(a, b, line)


def _one_clock(a: Ends, b: Ends, center: int) -> Line:
    """The tie of two processes that share a clock; how far their ends scatter is measured."""
    measured = offset_between(a, b) if len(a) and len(b) else None
    return Line(0.0, 0.0, center, scatter_ns=0.0 if measured is None else measured.scatter_ns)


class _Tied:
    """Which clocks are tied already, and how far each is ahead in its set."""

    def __init__(self, clocks: int, hosts: Sequence[str], center: int) -> None:
        self._hosts = [host or f"clock {clock}" for clock, host in enumerate(hosts)]
        self._center = center
        self._set = np.arange(clocks, dtype=np.int32)
        self._offsets, self._drifts = np.zeros((2, clocks))
        self._sizes = np.ones(clocks, dtype=np.int64)
        self._failures: Counter[frozenset[int]] = Counter()
        self._between: dict[tuple[str, str], float] = {}
        self._scatter: list[float] = []

    def apart(self, a: int, b: int) -> bool:
        """Whether two clocks are in different sets."""
        return bool(self._set[a] != self._set[b])

    def worth_a_try(self, a: int, b: int) -> bool:
        """Whether nothing ties the sets of two clocks, though not for want of tries."""
        sets = self._set[[a, b]].tolist()
        most = FAILURES + min(self._sizes[sets].tolist())
        return bool(sets[0] != sets[1] and self._failures[frozenset(sets)] < most)

    def failed(self, a: int, b: int, weight: int = 1) -> None:
        """Count a pair of clocks whose ends show nothing, or not clearly."""
        self._failures[frozenset(self._set[[a, b]].tolist())] += weight

    def guesses(self, a: int, b: int) -> tuple[float, float]:
        """How far b may be ahead of a: not at all, or as other clocks of their hosts are."""
        return 0.0, self._between.get((self._hosts[a], self._hosts[b]), 0.0)

    def join(self, a: int, b: int, line: Line) -> None:
        """Tie two clocks by the line from a to b."""
        moved = self._set == self._set[b]
        step = line.offset_ns + line.drift * (self._center - line.center_ns)
        self._offsets[moved] += self._offsets[a] + step - self._offsets[b]
        self._drifts[moved] += self._drifts[a] + line.drift - self._drifts[b]
        self._sizes[self._set[a]] += self._sizes[self._set[b]]
        self._set[moved] = self._set[a]
        self._scatter.append(line.scatter_ns)
        self._between[self._hosts[a], self._hosts[b]] = line.offset_ns
        self._between[self._hosts[b], self._hosts[a]] = -line.offset_ns

    def models(self) -> ClockModels:
        """The models: the first clock of each set has none."""
        _, first, members = np.unique(self._set, return_index=True, return_inverse=True)
        leader = first[members]
        usual = SCATTERS * float(np.median(self._scatter)) if self._scatter else 0.0
        return ClockModels(
            self._offsets - self._offsets[leader],
            self._drifts - self._drifts[leader],
            leader.astype(np.int32),
            np.zeros(len(leader), dtype=np.bool_),
            self._center,
            int(min(max(usual, LEAST_TOLERANCE_NS), MOST_TOLERANCE_NS)),
        )


def clock_ends(ledger: Ledger, clocks: int) -> list[Ends]:
    """Of each clock the ends of its synchronising collectives, ascending."""
    rows = np.flatnonzero(ledger.synchronising)
    rows = rows[np.argsort(ledger.ends[rows], kind="stable")]
    signatures = (ledger.communicator[rows].astype(np.int64) + 1) * max(len(ledger.signatures), 1)
    signatures = signatures + ledger.signature[rows]
    lanes = (ledger.unit[rows].astype(np.int64) << 20) + (ledger.stream[rows] & 0xFFFFF)
    _, lanes = np.unique(lanes, return_inverse=True)
    lanes = np.where(ledger.communicator[rows] == UNKNOWN, lanes, KNOWN_GROUP).astype(np.int32)
    owner = ledger.clock[rows]
    order = np.argsort(owner, kind="stable")
    edges = np.searchsorted(owner[order], np.arange(clocks + 1))
    parts = (order[first:last] for first, last in pairwise(edges.tolist()))
    return [
        Ends(ledger.ends[rows[mine]], signatures[mine].astype(np.int32), lanes[mine])
        for mine in parts
    ]


def _of_groups(ledger: Ledger) -> Iterator[tuple[int, int, bool]]:
    """Pairs of clocks in one communicator, as the payload says, the busiest first."""
    owner, known = ledger.clock, ledger.communicator != UNKNOWN
    rows = np.flatnonzero(ledger.synchronising & known)
    clocks = int(owner.max(initial=0)) + 1
    keys, counts = np.unique(
        ledger.communicator[rows].astype(np.int64) * clocks + owner[rows], return_counts=True
    )
    order = np.lexsort((-counts, keys // clocks))
    communicator, members = np.divmod(keys[order], clocks)
    edges = np.append(np.flatnonzero(np.diff(communicator, prepend=-1)), len(communicator))
    groups = [members[first:last].tolist() for first, last in pairwise(edges.tolist())]
    busy = np.bincount(np.unique(communicator, return_inverse=True)[1], counts[order])
    for place in np.argsort(-busy, kind="stable").tolist():
        ordered = groups[place]
        yield from ((ordered[0], other, True) for other in ordered[1:])
        yield from ((clock, other, True) for clock, other in pairwise(ordered[1:]))


def _of_strides(ledger: Ledger) -> list[Iterator[tuple[int, int, bool]]]:
    """Pairs of clocks without a payload: powers of two apart, as groups often are; then
    some others."""
    rows = ledger.synchronising & (ledger.communicator == UNKNOWN)
    clocks = np.unique(ledger.clock[rows]).tolist()
    powers = [1 << place for place in range(len(clocks).bit_length())]
    others = [stride for stride in range(1, len(clocks)) if stride & (stride - 1)]
    return [_apart(clocks, powers), _apart(clocks, others[:OTHER_STRIDES])]


def _apart(clocks: Sequence[int], strides: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
    for stride in strides:
        yield from (
            (clock, other, False) for clock, other in zip(clocks, clocks[stride:], strict=False)
        )
