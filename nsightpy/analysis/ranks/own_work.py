"""Who works longest on the same part of a job, between one collective and the next.

A rank that was kept waiting comes late to its next collective as well, but it has not worked
longer. Own work is the time from the end of a rank's collective to the start of its next one: it
is taken from one clock, and free of what others cost the rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import UNKNOWN, Codes, Ledger, Mask
from nsightpy.analysis.collectives.thresholds import TIGHT_NS
from nsightpy.analysis.grouping import rows_before
from nsightpy.analysis.ranks.arrivals import Arrivals, members_of
from nsightpy.frames import Ints, distinct, last_before

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
    clear &= (np.bincount(piece, ~fresh[rows]) == 0)[piece] if len(piece) else clear
    rows, piece, longest = rows[clear], piece[clear], longest[clear]
    sizes = np.bincount(piece)[piece] if len(piece) else piece
    order = np.lexsort((alignment.starts[rows], ledger.unit[rows]))
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
    groups: dict[tuple[int, ...], list[int]] = {}
    for code in np.unique(communicator[peers]).tolist():
        groups.setdefault(members[code], []).append(code)
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
    begin = np.flatnonzero(np.append(True, np.diff(piece[order]) != 0)[: len(order)])
    end = np.append(begin[1:], len(order))[: len(begin)] - 1
    longest = np.zeros(len(piece), dtype=np.bool_)
    longest[order[end]] = True
    clear = work[order][end] - work[order][begin] >= TIGHT_NS
    if len(order):
        seen = after[order]
        clear &= np.minimum.reduceat(seen, begin) == np.maximum.reduceat(seen, begin)
    comparable = np.empty(len(piece), dtype=np.bool_)
    comparable[order] = np.repeat(clear, end - begin + 1)
    return longest, comparable
