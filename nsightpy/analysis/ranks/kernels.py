"""Kernels whose time differs between ranks, and what running beside communication costs them.

Ranks do the same work when they run the same kernels in the same proportions (pipeline stages do
not), and only these are compared. Where one captured more iterations than another, all kernels are
more by the same factor, and totals are scaled to the usual amount; a stage with more layers has
more of some kernels only.

Communication takes SMs, memory bandwidth and power from what runs beside it. Launches are
compared that agree in kernel, blocks, threads and the kernel before them on their stream (a product
of the forward pass is not one of the backward pass, though both carry one name).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by, rows_by_group, rows_of_groups
from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.ranks.thresholds import DIFFERENT, LEAST_LAUNCHES, SAME_AMOUNT
from nsightpy.analysis.thresholds import ABOUT, MATERIAL, NEARLY_ALL
from nsightpy.frames import Frame, Ints, Labels


@dataclass(frozen=True, slots=True)
class KernelImbalance:
    """One kernel over the ranks of one kind of work; total times of a rank in ns.

    Totals are scaled to the usual amount of captured work.
    """

    name: str
    ranks: tuple[int, ...]
    total_med_ns: float
    total_mean_ns: float
    total_max_ns: float
    slowest: int
    instances_min: int
    instances_max: int

    @property
    def max_over_mean(self) -> float | None:
        return self.total_max_ns / self.total_mean_ns if self.total_mean_ns else None

    @property
    def excess_ns(self) -> float:
        """What the slowest rank takes beyond the mean."""
        return self.total_max_ns - self.total_mean_ns


# For each rank: kernel name -> (instances, total ns).
Profile: TypeAlias = Mapping[str, tuple[int, int]]


def imbalance_of(
    profiles: Sequence[Profile],
) -> tuple[list[KernelImbalance], list[tuple[int, ...]]]:
    """The kernels of ranks that do the same work, the largest excess first; and the kinds of work,
    each by the places of its ranks."""
    names = list(dict.fromkeys(name for profile in profiles for name in profile))
    figures = [[profile.get(name, (0, 0)) for name in names] for profile in profiles]
    counts, totals = np.moveaxis(
        np.asarray(figures, dtype=np.int64).reshape(len(profiles), len(names), 2), 2, 0
    )
    kinds: dict[int, list[int]] = defaultdict(list)  # by the first rank of each
    for place, own in enumerate(counts):
        alike = (first for first in kinds if _same_work(counts[first], own))
        kinds[next(alike, place)].append(place)
    rows: list[KernelImbalance] = []
    for members in kinds.values():
        own = counts[members]
        scaled = totals[members] / np.asarray([[each or 1.0] for each in _amounts(own)])
        for kernel in np.flatnonzero(own.any(axis=0)).tolist() if len(members) > 1 else ():
            times = scaled[:, kernel]
            slowest = int(np.argmax(times))
            rows.append(
                KernelImbalance(
                    names[kernel],
                    tuple(members),
                    float(np.median(times)),
                    float(times.sum()) / len(times),
                    float(times[slowest]),
                    members[slowest],
                    int(own[:, kernel].min()),
                    int(own[:, kernel].max()),
                )
            )
    rows.sort(key=lambda row: (-row.excess_ns, row.name, row.ranks))
    return rows, [tuple(members) for members in kinds.values()]


def _same_work(own: Ints, other: Ints) -> bool:
    """Whether two ranks run the same kernels in the same proportions, however many iterations."""
    if not own.any() or not other.any():
        return bool(own.any()) == bool(other.any())
    # half the sum of differences of the shares: 0 the same, 1 nothing shared
    if np.abs(own / own.sum() - other / other.sum()).sum() / 2 > DIFFERENT:
        return False
    both = (own > 0) & (other > 0)
    own, other = own[both], other[both]
    usual = float(np.median(other / own))
    if 1 / SAME_AMOUNT <= usual <= SAME_AMOUNT:
        return True
    # A capture may begin or end within an iteration: one iteration's kernels more or less.
    iterations = np.sort(own)[len(own) // 10]
    same = np.abs(other - usual * own) <= np.maximum(ABOUT * usual * own, own / iterations)
    return bool(same.mean() >= NEARLY_ALL)


def _amounts(counts: Ints) -> list[float]:
    """How much of the usual work each rank captured: the median ratio of instances."""
    usual = np.median(counts, axis=0)
    amounts = []
    for own in counts:
        ran = (own > 0) & (usual > 0)
        amounts.append(float(np.median(own[ran] / usual[ran])) if ran.any() else 1.0)
    return amounts


_VARIANT = ("name", "blocks", "threads", "before")


@dataclass(frozen=True, slots=True)
class OverlapCost:
    """One kernel variant: launches and median times in ns alone and beside communication.

    `excess_ns` is what all launches with communication beside them took beyond the median alone.
    """

    name: str
    alone: int
    beside: int
    alone_med_ns: float
    beside_med_ns: float
    excess_ns: float


def overlap_costs(kernels: Frame, communication: Spans) -> list[OverlapCost]:
    """The variants that are slower beside communication, the one that loses most first.

    `kernels` are the compute kernels of one device in the order of their start. A variant counts
    where three quarters of its launches beside are slower than three quarters of those alone.
    """
    starts, ends = kernels.ints("start_ns"), kernels.ints("end_ns")
    durations = ends - starts
    before = measure_before(communication, np.concatenate([ends, starts]))
    shared = before[: len(starts)] - before[len(starts) :]
    if not shared.any():
        return []
    shares = shared / np.maximum(durations, 1)
    variants = group_by(_after_another(kernels), _VARIANT)
    found = []
    by_variant = rows_of_groups(variants.codes, len(variants.keys))
    for (name, *_), rows in zip(variants.keys, by_variant, strict=True):
        if cost := _cost(str(name), durations[rows], shares[rows]):
            found.append(cost)
    return sorted(found, key=lambda cost: -cost.excess_ns)


def _cost(name: str, durations: Ints, shares: NDArray[np.float64]) -> OverlapCost | None:
    alone, beside = durations[shares <= MATERIAL], durations[shares >= NEARLY_ALL]
    if min(len(alone), len(beside)) < LEAST_LAUNCHES:
        return None
    if np.quantile(beside, 0.25) <= np.quantile(alone, 0.75):
        return None
    usual = float(np.median(alone))
    excess = np.maximum(durations[shares > MATERIAL] - usual, 0).sum()
    return OverlapCost(
        name, len(alone), len(beside), usual, float(np.median(beside)), float(excess)
    )


def _after_another(kernels: Frame) -> Frame:
    """The kernels with the name of the one before each on its stream."""
    names = kernels.labels("name")
    streams = group_by(kernels, ("pid", "stream")).codes
    order = rows_by_group(streams)
    before = np.full(len(order), len(names.values), dtype=names.codes.dtype)
    follows = streams[order[1:]] == streams[order[:-1]]
    before[order[1:][follows]] = names.codes[order[:-1][follows]]
    return Frame({**kernels, "before": Labels(before, (*names.values, ""))})
