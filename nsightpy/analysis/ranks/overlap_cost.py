"""What running beside communication costs kernels: the same kernel beside it and alone.

Communication takes SMs, memory bandwidth and power from what runs beside it. Launches are
compared that agree in kernel, blocks, threads and the kernel before them on their stream (a product
of the forward pass is not one of the backward pass, though both carry one name).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by, rows_by_group
from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.ranks.thresholds import ALONE_SHARE, BESIDE_SHARE, LEAST_LAUNCHES
from nsightpy.frames import Frame, Ints, Labels

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

    @property
    def factor(self) -> float:
        return self.beside_med_ns / self.alone_med_ns


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
    launches = np.bincount(variants.codes)
    found = []
    for rows in np.split(rows_by_group(variants.codes), np.cumsum(launches)[:-1]):
        name = str(variants.keys[variants.codes[rows[0]]][0])
        cost = _cost(name, durations[rows], shares[rows])
        found += [] if cost is None else [cost]
    return sorted(found, key=lambda cost: -cost.excess_ns)


def _cost(name: str, durations: Ints, shares: NDArray[np.float64]) -> OverlapCost | None:
    alone, beside = durations[shares <= ALONE_SHARE], durations[shares >= BESIDE_SHARE]
    if min(len(alone), len(beside)) < LEAST_LAUNCHES:
        return None
    if np.quantile(beside, 0.25) <= np.quantile(alone, 0.75):
        return None
    usual = float(np.median(alone))
    excess = np.maximum(durations[shares > ALONE_SHARE] - usual, 0).sum()
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
