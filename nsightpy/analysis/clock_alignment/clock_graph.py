"""From pairs of clocks to one common clock: a spanning tree over the groups that ranks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from nsightpy.analysis.clock_alignment.clock_pairs import (
    KNOWN_GROUP,
    Ends,
    Floats,
    Line,
    offset_between,
)
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Ledger, Mask
from nsightpy.frames import Ints

PAIRS_PER_CLOCK = 24
# Between two sets of clocks that are tied within, more doubtful ties than these tell nothing new.
DOUBTFUL_TIES = 8
# Ties this good are taken as they come, without a communicator with this support; of others the
# best that are needed.
SURE_TIE, SURE_SUPPORT = 0.8, 20.0
# Ends agree within this many usual scatters.
SCATTERS, LEAST_TOLERANCE_NS, MOST_TOLERANCE_NS = 6.0, 3_000, 50_000


@dataclass(frozen=True)
class Courses:
    """How far each clock is ahead: offset[c] + drift[c] x (time - center_ns), times of level 0.

    Clocks of one component are tied by collectives; between components only level 0 holds.
    `known` tells whose drift is known. Ends that belong together are within tolerance_ns.
    """

    offsets: Floats
    drifts: Floats
    components: Codes
    known: Mask
    center_ns: int
    tolerance_ns: int = LEAST_TOLERANCE_NS

    def errors(self, clock: Codes, times: Ints) -> Floats:
        """How far ahead the clock of each row is at its time, in ns."""
        found: Floats = self.offsets[clock] + self.drifts[clock] * (times - self.center_ns)
        return found

    def aligned(self, clock: Codes, times: Ints) -> Ints:
        """Times on the common clock."""
        return times - np.rint(self.errors(clock, times)).astype(np.int64)


def courses_of(ledger: Ledger, sessions: Codes, hosts: Sequence[str]) -> Courses:
    """The course of every clock to within microseconds, from its collectives with others.

    `sessions` gives the first clock of each clock's session: they are one. `hosts` names what
    shares a system clock ("" where unknown): its clocks start from one guess.
    """
    clocks = len(sessions)
    center = int((ledger.starts.min() + ledger.ends.max()) // 2) if len(ledger) else 0
    ends = clock_ends(ledger, clocks)
    tree = _Forest(clocks)
    for other, first in enumerate(sessions.tolist()):
        if first != other:
            tree.join(first, other, _one_clock(ends[first], ends[other], center))
    doubtful: list[tuple[float, int, int, Line]] = []
    known: dict[tuple[str, str], float] = {}
    tried: Counter[frozenset[int]] = Counter()
    for a, b, known_group in _pairs(ledger):
        sides = tree.sides(a, b)
        if len(sides) < 2 or tried[sides] >= DOUBTFUL_TIES:
            continue
        between = (hosts[a] or f"clock {a}", hosts[b] or f"clock {b}")
        line = offset_between(ends[a], ends[b], (0.0, known.get(between, 0.0)))
        if line is None:
            continue
        known[between], known[between[::-1]] = line.offset_ns, -line.offset_ns
        if line.score >= SURE_TIE and (known_group or line.support >= SURE_SUPPORT):
            tree.join(a, b, line)
        else:
            tried[sides] += 1
            doubtful.append((line.support, a, b, line))
    for _, a, b, line in sorted(doubtful, key=lambda tie: (-tie[0], tie[1], tie[2])):
        if len(tree.sides(a, b)) == 2:
            tree.join(a, b, line)
    scatter = [line.scatter_ns for ties in tree.links.values() for _, line, _ in ties]
    usual = SCATTERS * float(np.median(scatter)) if scatter else 0.0
    tolerance = int(min(max(usual, LEAST_TOLERANCE_NS), MOST_TOLERANCE_NS))
    return replace(_walked(tree.links, clocks, center), tolerance_ns=tolerance)


def _one_clock(a: Ends, b: Ends, center: int) -> Line:
    """The tie of two processes that share a clock; how far their ends scatter is measured."""
    measured = offset_between(a, b) if len(a) and len(b) else None
    return Line(0.0, 0.0, center, scatter_ns=0.0 if measured is None else measured.scatter_ns)


def clock_ends(ledger: Ledger, clocks: int) -> list[Ends]:
    """Of each clock the ends of its synchronising collectives, ascending."""
    rows = np.flatnonzero(ledger.synchronising)
    rows = rows[np.argsort(ledger.ends[rows], kind="stable")]
    looks = (ledger.channel[rows].astype(np.int64) + 1) * max(len(ledger.tokens), 1)
    looks = (looks + ledger.token[rows]).astype(np.int32)
    lanes = (ledger.unit[rows].astype(np.int64) << 20) + (ledger.stream[rows] & 0xFFFFF)
    _, lanes = np.unique(lanes, return_inverse=True)
    lanes = np.where(ledger.channel[rows] == UNKNOWN, lanes, KNOWN_GROUP).astype(np.int32)
    owner = ledger.clock[rows]
    return [
        Ends(ledger.ends[rows[mine]], looks[mine], lanes[mine])
        for mine in (owner == clock for clock in range(clocks))
    ]


def _pairs(ledger: Ledger) -> Iterator[tuple[int, int, bool]]:
    """Pairs of clocks worth comparing: members of one communicator (True), then whoever else."""
    owner, known = ledger.clock, ledger.synchronising & (ledger.channel != UNKNOWN)
    channels, counts = np.unique(ledger.channel[known], return_counts=True)
    for channel in channels[np.argsort(-counts, kind="stable")].tolist():
        members, sizes = np.unique(owner[known & (ledger.channel == channel)], return_counts=True)
        ordered = members[np.argsort(-sizes, kind="stable")].tolist()
        yield from ((ordered[0], other, True) for other in ordered[1:])
        yield from ((one, other, True) for one, other in pairwise(ordered[1:]))
    alone = ledger.synchronising & (ledger.channel == UNKNOWN)
    clocks = np.unique(owner[alone]).tolist()
    budget = PAIRS_PER_CLOCK * len(clocks)
    strides = sorted(range(1, len(clocks)), key=lambda n: (n & (n - 1) != 0, n))
    for stride in strides:
        for first in range(len(clocks) - stride):
            if budget == 0:
                return
            budget -= 1
            yield clocks[first], clocks[first + stride], False


class _Forest:
    """Which clocks are tied already, and by what."""

    def __init__(self, clocks: int) -> None:
        self._parents = list(range(clocks))
        self.links: dict[int, list[tuple[int, Line, int]]] = {}

    def sides(self, a: int, b: int) -> frozenset[int]:
        """The sets of tied clocks that two clocks are in: one or two."""
        return frozenset((self._root(a), self._root(b)))

    def join(self, a: int, b: int, line: Line) -> None:
        """Tie two clocks by the line from a to b."""
        self._parents[self._root(b)] = self._root(a)
        self.links.setdefault(a, []).append((b, line, 1))
        self.links.setdefault(b, []).append((a, line, -1))

    def _root(self, clock: int) -> int:
        while self._parents[clock] != clock:
            self._parents[clock] = self._parents[self._parents[clock]]
            clock = self._parents[clock]
        return clock


def _walked(links: dict[int, list[tuple[int, Line, int]]], clocks: int, center: int) -> Courses:
    """The courses along the tree: the first clock of each component has none."""
    offsets, drifts = np.zeros(clocks), np.zeros(clocks)
    components = np.full(clocks, UNKNOWN, dtype=np.int32)
    for start in range(clocks):
        if components[start] != UNKNOWN:
            continue
        components[start] = start
        waiting = [start]
        while waiting:
            here = waiting.pop()
            for there, line, sign in links.get(here, ()):
                if components[there] != UNKNOWN:
                    continue
                components[there] = start
                at_center = line.offset_ns + line.drift * (center - line.center_ns)
                offsets[there] = offsets[here] + sign * at_center
                drifts[there] = drifts[here] + sign * line.drift
                waiting.append(there)
    return Courses(offsets, drifts, components, np.zeros(clocks, dtype=np.bool_), center)
