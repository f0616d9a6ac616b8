"""Copies: by direction and kind of host memory, how fast, and how much of them nothing hid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.intervals import Spans, measure_before, union
from nsightpy.frames import Frame, Labels

PAGEABLE, PINNED, MANAGED = "pageable", "pinned", "managed"
INPUT = ("[CUDA memcpy Host-to-Device]", "[CUDA memcpy Host-to-Array]")
UNIFIED = "[CUDA memcpy Unified "


@dataclass(frozen=True, slots=True)
class CopyTime:
    """Time of the copies that touch a window, in ns: united, and not beside any kernel.

    busy and exposed are cut at the window; copying_ns, bytes and count are of the whole copies.
    """

    busy_ns: int
    exposed_ns: int
    copying_ns: int
    bytes: int
    count: int

    @property
    def gb_per_s(self) -> float | None:
        """Achieved rate while copying, in decimal GB/s; overlapping copies count together."""
        return self.bytes / self.copying_ns if self.copying_ns else None


def host_memory(operations: Frame) -> Labels:
    """The kind of host memory that each operation touches: pageable, pinned, managed or none."""
    source, target = operations.labels("source_memory"), operations.labels("target_memory")
    kinds = (PAGEABLE, PINNED, MANAGED)
    codes = np.zeros(operations.rows, dtype=np.int32)
    for code, names in ((3, ("Managed", "Managed Static")), (2, ("Pinned",)), (1, ("Pageable",))):
        codes[source.equals(names) | target.equals(names)] = code
    return Labels(codes, ("", *kinds))


def copy_time(operations: Frame, kernels: Spans, window: Spans) -> CopyTime:
    """The time of some memory operations of one device, and the part with no kernel beside it."""
    starts, ends = operations.ints("start_ns"), operations.ints("end_ns")
    inside = measure_before(window, ends) > measure_before(window, starts)
    copying = union(starts[inside], ends[inside])
    busy = copying & window
    return CopyTime(
        busy.total,
        (busy - kernels).total,
        copying.total,
        int(operations.ints("bytes")[inside].sum()),
        int(np.count_nonzero(inside)),
    )
