"""Who communicates with whom, where no payload tells: ranks whose collectives end together.

A lane is one unit's collectives of one look on one stream. Lanes belong together when most of
their ends agree; groups that work in lockstep are told apart after that. A stream that serves
several groups is peeled, group by group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.collectives.lockstep import Lanes, apart
from nsightpy.analysis.collectives.log import UNKNOWN, Channel, Codes, Ledger, Mask
from nsightpy.frames import Ints

ROUNDS = 3
SAMPLE = 64
# Lanes are tied by this share of their ends and three of them, and by nearly the best share that
# either has.
LEAST_SHARE, LEAST_SHARED, NEARLY = 0.5, 3, 0.75
# A tie is no chance where its ends are so many times further apart than the closest at most: many
# ends tell the median of their distance better than few.
FARTHER, CLOSE_NS, MEDIAN_ERROR = 2.5, 100.0, 1.17
# After a round, lanes with less than this left belong to no other group.
LEFT = 0.25
# Ends of operations that do not synchronise agree less.
LOOSE_NS = 50_000


def with_groups(ledger: Ledger, starts: Ints, ends: Ints, tolerance_ns: int, seats: Ints) -> Ledger:
    """The ledger with a channel for every row whose group shows; times on the common clock.

    `seats` are the units' places in the job's layout: their ranks.
    """
    open_rows = ledger.channel == UNKNOWN
    if not open_rows.any():
        return ledger
    finder = _Finder(ledger, starts, ends, tolerance_ns, seats)
    for token in np.unique(ledger.token[open_rows]).tolist():
        finder.find(np.flatnonzero(open_rows & (ledger.token == token)))
    return replace(
        ledger,
        channel=finder.channel,
        channels=(*ledger.channels, *finder.channels),
        group_sizes=(*ledger.group_sizes, *(0 for _ in finder.channels)),
    )


class _Finder:
    """Groups found so far: `channel` of every row, and the new channels."""

    def __init__(
        self, ledger: Ledger, starts: Ints, ends: Ints, tolerance_ns: int, seats: Ints
    ) -> None:
        self.ledger = ledger
        self.starts = starts
        self.ends = ends
        self.tolerance_ns = tolerance_ns
        self.seats = seats
        self.channel: Codes = ledger.channel.copy()
        self.channels: list[Channel] = []

    def find(self, rows: Ints) -> None:
        """Find the groups of rows of one token."""
        ledger = self.ledger
        sync = bool(ledger.synchronising[rows[0]])
        tolerance = self.tolerance_ns if sync else max(self.tolerance_ns, LOOSE_NS)
        rows = rows[np.argsort(self.ends[rows], kind="stable")]
        lanes = ledger.unit[rows].astype(np.int64) << 32 | ledger.stream[rows]
        _, lanes, sizes = np.unique(lanes, return_inverse=True, return_counts=True)
        first_channel = np.full(len(sizes), UNKNOWN, dtype=np.int64)
        left = np.arange(len(rows))
        for _ in range(ROUNDS):
            grouped = self._round(rows[left], lanes[left], len(sizes), tolerance)
            if grouped is None:
                break
            done, channels = grouped
            first_channel = np.where(first_channel == UNKNOWN, channels, first_channel)
            left = left[~done]
            busy = np.bincount(lanes[left], minlength=len(sizes)) >= LEFT * sizes
            left = left[busy[lanes[left]]]
        alone = self.channel[rows] == UNKNOWN
        self.channel[rows[alone]] = first_channel[lanes[alone]]

    def _round(
        self, rows: Ints, lanes: Ints, count: int, tolerance: int
    ) -> tuple[Mask, Ints] | None:
        """Group lanes; returns which rows found their partners, and the channel of each lane.

        `count` is the number of lanes; those without rows have no channel.
        """
        if len(rows) < 2:
            return None
        units = dict(zip(lanes.tolist(), self.ledger.unit[rows].tolist(), strict=True))
        loose = _grouped(self.ends[rows], lanes, tolerance, units)
        seats = {lane: int(self.seats[unit]) for lane, unit in units.items()}
        view = Lanes(self.starts[rows], self.ends[rows], lanes, seats, int(self.seats.max()) + 1)
        groups = [group for several in loose for group in apart(view, several, 2 * tolerance)]
        if not groups:
            return None
        channels = np.full(count, UNKNOWN, dtype=np.int64)
        for group in groups:
            channels[group] = len(self.ledger.channels) + len(self.channels)
            self.channels.append(Channel("", tuple(sorted(units[lane] for lane in group))))
        own = channels[lanes]
        done = _has_partner(self.ends[rows], own, lanes, tolerance)
        self.channel[rows[done]] = own[done]
        return done, channels


@dataclass(frozen=True, slots=True)
class _Tie:
    """Two lanes, the share of their ends that agree, and how far apart those are (median, ns)."""

    share: float
    apart_ns: float
    a: int
    b: int
    seen: int

    def nearly(self, best: float) -> bool:
        """Whether the share is as good as the best, but for what a capture lacks."""
        return bool(self.share >= NEARLY * best - 1.5 / self.seen)

    def farthest_ns(self, closest_ns: float) -> float:
        """How far apart its ends may be, by chance, where the closest are so far apart."""
        chance = 3.0 * MEDIAN_ERROR / math.sqrt(self.seen)
        return max(FARTHER, (1.0 + chance) / max(0.25, 1.0 - chance)) * closest_ns + CLOSE_NS


def _grouped(ends: Ints, lanes: Ints, tolerance: int, units: dict[int, int]) -> list[list[int]]:
    """Lanes put together by how often, and how well, their ends agree; ends ascending.

    A tie counts only when it is nearly as good as the best that either lane has.
    """
    ties = _ties(ends, lanes, tolerance, units)
    best: dict[int, float] = {}
    closest: dict[int, float] = {}
    for tie in ties:
        for lane in (tie.a, tie.b):
            best[lane] = max(best.get(lane, 0.0), tie.share)
    for tie in ties:
        for lane in (tie.a, tie.b):
            if tie.nearly(best[lane]):
                closest[lane] = min(closest.get(lane, tolerance), tie.apart_ns)
    members = {lane: [lane] for lane in units}
    for tie in ties:
        one, other = members[tie.a], members[tie.b]
        if not tie.nearly(max(best[tie.a], best[tie.b])) or one is other:
            continue
        if tie.apart_ns > tie.farthest_ns(min(closest[tie.a], closest[tie.b])):
            continue
        if {units[lane] for lane in one} & {units[lane] for lane in other}:
            continue
        one += other
        members |= dict.fromkeys(other, one)
    unique = {id(group): group for group in members.values() if len(group) > 1}
    return sorted(sorted(group) for group in unique.values())


def _ties(ends: Ints, lanes: Ints, tolerance: int, units: dict[int, int]) -> list[_Tie]:
    """The ties that are worth it, best first; the share is that of the lane that has fewer."""
    sampled: dict[int, int] = {}
    apart: dict[tuple[int, int], list[int]] = {}
    for lane, row in _samples(lanes):
        sampled[lane] = sampled.get(lane, 0) + 1
        low = np.searchsorted(ends, ends[row] - tolerance)
        high = np.searchsorted(ends, ends[row] + tolerance, side="right")
        nearest: dict[int, int] = {}
        distances = np.abs(ends[low:high] - ends[row]).tolist()
        for other, distance in zip(lanes[low:high].tolist(), distances, strict=True):
            nearest[other] = min(nearest.get(other, distance), distance)
        for other, distance in nearest.items():
            if units[other] != units[lane]:
                apart.setdefault((lane, other), []).append(distance)
    found = []
    for (a, b), distances in apart.items():
        back = apart.get((b, a), [])
        least = min(LEAST_SHARED, sampled[a], sampled[b])
        if a < b and max(len(distances), len(back)) >= least:
            share = max(len(distances) / sampled[a], len(back) / sampled[b])
            both = float(np.median([*distances, *back]))
            found.append(_Tie(share, both, a, b, min(sampled[a], sampled[b])))
    kept = (tie for tie in found if tie.share >= LEAST_SHARE)
    return sorted(kept, key=lambda tie: (-round(tie.share, 2), tie.apart_ns, tie.a, tie.b))


def _samples(lanes: Ints) -> Iterator[tuple[int, int]]:
    """(lane, row) of some rows of every lane, evenly spread."""
    order = np.argsort(lanes, kind="stable")
    present, bounds = np.unique(lanes[order], return_index=True)
    for lane, rows in zip(present.tolist(), np.split(order, bounds[1:]), strict=True):
        step = max(1, len(rows) // SAMPLE)
        yield from ((lane, row) for row in rows[::step].tolist())


def _has_partner(ends: Ints, channels: Ints, lanes: Ints, tolerance: int) -> Mask:
    """Whether another lane of the same channel has an end within the tolerance; ends ascending."""
    found = np.zeros(len(ends), dtype=np.bool_)
    for channel in np.unique(channels[channels != UNKNOWN]).tolist():
        rows = np.flatnonzero(channels == channel)
        close = (np.diff(ends[rows]) <= tolerance) & (np.diff(lanes[rows]) != 0)
        found[rows[1:][close]] = True
        found[rows[:-1][close]] = True
    return found
