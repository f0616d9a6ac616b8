"""Why a report's devices were idle, as far as its capture shows; and what it does not say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.compute_gaps import (
    IdleCauses,
    StreamWaits,
    compute_gaps,
    idle_causes,
    stream_waits,
)
from nsightpy.analysis.idle.event_waits import (
    EVENT_COLUMNS,
    SYNCHRONIZATION_COLUMNS,
    EventWaits,
    event_waits,
)
from nsightpy.analysis.idle.gpu_work import COMPUTE, GpuWork, gpu_work
from nsightpy.analysis.intervals import Spans, overlap_total, spans_of, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Frame
from nsightpy.query.capture_advice import not_recorded
from nsightpy.readers.host_calls import ORDERING
from nsightpy.reports.system import SystemReport
from nsightpy.results import Abstention
from nsightpy.units import format_count, format_time

# Less of the time without compute than this is not worth a line.
LEAST_RESIDUAL = 0.01
NO_CALLS = not_recorded("Idle time is not attributed: the capture holds no CUDA API calls.")
OPAQUE = Abstention(
    "Idle time is not attributed on devices that ran CUDA graphs traced as a whole: what happened "
    "inside is not recorded.",
    "`nsys profile --cuda-graph-trace=node` opens them.",
)
NO_EVENTS = Abstention(
    "Blocking and dependency stalls are not distinguished: streams waited for events, and the "
    "capture does not say which.",
    "Exports of nsys 2025.1 on say it (eventSyncId); `nsys profile --cuda-event-trace=true` "
    "records events where that is off.",
    "enable_cuda_sync_events in torch.profiler's experimental_config records it.",
)
CAUSES = (
    "launch_starved_ns",
    "blocking_ns",
    "dependency_stalled_ns",
    "host_wait_ns",
    "kernel_wait_ns",
    "other_wait_ns",
)
_WAIT_CALLS = tuple(f"{api}StreamWaitEvent" for api in ("cuda", "cu", "hip"))


@dataclass(frozen=True, slots=True)
class DeviceIdle:
    """Why one device was idle, in ns; None where the capture does not show it.

    `waits_followed` is False where causes beyond the launch are not known. `starved_idle_ns` is the
    launch-starved time in which the device did nothing at all.
    """

    streams: StreamWaits | None = None
    causes: IdleCauses | None = None
    waits_followed: bool = True
    starved_idle_ns: int | None = None

    @property
    def columns(self) -> dict[str, int | None]:
        """The figures under the names of `breakdown`'s columns."""
        followed = self.causes if self.waits_followed else None
        recorded = (self.causes, followed, followed, self.streams, self.streams, self.streams)
        known = {
            name: None if part is None else int(getattr(part, name))
            for name, part in zip(CAUSES, recorded, strict=True)
        }
        return known | {
            "unattributed_ns": self.unattributed_ns,
            "launch_starved_idle_ns": self.starved_idle_ns,
        }

    @property
    def unattributed_ns(self) -> int | None:
        """The time without compute that no cause is known for."""
        if self.causes is None:
            return None
        causes = self.causes
        known = causes.launch_starved_ns
        if self.waits_followed:
            known += causes.blocking_ns + causes.dependency_stalled_ns
        return causes.compute_absent_ns - known


NOT_ATTRIBUTED = DeviceIdle()


@dataclass(frozen=True)
class FollowedWork:
    """All GPU work with its launches, and the calls that they are."""

    work: GpuWork
    calls: Frame
    graphs: Frame


@dataclass(frozen=True)
class ReportIdle:
    """The idle time of a report's places (process, device), and what must be said about it."""

    places: Mapping[tuple[int, int], DeviceIdle] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Work(NamedTuple):
    """All GPU work of some places, with WORK_COLUMNS, names and operations."""

    kernels: Frame
    operations: Frame
    graphs: Frame


def followed_work(
    report: SystemReport,
    work: Work,
    communication: NDArray[np.bool_],
    *,
    ends: bool = False,
    always: bool = False,
) -> FollowedWork | None:
    """All work of a report with its launches; `communication` marks kernels. None without calls.

    `ends`: with the ends and threads of the calls; `always`: also without any call. Calls that
    seldom launch are looked at where the others do not explain all work.
    """
    if not (always or report.calls.recorded):
        return None
    calls = report.calls.launching(ORDERING, whole=ends)
    made = gpu_work(work.kernels, communication, work.operations, work.graphs, calls)
    if (made.launch == NO_TIME).any():
        others = report.calls.launching(ORDERING, others=True, whole=ends)
        calls = Frame.concatenate([calls, others]).ordered()
        made = gpu_work(work.kernels, communication, work.operations, work.graphs, calls)
    return FollowedWork(made, calls, work.graphs)


def report_idle(
    report: SystemReport,
    followed: FollowedWork | None,
    windows: Mapping[tuple[int, int], Spans],
) -> ReportIdle:
    """Attribute the idle time of each place inside its window, in ns; None without API calls."""
    if followed is None:
        return ReportIdle(notes=(NO_CALLS,) if windows else ())
    work = followed.work
    clear = {
        number: windows[place]
        for number, place in enumerate(work.places)
        if place in windows and not _opaque(followed.graphs, place, windows[place])
    }
    opaque = (OPAQUE,) if len(clear) < len(windows) else ()
    streams = stream_waits(work, clear)
    waits, notes = _waits_of(report, followed)
    previous, awaited = work.previous, None if waits is None else waits.producer
    places = {}
    for number, window in clear.items():
        absent = compute_gaps(work, number, window, previous, awaited)
        causes = idle_causes(work, absent, window)
        place = work.places[number]
        alone = _without_compute(work, number, absent.starved & window)
        places[place] = DeviceIdle(streams[number], causes, waits is not None, alone)
    return ReportIdle(places, (*notes, *opaque))


def _without_compute(work: GpuWork, place: int, starved: Spans) -> int:
    """The part of some time without compute in which nothing else ran either, in ns."""
    rows = np.flatnonzero((work.kind != COMPUTE) & (work.place == place))
    return starved.total - overlap_total(union(work.start[rows], work.end[rows]), starved)


def _waits_of(report: SystemReport, followed: FollowedWork) -> tuple[EventWaits | None, list[str]]:
    """The event waits of all work, None where some cannot be followed; and notes on them."""
    work, calls = followed.work, followed.calls
    synchronizations = report.frame("synchronizations", SYNCHRONIZATION_COLUMNS)
    events = report.frame("cuda_events", EVENT_COLUMNS)
    waits = event_waits(work, synchronizations, events, calls)
    waited = waits.waits or report.calls.any_named(*_WAIT_CALLS)
    if not waited:
        return waits, []
    if waits.unresolved == waits.waits:
        # were there streams to wait for at all?
        return (None, [NO_EVENTS]) if len(work.streams) > 1 else (waits, [])
    if waits.unresolved:
        unresolved, made = format_count(waits.unresolved), format_count(waits.waits)
        note = (
            f"{unresolved} of {made} stream waits name events that were recorded outside the "
            "capture: what they waited for is not known."
        )
        return waits, [note]
    return waits, []


def _opaque(graphs: Frame, place: tuple[int, int], window: Spans) -> bool:
    """Whether graphs traced as a whole ran on a place inside its window."""
    mine = graphs.at(pid=place[0], device=place[1])
    return overlap_total(spans_of(mine), window) > 0


def residual_note(devices: list[DeviceIdle]) -> list[str]:
    """What is said of time without compute that no cause was found for, over all devices."""
    causes = [idle.causes for idle in devices if idle.causes is not None]
    tail = sum(cause.tail_ns for cause in causes)
    unlaunched = sum(cause.unlaunched_ns for cause in causes)
    absent = sum(cause.compute_absent_ns for cause in causes)
    if tail + unlaunched <= LEAST_RESIDUAL * absent:
        return []
    parts = (
        (tail, "after a device's last compute kernel"),
        (unlaunched, "before kernels whose launch was not recorded"),
    )
    where_lost = " and ".join(f"{format_time(lost)} {where}" for lost, where in parts if lost)
    lost = format_time(tail + unlaunched)
    return [f"{lost} of {format_time(absent)} without compute have no cause here: {where_lost}."]


def stream_waits_note(devices: Sequence[tuple[int, DeviceIdle]]) -> list[str]:
    """What is said where the waits of a device's streams add up to more than its window, in ns."""
    beyond = [
        (waits, window)
        for window, idle in devices
        if idle.streams is not None and (waits := idle.streams.total_ns) > window
    ]
    if not beyond:
        return []
    waits, window = max(beyond)
    return [
        (
            "Host, kernel and other wait are added over the streams of a device: "
            f"{format_time(waits)} in a window of {format_time(window)}."
        )
    ]
