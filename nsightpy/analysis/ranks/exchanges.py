"""Who sends to whom, and what that says: which ranks do the same work, and pipeline stages.

Stages are chains of ranks that hand each other something, two by two, and nobody else. Rings and
rank pairs that branch are no pipeline whose stages could be distinguished: ring attention looks
like that, and so does an interleaved schedule.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import POINT_TO_POINT, UNKNOWN, Ledger, Mask
from nsightpy.analysis.grouping import connected
from nsightpy.analysis.ranks.arrivals import Arrivals, members_of
from nsightpy.frames import Ints


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
    # for each unit the first one of those that transfers between two tie it to
    begins = arrivals.first[passes[arrivals.rows][arrivals.first] & (arrivals.sizes == 2)]
    pairs = np.stack((arrivals.unit[begins], arrivals.unit[begins + 1]), axis=1)
    groups = np.repeat(np.arange(len(pairs)), 2)
    pipeline = connected(pairs.ravel(), groups, len(ledger.units)).tolist()
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
    passes = [signature.operation in POINT_TO_POINT for signature in ledger.signatures]
    return np.asarray(passes, dtype=np.bool_)[ledger.signature]


@dataclass(frozen=True)
class Exchanges:
    """What a unit exchanged with its neighbours, by start: in ns of its report, and the streams.

    `waits` are ns from the own start until the other side had come.
    """

    starts: Ints
    ends: Ints
    streams: Ints
    waits: Ints


def _is_exchange(alignment: Alignment, arrivals: Arrivals) -> Mask:
    """Which rows of the arrivals are an exchange of two units."""
    ledger = alignment.ledger
    # a payload that names several partners is no exchange of two
    pairs = [UNKNOWN not in communicator.ranks for communicator in ledger.communicators]
    exchanges: Mask = point_to_point(ledger)[arrivals.rows]
    exchanges &= np.asarray([*pairs, False])[ledger.communicator[arrivals.rows]]
    exchanges &= (arrivals.sizes == 2)[arrivals.instance]
    return exchanges


def pipeline_stages(alignment: Alignment, arrivals: Arrivals) -> dict[int, int]:
    """The stage of each unit of the pipelines that exchanges show."""
    clocks = (alignment.clocks[unit.clock] for unit in alignment.ledger.units)
    ranks = {unit: clock.rank for unit, clock in enumerate(clocks) if clock.rank is not None}
    fits = _is_exchange(alignment, arrivals)
    units, instance = arrivals.unit[fits], arrivals.instance[fits]
    order = np.lexsort((units, instance))
    neighbours: dict[int, set[int]] = defaultdict(set)
    for unit, other in np.unique(units[order].reshape(-1, 2), axis=0).tolist():
        neighbours[unit].add(other)
        neighbours[other].add(unit)
    return stages_of_chains(neighbours, ranks)


def stages_of_chains(neighbours: dict[int, set[int]], ranks: dict[int, int]) -> dict[int, int]:
    """The stage of each unit of a chain, from the end with the lowest rank on; none of others."""
    stages: dict[int, int] = {}
    ends = (unit for unit, others in neighbours.items() if len(others) == 1)
    for end in sorted(ends, key=lambda unit: ranks.get(unit, unit)):
        chain = [end]
        while len(following := neighbours[chain[-1]] - set(chain[-2:-1])) == 1:
            chain += following
        if end not in stages and len(neighbours[chain[-1]]) == 1:
            stages |= {unit: stage for stage, unit in enumerate(chain)}
    return stages


def by_unit(alignment: Alignment, arrivals: Arrivals) -> dict[int, Exchanges]:
    """The exchanges of each unit."""
    ledger, fits = alignment.ledger, _is_exchange(alignment, arrivals)
    # two that exchange something end together: what one lasts longer it waited, whatever the clocks
    rows = arrivals.rows[fits]
    waits = (arrivals.durations - arrivals.shortest()[arrivals.instance])[fits]
    exchanges = {}
    for unit in np.unique(arrivals.unit[fits]).tolist():
        # the ledger holds each unit's rows by start
        own = np.flatnonzero(arrivals.unit[fits] == unit)
        own = own[np.argsort(rows[own])]
        ahead, found = alignment.ledger_ahead_ns(unit), rows[own]
        starts, ends = ledger.starts[found] - ahead, ledger.ends[found] - ahead
        exchanges[unit] = Exchanges(starts, ends, ledger.stream[found].astype(np.int64), waits[own])
    return exchanges
