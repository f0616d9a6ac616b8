"""Who communicates with whom, without a payload: ranks whose collectives end together.

A lane is one unit's collectives of one signature on one stream. Lanes belong together when most of
their ends agree; groups that work in lockstep are distinguished after that, or by what other
operations on the same streams show. A stream that serves several groups is peeled, group by group.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nsightpy.analysis.collectives.lanes import grouped_lanes, groups_among, shared
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Communicator, Ledger, Mask
from nsightpy.analysis.collectives.thresholds import REACH_NS
from nsightpy.analysis.grouping import rows_of_groups
from nsightpy.analysis.thresholds import MOSTLY
from nsightpy.frames import Ints

# The partner of one of these calls another operation: those that end together are no group.
ONE_SIDED = ("Send", "Recv")
# A stream, or one on which operations have different partners or not surely known ones.
Stream = tuple[int, int]
NOT_ONE: frozenset[int] = frozenset()


def with_groups(ledger: Ledger, starts: Ints, ends: Ints, positions: Ints) -> Ledger:
    """The ledger with a communicator for every row whose group shows; times on the common clock.

    `positions` are the units' places in the job's layout: their ranks.
    """
    open_rows = ledger.communicator == UNKNOWN
    if not open_rows.any():
        return ledger
    finder = _Finder(ledger, starts, ends, positions, ledger.communicator.copy())
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


@dataclass
class _Finder:
    """Groups found so far: `communicator` of every row, and the new communicators.

    `partners` are the units of the one group that surely has a unit's stream.
    """

    ledger: Ledger
    starts: Ints
    ends: Ints
    positions: Ints
    communicator: Codes
    communicators: list[Communicator] = field(default_factory=list)
    partners: dict[Stream, frozenset[int]] = field(default_factory=dict)

    def find(self, rows: Ints) -> None:
        """Find the groups of rows of one signature."""
        ledger = self.ledger
        rows = rows[np.argsort(self.ends[rows], kind="stable")]
        lanes = ledger.unit[rows].astype(np.int64) << 32 | ledger.stream[rows]
        names, lanes, sizes = np.unique(lanes, return_inverse=True, return_counts=True)
        streams = [divmod(name, 1 << 32) for name in names.tolist()]
        first_found = np.full(len(sizes), UNKNOWN, dtype=np.int64)
        seen: dict[Stream, frozenset[int]] = {}
        left, known = np.arange(len(rows)), self.partners
        for _ in range(3):
            found = self._groups(rows[left], lanes[left], streams, known)
            for stream, code in zip(streams, found.tolist(), strict=True):
                if code != UNKNOWN:
                    group = self.communicators[code - len(ledger.communicators)]
                    surely_one = stream not in seen and not group.doubtful
                    seen[stream] = frozenset(group.ranks) if surely_one else NOT_ONE
            first_found = np.where(first_found == UNKNOWN, found, first_found)
            # What is left on a stream belongs to other groups than what was there first.
            known = {}
            left = left[self.communicator[rows[left]] == UNKNOWN]
            busy = np.bincount(lanes[left], minlength=len(sizes)) >= (1 - MOSTLY) * sizes
            left = left[busy[lanes[left]]]
            if len(left) < 2 or (found == UNKNOWN).all():
                break
        for stream, partners in seen.items():
            before = self.partners.get(stream, partners)
            self.partners[stream] = partners if partners == before else NOT_ONE
        alone = self.communicator[rows] == UNKNOWN
        self.communicator[rows[alone]] = first_found[lanes[alone]]

    def _groups(
        self,
        rows: Ints,
        lanes: Ints,
        streams: Sequence[Stream],
        known: dict[Stream, frozenset[int]],
    ) -> Ints:
        """The communicator of each lane (streams are those of the lanes), given to its rows that
        have partners there. `known` are partners as other operations show them."""
        found = np.full(len(streams), UNKNOWN, dtype=np.int64)
        by_lane = [rows[lane] for lane in rows_of_groups(lanes, len(streams))]
        units = np.asarray([unit for unit, _ in streams])
        for several in grouped_lanes(self.ends[rows], lanes, units):
            several.sort(key=lambda lane: self.positions[units[lane]])
            times = [(self.starts[by_lane[lane]], self.ends[by_lane[lane]]) for lane in several]
            positions = self.positions[units[several]]
            likely = _likely([streams[lane] for lane in several], known)
            world = int(self.positions.max()) + 1
            among = groups_among(*shared(times), positions, world, likely)
            for label in np.unique(among.labels).tolist():
                group = np.asarray(several)[among.labels == label]
                if len(group) > 1:
                    found[group] = len(self.ledger.communicators) + len(self.communicators)
                    members = tuple(sorted(units[group].tolist()))
                    self.communicators.append(Communicator("", members, doubtful=not among.sure))
        of_row = found[lanes]
        partnered = _has_partner(self.ends[rows], of_row, lanes)
        self.communicator[rows[partnered]] = of_row[partnered]
        return found


def _likely(streams: Sequence[Stream], known: dict[Stream, frozenset[int]]) -> Ints | None:
    """The groups of streams if they are those that other operations on them have."""
    partners = [known.get(stream, NOT_ONE) for stream in streams]
    groups: dict[frozenset[int], set[int]] = {}
    for members, (unit, _) in zip(partners, streams, strict=True):
        groups.setdefault(members, set()).add(unit)
    if any(units != members for members, units in groups.items()):
        return None
    return np.asarray([list(groups).index(members) for members in partners], dtype=np.int64)


def _has_partner(ends: Ints, communicators: Ints, lanes: Ints) -> Mask:
    """Whether another lane of the same communicator has an end within reach; ends ascending."""
    order = np.argsort(communicators, kind="stable")
    order = order[communicators[order] != UNKNOWN]
    close = (np.diff(ends[order]) <= REACH_NS) & (np.diff(lanes[order]) != 0)
    close &= np.diff(communicators[order]) == 0
    partnered = np.zeros(len(ends), dtype=np.bool_)
    partnered[order[1:][close]] = partnered[order[:-1][close]] = True
    return partnered
