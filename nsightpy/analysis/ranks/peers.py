"""Which ranks do the same work: those of a group that are no stages of one pipeline."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import POINT_TO_POINT, Ledger, Mask
from nsightpy.analysis.grouping import connected
from nsightpy.analysis.ranks.arrivals import Arrivals, members_of


def peer_rows(alignment: Alignment, arrivals: Arrivals) -> Mask:
    """The rows of the arrivals that are synchronising collectives of ranks with the same work.

    Stages of a pipeline do different work: a group counts when none of its ranks passes data on to
    another one of it, point to point, by way of others as well. Nor does it count when its ranks
    have point to point and some of them are a group by themselves, as in the whole job.
    """
    ledger = alignment.ledger
    communicator = ledger.communicator[arrivals.rows]
    synchronising = set(np.unique(communicator[arrivals.synchronising]).tolist())
    members = {
        code: frozenset(units)
        for code, units in members_of(ledger, arrivals).items()
        if code in synchronising
    }
    passes = point_to_point(ledger)
    pipeline = _pipelines(arrivals, passes[arrivals.rows], len(ledger.units))
    passing = set(np.unique(ledger.unit[passes]).tolist())
    peers = [
        code
        for code, units in members.items()
        if len({pipeline[unit] for unit in units}) == len(units)
        and not (units & passing and any(other < units for other in members.values()))
    ]
    return arrivals.synchronising & np.isin(communicator, peers)


def point_to_point(ledger: Ledger) -> Mask:
    """The rows of the ledger that pass data from rank to rank."""
    of_signature = np.asarray(
        [signature.operation in POINT_TO_POINT for signature in ledger.signatures], np.bool_
    )
    return of_signature[ledger.signature]


def _pipelines(arrivals: Arrivals, passes: Mask, units: int) -> list[int]:
    """For each unit the first one of those that transfers between two (`passes`) tie it to."""
    begins = arrivals.first[passes[arrivals.first] & (arrivals.sizes == 2)]
    pairs = np.stack((arrivals.unit[begins], arrivals.unit[begins + 1]), axis=1)
    roots = connected(pairs.ravel(), np.repeat(np.arange(len(pairs)), 2), units)
    return [int(root) for root in roots]
