"""What the copies of one device cost in a window, by direction; unified memory apart.

Memory sets write what a copy within the device would: they count with those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.intervals import NOTHING, Spans, measure_before, overlap_total, union
from nsightpy.analysis.memory.copies import (
    DIRECTIONS,
    PAGEABLE,
    SETS,
    UNIFIED,
    host_memory,
    large,
)
from nsightpy.frames import Frame, distinct

# What is done before this part of the kernels' time, or when only this is left, was done once, as
# this part of the copies.
BEFORE, ONE_OFF = 0.1, 0.9
# Streams that share work have at least this part of what each would have if all had the same.
EVEN = 0.25


@dataclass(frozen=True, slots=True)
class CopyUse:
    """Some copies that touch a window: united time in it, and the part without kernels, in ns.

    `bytes` are those copied inside the window, as far as sizes are known; start and duration are
    those of the copy that was exposed longest. `edge_ns`: what was exposed before a tenth of the
    kernels' time had passed, or after all but a tenth; `pageable`: how many were from or to
    pageable memory.
    """

    busy_ns: int = 0
    exposed_ns: int = 0
    bytes: int = 0
    count: int = 0
    pageable_ns: int = 0
    pageable: int = 0
    edge_ns: int = 0
    start_ns: int = 0
    duration_ns: int = 0

    @property
    def once(self) -> bool:
        """Whether nearly all of the time is before or after the kernels' work: that of one-offs."""
        return 0 < ONE_OFF * self.exposed_ns <= self.edge_ns

    @property
    def gb_per_s(self) -> float | None:
        """Achieved rate while copying, in decimal GB/s; overlapping copies count together."""
        return self.bytes / self.busy_ns if self.busy_ns else None


@dataclass(frozen=True, slots=True)
class CopyUses:
    """The copies of a device by direction, the small ones of all directions, and migrations."""

    h2d: CopyUse = CopyUse()
    d2h: CopyUse = CopyUse()
    d2d: CopyUse = CopyUse()
    small: CopyUse = CopyUse()
    unified: CopyUse = CopyUse()
    pageable: CopyUse = CopyUse()


def copy_uses(operations: Frame, kernels: Spans, window: Spans) -> CopyUses:
    """The uses of one device's memory operations; copies under 16 KiB count as small only."""
    names = operations.labels("operation")
    is_large = large(operations)
    start, end = operations.ints("start_ns"), operations.ints("end_ns")
    inside = measure_before(window, end) > measure_before(window, start)
    unified = names.where(lambda name: name.startswith(UNIFIED))
    copies = names.equals([name for names in DIRECTIONS.values() for name in names])
    small = inside & copies & ~names.equals([SETS]) & ~is_large
    is_large &= inside
    pageable = host_memory(operations).equals([PAGEABLE])
    edges = _around_work(kernels & window)

    def use(mask: NDArray[np.bool_]) -> CopyUse:
        return _use(operations, mask, pageable, kernels, window, edges)

    h2d, d2h, d2d = (use(is_large & names.equals(wanted)) for wanted in DIRECTIONS.values())
    return CopyUses(h2d, d2h, d2d, use(small), use(inside & unified), use(is_large & pageable))


def streams_in_turn(operations: Frame, kernels: Frame, window: Spans) -> int:
    """On how many streams copies and kernels ran inside a window, never two of them at a time.

    0 where some overlapped. Streams with less than their share of the work are not counted.
    """
    start, end, stream = (
        np.concatenate([frame.ints(name) for frame in (operations, kernels)])
        for name in ("start_ns", "end_ns", "stream")
    )
    inside = measure_before(window, end) - measure_before(window, start)
    work = np.bincount(distinct(stream)[1], weights=inside)
    if int(inside.sum()) > (union(start, end) & window).total:
        return 0
    return int(np.count_nonzero(work >= EVEN * work.sum() / max(len(work), 1)))


def _around_work(kernels: Spans) -> Spans:
    """The time until a tenth of the kernels' time has passed, and when only a tenth is left."""
    if not len(kernels):
        return NOTHING
    done = np.cumsum(kernels.ends - kernels.starts)
    first, last = np.searchsorted(done, (BEFORE * kernels.total, (1 - BEFORE) * kernels.total))
    limits = np.iinfo(np.int64)
    begin, end = int(kernels.starts[first]), int(kernels.ends[last])
    return Spans.of(limits.min, begin) | Spans.of(end, limits.max)


def _use(
    operations: Frame,
    mask: NDArray[np.bool_],
    pageable: NDArray[np.bool_],
    kernels: Spans,
    window: Spans,
    edges: Spans,
) -> CopyUse:
    rows = np.flatnonzero(mask)
    if not len(rows):
        return CopyUse()
    start, end = operations.ints("start_ns")[rows], operations.ints("end_ns")[rows]
    busy = union(start, end) & window
    inside = measure_before(window, end) - measure_before(window, start)
    alone = busy - kernels
    cost = measure_before(alone, end) - measure_before(alone, start)
    worst = int(np.argmax(cost))
    from_pageable = pageable[rows]
    sizes = np.maximum(operations.ints("bytes")[rows], 0)
    return CopyUse(
        busy_ns=busy.total,
        exposed_ns=alone.total,
        bytes=round((sizes * (inside / (end - start))).sum()),
        count=len(rows),
        pageable_ns=(union(start[from_pageable], end[from_pageable]) & window).total,
        pageable=int(np.count_nonzero(from_pageable)),
        edge_ns=overlap_total(alone, edges),
        start_ns=int(start[worst]),
        duration_ns=int(end[worst] - start[worst]),
    )
