"""Idle intervals of a device, each divided by what the thread did that launched what came next.

An idle interval is time of a window in which the device did nothing at all. It ends with an
operation; the thread that launched it is looked at (../../docs/numbers.md, "Idle intervals"):

- in the launching call itself; in calls that allocate, load code or wait; outside of CUDA;
- after the call: launched, and not begun.

What that means is the cause. Inside allocations and loading it is those. Long launching calls are
`first-launch` where the kernel was launched for the first time, `exposed-h2d` or `exposed-d2h`
where they copy to or from the device (the driver stages pageable memory in them), else `host-gap`.
Stretches outside of CUDA of 1 ms or more are `host-gap`. What had been launched for 1 ms or more
and not begun is `queued`. The rest is `sync-drain` where the thread was held by a blocking call
when the device ran dry, else `queued` where everything had been launched before, else
`launch-bound`. The causes add up to the idle time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import GpuWork
from nsightpy.analysis.idle.host_calls import ALLOCATION, COPY, MODULE, WAIT, kinds_of_calls
from nsightpy.analysis.intervals import NOTHING, Spans, complement, measure_before, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Frame, Ints

NO_ROW = -1
# A launching call takes some microseconds; what takes this long does something else in it.
LONG_CALL_NS = 100_000
# Eager frameworks issue a kernel every 10 to 300 us; who needs longer does something else.
HOST_GAP_NS = 1_000_000
# Short allocations are looked at where they take this part of a window or more.
LEAST_ALLOCATING = 0.03
# Between two operations that were both launched long before, a device needs some microseconds.
CAUSES = (
    "launch-bound",
    "host-gap",
    "sync-drain",
    "first-launch",
    "allocation",
    "exposed-h2d",
    "exposed-d2h",
    "queued",
    "unknown",
)
(
    LAUNCH_BOUND,
    HOST_GAP,
    SYNC_DRAIN,
    FIRST_LAUNCH,
    ALLOCATING,
    TO_DEVICE,
    TO_HOST,
    QUEUED,
    UNKNOWN,
) = range(len(CAUSES))


@dataclass(frozen=True, slots=True)
class Launches:
    """The launching call of each row of a GpuWork: times in ns (NO_TIME: not recorded), thread.

    `first` marks the first launch of each kernel in its process; `stages` is the cause that long
    calls count for which copy between host and device (TO_DEVICE, TO_HOST), -1 for others.
    """

    start: Ints
    end: Ints
    thread: Ints
    first: NDArray[np.bool_]
    stages: NDArray[np.int8]


@dataclass(frozen=True)
class IdleGaps:
    """The idle intervals of one device inside a window, in time order; times in ns.

    `before` and `after` are rows of the GpuWork (-1: none), `thread` that of the next launch (-1:
    not known). The parts are disjoint and add up to the interval: `in_call` in the launching
    call, `queued` after it, `waiting`, `allocating` and `loading` in calls before it, `outside`
    in none of them. `drained` marks those that opened while the thread was held by a blocking
    call, `held` for how long that was.
    """

    opened: Ints
    closed: Ints
    before: Ints
    after: Ints
    thread: Ints
    in_call: Ints
    queued: Ints
    waiting: Ints
    allocating: Ints
    loading: Ints
    outside: Ints
    held: Ints
    stages: NDArray[np.int8]
    first: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.opened)

    @property
    def length(self) -> Ints:
        return self.closed - self.opened

    @property
    def drained(self) -> NDArray[np.bool_]:
        return self.held > 0

    @cached_property
    def causes(self) -> NDArray[np.int64]:
        """Each interval's time by cause, one column each in the order of CAUSES; exact."""
        # by column: each is written, and mostly read, as a whole
        found = np.zeros((len(self), len(CAUSES)), dtype=np.int64, order="F")
        known = self.thread >= 0
        found[~known, UNKNOWN] = self.length[~known]
        long = known & (self.in_call >= LONG_CALL_NS)
        found[:, ALLOCATING] = self.allocating
        found[:, FIRST_LAUNCH] = self.loading + np.where(long & self.first, self.in_call, 0)
        # the driver copies from pageable memory inside the call, however long it takes
        for cause in (TO_DEVICE, TO_HOST):
            found[:, cause] = np.where(long & (self.stages == cause), self.in_call, 0)
        elsewhere = np.where(self.outside >= HOST_GAP_NS, self.outside, 0)
        stalled = long & ~self.first & (self.stages < 0)
        found[:, HOST_GAP] = np.where(known, elsewhere + np.where(stalled, self.in_call, 0), 0)
        rest = self.length - found.sum(axis=1)
        early = known & (self.queued == self.length)
        # what was launched this long ago does not wait for the host
        overdue = np.where(self.queued >= HOST_GAP_NS, self.queued, 0)
        found[:, QUEUED] = np.where(known, overdue, 0)
        rest = np.where(known, rest - found[:, QUEUED], rest)
        target = np.where(self.drained, SYNC_DRAIN, np.where(early, QUEUED, LAUNCH_BOUND))
        rows = np.flatnonzero(known)
        found[rows, target[rows]] += rest[rows]
        return found

    @property
    def totals(self) -> dict[str, int]:
        """The idle time by cause, in ns."""
        return dict(zip(CAUSES, self.causes.sum(axis=0).tolist(), strict=True))

    @property
    def run_ahead_lost_ns(self) -> int:
        """Launch-bound idle time that blocking calls brought about, in ns; a bound.

        A call that returns when nothing is queued costs the host its lead. Without it the host
        would have been ahead by as long as it was held; so of the launch-bound time up to the
        next such call at most that much.
        """
        if not self.drained.any():
            return 0
        episode = np.cumsum(self.drained)
        bound = np.bincount(episode, weights=self.causes[:, LAUNCH_BOUND])
        held = np.concatenate([[0], self.held[self.drained]])
        return int(np.minimum(bound, held).sum())


def idle_gaps(
    work: GpuWork, place: int, window: Spans, launches: Launches, calls: Frame
) -> IdleGaps:
    """The idle intervals of one place inside a window.

    `calls` are the process's blocking and long API calls: start_ns, end_ns, tid, name, by start.
    """
    calls = _counted(calls, window)
    rows = np.flatnonzero(work.place == place)
    by_start = rows[np.argsort(work.start[rows], kind="stable")]
    by_end = rows[np.argsort(work.end[rows], kind="stable")]
    idle = _idle(work, rows, window)
    opened, closed = idle.starts, idle.ends
    after = _row_at(by_start, np.searchsorted(work.start[by_start], closed, side="left"))
    before = _row_at(by_end, np.searchsorted(work.end[by_end], opened, side="right") - 1)
    there = after >= 0
    start = np.where(there, launches.start[after], NO_TIME)
    end = np.where(there, launches.end[after], NO_TIME)
    known = start != NO_TIME
    thread = np.where(known, launches.thread[after], -1)
    begun = np.where(known, np.clip(start, opened, closed), opened)
    done = np.where(known, np.clip(end, opened, closed), opened)
    waiting, allocating, loading, held = (np.zeros(len(opened), dtype=np.int64) for _ in range(4))
    for own, mine in _by_thread(thread, calls):
        parts = _inside_calls(mine, opened[own], begun[own])
        waiting[own], allocating[own], loading[own] = parts
        held[own] = _held(mine, opened[own], start[own])
    spent = waiting + allocating + loading
    return IdleGaps(
        opened,
        closed,
        before,
        after,
        thread,
        in_call=done - begun,
        queued=np.where(known, closed - done, 0),
        waiting=waiting,
        allocating=allocating,
        loading=loading,
        outside=np.where(known, begun - opened - spent, 0),
        held=held,
        stages=np.where(known, launches.stages[after], -1).astype(np.int8),
        first=there & known & launches.first[after],
    )


def _counted(calls: Frame, window: Spans) -> Frame:
    """The calls without short allocations, unless those add up to a material part of a window."""
    length = calls.ints("end_ns") - calls.ints("start_ns")
    short = (kinds_of_calls(calls.labels("name")) == ALLOCATION) & (length < LONG_CALL_NS)
    short &= ~_frees(calls)
    if int(length[short].sum()) >= LEAST_ALLOCATING * window.total:
        return calls
    return calls.take(~short)


def _frees(calls: Frame) -> NDArray[np.bool_]:
    """Mask of the calls that free memory, which waits for the device."""
    names = calls.labels("name")
    return names.equals([one for one in names.values if "Free" in one and "Async" not in one])


def _idle(work: GpuWork, rows: Ints, window: Spans) -> Spans:
    busy = union(work.start[rows], work.end[rows])
    if not len(window):
        return NOTHING
    free = complement(busy, int(window.starts[0]), int(window.ends[-1]))
    return free & window if len(window) > 1 else free


def _row_at(order: Ints, place: Ints) -> Ints:
    """The rows at places of an order; -1 beyond its ends."""
    inside = (place >= 0) & (place < len(order))
    found = np.full(len(place), NO_ROW, dtype=np.int64)
    found[inside] = order[place[inside]]
    return found


def _by_thread(thread: Ints, calls: Frame) -> list[tuple[Ints, Frame]]:
    """For each thread: its intervals, and its calls."""
    made = calls.ints("tid")
    return [
        (np.flatnonzero(thread == tid), calls.take(made == tid))
        for tid in np.unique(thread[thread >= 0]).tolist()
    ]


def _inside_calls(calls: Frame, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """How much of each interval lies in calls that wait, allocate and load code; disjoint."""
    kinds = kinds_of_calls(calls.labels("name"))
    start, end = calls.ints("start_ns"), calls.ints("end_ns")
    loading, allocating, waiting = (
        union(start[kinds == kind], end[kinds == kind]) for kind in (MODULE, ALLOCATION, WAIT)
    )
    allocating = allocating - loading
    waiting = (waiting | _blocking_copies(calls, kinds)) - loading - allocating
    spans = (waiting, allocating, loading)
    inside = (measure_before(one, high) - measure_before(one, low) for one in spans)
    first, second, third = inside
    return first, second, third


def _blocking_copies(calls: Frame, kinds: NDArray[np.int8]) -> Spans:
    copies = kinds == COPY
    return union(calls.ints("start_ns")[copies], calls.ints("end_ns")[copies])


def _held(calls: Frame, opened: Ints, launched: Ints) -> Ints:
    """How long the blocking call took that was in progress when each interval opened, in ns.

    0 where there was none, or where it went on after the next launch had begun.
    """
    kinds = kinds_of_calls(calls.labels("name"))
    start, end = calls.ints("start_ns"), calls.ints("end_ns")
    # other allocations wait for nothing, unless they take long
    allocation = (kinds == ALLOCATION) & (_frees(calls) | (end - start >= LONG_CALL_NS))
    blocking = (kinds == WAIT) | (kinds == COPY) | allocation
    waits = union(start[blocking], end[blocking])
    if not len(waits):
        return np.zeros(len(opened), dtype=np.int64)
    at = np.searchsorted(waits.starts, opened, side="right") - 1
    begin, end = waits.starts[at], waits.ends[at]
    inside = (at >= 0) & (opened <= end) & (end <= launched)
    return np.where(inside, end - begin, 0)
