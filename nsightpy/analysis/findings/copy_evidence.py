"""What the memory operations of one device cost in a window, by direction; unified memory apart.

Memory sets write what a copy within the device would: they count with those.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsightpy.analysis.findings.evidence import NONE, Evidence, Group, Place
from nsightpy.analysis.findings.thresholds import BEGUN
from nsightpy.analysis.intervals import (
    NOTHING,
    Spans,
    measure_before,
    overlap_total,
    spans_of,
    union,
)
from nsightpy.analysis.memory.copies import (
    DIRECTIONS,
    PAGEABLE,
    SETS,
    UNIFIED,
    host_memory,
    large,
)
from nsightpy.frames import Frame


def with_copies(row: Evidence, operations: Frame, kernels: Spans) -> Evidence:
    """A device's row with what its memory operations cost; copies under 16 KiB count as small only.

    `kernels` is when any ran. Pageable memory's by_name is its time without kernels, by direction.
    """
    window, names, is_large = row.budget.window, operations.labels("operation"), large(operations)
    start, end = operations.ints("start_ns"), operations.ints("end_ns")
    inside = measure_before(window, end) > measure_before(window, start)
    ways = {way: names.equals(wanted) for way, wanted in DIRECTIONS.items()}
    copies = np.logical_or.reduce(list(ways.values()))
    masks = {way: mask & is_large for way, mask in ways.items()}
    masks["small"] = copies & ~names.equals([SETS]) & ~is_large
    masks["unified"] = names.where(lambda name: name.startswith(UNIFIED))
    masks["pageable"] = is_large & host_memory(operations).equals([PAGEABLE])
    alone, edges = window - kernels, _around_work(kernels & window)
    groups = {
        name: _group(operations.take(mask & inside), window, alone, edges)
        for name, mask in masks.items()
    }
    by_way = {
        way: (spans_of(operations.take(mask & masks["pageable"])) & alone).total
        for way, mask in ways.items()
    }
    groups["pageable"] = replace(groups["pageable"], by_name=by_way)
    return row.having(groups)


def graph_group(graphs: Frame, window: Spans) -> Group:
    """The CUDA graphs of one device that were traced as a whole."""
    start, end = graphs.ints("start_ns"), graphs.ints("end_ns")
    lasted = measure_before(window, end) - measure_before(window, start)
    if not lasted.any():
        return NONE
    busy, worst = (union(start, end) & window).total, Place.worst(start, end, lasted)
    return Group(busy, busy, count=int(np.count_nonzero(lasted)), worst=worst)


def _around_work(kernels: Spans) -> Spans:
    """The time until a tenth of the kernels' time has passed, and when only a tenth is left."""
    if not len(kernels):
        return NOTHING
    done = np.cumsum(kernels.ends - kernels.starts)
    first, last = np.searchsorted(done, (BEGUN * kernels.total, (1 - BEGUN) * kernels.total))
    limits = np.iinfo(np.int64)
    begin, end = int(kernels.starts[first]), int(kernels.ends[last])
    return Spans.of(limits.min, begin) | Spans.of(end, limits.max)


def _group(copies: Frame, window: Spans, alone: Spans, edges: Spans) -> Group:
    """The group of some operations in a window, in its part `alone` and at the edges of work."""
    if not copies.rows:
        return NONE
    start, end = copies.ints("start_ns"), copies.ints("end_ns")
    busy, exposed = spans_of(copies) & window, spans_of(copies) & alone
    inside = measure_before(window, end) - measure_before(window, start)
    cost = measure_before(exposed, end) - measure_before(exposed, start)
    sizes = np.maximum(copies.ints("bytes"), 0)
    return Group(
        busy_ns=busy.total,
        alone_ns=exposed.total,
        work_ns=int(inside.sum()),
        edge_ns=overlap_total(exposed, edges),
        count=copies.rows,
        bytes=round((sizes * (inside / (end - start))).sum()),
        detail=int(np.count_nonzero(host_memory(copies).equals([PAGEABLE]))),
        worst=Place.worst(start, end, cost),
    )
