"""What the memory operations of one device cost in a window, by direction; unified memory apart.

Memory sets write what a copy within the device would: they count with those.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.findings.groups import NONE, Group, Place
from nsightpy.analysis.findings.thresholds import BEGUN
from nsightpy.analysis.intervals import NOTHING, Spans, measure_before, overlap_total, union
from nsightpy.analysis.memory.copies import (
    DIRECTIONS,
    PAGEABLE,
    SETS,
    UNIFIED,
    host_memory,
    large,
)
from nsightpy.frames import Frame


def copy_groups(operations: Frame, kernels: Spans, window: Spans) -> dict[str, Group]:
    """The groups of one device's memory operations; copies under 16 KiB count as small only.

    `kernels` is when any ran. A group's by_name is its time without kernels, by direction.
    """
    names, is_large = operations.labels("operation"), large(operations)
    start, end = operations.ints("start_ns"), operations.ints("end_ns")
    inside = measure_before(window, end) > measure_before(window, start)
    ways = {way: names.equals(wanted) for way, wanted in DIRECTIONS.items()}
    copies = np.logical_or.reduce(list(ways.values()))
    unified = names.where(lambda name: name.startswith(UNIFIED))
    masks = {way: mask & is_large for way, mask in ways.items()}
    masks["small"] = copies & ~names.equals([SETS]) & ~is_large
    masks["unified"] = unified
    masks["pageable"] = is_large & host_memory(operations).equals([PAGEABLE])
    edges, alone = _around_work(kernels & window), window - kernels
    groups = {}
    for group, mask in masks.items():
        rows = np.flatnonzero(mask & inside)
        by_name = {
            f"exposed-{way}": alone_ns
            for way, mask_of_way in ways.items()
            if (alone_ns := _alone(operations, rows[mask_of_way[rows]], alone).total)
        }
        groups[group] = _group(operations, rows, (window, alone, edges), by_name)
    return groups


def graph_group(graphs: Frame, window: Spans) -> Group:
    """The CUDA graphs of one device that were traced as a whole."""
    start, end = graphs.ints("start_ns"), graphs.ints("end_ns")
    lasted = measure_before(window, end) - measure_before(window, start)
    if not lasted.any():
        return NONE
    at = int(np.argmax(lasted))
    busy = (union(start, end) & window).total
    place = Place(int(start[at]), int(end[at] - start[at]))
    return Group(busy, busy, count=int(np.count_nonzero(lasted)), worst=place)


def _around_work(kernels: Spans) -> Spans:
    """The time until a tenth of the kernels' time has passed, and when only a tenth is left."""
    if not len(kernels):
        return NOTHING
    done = np.cumsum(kernels.ends - kernels.starts)
    first, last = np.searchsorted(done, (BEGUN * kernels.total, (1 - BEGUN) * kernels.total))
    limits = np.iinfo(np.int64)
    begin, end = int(kernels.starts[first]), int(kernels.ends[last])
    return Spans.of(limits.min, begin) | Spans.of(end, limits.max)


def _alone(operations: Frame, rows: NDArray[np.int64], alone: Spans) -> Spans:
    return union(operations.ints("start_ns")[rows], operations.ints("end_ns")[rows]) & alone


def _group(
    operations: Frame,
    rows: NDArray[np.int64],
    times: tuple[Spans, Spans, Spans],
    by_name: dict[str, int],
) -> Group:
    """The group of some rows in a window, in its part without kernels and at the edges of work."""
    if not len(rows):
        return NONE
    window, alone, edges = times
    start, end = operations.ints("start_ns")[rows], operations.ints("end_ns")[rows]
    busy, exposed = union(start, end) & window, _alone(operations, rows, alone)
    inside = measure_before(window, end) - measure_before(window, start)
    cost = measure_before(exposed, end) - measure_before(exposed, start)
    worst = int(np.argmax(cost))
    sizes = np.maximum(operations.ints("bytes")[rows], 0)
    return Group(
        busy_ns=busy.total,
        alone_ns=exposed.total,
        work_ns=int(inside.sum()),
        edge_ns=overlap_total(exposed, edges),
        count=len(rows),
        bytes=round((sizes * (inside / (end - start))).sum()),
        detail=int(np.count_nonzero(host_memory(operations).equals([PAGEABLE])[rows])),
        worst=Place(int(start[worst]), int(end[worst] - start[worst])),
        by_name=by_name,
    )
