"""Why a device was idle: the edge that binds the operation that ends each idle interval.

The device is idle, so what ran on it before has ended: what held the operation back is the host
that had not launched it, or, where it was launched, another device or nothing that is recorded.
Behind a launch stands what the threads did since the device ran dry: calls by their kind, long
stretches outside of CUDA. The rest, short gaps and calls that launch, is `sync-drain` for as long
as a blocking call held the thread when the device ran dry, else `launch-bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nsightpy.analysis.grouping import connected
from nsightpy.analysis.idle.gpu_work import KINDS, Rows
from nsightpy.analysis.idle.host_activity import (
    HostEvents,
    compiled_share,
    compiling,
    ins_and_outs,
)
from nsightpy.analysis.idle.host_calls import ALLOCATION as ALLOCATES, LAUNCH, MODULE, OTHER
from nsightpy.analysis.intervals import (
    Spans,
    measure_inside,
    spans_of,
    union,
    union_of,
)
from nsightpy.analysis.memory.copies import DIRECTIONS
from nsightpy.analysis.work_graph.host_chain import HostChain, handed_over
from nsightpy.analysis.work_graph.idle_intervals import (
    ALLOCATION,
    ELSEWHERE,
    FAULTS,
    FIRST_LAUNCH,
    HOST_GAP,
    IN_MPI,
    LAUNCH_BOUND,
    NEVER,
    NO_ROW,
    QUEUED,
    SYNC_DRAIN,
    TO_DEVICE,
    TO_HOST,
    UNKNOWN,
    Division,
    IdleIntervals,
    IdleTime,
    idle_time,
)
from nsightpy.analysis.work_graph.launched_work import LaunchedWork, Mask
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS, LONG_CALL_NS, TOGETHER_NS
from nsightpy.frames import Ints


def binding(
    launched: LaunchedWork, place: int, window: Spans, events: HostEvents | None = None
) -> IdleIntervals:
    """The idle intervals of one place (number) of the work inside a window, and their causes.

    `events` are those of the place's process; without them nothing is known of what its threads do
    outside of CUDA.
    """
    idle = idle_time(launched.work, place)
    opened, closed, before, after = idle.inside(window)
    division = Division(closed - opened)
    device = _Device(launched, place, idle, opened, closed, before, after)
    division.rest(FAULTS, device.faults(before) & device.faults(after))
    device.after_launch(division)
    division.rest(UNKNOWN, device.thread < 0)
    device.in_call(division)
    held, compiles = np.zeros_like(opened), np.zeros_like(opened)
    groups = _working_together(launched.chain)
    for group in np.unique(groups[device.thread[device.thread >= 0]]).tolist():
        rows = np.flatnonzero((device.thread >= 0) & (groups[device.thread] == group))
        threads = _Threads(device, np.flatnonzero(groups == group), events)
        spent = opened[rows], device.begun[rows]
        compiles[rows] = threads.divide(division, rows, spent)
        held[rows] = threads.held(*spent)
    division.rest(FAULTS, device.faults(after))
    division.give(SYNC_DRAIN, np.arange(len(held)), held)
    division.rest(LAUNCH_BOUND, device.thread >= 0)
    launch = device.thread, device.begun, device.done
    return IdleIntervals(
        opened, closed, before, after, *launch, held, compiles, times=division.times
    )


@dataclass(frozen=True)
class _Device:
    """The idle intervals of a device in a window, and the launch of the operation after each."""

    launched: LaunchedWork
    place: int
    idle: IdleTime
    opened: Ints
    closed: Ints
    before: Rows
    after: Rows

    @cached_property
    def call(self) -> Ints:
        """The launching call; -1 where it is not known."""
        return np.where(self.after == NO_ROW, -1, self.launched.launched_by[self.after])

    @cached_property
    def thread(self) -> Ints:
        """Whose launch it is; of pages that are touched the thread that launches next. -1: none."""
        work, chain = self.launched.work, self.launched.chain
        call, touched = self.call.copy(), np.flatnonzero((self.call < 0) & self.faults(self.after))
        mine = (work.pid == work.places[self.place][0]) & (self.launched.launched_by >= 0)
        if len(touched) and mine.any():
            rows = np.flatnonzero(mine)
            rows = rows[np.argsort(work.start[rows], kind="stable")]
            at = np.searchsorted(work.start[rows], self.closed[touched])
            call[touched] = self.launched.launched_by[rows[np.minimum(at, len(rows) - 1)]]
        return np.where(call >= 0, chain.thread[call], -1) if len(chain) else call

    @cached_property
    def begun(self) -> Ints:
        """When the thread came to the launch: a page is touched when it migrates."""
        return self._clipped(self.launched.chain.start)

    @cached_property
    def done(self) -> Ints:
        """When the launching call was over."""
        return self._clipped(self.launched.chain.end)

    def _clipped(self, times: Ints) -> Ints:
        if not len(times):
            return self.closed
        known = np.where(self.call >= 0, times[self.call], self.closed)
        return np.clip(known, self.opened, self.closed)

    def faults(self, rows: Rows) -> Mask:
        """Which of some operations are migrations of unified memory."""
        if not self.launched.migrates.any():
            return np.zeros(len(rows), dtype=np.bool_)
        migrates: Mask = (rows != NO_ROW) & self.launched.migrates[rows]
        return migrates

    @cached_property
    def others(self) -> Spans:
        """When other devices of the process worked."""
        work = self.launched.work
        mine = (work.pid == work.places[self.place][0]) & (work.place != self.place)
        return union(work.start[mine], work.end[mine])

    @cached_property
    def touched(self) -> Spans:
        """When pages migrated that threads of the process touched."""
        work = self.launched.work
        rows = self.launched.migrates & (work.pid == work.places[self.place][0])
        return union(work.start[rows], work.end[rows])

    @cached_property
    def latency(self) -> Ints:
        """How long after its call an operation of each kind begins where nothing runs: medians."""
        work, usual = self.launched.work, np.zeros(len(KINDS), dtype=np.int64)
        after, opened = self.idle.after[1:-1], self.idle.spans.starts[1:-1]
        alone = measure_inside(self.others, opened, work.start[after]) == 0
        alone &= self.launched.launched_by[after] >= 0
        after, opened = after[alone], opened[alone]
        ended = self.launched.chain.end[self.launched.launched_by[after]]
        late, kind = work.start[after] - ended, work.kind[after]
        for each in range(len(KINDS)):
            seen = late[(kind == each) & (late >= 0) & (ended >= opened)]
            usual[each] = np.median(seen) if len(seen) else 0
        return np.minimum(usual, LONG_CALL_NS)

    def after_launch(self, division: Division) -> None:
        """Launched, and not begun: beyond the usual latency it was not the host that held it.

        So it is after all that was launched.
        """
        rows, last = np.flatnonzero(self.call >= 0), np.flatnonzero(self.after == NO_ROW)
        beside = measure_inside(self.others, self.opened, self.closed)
        division.give(ELSEWHERE, last, beside[last])
        ended = self.launched.chain.end[self.call[rows]]
        usual = self.latency[self.launched.work.kind[self.after[rows]]]
        since = np.clip(ended + usual, self.opened[rows], self.closed[rows])
        elsewhere = measure_inside(self.others, since, self.closed[rows])
        division.give(ELSEWHERE, rows, elsewhere)
        division.give(QUEUED, rows, self.closed[rows] - since - elsewhere)

    def in_call(self, division: Division) -> None:
        """In the launching call: beyond the usual, a first launch loads code; copies are staged."""
        launched, rows = self.launched, np.flatnonzero(self.done > self.begun)
        call, row = self.call[rows], self.after[rows]
        time, first = (self.done - self.begun)[rows], launched.first[row]
        beyond = launched.beyond_usual(call[first])
        beyond *= beyond >= LONG_CALL_NS
        division.give(FIRST_LAUNCH, rows[first], np.minimum(time[first], beyond))
        staged = np.zeros_like(first)
        for cause, direction in ((TO_DEVICE, "h2d"), (TO_HOST, "d2h")):
            copies = launched.names.equals(DIRECTIONS[direction])[row] & launched.pageable[row]
            division.give(cause, rows[copies], time[copies])
            staged |= copies
        long = ~first & ~staged & (time >= HOST_GAP_NS)
        division.give(HOST_GAP, rows[long], time[long])


class _Threads:
    """What some threads that work for each other did, as sets of time."""

    def __init__(self, device: _Device, threads: Ints, events: HostEvents | None) -> None:
        launched, chain, self.events = device.launched, device.launched.chain, events
        calls = np.flatnonzero(np.isin(chain.thread, threads))
        calls = calls[np.argsort(chain.start[calls], kind="stable")]
        start, end, kind = chain.start[calls], chain.end[calls], chain.kind[calls]
        stands = (end - start >= HOST_GAP_NS) & ((kind == LAUNCH) | (kind == OTHER))
        stands &= ~np.isin(calls, launched.launched_by[launched.first])

        def spans(mine: Mask) -> Spans:
            return union(start[mine], end[mine])

        self.loading = spans((kind == MODULE) & (end - start >= LONG_CALL_NS))
        self.allocating = spans(kind == ALLOCATES)
        self.waits = spans(launched.waits[calls])
        self.elsewhere = self.waits & device.others
        tids = chain.tid(threads).tolist()
        self.own = [] if events is None else [events.of_thread(tid) for tid in tids]
        called = spans(~stands) | device.touched
        self.mpi = union_of(spans_of(own.mpi_calls) for own in self.own) - called
        self.compiles = union_of(compiling(own.ranges) for own in self.own) - called - self.mpi
        left, back = np.append(NEVER, called.ends), np.append(called.starts, -NEVER)
        long = back - left >= HOST_GAP_NS
        outside = Spans(left[long], back[long])
        # what reads and writes files is no part of launching, however short it is
        in_out = union_of(ins_and_outs(own.os_calls) for own in self.own) - called
        self.outside = (outside | in_out) - self.mpi - self.compiles
        self.beside = self.outside & device.others
        beyond = launched.waits & ~np.isin(chain.thread, threads)
        beyond &= chain.pid == chain.threads[threads[0]][0]
        self.others_waited = np.sort(chain.end[beyond])

    def divide(self, division: Division, rows: Ints, spent: tuple[Ints, Ints]) -> Ints:
        """Divide what was spent before some launches, from one time to another; what compiled."""
        for cause, spans in (
            (FIRST_LAUNCH, self.loading),
            (ALLOCATION, self.allocating),
            (IN_MPI, self.mpi),
            (ELSEWHERE, self.elsewhere),
        ):
            if len(spans):
                division.give(cause, rows, measure_inside(spans, *spent))
        compiles = division.give(FIRST_LAUNCH, rows, measure_inside(self.compiles, *spent))
        outside = measure_inside(self.outside, *spent)
        # a thread that goes on when another one has waited did so for the same
        ended = [
            np.searchsorted(self.others_waited, spent[1] - ago, side="right")
            for ago in (TOGETHER_NS, 0)
        ]
        together = np.flatnonzero(ended[1] > ended[0])
        beside = measure_inside(self.beside, *spent)[together]
        outside[together] -= division.give(ELSEWHERE, rows[together], beside)
        if self.events is not None and self.events.samples.rows:
            every, *own = (
                compiled_share(events.samples, *spent) for events in (self.events, *self.own)
            )
            share = next((one for one in own if not np.isnan(one).all()), every)
            share = np.nan_to_num(np.where(np.isnan(share), every, share))
            compiles += division.give(FIRST_LAUNCH, rows, (outside * share).astype(np.int64))
            outside -= (outside * share).astype(np.int64)
        division.give(HOST_GAP, rows, outside)
        return compiles

    def held(self, opened: Ints, begun: Ints) -> Ints:
        """How long the call waited that was under way when each interval opened, and then over."""
        at = np.searchsorted(self.waits.starts, opened, side="right") - 1
        if not len(self.waits):
            return np.zeros_like(opened)
        start, end = self.waits.starts[at], self.waits.ends[at]
        return np.where((at >= 0) & (end >= opened) & (end <= begun), end - start, 0)


def _working_together(chain: HostChain) -> Ints:
    """The group of each thread: threads of which one waits while another one issues."""
    count, thread = len(chain.threads), chain.thread.astype(np.int64)
    before, after = handed_over(thread, chain.pid, chain.start, chain.end)
    pairs = np.unique(np.stack([thread[before], thread[after]]), axis=1)
    members = np.concatenate([np.arange(count), *pairs])
    sets = np.arange(pairs.shape[1]) + count
    groups = connected(members, np.concatenate([np.arange(count), sets, sets]), count)
    return groups.astype(np.int64)
