"""Collectives by operation, size and group: durations, bandwidths, who is late, what is abnormal.

algbw = S / t with t the shortest participant's duration and S the bytes of the whole operation
(AllGather, ReduceScatter: n times a rank's part); busbw = algbw x the factor of nccl-tests, so
that it is the speed of the wire whatever the operation: AllReduce 2(n-1)/n; AllGather,
ReduceScatter and AllToAll (n-1)/n; Broadcast, Reduce and SendRecv 1.

An instance lasts as long as its middle participant, the longer of two: at least half of the ranks
took that long, so one early bird among many makes no slow instance. It is abnormal beyond
median + 8 normalised median deviations of its operation, size and group, and beyond twice it.
Where sizes are not known, some that are equally long are of another size, and not abnormal.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.clock_alignment.fit import NORMAL
from nsightpy.analysis.collectives.log import UNKNOWN, Mask, Signature
from nsightpy.analysis.collectives.thresholds import LEAST_SHARED
from nsightpy.analysis.grouping import group_by, rows_of_groups
from nsightpy.analysis.intervals import consecutive
from nsightpy.analysis.ranks.arrivals import Arrivals, members_of
from nsightpy.analysis.ranks.thresholds import DEVIATIONS, LEAST_RATIO, LEAST_USUAL
from nsightpy.analysis.thresholds import CLOSE
from nsightpy.frames import Frame, Ints, distinct_pairs


@dataclass(frozen=True, slots=True)
class Abnormal:
    """One instance far beyond the median of its kind; times in ns of the common clock.

    `rows` are its places in the ledger; `late_unit` is whom it waited for, None for nobody.
    `whole` is False where no second rank was captured, so that waiting cannot be known.
    """

    start_ns: int
    duration_ns: int
    usual_ns: float
    late_unit: int | None
    rows: tuple[int, ...]
    whole: bool = True

    @property
    def ratio(self) -> float:
        return self.duration_ns / self.usual_ns if self.usual_ns else float("inf")


def middle(values: Ints) -> int:
    """The middle of some values, the larger of two."""
    return int(np.partition(values, len(values) // 2)[len(values) // 2])


def beyond_usual(lengths: Ints, sized: bool) -> tuple[Mask, float]:
    """Which instances of one kind are abnormal, and their median in ns; none of a few.

    `sized`: the sizes are known, so that all of them move as many bytes.
    """
    if len(lengths) < LEAST_USUAL:
        return np.zeros(len(lengths), dtype=np.bool_), 0.0
    usual = float(np.median(lengths))
    deviation = NORMAL * float(np.median(np.abs(lengths - usual)))
    limit = max(usual + DEVIATIONS * deviation, LEAST_RATIO * usual)
    beyond = lengths > limit
    if not sized:
        ordered = np.sort(lengths)
        low, high = (np.searchsorted(ordered, (1 + by) * lengths) for by in (-CLOSE, CLOSE))
        beyond &= high - low <= LEAST_SHARED
    return beyond, usual


PER_RANK = frozenset({"AllGather", "AllGatherV", "ReduceScatter"})
SHARED = frozenset({*PER_RANK, "AllToAll"})
_KIND = ("unit", "signature", "communicator")


@dataclass(frozen=True, slots=True)
class GroupedCollective:
    """The instances of one operation and size in one group of units; times are medians in ns.

    `size` is the group's true size (0: not known). `sums_ns` adds all instances: the shortest
    participants' times, and the waits and durations of all ranks.
    Without a counterpart in another report only durations are known.
    """

    signature: Signature
    units: tuple[int, ...]
    size: int
    instances: int
    duration_med_ns: float
    transfer_med_ns: float | None
    jitter_med_ns: float | None
    last_unit: int | None
    last_share: float | None
    abnormal: tuple[Abnormal, ...]
    sums_ns: tuple[int, ...] = ()
    communicators: frozenset[int] = frozenset()

    @property
    def ranks(self) -> int:
        return self.size or len(self.units)

    @property
    def bytes(self) -> int | None:
        """The bytes of the whole operation; None where the payload does not say."""
        if self.signature.bytes < 0:
            return None
        return self.signature.bytes * (self.ranks if self.signature.operation in SHARED else 1)

    @property
    def algbw_gb_per_s(self) -> float | None:
        """Bytes per ns, that is GB/s."""
        return self._rate(self.transfer_med_ns)

    @property
    def busbw_gb_per_s(self) -> float | None:
        """The bandwidth of the bus, as nccl-tests counts it, in GB/s."""
        return self._rate(self.transfer_med_ns, bus_factor(self.signature, self.ranks))

    @property
    def busbw_with_wait_gb_per_s(self) -> float | None:
        """The same of the whole duration on a rank, in GB/s: what arrived late counts as slow."""
        return self._rate(self.duration_med_ns, bus_factor(self.signature, self.ranks))

    def _rate(self, ns: float | None, factor: float = 1.0) -> float | None:
        return None if self.bytes is None or not ns else self.bytes / ns * factor


def bus_factor(signature: Signature, ranks: int) -> float:
    """Bytes over the bus per byte of the operation.

    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    if signature.operation == "AllReduce":
        return 2.0 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if signature.operation in SHARED else 1.0


def grouped_collectives(alignment: Alignment, arrivals: Arrivals) -> list[GroupedCollective]:
    """All groups, the one with most time first; collectives without counterpart by their unit."""
    ledger = alignment.ledger
    members, first = members_of(ledger, arrivals), arrivals.rows[arrivals.first]
    kinds: dict[tuple[int, tuple[int, ...], int], list[int]] = defaultdict(list)
    pairs = zip(ledger.signature[first].tolist(), ledger.communicator[first].tolist(), strict=True)
    for instance, (signature, code) in enumerate(pairs):
        kinds[signature, members[code], ledger.group_sizes[code]].append(instance)
    groups = [
        _summed(alignment, arrivals, ledger.signatures[kind], units, size, np.asarray(instances))
        for (kind, units, size), instances in kinds.items()
    ]

    def order(group: GroupedCollective) -> tuple[Any, ...]:
        spent_ns = group.duration_med_ns * group.instances * len(group.units)
        return -spent_ns, group.signature, group.units

    return sorted([*groups, *_alone(alignment)], key=order)


def _summed(
    alignment: Alignment,
    arrivals: Arrivals,
    signature: Signature,
    units: tuple[int, ...],
    size: int,
    instances: Ints,
) -> GroupedCollective:
    """What all instances of one operation and size in one group (its units, its size) are like."""
    sizes = arrivals.sizes[instances]
    rows = consecutive(arrivals.first[instances], sizes)
    shortest = arrivals.shortest()
    whole = sizes == len(units)
    counted = instances[whole] if whole.any() else instances
    jitter = arrivals.durations[rows] - shortest[arrivals.instance[rows]]
    times = (shortest[instances], arrivals.waits[rows], arrivals.durations[rows])
    last = arrivals.unit[rows[arrivals.last[rows]]]
    names, votes = np.unique(last, return_counts=True)
    often = int(names[np.argmax(votes)]) if len(names) else None
    edges = np.append(arrivals.first, len(arrivals.rows))
    within = [slice(*edges[i : i + 2].tolist()) for i in instances.tolist()]
    spans = [arrivals.rows[span] for span in within]
    lengths = np.asarray([middle(arrivals.durations[span]) for span in within], dtype=np.int64)

    def late(index: int, beyond_ns: float) -> int | None:
        """Whom an instance waited for, if that explains half of what it is too long."""
        last = arrivals.unit[within[index]][arrivals.last[within[index]]]
        waited = len(last) > 0 and middle(arrivals.waits[within[index]]) > 0.5 * beyond_ns
        return int(last[0]) if waited else None

    return GroupedCollective(
        signature,
        units,
        size,
        len(instances),
        float(np.median(arrivals.durations[rows])),
        float(np.median(shortest[counted])),
        float(np.median(jitter)),
        often,
        int(votes.max()) / len(instances) if len(names) else None,
        _abnormal(alignment, spans, lengths, signature.bytes >= 0, late),
        tuple(int(each.sum()) for each in times),
        frozenset(alignment.ledger.communicator[arrivals.rows[arrivals.first[instances]]].tolist()),
    )


def _abnormal(
    alignment: Alignment,
    spans: Sequence[Ints],
    lengths: Ints,
    sized: bool,
    late: Callable[[int, float], int | None] = lambda *_: None,
) -> tuple[Abnormal, ...]:
    """The instances (their rows of the ledger) far beyond the usual length, the worst first."""
    beyond, usual = beyond_usual(lengths, sized)
    cases = []
    for index in np.flatnonzero(beyond).tolist():
        rows, length = spans[index], int(lengths[index])
        start = int(alignment.starts[rows].min()) + alignment.base_ns
        whose = late(index, length - usual)
        cases.append(Abnormal(start, length, usual, whose, tuple(rows.tolist()), len(rows) > 1))
    return tuple(sorted(cases, key=lambda case: (-case.ratio, case.start_ns)))


def _alone(alignment: Alignment) -> list[GroupedCollective]:
    """What has no counterpart, where nothing of its unit and kind has one: one report, one rank."""
    ledger, matched = alignment.ledger, alignment.instances.matched
    rows = np.flatnonzero(~matched & ledger.shown)
    columns = {name: getattr(ledger, name).astype(np.int64) for name in _KIND}
    matched_kinds, _ = distinct_pairs(*(columns[name][matched] for name in _KIND[:2]))
    groups = group_by(Frame({name: column[rows] for name, column in columns.items()}), _KIND)
    unmatched = []
    for key, own in zip(groups.keys, rows_of_groups(groups.codes, len(groups.keys)), strict=True):
        unit, signature, communicator = (int(value or 0) for value in key)
        if (unit, signature) in matched_kinds:
            continue
        mine = rows[own]
        durations = (alignment.ends - alignment.starts)[mine]
        size = ledger.group_sizes[communicator] if communicator != UNKNOWN else 0
        rows_of = list(mine[:, None])
        unmatched.append(
            GroupedCollective(
                ledger.signatures[signature],
                (unit,),
                size,
                len(mine),
                float(np.median(durations)),
                *(None, None, None, None),
                _abnormal(alignment, rows_of, durations, ledger.signatures[signature].bytes >= 0),
            )
        )
    return unmatched
