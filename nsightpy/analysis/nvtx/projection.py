"""NVTX ranges projected onto the GPU through launch calls (nvtx_gpu_proj_sum of nsys).

An operation belongs to a range when its launch call lies inside the range, ends included, on the
same thread. The projected interval is [first start, last end] of its operations; a parent is not
reduced by its children. Ranges that end on another thread are not projected.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import Groups
from nsightpy.analysis.intervals import consecutive, union
from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.nesting import thread_key
from nsightpy.frames import Frame, Ints, distinct, distinct_pairs

OPERATION_COLUMNS = ("start_ns", "end_ns", "pid", "device", "correlation_id")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class")
Place: TypeAlias = tuple[int, int]  # process, device
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


def projections(
    ranges: Frame, operations: Frame, calls: Frame
) -> Iterator[tuple[Place, Projection]]:
    """The projection on each device (process, device) on which the ranges have operations."""
    places, code = distinct_pairs(operations.ints("pid"), operations.ints("device"))
    for number, place in enumerate(places):
        projection = project(ranges, launched(operations.take(code == number), calls))
        if projection.found.any():
            yield place, projection


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


_AXIS = 1 << 62
_PAIRS = 500_000


def busy_by_group(
    groups: Groups, operations: Frame, *parts: tuple[Launched, Projection]
) -> tuple[Ints, int]:
    """For how long any operation of each group of ranges ran, and any operation at all, in ns.

    Each of the `parts` says which operations are a range's; in several of them the same one may be.
    Instances may nest and repeat; the times of several devices add up.
    """
    busy = np.zeros(len(groups.keys), dtype=np.int64)
    if operations.rows == 0 or not parts:
        return busy, 0
    starts, ends = _on_one_axis(operations)
    whole = union(starts, ends).total
    group, first, last = _operations_of(groups, parts)
    rows = np.concatenate([launches.rows for launches, _ in parts])
    # groups are laid one after another on the axis of time, as many at once as int64 holds
    width = int(ends.max()) + 1
    sizes = np.bincount(group, last - first, len(busy)).astype(np.int64)
    for low, high in _portions(sizes, max(_AXIS // width, 1)):
        part = slice(*np.searchsorted(group, (low, high)).tolist())
        count = last[part] - first[part]
        own = rows[consecutive(first[part], count)]
        shift = np.repeat(group[part] - low, count) * width
        spans = union(starts[own] + shift, ends[own] + shift)
        np.add.at(busy, low + spans.starts // width, spans.ends - spans.starts)
    return busy, whole


def _operations_of(
    groups: Groups, parts: Sequence[tuple[Launched, Projection]]
) -> tuple[Ints, Ints, Ints]:
    """Disjoint stretches of the operations of all parts, one part after another, by group.

    For each its group, and between which places its operations are.
    """
    codes, lows, highs, firsts = [], [], [], []
    calls = rows = 0
    for launches, projection in parts:
        found = np.flatnonzero(projection.found)
        codes.append(groups.codes[found])
        lows.append(projection.low[found] + calls)
        highs.append(projection.high[found] + calls)
        firsts.append(launches.first[:-1] + rows)
        calls, rows = calls + len(launches), rows + len(launches.rows)
    first = np.append(np.concatenate(firsts), rows)
    # the calls of a group behind those of the group before
    shift = np.concatenate(codes).astype(np.int64) * (calls + 1)
    stretches = union(np.concatenate(lows) + shift, np.concatenate(highs) + shift)
    group, begin = np.divmod(stretches.starts, calls + 1)
    return group, first[begin], first[begin + (stretches.ends - stretches.starts)]


def _on_one_axis(operations: Frame) -> tuple[Ints, Ints]:
    """Starts and ends from 0 on, every device's time after another's."""
    starts, ends = operations.ints("start_ns"), operations.ints("end_ns")
    _, device = distinct_pairs(operations.ints("pid"), operations.ints("device"))
    base = int(starts.min())
    shift = device.astype(np.int64) * (int(ends.max()) - base + 1) - base
    return starts + shift, ends + shift


def _portions(sizes: Ints, at_once: int) -> Iterator[tuple[int, int]]:
    """Groups low to high (exclusive), as many at a time as fit; a large one alone."""
    before, low = np.append(0, np.cumsum(sizes)), 0
    while low < len(sizes):
        fitting = int(np.searchsorted(before, before[low] + _PAIRS, side="right")) - 1
        high = min(max(fitting, low + 1), low + at_once, len(sizes))
        yield low, high
        low = high
