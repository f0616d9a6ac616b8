"""The rank that the others wait for: a straggler, not a late start or a single delay.

Who was kept waiting comes late to its next collective as well, but has not worked longer. Own work
is the time from the end of a rank's collective to the start of its next one: it is taken from one
clock, and free of what others cost the rank.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Ledger, Mask
from nsightpy.analysis.collectives.thresholds import LEAST_SHARED, TIGHT_NS
from nsightpy.analysis.grouping import rows_before
from nsightpy.analysis.ranks.arrivals import Arrivals, caused_ns, members_of
from nsightpy.analysis.ranks.exchanges import peer_rows, point_to_point
from nsightpy.analysis.ranks.thresholds import BEYOND_CHANCE, MOSTLY_LAST
from nsightpy.analysis.thresholds import MATERIAL, MOST
from nsightpy.frames import Floats, Ints, distinct, last_before


@dataclass(frozen=True, slots=True)
class Straggler:
    """A unit that keeps the others waiting in synchronising collectives.

    After the warm-up it is last in `last_share` of those with ranks that do the same work. `saved`
    is what the others had waited less had it come with the next to last, by row of the arrivals, in
    ns; warm-up and the worst single time count for no more than what is usual for it.
    """

    unit: int
    last_share: float
    saved: Ints


@dataclass(frozen=True, slots=True)
class LateOnce:
    """A unit that came late a few times only, and how long the others waited then in all (ns).

    `worst`: the row of the arrivals in which they waited longest.
    """

    unit: int
    times: int
    cost_ns: int
    worst: int


def straggler_of(alignment: Alignment, arrivals: Arrivals) -> Straggler | None:
    """The unit that the others wait for, or None where there is none.

    It is last in most of the synchronising collectives of ranks that do the same work, and that by
    its own doing: it works longest between one collective and the next, far beyond chance, whereas
    who was kept waiting is late without. It costs the others a material share of the time, far more
    than it waits itself. Of several it is the one that works longest most often.
    A late start is no lateness: the first part of the capture, warm-up, does not count.
    """
    if len(arrivals.rows) == 0:
        return None
    peers = peer_rows(alignment, arrivals)
    # collectives queued behind another begin together: nobody waited in them
    waited_for = np.maximum.reduceat(arrivals.waits, arrivals.first) >= TIGHT_NS
    ends = alignment.ends[arrivals.rows]
    steady_ns = int(np.quantile(ends[arrivals.first], 1 / 3))
    keep = np.flatnonzero(peers & waited_for[arrivals.instance] & (ends >= steady_ns))
    if len(keep) == 0:
        return None
    units = len(alignment.ledger.units)
    keep = keep[np.lexsort((alignment.starts[arrivals.rows[keep]], arrivals.unit[keep]))]
    unit = arrivals.unit[keep]
    costs = caused_ns(arrivals)
    caused = _lasting(costs[keep], unit, units)
    segments = work_segments_of(alignment, arrivals, peers, steady_ns)
    chance = 1.0 / arrivals.sizes[arrivals.instance[keep]]
    passing = np.isin(np.arange(units), alignment.ledger.unit[point_to_point(alignment.ledger)])
    last = _share(unit, arrivals.last[keep], units)
    longest = _share(segments.unit, segments.longest, units)
    late = (
        (np.bincount(unit, minlength=units) >= LEAST_SHARED)
        & (last > MOSTLY_LAST)
        & (longest > MOSTLY_LAST)
        & _beyond_chance(segments.unit, segments.longest, 1.0 / segments.sizes, units)
        & (_beyond_chance(unit, arrivals.last[keep], chance, units) | passing)
        & (caused >= MATERIAL * _observed(alignment, arrivals.rows[keep]))
        & (_lasting(arrivals.waits[keep], unit, units) < caused)
    )
    candidates = np.flatnonzero(late)
    if len(candidates) == 0:
        return None
    worst = int(candidates[np.argmax(longest[candidates])])
    usual = np.sort(costs[keep[unit == worst]])[-2]
    of_worst = arrivals.synchronising & (arrivals.unit == worst)
    return Straggler(worst, float(last[worst]), np.where(of_worst, np.minimum(costs, usual), 0))


def late_once(
    alignment: Alignment, arrivals: Arrivals, inside: Mask | None = None
) -> list[LateOnce]:
    """Units that kept the others waiting long, but only a few times; the most costly first.

    Transfers between two count for nothing: a receiver waits for data, as it must.
    `inside` masks the rows of the ledger to count.
    """
    if len(arrivals.rows) == 0:
        return []
    passed = point_to_point(alignment.ledger)[arrivals.rows]
    pairs = passed & (arrivals.sizes[arrivals.instance] == 2)
    caused = np.where(pairs, 0, caused_ns(arrivals))
    if inside is not None:
        caused = np.where(inside[arrivals.rows], caused, 0)
    long = caused >= max(MATERIAL * _observed(alignment, arrivals.rows), 1)
    units, times = np.unique(arrivals.unit[long], return_counts=True)
    stragglers = []
    for unit, count in zip(units.tolist(), times.tolist(), strict=True):
        if count < LEAST_SHARED:
            cost = np.where(long & (arrivals.unit == unit), caused, 0)
            stragglers.append(LateOnce(unit, count, int(cost.sum()), int(np.argmax(cost))))
    return sorted(stragglers, key=lambda late: (-late.cost_ns, late.unit))


def _share(unit: Codes, marked: Mask, units: int) -> Floats:
    """The share of its rows in which each unit is marked; 0 without any."""
    counted = np.bincount(unit, minlength=units)
    share: Floats = np.bincount(unit, marked, minlength=units) / np.maximum(counted, 1)
    return share


def _observed(alignment: Alignment, rows: Ints) -> int:
    """From the first start to the last end of some collectives, in ns."""
    return int(alignment.ends[rows].max() - alignment.starts[rows].min())


def _beyond_chance(unit: Codes, marked: Mask, chance: Floats, units: int) -> Mask:
    """Which units are marked more often than the unluckiest by chance; rows by unit and time.

    Slowness lasts, and a run of the same rank proves less than as many separate times: so it must
    be marked in most of each third of its rows as well.
    """
    beyond = np.bincount(unit, marked - chance, minlength=units)
    spread = np.sqrt(np.bincount(unit, chance * (1.0 - chance), minlength=units))
    counted = np.bincount(unit, minlength=units)
    third = (3 * unit + 3 * rows_before(unit) // counted[unit]).astype(np.int32)
    thirds = _share(third, marked, 3 * units).reshape(-1, 3)
    least = (BEYOND_CHANCE + (2.0 * np.log(units)) ** 0.5) * spread
    beyond_chance: Mask = (beyond > least) & (thirds > MOST).all(axis=1)
    return beyond_chance


def _lasting(caused: Ints, unit: Codes, units: int) -> Floats:
    """What each unit cost the others, in ns, without the worst single time."""
    worst = np.zeros(units)
    np.maximum.at(worst, unit, caused)
    lasting: Floats = np.bincount(unit, caused, minlength=units) - worst
    return lasting


NO_INTS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class WorkSegments:
    """Pieces of work that ranks of one group have in common, by unit and then by time.

    `longest` marks who of the `sizes` ranks that did the same piece took longest for it.
    """

    unit: Codes
    longest: Mask
    sizes: Ints


def work_segments_of(
    alignment: Alignment, arrivals: Arrivals, peers: Mask, since_ns: int
) -> WorkSegments:
    """The work before all collectives that peers began from `since_ns` on.

    `peers` marks rows of the arrivals: the collectives that ranks with the same work had together.
    """
    ledger = alignment.ledger
    rows, piece = _pieces(alignment, arrivals, peers)
    keep = ledger.shown[rows] & (alignment.starts[rows] >= since_ns)
    rows, piece = rows[keep], piece[keep]
    work, after = _own_work(ledger)
    longest, clear = _longest(piece, work[rows], after[rows])
    # what begins together with the one before is the same work, and counted once
    fresh = np.diff(ledger.starts, prepend=ledger.starts[:1]) >= TIGHT_NS
    fresh |= np.diff(ledger.unit, prepend=-1) != 0
    clear &= (np.bincount(piece, ~fresh[rows]) == 0)[piece]
    rows, piece, longest = rows[clear], piece[clear], longest[clear]
    order = np.lexsort((alignment.starts[rows], ledger.unit[rows]))
    sizes = np.bincount(piece)[piece]
    return WorkSegments(ledger.unit[rows][order], longest[order], sizes[order])


def _pieces(alignment: Alignment, arrivals: Arrivals, peers: Mask) -> tuple[Ints, Ints]:
    """Rows of the ledger, and which of them end the same piece of work of peers.

    The same: as many collectives that look the same after one that the peers had together.
    """
    ledger = alignment.ledger
    ledger_rows, sinces = [NO_INTS], [NO_INTS]
    unit, part = [NO_INTS], 0
    for group in _by_members(ledger, arrivals, peers):
        rows, instance = arrivals.rows[group], arrivals.instance[group]
        for member in np.unique(arrivals.unit[group]).tolist():
            mine = arrivals.unit[group] == member
            end = int(np.searchsorted(ledger.unit, member, side="right"))
            after = np.arange(int(rows[mine][0]) + 1, end)
            ledger_rows.append(after)
            sinces.append(instance[mine][np.searchsorted(rows[mine], after) - 1])
            unit.append(np.full(len(after), part))
            part += 1
    found, owner = np.concatenate(ledger_rows), np.concatenate(unit)
    kind = np.concatenate(sinces) * len(ledger.signatures) + ledger.signature[found]
    number = rows_before(distinct(kind * max(part, 1) + owner)[1])
    _, piece = distinct(kind * (int(number.max(initial=0)) + 1) + number)
    return found, piece.astype(np.int64)


def _by_members(ledger: Ledger, arrivals: Arrivals, peers: Mask) -> list[Ints]:
    """The peers' rows of the arrivals in ledger order, those of the same ranks together."""
    communicator = ledger.communicator[arrivals.rows]
    members = members_of(ledger, arrivals)
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for code in np.unique(communicator[peers]).tolist():
        groups[members[code]].append(code)
    wanted = (np.flatnonzero(peers & np.isin(communicator, group)) for group in groups.values())
    return [rows[np.argsort(arrivals.rows[rows])] for rows in wanted]


def _own_work(ledger: Ledger) -> tuple[Ints, Ints]:
    """For each row the time since the unit's last collective ended (ns), and its signature.

    Before the first one a unit has worked 0 ns, after nothing known.
    """
    order = np.lexsort((ledger.ends, ledger.unit))
    ended = (ledger.unit[order], ledger.ends[order])
    before = last_before(ended, (ledger.unit, ledger.starts))
    last = order[before]
    work = np.where(before < 0, 0, ledger.starts - ledger.ends[last])
    return work, np.where(before < 0, UNKNOWN, ledger.signature[last])


def _longest(piece: Ints, work: Ints, after: Ints) -> tuple[Mask, Mask]:
    """Who worked longest on each piece; and the rows of pieces that can be compared.

    All began after the like, and did not take the same time.
    """
    order = np.lexsort((work, piece))
    begin = np.flatnonzero(np.diff(piece[order], prepend=-1))
    counts = np.diff(begin, append=len(order))
    end = begin + counts - 1
    longest = np.zeros(len(piece), dtype=np.bool_)
    longest[order[end]] = True
    seen = after[order]
    clear = work[order][end] - work[order][begin] >= TIGHT_NS
    clear &= np.minimum.reduceat(seen, begin) == np.maximum.reduceat(seen, begin)
    comparable = np.empty(len(piece), dtype=np.bool_)
    comparable[order] = np.repeat(clear, counts)
    return longest, comparable
