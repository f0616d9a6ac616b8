"""What synchronising calls cost a device: only the part of them in which it did nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import Spans, overlap_total, union
from nsightpy.frames import Frame


@dataclass(frozen=True, slots=True)
class SyncCost:
    """The calls of one API function that touch a window: their lengths, and the idle time in them.

    Times in ns. idle_ns is measured on the union of the calls: two threads that wait at once do
    not count twice.
    """

    api: str
    calls: int
    total_ns: int
    median_ns: float
    longest_ns: int
    idle_ns: int


def sync_costs(calls: Frame, window: Spans, idle: Spans) -> list[SyncCost]:
    """The cost per API function of one process's calls (start_ns, end_ns, name), the most first."""
    start, end = calls.ints("start_ns"), calls.ints("end_ns")
    if not len(window) or not calls.rows:
        return []
    names = calls.labels("name").merged()
    touches = (end > window.starts[0]) & (start < window.ends[-1])
    costs = []
    for code, api in enumerate(names.values):
        mine = touches & (names.codes == code)
        if not mine.any():
            continue
        lengths = end[mine] - start[mine]
        lost = overlap_total(union(start[mine], end[mine]), idle & window)
        costs.append(
            SyncCost(
                api,
                len(lengths),
                int(lengths.sum()),
                float(np.median(lengths)),
                int(lengths.max()),
                lost,
            )
        )
    return sorted(costs, key=lambda cost: (-cost.idle_ns, -cost.total_ns, cost.api))
