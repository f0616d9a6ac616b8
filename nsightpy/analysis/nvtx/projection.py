"""NVTX ranges projected onto the GPU through launch calls (nvtx_gpu_proj_sum of nsys).

An operation belongs to a range when its launch call lies inside the range, ends included, on the
same thread. The projected interval is [first start, last end] of its operations; a parent is not
reduced by its children. Ranges that end on another thread are not projected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.nesting import thread_key
from nsightpy.frames import Frame, Ints, distinct

OPERATION_COLUMNS = ("start_ns", "end_ns", "pid", "device", "correlation_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class")
RANGE_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "end_tid", "name", "domain", "style")


@dataclass(frozen=True, slots=True)
class Launched:
    """The calls that launched GPU operations, by thread and start, and what each launched.

    `call` is its row among all calls; `rows` are operations in the order of their calls, of which
    call i owns rows[first[i]:first[i + 1]]. Of each call its thread and times (ns), and `start`,
    `end`: first start and last end of what it launched.
    """

    call: NDArray[np.int32]
    first: Ints
    rows: NDArray[np.int32]
    thread: Ints
    call_start: Ints
    call_end: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.call)


@dataclass(frozen=True, slots=True)
class Projection:
    """For each range: first start and last end of its operations in ns (0 without any).

    `low`, `high`: the calls of Launched that lie in it, low <= call < high.
    """

    start: Ints
    end: Ints
    operations: Ints
    low: Ints
    high: Ints

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which ranges have operations."""
        return self.operations > 0

    @property
    def length(self) -> Ints:
        """The length of each projected interval, in ns."""
        return self.end - self.start


def launched(operations: Frame, calls: Frame) -> Launched:
    """The calls (CALL_COLUMNS, by start) that launched the operations (OPERATION_COLUMNS).

    Process and correlation id must agree; operations without a recorded call are left out. Without
    event_class all calls are runtime or driver calls.
    """
    call_of = launch_rows(operations, calls)
    rows = np.flatnonzero(call_of != NO_LAUNCH).astype(np.int32)
    thread = distinct(thread_key(calls))[1]
    rows = rows[np.lexsort((call_of[rows], thread[call_of[rows]]))]
    call = call_of[rows]
    first = np.flatnonzero(np.diff(call, prepend=NO_LAUNCH))
    call = call[first]
    return Launched(
        call,
        np.append(first, len(rows)),
        rows,
        thread_key(calls)[call],
        calls.ints("start_ns")[call],
        calls.ints("end_ns")[call],
        np.minimum.reduceat(operations.ints("start_ns")[rows], first),
        np.maximum.reduceat(operations.ints("end_ns")[rows], first),
    )


def project(ranges: Frame, launches: Launched) -> Projection:
    """The projection of each range (columns start_ns, end_ns, pid, tid, end_tid)."""
    low, high = calls_inside(ranges, launches)
    start, end = np.zeros_like(low), np.zeros_like(low)
    found = np.flatnonzero(high > low)
    start[found] = extreme(launches.start, low[found], high[found], np.minimum)
    end[found] = extreme(launches.end, low[found], high[found], np.maximum)
    return Projection(start, end, launches.first[high] - launches.first[low], low, high)


def calls_inside(ranges: Frame, launches: Launched) -> tuple[Ints, Ints]:
    """The calls inside each range, as low <= call < high; none for ranges across threads.

    Calls of one thread follow or enclose one another; an enclosed one counts with its outermost.
    """
    none = np.zeros(ranges.rows, dtype=np.int64)
    if len(launches) == 0 or ranges.rows == 0:
        return none, none
    threads, code = distinct(launches.thread)
    base = int(launches.call_start.min())
    width = int(launches.call_end.max()) - base + 2
    starts = code.astype(np.int64) * width + (launches.call_start - base)
    # the thread's number times the width comes first, so no maximum runs into the next thread
    ends = np.maximum.accumulate(code.astype(np.int64) * width + (launches.call_end - base))
    thread = thread_key(ranges)
    place = np.minimum(np.searchsorted(threads, thread), len(threads) - 1)
    here = (threads[place] == thread) & (ranges.ints("tid") == ranges.ints("end_tid"))
    offset = place * width
    begin = offset + np.clip(ranges.ints("start_ns") - base, 0, width - 1)
    finish = offset + np.clip(ranges.ints("end_ns") - base, -1, width - 1)
    low = np.where(here, np.searchsorted(starts, begin), 0)
    high = np.where(here, np.searchsorted(ends, finish, side="right"), 0)
    return low, np.maximum(low, high)


def extreme(values: Ints, low: Ints, high: Ints, function: np.ufunc) -> Ints:
    """The minimum or maximum of values[low:high] for many non-empty stretches at once."""
    # what lies between one stretch and the next is looked at, too: in order that is little
    order = np.argsort(low, kind="stable")
    edges = np.column_stack([low[order], high[order]]).ravel()
    extremes = np.empty(len(low), dtype=np.int64)
    extremes[order] = function.reduceat(np.append(values, 0), edges)[::2]
    return extremes
