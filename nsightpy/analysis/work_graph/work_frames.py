"""The frames that the work of one report is told by, whole or of a stretch of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.launches import NO_TIME, api_calls, launch_starts
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS
from nsightpy.analysis.work_graph.launched_work import Mask, Work
from nsightpy.frames import Frame, Ints, constant, distinct, distinct_pairs

SYNCHRONIZATION_COLUMNS = (
    *("start_ns", "pid", "context", "stream", "correlation_id", "kind", "event_sync_id"),
)
EVENT_COLUMNS = ("pid", "context", "stream", "correlation_id", "event_sync_id")


@dataclass(frozen=True)
class WorkFrames:
    """What a `report` (path) contributes to the graph, small enough to travel.

    The memory operations of the work have bytes and memory kinds; `communication` marks kernels;
    `calls` are runtime, driver and MPI calls (CALL_COLUMNS) by start. The stretch from `low` to
    `high` (ns) is number `block` of all; a whole report has none (NO_TIME).
    """

    work: Work
    communication: Mask
    calls: Frame
    synchronizations: Frame
    events: Frame
    report: str = ""
    block: int = 0
    low: int = NO_TIME
    high: int = NO_TIME

    @property
    def operations(self) -> int:
        """How many operations there are."""
        return sum(frame.rows for frame in self.work)

    def pids(self) -> Ints:
        """The processes, in order."""
        frames = (*self.work, self.calls, self.synchronizations, self.events)
        return distinct(np.concatenate([frame.ints("pid") for frame in frames]))[0]

    def between(self, low: int, high: int) -> WorkFrames:
        """What ran in a stretch of time (ns), what each device began next, and their calls."""
        end = _followed_until(self.work, high)
        kept = [(f.ints("end_ns") > low) & (f.ints("start_ns") <= end) for f in self.work]
        work = Work(*(frame.take(mask) for frame, mask in zip(self.work, kept, strict=True)))
        launched = np.concatenate([launch_starts(frame, self.calls) for frame in work])
        launched = launched[launched != NO_TIME]
        first = launched.min(initial=low)
        last = launched.max(initial=first)
        called, waited = (f.ints("start_ns") for f in (self.calls, self.synchronizations))
        calls = self.calls.take((called >= first) & (called <= last))
        return replace(
            self,
            work=work,
            communication=self.communication[kept[0]],
            calls=calls,
            synchronizations=self.synchronizations.take(waited >= first),
            events=self.events.take(launch_starts(self.events, calls) != NO_TIME),
            low=low,
            high=high,
        )

    def each(self, change: Callable[[Frame], Frame]) -> WorkFrames:
        """The same of frames that are changed."""
        calls, waits, events = map(change, (self.calls, self.synchronizations, self.events))
        work = Work(*map(change, self.work))
        return replace(self, work=work, calls=calls, synchronizations=waits, events=events)

    @classmethod
    def concatenate(cls, parts: Sequence[WorkFrames]) -> WorkFrames:
        """The frames of several."""
        return cls(
            Work(*map(Frame.concatenate, zip(*(part.work for part in parts), strict=True))),
            np.concatenate([part.communication for part in parts]),
            Frame.concatenate([part.calls for part in parts]).ordered(),
            Frame.concatenate([part.synchronizations for part in parts]),
            Frame.concatenate([part.events for part in parts]),
        )


def calls_with_mpi(calls: Frame, mpi: Frame) -> Frame:
    """Runtime, driver and MPI calls (SPAN, pid, tid, name), by start."""
    none = constant(0, mpi.rows)
    mpi = Frame({**mpi, "correlation_id": none, "event_class": none})
    return Frame.concatenate([api_calls(calls), mpi.select(CALL_COLUMNS)]).ordered()


def _followed_until(work: Work, high: int) -> int:
    """Until when each device has begun one more operation after a moment, in ns."""
    start, pid, device = (
        np.concatenate([frame.ints(name) for frame in work])
        for name in ("start_ns", "pid", "device")
    )
    after = start >= high
    places, place = distinct_pairs(pid[after], device[after])
    following = np.full(len(places), np.iinfo(np.int64).max)
    np.minimum.at(following, place, start[after])
    return int(following.max(initial=high))
