"""NVTX ranges projected onto the GPU through launch calls (nvtx_gpu_proj_sum of nsys).

An operation belongs to a range when its launch call lies inside the range, ends included, on the
same thread. The projected interval is [first start, last end] of its operations; a parent is not
reduced by its children. Ranges that end on another thread are not projected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows, matched
from nsightpy.frames import Frame, Ints, distinct, taken

OPERATION_COLUMNS = ("start_ns", "end_ns", "pid", "device", "correlation_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class")
_BLOCK_BITS = 4
RANGE_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "end_tid", "name", "domain", "style")


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """The calls that launched GPU operations, by thread and start, and what each launched.

    `call` is its row among all calls; `rows` are operations in the order of their calls, of which
    call i owns rows[first[i]:first[i + 1]].
    """

    call: NDArray[np.int32]
    first: Ints
    rows: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.call)


@dataclass(frozen=True, slots=True)
class Launched(LaunchOrder):
    """The same with thread and times (ns) of each call.

    `start`, `end`: first start and last end of what a call launched.
    """

    thread: Ints
    call_start: Ints
    call_end: Ints
    start: Ints
    end: Ints

    @property
    def order(self) -> LaunchOrder:
        """The same without times, which take most of the memory."""
        return LaunchOrder(self.call, self.first, self.rows)


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

    def launched(self, calls: int) -> NDArray[np.bool_]:
        """Which of so many calls lie in any range."""
        low, high = self.low[self.found], self.high[self.found]
        steps = np.bincount(low, minlength=calls + 1) - np.bincount(high, minlength=calls + 1)
        return np.cumsum(steps[:calls]) > 0

    @property
    def length(self) -> Ints:
        """The length of each projected interval, in ns."""
        return self.end - self.start


def launched(operations: Frame, calls: Frame) -> Launched:
    """The calls (CALL_COLUMNS, by start) that launched the operations (OPERATION_COLUMNS).

    Process and correlation id must agree; operations without a recorded call are left out. Without
    event_class all calls are runtime or driver calls.
    """
    if "event_class" in calls:
        call_of = launch_rows(operations, calls).astype(np.int32)
    else:
        keys = (calls.ints("pid"), calls.ints("correlation_id"))
        wanted = (operations.ints("pid"), operations.ints("correlation_id"))
        places = np.arange(calls.rows, dtype=np.int32)
        call_of = matched(keys, places, wanted, NO_LAUNCH)
    known = call_of != NO_LAUNCH
    if known.all():
        rows = _by_thread_and_call(calls, call_of)
    else:
        rows = np.flatnonzero(known).astype(np.int32)
        rows = rows[_by_thread_and_call(calls, call_of[rows])]
    call = call_of[rows]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = call[1:] != call[:-1]
    first = np.flatnonzero(fresh)
    call = call[first] if len(first) < len(rows) else call
    start, end = operations.ints("start_ns")[rows], operations.ints("end_ns")[rows]
    if len(first) < len(rows):
        start, end = np.minimum.reduceat(start, first), np.maximum.reduceat(end, first)
    return Launched(
        call,
        np.append(first, len(rows)),
        rows,
        taken(thread_key(calls), call),
        calls.ints("start_ns")[call],
        calls.ints("end_ns")[call],
        start,
        end,
    )


def _by_thread_and_call(calls: Frame, call_of: NDArray[np.int32]) -> NDArray[np.int32]:
    """The order of operations by the thread that launched them, then by call."""
    threads, thread = distinct(taken(calls.ints("tid"), call_of))
    processes, process = distinct(taken(calls.ints("pid"), call_of))
    key: Ints | NDArray[np.int32] = call_of
    if len(threads) * len(processes) > 1:
        code = process.astype(np.int64) * len(threads) + thread
        key = code * calls.rows + call_of
    return np.argsort(key, kind="stable").astype(np.int32)


def project(ranges: Frame, done: Launched) -> Projection:
    """The projection of each range (columns start_ns, end_ns, pid, tid, end_tid)."""
    low, high = calls_inside(ranges, done)
    start, end = np.zeros_like(low), np.zeros_like(low)
    some = np.flatnonzero(high > low)
    start[some] = extreme(done.start, low[some], high[some], np.minimum)
    end[some] = extreme(done.end, low[some], high[some], np.maximum)
    return Projection(start, end, done.first[high] - done.first[low], low, high)


def calls_inside(ranges: Frame, done: Launched) -> tuple[Ints, Ints]:
    """The calls inside each range, as low <= call < high; none for ranges across threads.

    Calls of one thread follow or enclose one another; an enclosed one counts with its outermost.
    """
    none = np.zeros(ranges.rows, dtype=np.int64)
    if len(done) == 0 or ranges.rows == 0:
        return none, none
    threads, code = distinct(done.thread)
    base = int(done.call_start.min())
    width = int(done.call_end.max()) - base + 2
    starts = code.astype(np.int64) * width + (done.call_start - base)
    # the thread's number times the width comes first, so no maximum runs into the next thread
    ends = np.maximum.accumulate(code.astype(np.int64) * width + (done.call_end - base))
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
    """The minimum or maximum of values[low:high] for many non-empty stretches at once.

    Stretches of 2**k to 2**(k + 1) values are two overlapping ones of 2**k: a table of those is
    made for one k after the other. What is longer is blocks of such values between two of them.
    """
    extremes = np.empty(len(low), dtype=np.int64)
    length = high - low
    table = values
    for k in range(_BLOCK_BITS + 1):
        if k:
            half = 1 << (k - 1)
            table = function(table[:-half], table[half:])
        longer = length >= 2 << k
        rows = np.flatnonzero((length >= 1 << k) & ~longer)
        extremes[rows] = function(table[low[rows]], table[high[rows] - (1 << k)])
        if not longer.any():
            return extremes
    rows, size = np.flatnonzero(longer), 1 << _BLOCK_BITS
    blocks = function.reduceat(values, np.arange(0, len(values), size))
    first, last = low[rows], high[rows]
    inner = extreme(blocks, -(-first // size), last // size, function)
    extremes[rows] = function(function(table[first], table[last - size]), inner)
    return extremes


def thread_key(frame: Frame) -> Ints:
    """Process and thread of each row as one number."""
    return (frame.ints("pid") << 24) | frame.ints("tid")
