"""What one report contributes to the graph: its operations, calls, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.idle.gpu_work import Work
from nsightpy.analysis.launches import NO_TIME, api_calls, launch_starts
from nsightpy.analysis.work_graph.blocking import Pairs, awaited
from nsightpy.analysis.work_graph.device_queue import DeviceQueue, event_edges
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS
from nsightpy.analysis.work_graph.launched_work import LaunchedWork, Mask, launched_work
from nsightpy.frames import Frame, constant, distinct_pairs


@dataclass(frozen=True)
class WorkFrames:
    """The frames that the graph of one report is made of.

    The memory operations of the work have bytes and memory kinds; `communication` marks kernels;
    calls have CALL_COLUMNS, MPI calls SPAN, pid, tid and name; synchronisations and events the
    columns of device_queue.
    """

    work: Work
    communication: Mask
    calls: Frame
    synchronizations: Frame
    events: Frame
    mpi: Frame | None = None

    @property
    def all_calls(self) -> Frame:
        """Runtime, driver and MPI calls, by start."""
        calls = api_calls(self.calls)
        if self.mpi is None:
            return calls
        none = constant(0, self.mpi.rows)
        mpi = Frame({**self.mpi, "correlation_id": none, "event_class": none})
        return Frame.concatenate([calls, mpi.select(CALL_COLUMNS)]).ordered()

    def between(self, low: int, high: int) -> WorkFrames:
        """What ran in a stretch of time (ns), what each device began next, and their calls."""
        work, end = self.work, _followed_until(self.work, high)
        kept = [(f.ints("end_ns") > low) & (f.ints("start_ns") <= end) for f in work]
        launches = [launch_starts(f.take(k), self.calls) for f, k in zip(work, kept, strict=True)]
        launched = np.concatenate(launches)
        launched = launched[launched != NO_TIME]
        first, last = (int(launched.min()), int(launched.max())) if len(launched) else (low, low)
        calls, waits = self.all_calls, self.synchronizations
        first = min(first, low)
        made = (calls.ints("start_ns") >= first) & (calls.ints("start_ns") <= last)
        return WorkFrames(
            Work(*(frame.take(mask) for frame, mask in zip(work, kept, strict=True))),
            self.communication[kept[0]],
            calls.take(made),
            waits.take(waits.ints("start_ns") >= first),
            self.events,
        )


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


@dataclass(frozen=True)
class GraphPart(LaunchedWork):
    """The work of one report, or of a stretch of it, small enough to travel.

    `events` are pairs of an operation and one that waits for it, `awaited` of a blocking call and
    an operation that it waits for. The stretch from `low` to `high` is number `block` of all; a
    whole report has none (NO_TIME).
    """

    events: Pairs
    awaited: Pairs
    report: str
    block: int
    low: int
    high: int


def graph_part(
    frames: WorkFrames,
    window: tuple[int, int] | None = None,
    *,
    report: str = "",
    block: int = 0,
) -> GraphPart:
    """The part of a report, or of a stretch of it from one moment to another (ns)."""
    frames = frames if window is None else frames.between(*window)
    calls = frames.all_calls
    launched = launched_work(frames.work, frames.communication, calls)
    queue, waits = DeviceQueue.of(launched.work), (frames.synchronizations, frames.events, calls)
    bounds = (NO_TIME, NO_TIME) if window is None else window
    return GraphPart(
        **{name: getattr(launched, name) for name in LaunchedWork.__dataclass_fields__},
        events=event_edges(queue, *waits),
        awaited=awaited(launched, queue, *waits),
        report=report,
        block=block,
        low=bounds[0],
        high=bounds[1],
    )
