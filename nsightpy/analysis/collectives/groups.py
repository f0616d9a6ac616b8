"""Who communicates with whom, without a payload: ranks whose collectives end together.

A lane is one unit's collectives of one signature on one stream. Lanes belong together when most of
their ends agree; groups that work in lockstep are distinguished after that, or by what other
operations on the same streams show. A stream that serves several groups is peeled, group by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nsightpy.analysis.collectives.lockstep import Lanes, apart
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Communicator, Ledger, Mask
from nsightpy.analysis.collectives.neighbours import grouped_lanes
from nsightpy.frames import Ints

ROUNDS = 3
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
        loose = grouped_lanes(self.ends[rows], lanes, tolerance, units)
        likely = [_likely([(lane, streams[lane]) for lane in group], known) for group in loose]
        groups = self._apart(rows, lanes, units, loose, 2 * tolerance, likely)
        if not groups:
            return None
        communicators = np.full(len(streams), UNKNOWN, dtype=np.int64)
        for group, sure in groups:
            communicators[group] = len(self.ledger.communicators) + len(self.communicators)
            members = tuple(sorted(units[lane] for lane in group))
            self.communicators.append(Communicator("", members, doubtful=not sure))
        communicator_of_rows = communicators[lanes]
        done = _has_partner(self.ends[rows], communicator_of_rows, lanes, tolerance)
        self.communicator[rows[done]] = communicator_of_rows[done]
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
            members = order[edges[number] : edges[number + 1]]
            positions = {lane: int(self.positions[units[lane]]) for lane in several}
            times = self.starts[rows[members]], self.ends[rows[members]]
            view = Lanes(*times, lanes[members], positions, world)
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
