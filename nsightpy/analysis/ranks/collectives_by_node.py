"""Collectives whose groups stay within a node, and those that cross nodes, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.collectives.log import Signature
from nsightpy.analysis.ranks.arrivals import Arrivals, members_of
from nsightpy.analysis.ranks.collective_groups import SHARED, bus_factor

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
    by_place: dict[tuple[str, str], list[_Kind]] = {}
    for owner, kind in np.unique(pairs, axis=1).T.tolist():
        if owner in members:
            mine = (communicator == owner) & (signature == kind)
            units, size = members[owner], ledger.group_sizes[owner]
            nodes = [hosts[unit] for unit in units]
            key = (_place(nodes, size), ledger.signatures[kind].operation)
            times = (int(transfer[mine].sum()), int(waits[mine].sum()), int(lengths[mine].sum()))
            count = int(np.count_nonzero(mine))
            by_place.setdefault(key, []).append(
                _Kind(
                    owner, ledger.signatures[kind], size or len(units), tuple(nodes), count, times
                )
            )
    traffic = [_summed(*key, kinds) for key, kinds in by_place.items()]
    return sorted(traffic, key=lambda row: (-row.duration_ns, row.place, row.operation))


@dataclass(frozen=True, slots=True)
class _Kind:
    """The instances of one signature in one communicator; times are transfer, wait, duration."""

    communicator: int
    signature: Signature
    ranks: int
    hosts: tuple[str, ...]
    count: int
    times: tuple[int, int, int]

    @property
    def bytes(self) -> int:
        shared = self.signature.operation in SHARED
        return self.count * self.signature.bytes * (self.ranks if shared else 1)


def _summed(place: str, operation: str, kinds: Sequence[_Kind]) -> NodeTraffic:
    sized = all(kind.signature.bytes >= 0 for kind in kinds)
    bus = sum(kind.bytes * bus_factor(kind.signature, kind.ranks) for kind in kinds)
    transfer, wait, duration = (sum(kind.times[n] for kind in kinds) for n in range(3))
    return NodeTraffic(
        place,
        operation,
        len({kind.communicator for kind in kinds}),
        len({host for kind in kinds for host in kind.hosts} - {""}),
        sum(kind.count for kind in kinds),
        sum(kind.bytes for kind in kinds) if sized else None,
        bus if sized else None,
        transfer,
        wait,
        duration,
    )


def _place(hosts: Sequence[str], size: int) -> str:
    """Where a group is; members that were not captured may be anywhere."""
    known = set(hosts)
    if "" in known:
        return UNKNOWN_PLACE
    if len(known) > 1:
        return ACROSS
    return WITHIN if size <= len(hosts) else UNKNOWN_PLACE
