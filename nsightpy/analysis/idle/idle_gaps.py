"""Idle intervals of a device, each divided by what the thread did that launched what came next.

An idle interval is time of a window in which the device did nothing at all. It ends with an
operation; the thread that launched it is looked at (../../docs/numbers.md, "Idle intervals"):

- in the launching call itself; in calls that allocate, load code or wait; outside of CUDA;
- after the call: launched, and not begun.

What that means is the cause. Inside allocations and loading it is those. Long launching calls are
`first-launch` where the kernel was launched for the first time, `exposed-h2d` or `exposed-d2h`
where they copy to or from the device, else `host-gap`; so are all calls, long or not, in which the
driver stages pageable memory.
Stretches outside of CUDA of 1 ms or more are `host-gap`, but for the time in ranges that compile
(`first-launch`); time in MPI calls is `exposed-communication` in any; that of waiting while another
device of the process works is `imbalance`; shorter stretches before a page migrates are
`unified-memory`. What had been launched for 1 ms or more and not begun is
`queued`. The rest is `sync-drain` where the thread was held by a blocking call when the device ran
dry, else `queued` where everything had been launched before, else `launch-bound`. The causes add up
to the idle time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import GpuWork, Rows
from nsightpy.analysis.idle.host_calls import ALLOCATION, COPY, MODULE, WAIT, kinds_of_calls
from nsightpy.analysis.intervals import Spans, consecutive, measure_inside, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Frame, Ints, distinct

NO_ROW = -1
# Before every time there is; its negative is after it.
NEVER = -(2**62)
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
# Also where it is known what the host did outside of CUDA, and what other devices did.
ALL_CAUSES = (*CAUSES, "exposed-communication", "imbalance", "unified-memory")
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
    IN_MPI,
    ELSEWHERE,
    FAULTS,
) = range(len(ALL_CAUSES))


@dataclass(frozen=True, slots=True)
class Launches:
    """The launching call of each row of a GpuWork: times in ns (NO_TIME: not recorded), thread.

    `first` marks the first launch of each kernel in its process; `stages` is the cause that long
    calls count for which copy between host and device (TO_DEVICE, TO_HOST), -1 for others;
    `staged` marks those that copy pageable memory, whose calls count however short they are,
    `blocks` those that copy to it from the device, whose calls return when that is done. What
    `migrates` no call launched: it begins when a page is touched, by the thread that launches next.
    """

    start: Ints
    end: Ints
    thread: Ints
    first: NDArray[np.bool_]
    stages: NDArray[np.int8]
    staged: NDArray[np.bool_]
    blocks: NDArray[np.bool_]
    migrates: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class IdleTime:
    """When a place was idle, from before its first operation until after its last one.

    `before` and `after` are the rows of the GpuWork around each interval, -1 for none.
    """

    spans: Spans
    before: Rows
    after: Rows

    def inside(self, window: Spans) -> tuple[Ints, Ints, Rows, Rows]:
        """The part in a window: [opened, closed), and the rows before and after."""
        inside = self.spans & window
        if len(window) == 1:
            low = int(np.searchsorted(self.spans.ends, window.starts[0], side="right"))
            before, after = (rows[low : low + len(inside)] for rows in (self.before, self.after))
        else:
            at = np.searchsorted(self.spans.starts, inside.starts, side="right") - 1
            before, after = self.before[at], self.after[at]
        return inside.starts, inside.ends, before, after


@dataclass(frozen=True)
class IdleGaps:
    """The idle intervals of one device inside a window, in time order; times in ns.

    `before` and `after` are rows of the GpuWork (-1: none), `thread` that of the next launch (-1:
    not known). The parts are disjoint and add up to the interval: `in_call` in the launching
    call, `queued` after it, `waiting`, `allocating` and `loading` in calls before it, `outside`
    in none of them. `drained` marks those that opened while the thread was held by a blocking
    call, `held` for how long that was. `mpi` is the part of `outside` in MPI calls, `compiling`
    another in ranges that compile, `elsewhere` that of `waiting` in which another device of the
    process worked; 0 where that was not looked at.
    """

    opened: Ints
    closed: Ints
    before: Rows
    after: Rows
    thread: Ints
    in_call: Ints
    queued: Ints
    waiting: Ints
    allocating: Ints
    loading: Ints
    outside: Ints
    held: Ints
    stages: NDArray[np.int8]
    staged: NDArray[np.bool_]
    first: NDArray[np.bool_]
    migrates: NDArray[np.bool_]
    mpi: Ints | int = 0
    compiling: Ints | int = 0
    elsewhere: Ints | int = 0

    def __len__(self) -> int:
        return len(self.opened)

    @property
    def length(self) -> Ints:
        return self.closed - self.opened

    @property
    def drained(self) -> NDArray[np.bool_]:
        return self.held > 0

    @cached_property
    def causes(self) -> NDArray[np.signedinteger]:
        """Each interval's time by cause, one column each in the order of ALL_CAUSES; exact."""
        rest = self.length
        # by column: each is mostly read as a whole, and one that stays empty costs no memory
        causes = np.zeros((len(self), len(ALL_CAUSES)), dtype=rest.dtype, order="F")

        def count(cause: int, rows: NDArray[np.bool_], time: NDArray[np.signedinteger]) -> None:
            places = np.flatnonzero(rows)
            causes[places, cause] += time[places]
            rest[places] -= time[places]

        known = self.thread >= 0
        count(UNKNOWN, ~known, rest)
        count(ALLOCATING, self.allocating > 0, self.allocating)
        count(FIRST_LAUNCH, self.loading > 0, self.loading)
        host_gap = self.outside >= HOST_GAP_NS
        mpi, compiling, elsewhere = (
            np.broadcast_to(part, len(self)) for part in (self.mpi, self.compiling, self.elsewhere)
        )
        count(IN_MPI, mpi > 0, mpi)
        count(FIRST_LAUNCH, host_gap & (compiling > 0), compiling)
        count(HOST_GAP, host_gap, self.outside - mpi - compiling)
        long = known & (self.in_call >= LONG_CALL_NS)
        count(FIRST_LAUNCH, long & self.first, self.in_call)
        # the driver copies from pageable memory inside the call, however long it takes
        for cause in (TO_DEVICE, TO_HOST):
            count(cause, (long | self.staged) & (self.stages == cause), self.in_call)
        count(HOST_GAP, long & ~self.first & (self.stages < 0), self.in_call)
        # what was launched this long ago does not wait for the host
        early = self.queued == self.length
        count(QUEUED, known & (self.queued >= HOST_GAP_NS), self.queued)
        count(FAULTS, self.migrates, rest)
        count(ELSEWHERE, known & self.drained & (elsewhere > 0), elsewhere)
        count(SYNC_DRAIN, known & self.drained, rest)
        count(QUEUED, known & early, rest)
        causes[:, LAUNCH_BOUND] = rest
        return causes

    @cached_property
    def totals(self) -> dict[str, int]:
        """The idle time by cause, in ns."""
        return dict(zip(ALL_CAUSES, self.causes.sum(axis=0).tolist(), strict=True))

    @property
    def run_ahead_lost_ns(self) -> int:
        """Launch-bound idle time that blocking calls brought about, in ns; a bound.

        A call that returns when nothing is queued costs the host its lead. Without it the host
        would have been ahead by as long as it was held, less what the device was idle right after
        the call; so of the launch-bound time up to the next such call at most that much.
        """
        if not self.drained.any():
            return 0
        rows = np.flatnonzero(self.drained)
        bound = np.add.reduceat(self.causes[:, LAUNCH_BOUND], rows, dtype=np.int64)
        lead = np.maximum(self.held[rows] - self.causes[rows, SYNC_DRAIN], 0)
        return int(np.minimum(bound, lead).sum())


def idle_gaps(idle: IdleTime, window: Spans, launches: Launches, calls: Frame) -> IdleGaps:
    """The idle intervals of one place inside a window.

    `calls` are the process's blocking and long API calls: start_ns, end_ns, tid, name, by start.
    """
    calls = _counted(calls, window)
    opened, closed, before, after = idle.inside(window)
    start = _at(launches.start, after, NO_TIME)
    known = start != NO_TIME
    thread = _at(launches.thread, after, -1)
    thread[~known] = -1
    begun = np.clip(start, opened, closed)
    done = np.clip(_at(launches.end, after, NO_TIME), opened, closed)
    in_calls = tuple(np.zeros(len(opened), dtype=np.int64) for _ in range(4))
    for gaps, mine in _by_thread(thread, calls):
        low, high, launched = (
            times if len(gaps) == len(times) else times[gaps] for times in (opened, begun, start)
        )
        parts = (*_inside_calls(mine, low, high), _held(mine, low, launched))
        for whole, part in zip(in_calls, parts, strict=True):
            some = np.flatnonzero(part)
            whole[gaps[some]] = part[some]
    waiting, allocating, loading, held = in_calls
    _hold_by_copies(held, launches, before, thread, opened, start)
    in_call, queued, outside = done - begun, closed - done, begun - opened
    for part in in_calls[:3]:
        outside -= part
    for part in (in_call, queued, outside):
        part[~known] = 0
    stages = launches.stages[after]
    stages[~known] = -1
    return IdleGaps(
        opened,
        closed,
        before,
        after,
        thread,
        in_call,
        queued,
        waiting,
        allocating,
        loading,
        outside,
        held,
        stages=stages,
        staged=launches.staged[after],
        first=known & launches.first[after],
        migrates=launches.migrates[after] & (after != NO_ROW),
    )


def idle_time(work: GpuWork, place: int) -> IdleTime:
    """All the time in which a place did nothing."""
    if len(work.places) == 1:
        order = np.argsort(work.start, kind="stable").astype(np.int32)
    else:
        rows = np.flatnonzero(work.place == place)
        order = rows[np.argsort(work.start[rows], kind="stable")].astype(np.int32)
    start, end = work.start[order], work.end[order]
    # what takes no time ends no interval
    solid = bool((end > start).all())
    reach = np.maximum.accumulate(end if solid else np.where(end > start, end, NEVER))
    past = np.concatenate([[NEVER], reach[:-1]])
    # the operations that ended last so far; of several at once the last row
    longest = np.flatnonzero(reach > past)
    last = order[longest]
    ties = np.flatnonzero(end == past)
    np.maximum.at(last, np.searchsorted(longest, ties) - 1, order[ties])
    heads = np.flatnonzero(start[longest] > past[longest])
    first = longest[heads]
    idle = Spans(np.append(past[first], reach[-1]), np.append(start[first], -NEVER))
    after = order[first if solid else np.searchsorted(start, start[first])]
    after = np.append(after, np.int32(NO_ROW))
    before = np.append(np.int32(NO_ROW), last)[np.append(heads, len(last))]
    return IdleTime(idle, before, after)


def _hold_by_copies(
    held: Ints, launches: Launches, before: Rows, thread: Ints, opened: Ints, launched: Ints
) -> None:
    """Enter the calls, however short, that wait for the copy after which an interval opens."""
    rows = np.flatnonzero((held == 0) & launches.blocks[before] & (before != NO_ROW))
    copy = before[rows]
    begun, done = launches.start[copy], launches.end[copy]
    holds = (launches.thread[copy] == thread[rows]) & (begun != NO_TIME)
    holds &= (opened[rows] <= done) & (done <= launched[rows])
    held[rows[holds]] = (done - begun)[holds]


def _at(values: Ints, rows: Rows, missing: int) -> Ints:
    """The values of some rows; `missing` for no row."""
    picked = values[rows]
    picked[rows == NO_ROW] = missing
    return picked


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
    return names.equals(
        [value for value in names.values if "Free" in value and "Async" not in value]
    )


def _by_thread(thread: Ints, calls: Frame) -> list[tuple[Ints, Frame]]:
    """For each thread: its intervals, and its calls."""
    made = calls.ints("tid")
    return [
        (np.flatnonzero(thread == tid), calls.take(made == tid))
        for tid in distinct(thread)[0].tolist()
        if tid >= 0
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
    first, second, third = (
        measure_inside(spans, low, high) for spans in (waiting, allocating, loading)
    )
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
    low = np.searchsorted(opened, waits.starts, side="left")
    counts = np.searchsorted(opened, waits.ends, side="right") - low
    wait = np.repeat(np.arange(len(waits)), counts)
    rows = consecutive(low, counts)
    over = waits.ends[wait] <= launched[rows]
    held = np.zeros(len(opened), dtype=np.int64)
    held[rows[over]] = (waits.ends - waits.starts)[wait[over]]
    return held
