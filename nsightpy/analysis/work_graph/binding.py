"""Why a device was idle: the edge that binds the operation that ends each idle interval.

The device is idle, so what ran on it before has ended: what held the operation back is the host
that had not launched it, or, where it was launched, another device or nothing that is recorded.
Behind a launch stands what the threads did since the device ran dry: calls by their kind, long
stretches outside of CUDA. The rest, short gaps and calls that launch, is `sync-drain` for as long
as a blocking call held the thread when the device ran dry, else `launch-bound`.
"""

import numpy as np

from nsightpy.analysis.grouping import connected
from nsightpy.analysis.intervals import Spans, measure_inside, spans_of, union, union_of
from nsightpy.analysis.memory.copies import DIRECTIONS
from nsightpy.analysis.work_graph.host_activity import (
    COMPILING,
    INS_AND_OUTS,
    HostEvents,
    time_in,
)
from nsightpy.analysis.work_graph.host_chain import (
    ALLOCATION,
    LAUNCH,
    MODULE,
    OTHER,
    HostChain,
    Rows,
    handed_over,
)
from nsightpy.analysis.work_graph.idle_intervals import (
    CAUSES,
    NEVER,
    NO_ROW,
    Cause,
    IdleIntervals,
    idle_time,
)
from nsightpy.analysis.work_graph.launched_work import GRAPH, LaunchedWork, Mask
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS, LONG_CALL_NS, TOGETHER_NS
from nsightpy.frames import Ints


def binding(
    launched: LaunchedWork, place: int, window: Spans, events: HostEvents | None = None
) -> IdleIntervals:
    """The idle intervals of one place (number) of the work inside a window, and their causes.

    `events` are those of the place's process; without them nothing is known of what its threads do
    outside of CUDA.
    """
    device = _Device(launched, place, window)
    thread, opened, begun = device.thread, device.opened, device.begun
    faults = device.faults(device.after)
    device.rest(Cause.UNIFIED_MEMORY, device.faults(device.before) & faults)
    device.after_launch()
    device.rest(Cause.UNKNOWN, thread < 0)
    device.in_call()
    held, compiles = np.zeros_like(opened), np.zeros_like(opened)
    groups = _working_together(launched.chain)
    for group in np.unique(groups[thread[thread >= 0]]).tolist():
        rows = np.flatnonzero((thread >= 0) & (groups[thread] == group))
        threads = _Threads(device, np.flatnonzero(groups == group), events)
        spent = opened[rows], begun[rows]
        compiles[rows] = threads.divide(rows, spent)
        held[rows] = threads.held(*spent)
    device.rest(Cause.UNIFIED_MEMORY, faults)
    device.give(Cause.SYNC_DRAIN, np.arange(len(held)), held)
    device.rest(Cause.LAUNCH_BOUND, thread >= 0)
    around = opened, device.closed, device.before, device.after
    return IdleIntervals(*around, thread, begun, held, compiles, device.times)


class _Device:
    """The idle intervals of a device, divided by cause piece by piece; what is left goes on.

    Of the launch of the operation after each: its `call`, and the `thread` whose it is, of pages
    that are touched the one that launches next (-1: not known); `begun` and `done` when the thread
    came to it, a page is touched when it migrates, and had made it. `others`: when other devices of
    the process worked.
    """

    def __init__(self, launched: LaunchedWork, place: int, window: Spans) -> None:
        self.launched, chain, self.idle = launched, launched.chain, idle_time(launched, place)
        inside = self.idle[0] & window
        self.opened, self.closed = inside.starts, inside.ends
        at = np.searchsorted(self.idle[0].starts, self.opened, side="right") - 1
        self.before, self.after = self.idle[1][at], self.idle[2][at]
        self.left = self.closed - self.opened
        # by column: each is mostly read as a whole, and one that stays empty costs no memory
        self.times = np.zeros((len(self.left), len(CAUSES)), dtype=np.int64, order="F")
        self.of_process = launched.pid == launched.places[place][0]
        self.others = launched.spans(self.of_process & (launched.place != place))
        self.call = np.append(launched.launched_by, np.int32(-1))[self.after]
        self.thread = np.append(chain.thread, np.int32(-1))[self._touching()]
        known, ends = self.call >= 0, (self.opened, self.closed)
        self.begun, self.done = (
            np.clip(np.where(known, np.append(times, 0)[self.call], self.closed), *ends)
            for times in (chain.start, chain.end)
        )

    def give(self, cause: int, rows: Ints, time: Ints) -> Ints:
        """So much of the time of some intervals has this cause, but no more than is left."""
        part: Ints = np.minimum(time, self.left[rows])
        filled = np.flatnonzero(part)
        self.times[rows[filled], cause] += part[filled]
        self.left[rows[filled]] -= part[filled]
        return part

    def rest(self, cause: int, mask: Mask) -> None:
        """All that is left of some intervals has this cause."""
        rows = np.flatnonzero(mask)
        self.give(cause, rows, self.left[rows])

    def faults(self, rows: Rows) -> Mask:
        """Which of some operations (-1: none) are migrations of unified memory."""
        migrates: Mask = np.append(self.launched.migrates, False)[rows]
        return migrates

    def _touching(self) -> Rows:
        """The launching calls; of pages that are touched those that launch next."""
        launched, call = self.launched, self.call.copy()
        touched = np.flatnonzero((call < 0) & self.faults(self.after))
        rows = np.flatnonzero(self.of_process & (launched.launched_by >= 0))
        if len(touched) and len(rows):
            rows = rows[np.argsort(launched.start[rows], kind="stable")]
            at = np.searchsorted(launched.start[rows], self.closed[touched])
            call[touched] = launched.launched_by[rows[np.minimum(at, len(rows) - 1)]]
        return call

    def _latency(self) -> Ints:
        """How long after its call an operation of each kind begins where nothing runs: medians."""
        work, usual = self.launched, np.zeros(GRAPH + 1, dtype=np.int64)
        after, opened = self.idle[2][1:-1], self.idle[0].starts[1:-1]
        alone = measure_inside(self.others, opened, work.start[after]) == 0
        alone &= work.launched_by[after] >= 0
        after, opened = after[alone], opened[alone]
        ended = work.chain.end[work.launched_by[after]]
        late, kind = work.start[after] - ended, work.kind[after]
        for each in range(len(usual)):
            seen = late[(kind == each) & (late >= 0) & (ended >= opened)]
            usual[each] = np.median(seen) if len(seen) else 0
        return np.minimum(usual, LONG_CALL_NS)

    def after_launch(self) -> None:
        """Launched, and not begun: beyond the usual latency it was not the host that held it.

        So it is after all that was launched.
        """
        rows, last = np.flatnonzero(self.call >= 0), np.flatnonzero(self.after == NO_ROW)
        beside = measure_inside(self.others, self.opened, self.closed)
        self.give(Cause.IMBALANCE, last, beside[last])
        ended = self.launched.chain.end[self.call[rows]]
        usual = self._latency()[self.launched.kind[self.after[rows]]]
        since = np.clip(ended + usual, self.opened[rows], self.closed[rows])
        elsewhere = measure_inside(self.others, since, self.closed[rows])
        self.give(Cause.IMBALANCE, rows, elsewhere)
        self.give(Cause.QUEUED, rows, self.closed[rows] - since - elsewhere)

    def in_call(self) -> None:
        """In the launching call: beyond the usual, a first launch loads code; copies are staged."""
        launched, rows = self.launched, np.flatnonzero(self.done > self.begun)
        call, row = self.call[rows], self.after[rows]
        time, first = (self.done - self.begun)[rows], launched.first[row]
        beyond = launched.beyond_usual(call[first])
        beyond *= beyond >= LONG_CALL_NS
        self.give(Cause.FIRST_LAUNCH, rows[first], np.minimum(time[first], beyond))
        staged = np.zeros_like(first)
        for cause, direction in ((Cause.EXPOSED_H2D, "h2d"), (Cause.EXPOSED_D2H, "d2h")):
            copies = launched.names.equals(DIRECTIONS[direction])[row] & launched.pageable[row]
            self.give(cause, rows[copies], time[copies])
            staged |= copies
        long = ~first & ~staged & (time >= HOST_GAP_NS)
        self.give(Cause.HOST_GAP, rows[long], time[long])


class _Threads:
    """What some threads that work for each other did, as sets of time."""

    def __init__(self, device: _Device, threads: Ints, events: HostEvents | None) -> None:
        self.device, launched, chain = device, device.launched, device.launched.chain
        of_them, length = np.isin(chain.thread, threads), chain.end - chain.start
        stands = (length >= HOST_GAP_NS) & ((chain.kind == LAUNCH) | (chain.kind == OTHER))
        stands[launched.launched_by[launched.first]] = False

        def spans(mask: Mask) -> Spans:
            mask = mask & of_them
            return union(chain.start[mask], chain.end[mask])

        self.loading = spans((chain.kind == MODULE) & (length >= LONG_CALL_NS))
        self.allocating = spans(chain.kind == ALLOCATION)
        self.waits = spans(launched.waits)
        tids = chain.tid(threads).tolist()
        own = [] if events is None else [events.of_thread(tid) for tid in tids]
        called = spans(~stands) | launched.spans(launched.migrates & device.of_process)
        self.mpi = union_of(spans_of(each.mpi_calls) for each in own) - called
        compiles = union_of(time_in(each.ranges, COMPILING) for each in own)
        self.compiles = compiles - called - self.mpi
        left, back = np.append(NEVER, called.ends), np.append(called.starts, -NEVER)
        long = back - left >= HOST_GAP_NS
        outside = Spans(left[long], back[long])
        # what reads and writes files is no part of launching, however short it is
        in_out = union_of(time_in(each.os_calls, INS_AND_OUTS) for each in own) - called
        self.outside = (outside | in_out) - self.mpi - self.compiles
        self.elsewhere, self.beside = (each & device.others for each in (self.waits, self.outside))
        others_wait = launched.waits & ~of_them & (chain.pid == chain.pid[of_them][0])
        self.others_waited = np.sort(chain.end[others_wait])

    def divide(self, rows: Ints, spent: tuple[Ints, Ints]) -> Ints:
        """Divide what was spent before some launches, from one time to another; what compiled."""
        for cause, spans in (
            (Cause.FIRST_LAUNCH, self.loading),
            (Cause.ALLOCATION, self.allocating),
            (Cause.EXPOSED_COMMUNICATION, self.mpi),
            (Cause.IMBALANCE, self.elsewhere),
        ):
            if len(spans):
                self.device.give(cause, rows, measure_inside(spans, *spent))
        compiles = self.device.give(Cause.FIRST_LAUNCH, rows, measure_inside(self.compiles, *spent))
        outside = measure_inside(self.outside, *spent)
        # a thread that goes on when another one has waited did so for the same
        since, until = (
            np.searchsorted(self.others_waited, spent[1] - ago, side="right")
            for ago in (TOGETHER_NS, 0)
        )
        together = np.flatnonzero(until > since)
        beside = measure_inside(self.beside, *spent)[together]
        outside[together] -= self.device.give(Cause.IMBALANCE, rows[together], beside)
        self.device.give(Cause.HOST_GAP, rows, outside)
        return compiles

    def held(self, opened: Ints, begun: Ints) -> Ints:
        """How long the call waited that was under way when each interval opened, and then over."""
        at = np.searchsorted(self.waits.starts, opened, side="right") - 1
        start, end = np.append(self.waits.starts, NEVER)[at], np.append(self.waits.ends, NEVER)[at]
        return np.where((end >= opened) & (end <= begun), end - start, 0)


def _working_together(chain: HostChain) -> Ints:
    """The group of each thread: threads of which one waits while another one issues."""
    count, (before, after) = len(chain.threads), handed_over(chain)
    pairs = np.unique(np.stack([chain.thread[before], chain.thread[after]]), axis=1)
    members = np.concatenate([np.arange(count), *pairs])
    sets = np.arange(pairs.shape[1]) + count
    groups = connected(members, np.concatenate([np.arange(count), sets, sets]), count)
    return groups.astype(np.int64)
