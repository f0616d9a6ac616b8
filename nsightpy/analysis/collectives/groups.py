"""Who communicates with whom, without a payload: ranks whose collectives end together.

A lane is one unit's collectives of one signature on one stream. Lanes belong together when most of
their ends agree; groups that work in lockstep are distinguished after that, or by what other
operations on the same streams show. A stream that serves several groups is peeled, group by group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.collectives.lockstep import Lanes, apart
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Communicator, Ledger, Mask
from nsightpy.analysis.intervals import consecutive
from nsightpy.frames import Floats, Ints

ROUNDS = 3
SAMPLE = 64
# Lanes are tied by this share of their ends and three of them, and by nearly the best share that
# either has.
LEAST_SHARE, LEAST_SHARED, NEARLY = 0.5, 3, 0.75
# Ends that agree this often agree always; so many lanes are compared with all others at once.
ALWAYS, CHUNK, MOST_NEAR = 0.9, 32, 2_000_000
# Lanes that are far from another one at so many samples are not looked at closely.
FIRST_SIGHT = 16
# A tie is no chance where its ends are so many times further apart than the closest at most: many
# ends give the median of their distance better than few.
FARTHER, CLOSE_NS, MEDIAN_ERROR = 2.5, 100.0, 1.17
# After a round, lanes with less than this left belong to no other group.
LEFT = 0.25
# Ends of operations that do not synchronise agree less.
LOOSE_NS = 50_000
# The partner of one of these calls another operation: those that end together are no group.
ONE_SIDED = ("Send", "Recv")
# A stream, or one on which operations have different partners or not surely known ones.
Stream = tuple[int, int]
NOT_ONE: frozenset[int] = frozenset()


def with_groups(
    ledger: Ledger, starts: Ints, ends: Ints, tolerance_ns: int, positions: Ints
) -> Ledger:
    """The ledger with a communicator for every row whose group shows; times on the common clock.

    `positions` are the units' places in the job's layout: their ranks.
    """
    open_rows = ledger.communicator == UNKNOWN
    if not open_rows.any():
        return ledger
    finder = _Finder(ledger, starts, ends, tolerance_ns, positions)
    counts = np.bincount(ledger.signature[open_rows])
    # What comes most often shows most.
    for signature in np.argsort(-counts, kind="stable").tolist():
        one_sided = ledger.signatures[signature].operation in ONE_SIDED
        if counts[signature] and not one_sided:
            finder.find(np.flatnonzero(open_rows & (ledger.signature == signature)))
    return replace(
        ledger,
        communicator=finder.communicator,
        communicators=(*ledger.communicators, *finder.communicators),
        group_sizes=(*ledger.group_sizes, *(0 for _ in finder.communicators)),
    )


class _Finder:
    """Groups found so far: `communicator` of every row, and the new communicators.

    `partners` are the units of the one group that surely has a unit's stream.
    """

    def __init__(
        self, ledger: Ledger, starts: Ints, ends: Ints, tolerance_ns: int, positions: Ints
    ) -> None:
        self.ledger = ledger
        self.starts = starts
        self.ends = ends
        self.tolerance_ns = tolerance_ns
        self.positions = positions
        self.communicator: Codes = ledger.communicator.copy()
        self.communicators: list[Communicator] = []
        self.partners: dict[Stream, frozenset[int]] = {}

    def find(self, rows: Ints) -> None:
        """Find the groups of rows of one signature."""
        ledger = self.ledger
        sync = bool(ledger.synchronising[rows[0]])
        tolerance = self.tolerance_ns if sync else max(self.tolerance_ns, LOOSE_NS)
        rows = rows[np.argsort(self.ends[rows], kind="stable")]
        lanes = ledger.unit[rows].astype(np.int64) << 32 | ledger.stream[rows]
        names, lanes, sizes = np.unique(lanes, return_inverse=True, return_counts=True)
        streams = [divmod(name, 1 << 32) for name in names.tolist()]
        first_communicator = np.full(len(sizes), UNKNOWN, dtype=np.int64)
        seen: dict[Stream, frozenset[int]] = {}
        left, known = np.arange(len(rows)), self.partners
        for _ in range(ROUNDS):
            grouped = self._round(rows[left], lanes[left], streams, tolerance, known)
            if grouped is None:
                break
            done, communicators = grouped
            for stream, place in zip(streams, communicators.tolist(), strict=True):
                if place != UNKNOWN:
                    seen[stream] = NOT_ONE if stream in seen else self._sure_units(place)
            # What is left on a stream belongs to other groups than what was there first.
            known = {}
            first_communicator = np.where(
                first_communicator == UNKNOWN, communicators, first_communicator
            )
            left = left[~done]
            busy = np.bincount(lanes[left], minlength=len(sizes)) >= LEFT * sizes
            left = left[busy[lanes[left]]]
        for stream, partners in seen.items():
            before = self.partners.get(stream, partners)
            self.partners[stream] = partners if partners == before else NOT_ONE
        alone = self.communicator[rows] == UNKNOWN
        self.communicator[rows[alone]] = first_communicator[lanes[alone]]

    def _sure_units(self, place: int) -> frozenset[int]:
        """The units of a communicator found here; none of a doubtful one."""
        communicator = self.communicators[place - len(self.ledger.communicators)]
        return NOT_ONE if communicator.doubtful else frozenset(communicator.ranks)

    def _round(
        self,
        rows: Ints,
        lanes: Ints,
        streams: Sequence[Stream],
        tolerance: int,
        known: dict[Stream, frozenset[int]],
    ) -> tuple[Mask, Ints] | None:
        """Group lanes; returns which rows found their partners, and the communicator of each lane.

        `streams` are those of all lanes; lanes without rows have no communicator. `known` are
        partners as other operations show them.
        """
        if len(rows) < 2:
            return None
        units = dict(zip(lanes.tolist(), self.ledger.unit[rows].tolist(), strict=True))
        loose = _grouped(self.ends[rows], lanes, tolerance, units)
        likely = [_likely([(lane, streams[lane]) for lane in group], known) for group in loose]
        groups = self._apart(rows, lanes, units, loose, 2 * tolerance, likely)
        if not groups:
            return None
        communicators = np.full(len(streams), UNKNOWN, dtype=np.int64)
        for group, sure in groups:
            communicators[group] = len(self.ledger.communicators) + len(self.communicators)
            members = tuple(sorted(units[lane] for lane in group))
            self.communicators.append(Communicator("", members, doubtful=not sure))
        own = communicators[lanes]
        done = _has_partner(self.ends[rows], own, lanes, tolerance)
        self.communicator[rows[done]] = own[done]
        return done, communicators

    def _apart(
        self,
        rows: Ints,
        lanes: Ints,
        units: dict[int, int],
        loose: Sequence[Sequence[int]],
        tolerance: int,
        likely: Sequence[dict[int, int] | None],
    ) -> list[tuple[list[int], bool]]:
        """The groups that some sets of lanes are made of, and whether they surely are."""
        place = np.full(int(lanes.max()) + 1, UNKNOWN, dtype=np.int64)
        for number, several in enumerate(loose):
            place[several] = number
        order = np.argsort(place[lanes], kind="stable")
        edges = np.searchsorted(place[lanes[order]], np.arange(len(loose) + 1))
        world = int(self.positions.max()) + 1
        parted = []
        for number, several in enumerate(loose):
            own = order[edges[number] : edges[number + 1]]
            positions = {lane: int(self.positions[units[lane]]) for lane in several}
            times = self.starts[rows[own]], self.ends[rows[own]]
            view = Lanes(*times, lanes[own], positions, world)
            groups, sure = apart(view, several, tolerance, likely[number])
            parted += [(group, sure) for group in groups]
        return parted


def _likely(
    lanes: Sequence[tuple[int, Stream]], known: dict[Stream, frozenset[int]]
) -> dict[int, int] | None:
    """The groups of lanes if they are those that other operations on their streams have."""
    partners = {lane: known.get(stream, NOT_ONE) for lane, stream in lanes}
    groups: dict[frozenset[int], set[int]] = {}
    for lane, (unit, _) in lanes:
        groups.setdefault(partners[lane], set()).add(unit)
    if any(units != members for members, units in groups.items()):
        return None
    number = {members: place for place, members in enumerate(groups)}
    return {lane: number[partners[lane]] for lane, _ in lanes}


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
        return _farther(self.seen) * closest_ns + CLOSE_NS


def _farther(seen: int) -> float:
    """How many times farther the median distance of so many ends may be than another one's."""
    chance = 3.0 * MEDIAN_ERROR / math.sqrt(seen)
    return max(FARTHER, (1.0 + chance) / max(0.25, 1.0 - chance))


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
    # by unit: a group has no two lanes of one
    members = {lane: {unit: lane} for lane, unit in units.items()}
    for tie in ties:
        smaller, larger = sorted((members[tie.a], members[tie.b]), key=len)
        if not tie.nearly(max(best[tie.a], best[tie.b])) or smaller is larger:
            continue
        if tie.apart_ns > tie.farthest_ns(min(closest[tie.a], closest[tie.b])):
            continue
        if smaller.keys().isdisjoint(larger.keys()):
            larger |= smaller
            members |= dict.fromkeys(smaller.values(), larger)
    unique = {id(group): group for group in members.values() if len(group) > 1}
    return sorted(sorted(group.values()) for group in unique.values())


def _ties(ends: Ints, lanes: Ints, tolerance: int, units: dict[int, int]) -> list[_Tie]:
    """The ties that are worth it, best first; the share is that of the lane that has fewer.

    A lane whose ends agree with those of one before, nearly always and closely, is not looked at.
    """
    view = _Neighbours(ends, lanes, tolerance, units)
    known = np.zeros(int(lanes.max()) + 1, dtype=np.bool_)
    nearness: dict[tuple[int, int], list[tuple[float, float]]] = {}
    # in no order, so that lanes of one group are not looked at side by side
    left = np.random.default_rng(0).permutation(view.present)
    at_once = max(1, min(CHUNK, MOST_NEAR // (SAMPLE * len(left))))
    while len(left):
        for a, others, shares, distances in view.of(left[:at_once]):
            near = shares >= NEARLY * shares.max(initial=0.0)
            most = FARTHER * distances[near].min(initial=tolerance) + CLOSE_NS
            known[others[(shares >= ALWAYS) & (distances <= most)]] = True
            kept = zip(others.tolist(), shares.tolist(), distances.tolist(), strict=True)
            for b, share, distance in kept:
                nearness.setdefault((min(a, b), max(a, b)), []).append((share, distance))
        left = left[at_once:]
        left = left[~known[left]]
    ties = []
    for (a, b), seen in nearness.items():
        share = max(share for share, _ in seen)
        distance = sum(distance for _, distance in seen) / len(seen)
        if share >= LEAST_SHARE:
            ties.append(_Tie(share, distance, a, b, int(min(view.sampled[a], view.sampled[b]))))
    return sorted(ties, key=lambda tie: (-round(tie.share, 2), tie.apart_ns, tie.a, tie.b))


class _Neighbours:
    """Whose ends lie near those of a lane, by a sample of them; ends ascending."""

    def __init__(self, ends: Ints, lanes: Ints, tolerance: int, units: dict[int, int]) -> None:
        self._ends, self._lanes, self._tolerance = ends, lanes, tolerance
        order = np.argsort(lanes, kind="stable")
        self.present, bounds = np.unique(lanes[order], return_index=True)
        parts = np.split(order, bounds[1:])
        self._samples = {
            lane: rows[:: max(1, len(rows) // SAMPLE)]
            for lane, rows in zip(self.present.tolist(), parts, strict=True)
        }
        self._unit = np.full(int(lanes.max()) + 1, UNKNOWN, dtype=np.int64)
        self.sampled = np.zeros(len(self._unit), dtype=np.int64)
        self.sampled[self.present] = [len(rows) for rows in self._samples.values()]
        self._unit[self.present] = [units[lane] for lane in self.present.tolist()]

    def of(self, wanted: Ints) -> Iterator[tuple[int, Ints, Floats, Floats]]:
        """(lane, others, share of its ends that agree with each, median distance in ns)."""
        counts = self.sampled[wanted]
        near = self._near(wanted, counts)
        near = near[:, self._close(near, counts)]
        pairs, seen, middle = self._pairs(near)
        mine, others = np.divmod(pairs, len(self._unit))
        share = seen / counts[mine]
        enough = seen >= np.minimum(LEAST_SHARED, np.minimum(self.sampled[others], counts[mine]))
        kept = np.flatnonzero(enough & (share >= LEAST_SHARE))
        edges = np.searchsorted(mine[kept], np.arange(len(wanted) + 1))
        for lane, part in zip(wanted.tolist(), np.split(kept, edges[1:-1]), strict=True):
            yield lane, others[part], share[part], middle[part]

    def _near(self, wanted: Ints, counts: Ints) -> Ints:
        """Each end near a sample: place of the lane, sample, lane of the end, distance in ns."""
        rows = np.concatenate([self._samples[lane] for lane in wanted.tolist()])
        own = np.repeat(np.arange(len(wanted)), counts)
        sample = consecutive(np.zeros_like(counts), counts)
        low = np.searchsorted(self._ends, self._ends[rows] - self._tolerance)
        size = np.searchsorted(self._ends, self._ends[rows] + self._tolerance, side="right") - low
        row = consecutive(low, size)
        own, sample, middle = (
            np.repeat(values, size) for values in (own, sample, self._ends[rows])
        )
        other = self._lanes[row]
        apart = self._unit[other] != self._unit[wanted][own]
        distance = np.abs(self._ends[row] - middle)
        return np.stack([values[apart] for values in (own, sample, other, distance)])

    def _pairs(self, near: Ints) -> tuple[Ints, Ints, Floats]:
        """Pairs (place x lanes + other lane), how many samples see each, median distance in ns."""
        own, sample, other, distance = near
        # the nearest end of every other lane to each sample, then all of a pair of lanes together
        pair = own * len(self._unit) + other
        order = np.lexsort((distance, sample, pair))
        pair, sample, distance = pair[order], sample[order], distance[order]
        first = (np.diff(pair, prepend=-1) != 0) | (np.diff(sample, prepend=-1) != 0)
        pair, distance = pair[first], distance[first]
        order = np.lexsort((distance, pair))
        pair, distance = pair[order], distance[order]
        pairs, begin, seen = np.unique(pair, return_index=True, return_counts=True)
        middle = (distance[begin + (seen - 1) // 2] + distance[begin + seen // 2]) / 2
        return pairs, seen, middle

    def _close(self, near: Ints, counts: Ints) -> Mask:
        """What is near by lanes that may be partners, as some of the samples show.

        Others are farther from them than the closest by more than chance, or seldom there.
        """
        step = np.maximum(1, counts // FIRST_SIGHT)
        pairs, seen, middle = self._pairs(near[:, near[1] % step[near[0]] == 0])
        mine = pairs // len(self._unit)
        often = seen >= LEAST_SHARE / 2 * (counts / step)[mine]
        closest = np.full(len(counts), float(self._tolerance))
        np.minimum.at(closest, mine[often], middle[often])
        farther = np.asarray([_farther(looked_at) for looked_at in (counts // step).tolist()])
        # twice, since the mean of both lanes' distances is what counts later
        most = 2 * (farther * closest + CLOSE_NS)
        kept = np.zeros(len(counts) * len(self._unit), dtype=np.bool_)
        kept[pairs[often & (middle <= most[mine])]] = True
        close: Mask = kept[near[0] * len(self._unit) + near[2]]
        return close


def _has_partner(ends: Ints, communicators: Ints, lanes: Ints, tolerance: int) -> Mask:
    """Whether another lane of the same communicator has an end within reach; ends ascending."""
    order = np.argsort(communicators, kind="stable")
    order = order[communicators[order] != UNKNOWN]
    close = (np.diff(ends[order]) <= tolerance) & (np.diff(lanes[order]) != 0)
    close &= np.diff(communicators[order]) == 0
    partnered = np.zeros(len(ends), dtype=np.bool_)
    partnered[order[1:][close]] = True
    partnered[order[:-1][close]] = True
    return partnered
