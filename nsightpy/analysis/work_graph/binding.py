"""Why a device was idle: the edge that binds the operation that ends each idle interval.

The device is idle, so what ran on it before has ended: what held the operation back is the host
that had not launched it, or, where it was launched, another device or nothing that is recorded.
Behind a launch stands what the threads did since the device ran dry: calls by their kind, long
stretches outside of CUDA. The rest, short gaps and calls that launch, is `sync-drain` where a
blocking call held the thread when the device ran dry, else `launch-bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nsightpy.analysis.grouping import connected
from nsightpy.analysis.idle.gpu_work import COMPUTE, Rows
from nsightpy.analysis.idle.host_activity import HostEvents, compiled_share, compiling
from nsightpy.analysis.idle.host_calls import ALLOCATION as ALLOCATES, MODULE, WAIT
from nsightpy.analysis.idle.idle_time import NEVER, NO_ROW, idle_time
from nsightpy.analysis.intervals import Spans, measure_inside, overlap_total, union, union_of
from nsightpy.analysis.memory.copies import UNIFIED
from nsightpy.analysis.work_graph.blocking import Mask
from nsightpy.analysis.work_graph.causes import (
    ALLOCATION,
    ELSEWHERE,
    FAULTS,
    FIRST_LAUNCH,
    HOST_GAP,
    IN_MPI,
    LAUNCH_BOUND,
    ON_DEVICE,
    QUEUED,
    SYNC_DRAIN,
    TO_DEVICE,
    TO_HOST,
    UNKNOWN,
    Division,
    IdleIntervals,
)
from nsightpy.analysis.work_graph.host_chain import MPI, handed_over
from nsightpy.analysis.work_graph.part import GraphPart
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS
from nsightpy.analysis.work_graph.typical import typical
from nsightpy.frames import Ints

_COPIES = (
    ("[CUDA memcpy Host-to-", TO_DEVICE),
    ("[CUDA memcpy Array-to-Host", TO_HOST),
    ("[CUDA memcpy Device-to-Host", TO_HOST),
    ("[CUDA memcpy ", ON_DEVICE),
)


def binding(
    part: GraphPart, place: int, window: Spans, events: HostEvents | None = None
) -> IdleIntervals:
    """The idle intervals of one place (number) of the work inside a window, and their causes.

    `events` are those of the place's process; without them compiling is not told from other work
    of the host.
    """
    opened, closed, before, after = idle_time(part.work, place).inside(window)
    division = Division(closed - opened)
    device = _Device(part, place, opened, closed, before, after)
    division.rest(UNKNOWN, device.thread < 0)
    division.rest(FAULTS, device.faults(before) & device.faults(after))
    device.after_launch(division)
    device.in_call(division)
    groups = _working_together(part)
    drained = np.zeros(len(opened), dtype=np.bool_)
    for group in np.unique(groups[device.thread[device.thread >= 0]]).tolist():
        rows = np.flatnonzero((device.thread >= 0) & (groups[device.thread] == group))
        threads = _Threads(part, np.flatnonzero(groups == group), device.others)
        spent = (opened[rows], np.maximum(device.begun[rows], opened[rows]))
        threads.divide(division, rows, spent, events)
        drained[rows] = threads.held(*spent)
    division.rest(FAULTS, device.faults(after))
    division.rest(SYNC_DRAIN, drained)
    division.rest(LAUNCH_BOUND, device.thread >= 0)
    return IdleIntervals(opened, closed, before, after, device.thread, division.times)


def migrating_ns(part: GraphPart, place: int, window: Spans) -> int:
    """How long kernels of a place ran while pages migrated, which they wait for; in ns."""
    work, mine = part.work, part.work.place == place
    kernels, moved = (
        union(work.start[rows], work.end[rows])
        for rows in (mine & (work.kind == COMPUTE), mine & part.migrates)
    )
    return overlap_total(kernels & window, moved)


@dataclass(frozen=True)
class _Device:
    """The idle intervals of a device, and the launch of the operation after each."""

    part: GraphPart
    place: int
    opened: Ints
    closed: Ints
    before: Rows
    after: Rows

    @cached_property
    def call(self) -> Ints:
        """The launching call; -1 where it is not known."""
        return np.where(self.after == NO_ROW, -1, self.part.launched_by[self.after])

    @cached_property
    def thread(self) -> Ints:
        """Whose launch it is; of pages that are touched the thread that launches next. -1: none."""
        work, chain = self.part.work, self.part.chain
        call, touched = self.call.copy(), np.flatnonzero((self.call < 0) & self.faults(self.after))
        pids = np.asarray([pid for pid, _ in work.places], dtype=np.int64)
        rows = np.flatnonzero((self.part.launched_by >= 0) & (pids[work.place] == pids[self.place]))
        if len(rows):
            rows = rows[np.argsort(work.start[rows], kind="stable")]
            at = np.searchsorted(work.start[rows], self.closed[touched])
            call[touched] = self.part.launched_by[rows[np.minimum(at, len(rows) - 1)]]
        return np.where(call >= 0, chain.thread[call], -1) if len(chain) else call

    @cached_property
    def begun(self) -> Ints:
        """When the thread came to the launch: a page is touched when it migrates."""
        return self._clipped(self.part.chain.start)

    @cached_property
    def done(self) -> Ints:
        """When the launching call was over."""
        return self._clipped(self.part.chain.end)

    def _clipped(self, times: Ints) -> Ints:
        known = (
            np.where(self.call >= 0, times[self.call], self.closed) if len(times) else self.closed
        )
        return np.clip(known, self.opened, self.closed)

    def faults(self, rows: Rows) -> Mask:
        """Which of some operations are migrations of unified memory."""
        migrates: Mask = (rows != NO_ROW) & self.part.migrates[rows]
        return migrates

    @cached_property
    def others(self) -> Spans:
        """When other devices of the process worked."""
        work, pid = self.part.work, self.part.work.places[self.place][0]
        others = [n for n, (owner, _) in enumerate(work.places) if owner == pid and n != self.place]
        mine = np.isin(work.place, others)
        return union(work.start[mine], work.end[mine])

    def after_launch(self, division: Division) -> None:
        """Launched, and not begun: beyond the usual latency it was not the host that held it."""
        rows = np.flatnonzero(self.call >= 0)
        ended = self.part.chain.end[self.call[rows]]
        usual = self.part.latency[self.after[rows]]
        since = np.clip(ended + usual, self.opened[rows], self.closed[rows])
        elsewhere = _inside(self.others, since, self.closed[rows])
        division.give(ELSEWHERE, rows, elsewhere)
        division.give(QUEUED, rows, self.closed[rows] - since - elsewhere)

    def in_call(self, division: Division) -> None:
        """In the launching call: beyond the usual, a first launch loads code; copies are staged."""
        part, rows = self.part, np.flatnonzero(self.done > self.begun)
        call, row, time = self.call[rows], self.after[rows], (self.done - self.begun)[rows]
        length = part.chain.end - part.chain.start
        every = np.ones(len(length), dtype=np.bool_)
        usual = typical(length, part.chain.labels.codes.astype(np.int64), every, length)[call]
        first = part.first[row]
        loads = np.minimum(time, np.maximum(length[call] - usual, 0))
        division.give(FIRST_LAUNCH, rows[first], loads[first])
        copies = np.where(part.pageable[row], part.names.map(_copy_cause, np.int8)[row], -1)
        for cause in (TO_DEVICE, TO_HOST, ON_DEVICE):
            division.give(cause, rows[copies == cause], time[copies == cause])
        long = ~first & (copies < 0) & (time >= HOST_GAP_NS)
        division.give(HOST_GAP, rows[long], time[long])


def _copy_cause(name: str) -> int:
    """What a copy of that name counts for; -1 for what is none."""
    if name.startswith(UNIFIED):
        return -1
    return next((cause for begin, cause in _COPIES if name.startswith(begin)), -1)


class _Threads:
    """What some threads that work for each other did, as sets of time."""

    def __init__(self, part: GraphPart, threads: Ints, others: Spans) -> None:
        chain = part.chain
        calls = np.flatnonzero(np.isin(chain.thread, threads))
        calls = calls[np.argsort(chain.start[calls], kind="stable")]
        start, end, kind = chain.start[calls], chain.end[calls], chain.kind[calls]

        def spans(mine: Mask) -> Spans:
            return union(start[mine], end[mine])

        self.tids = [chain.threads[thread][1] for thread in threads.tolist()]
        self.loading = spans(kind == MODULE)
        self.allocating = spans(kind == ALLOCATES)
        self.mpi = spans(kind == MPI)
        self.waits = spans((kind == WAIT) | part.blocks[calls])
        self.elsewhere = self.waits & others
        ends = np.concatenate([[NEVER], np.maximum.accumulate(end)])
        begins = np.append(start, -NEVER)
        long = begins - ends >= HOST_GAP_NS
        self.outside = union(ends[long], begins[long])

    def divide(
        self, division: Division, rows: Ints, spent: tuple[Ints, Ints], events: HostEvents | None
    ) -> None:
        """Divide what was spent before the launches of some intervals, from one time to another."""
        known = (
            (FIRST_LAUNCH, self.loading),
            (ALLOCATION, self.allocating),
            (IN_MPI, self.mpi),
            (ELSEWHERE, self.elsewhere),
        )
        for cause, spans in known:
            division.give(cause, rows, _inside(spans, *spent))
        outside = self.outside
        if events is not None:
            compiles = union_of(compiling(events.of_thread(tid).ranges) for tid in self.tids)
            division.give(FIRST_LAUNCH, rows, _inside(compiles & outside, *spent))
            outside = outside - compiles
        left = _inside(outside, *spent)
        if events is not None:
            share = np.nan_to_num(compiled_share(events.samples, *spent))
            compiled = (left * share).astype(np.int64)
            division.give(FIRST_LAUNCH, rows, compiled)
            left = left - compiled
        division.give(HOST_GAP, rows, left)

    def held(self, opened: Ints, begun: Ints) -> Mask:
        """Whether a call that waits was under way when each interval opened, and then over."""
        at = np.searchsorted(self.waits.starts, opened, side="right") - 1
        if not len(self.waits):
            return at >= 0
        ends = self.waits.ends[at]
        return (at >= 0) & (ends >= opened) & (ends <= begun)


def _working_together(part: GraphPart) -> Ints:
    """The group of each thread: threads of which one waits while another one issues."""
    chain, count = part.chain, len(part.chain.threads)
    thread = chain.thread.astype(np.int64)
    before, after = handed_over(thread, chain.pid, chain.start, chain.end)
    pairs = np.unique(np.stack([thread[before], thread[after]]), axis=1)
    members = np.concatenate([np.arange(count), *pairs])
    sets = np.arange(pairs.shape[1]) + count
    groups = connected(members, np.concatenate([np.arange(count), sets, sets]), count)
    return groups.astype(np.int64)


def _inside(spans: Spans, low: Ints, high: Ints) -> Ints:
    """How much of a set lies in each of ascending, disjoint intervals, some empty; in ns."""
    return measure_inside(spans, low, np.maximum(low, high))
