"""Collectives whose groups stay within a node, and those that cross nodes, side by side."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.ranks.arrivals import Arrivals, members_of
from nsightpy.analysis.ranks.collective_groups import SHARED, bus_factor
from nsightpy.analysis.tally import Key, summed

WITHIN, ACROSS, UNKNOWN_PLACE = "within a node", "across nodes", "not known"


@dataclass(frozen=True, slots=True)
class NodeTraffic:
    """All instances of one operation in groups of one place; times are sums in ns.

    `bytes` adds the sizes of whole operations, `bus_bytes` what nccl-tests counts on the bus; None
    where sizes are not recorded. transfer: the shortest participant of each instance; wait and
    duration add all ranks.
    """

    place: str
    operation: str
    groups: int
    nodes: int
    instances: int
    bytes: int | None
    bus_bytes: float | None
    transfer_ns: int
    wait_ns: int
    duration_ns: int

    @property
    def busbw_gb_per_s(self) -> float | None:
        """Bytes per ns, that is GB/s."""
        if self.bus_bytes is None or not self.transfer_ns:
            return None
        return self.bus_bytes / self.transfer_ns

    @property
    def wait_share(self) -> float | None:
        return self.wait_ns / self.duration_ns if self.duration_ns else None


def traffic_by_node(
    alignment: Alignment, arrivals: Arrivals, wanted: frozenset[int]
) -> list[NodeTraffic]:
    """The traffic of groups that have any of the wanted units, most time first."""
    ledger = alignment.ledger
    if not len(arrivals.first):
        return []
    hosts = [alignment.clocks[unit.clock].host for unit in ledger.units]
    members = {
        communicator: units
        for communicator, units in members_of(ledger, arrivals).items()
        if wanted.intersection(units)
    }
    rows = arrivals.rows[arrivals.first]
    communicator, signature = ledger.communicator[rows], ledger.signature[rows]
    transfer = arrivals.shortest()
    waits = np.add.reduceat(arrivals.waits, arrivals.first)
    lengths = np.add.reduceat(arrivals.durations, arrivals.first)
    pairs = np.stack([communicator, signature]).astype(np.int64)
    parts: list[dict[Key, list[float]]] = []
    groups: dict[Key, set[int]] = defaultdict(set)
    nodes: dict[Key, set[str]] = defaultdict(set)
    for owner, kind in np.unique(pairs, axis=1).T.tolist():
        if owner in members:
            mine = (communicator == owner) & (signature == kind)
            what, size = ledger.signatures[kind], ledger.group_sizes[owner]
            own, ranks = [hosts[unit] for unit in members[owner]], size or len(members[owner])
            key = (_place(own, size), what.operation)
            count = int(np.count_nonzero(mine))
            whole = count * what.bytes * (ranks if what.operation in SHARED else 1)
            moved = whole if what.bytes >= 0 else math.nan
            times = (int(part[mine].sum()) for part in (transfer, waits, lengths))
            parts.append({key: [count, moved, moved * bus_factor(what, ranks), *times]})
            groups[key].add(owner)
            nodes[key].update(own)
    traffic = [
        NodeTraffic(
            str(key[0]),
            str(key[1]),
            len(groups[key]),
            len(nodes[key] - {""}),
            int(count),
            None if math.isnan(moved) else int(moved),
            None if math.isnan(bus) else bus,
            *map(int, times),
        )
        for key, (count, moved, bus, *times) in summed(parts).items()
    ]
    return sorted(traffic, key=lambda row: (-row.duration_ns, row.place, row.operation))


def _place(hosts: Sequence[str], size: int) -> str:
    """Where a group is; members that were not captured may be anywhere."""
    known = set(hosts)
    if "" in known:
        return UNKNOWN_PLACE
    if len(known) > 1:
        return ACROSS
    return WITHIN if size <= len(hosts) else UNKNOWN_PLACE
