"""Device time lost inside launching calls: those that take long, and the usual latency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.causes import ComputeGaps
from nsightpy.analysis.idle.gpu_work import GpuWork
from nsightpy.analysis.intervals import Spans, measure_before, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Ints

# A launching call takes some microseconds; what takes this long does something else in it.
LONG_CALL_NS = 100_000


@dataclass(frozen=True, slots=True)
class LongLaunches:
    """Time in which a device did nothing while the call that would launch its next kernel ran.

    Only calls of 100 us or more. `worst_ns` is the length of the call that cost most, `row` and
    `kernel` what it launched; `first` counts the calls that were the first launch of their kernel.
    """

    lost: Spans
    calls: int
    first: int
    row: int
    worst_ns: int
    kernel: str = ""

    @property
    def lost_ns(self) -> int:
        return self.lost.total


def long_launches(
    work: GpuWork, gaps: ComputeGaps, call_ns: Ints, kinds: NDArray[np.int32], dry: Spans
) -> LongLaunches | None:
    """The long launching calls in a device's gaps; None without any.

    `call_ns` is how long the call took that launched each operation of `work`, `kinds` a code for
    each kernel's process and name, in rows of `work`; `dry` is when the device did nothing.
    """
    told = (gaps.launched != NO_TIME) & (gaps.producer < 0)
    row, begin = gaps.row[told], gaps.launched[told]
    end = np.minimum(gaps.closed[told], work.launch[row] + call_ns[row])
    long = (call_ns[row] >= LONG_CALL_NS) & (end > begin)
    row, begin, end = row[long], begin[long], end[long]
    cost = measure_before(dry, end) - measure_before(dry, begin)
    if not cost.any():
        return None
    row, begin, end, cost = (part[cost > 0] for part in (row, begin, end, cost))
    worst = int(row[np.argmax(cost)])
    return LongLaunches(
        union(begin, end) & dry,
        len(row),
        int(np.count_nonzero(_is_first(work, row, kinds))),
        worst,
        int(call_ns[worst]),
    )


def _is_first(work: GpuWork, row: Ints, kinds: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each kernel is the one of its kind that was launched first."""
    launch = work.launch[: len(kinds)]
    known = launch != NO_TIME
    first = np.full(int(kinds.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, kinds[known], launch[known])
    found: NDArray[np.bool_] = work.launch[row] <= first[kinds[row]]
    return found


def launch_latency(gaps: ComputeGaps, rows: NDArray[np.bool_]) -> Spans:
    """The gaps before chosen kernels (a mask over operations) from their launch on."""
    told = (gaps.launched != NO_TIME) & (gaps.producer < 0)
    told &= rows[gaps.row]
    return union(gaps.launched[told], gaps.closed[told])
