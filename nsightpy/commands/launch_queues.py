"""launch-queues: how much work waited on every stream, and where launching set the pace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.idle.gpu_work import GpuWork
from nsightpy.analysis.idle.queues import StreamQueue, longest_in, stream_queues
from nsightpy.analysis.launches import NO_TIME, launch_lengths
from nsightpy.query.common_clock import common_clock
from nsightpy.query.device_time import read_work
from nsightpy.query.idle_time import Work, followed_work
from nsightpy.query.request import Common, Request, without_calls, without_launch_call
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Value, fields_in, rank_order
from nsightpy.results.series import QueueLengths, QueueSeries
from nsightpy.units import format_count

FIELDS = (
    *fields_in("id", "rank", "device", "stream"),
    Field("operations"),
    Field("window_ns", "ns"),
    Field("queue_mean", "count", 2),
    Field("queue_max"),
    Field("queue_max_at_ns", "ns"),
    Field("empty_share", "ratio", 4),
    Field("launch_bound_ns", "ns"),
    Field("launch_bound_kernels"),
)
LONGEST_AT = [field.name for field in FIELDS].index("queue_max_at_ns")
# What a picture can show of a curve.
PARTS = 1_000
# More streams of a report nobody can draw.
MOST_SERIES = 1_000


@dataclass(frozen=True, slots=True)
class _Part:
    """What one report contributes: rows and curves in its own time, by process."""

    rows: list[tuple[int, tuple[Value, ...]]]
    series: list[tuple[int, QueueSeries]]
    unlaunched: int = 0
    recorded: bool = True


@command_function
def launch_queues(
    reports: Paths, *, top: int | None = None, **common: Unpack[Common]
) -> QueueLengths:
    """The queue of every rank, device and stream, that with most operations first; times in ns.

    An operation waits from the begin of its launch call until it begins to run. queue_mean is over
    the stream's time from its first launch to its last end, empty_share the part of it in which
    nothing waited. launch_bound: at least 20 kernels in a row ran shorter than their launch calls,
    the host never pausing for more than 50 us. Moments are on the clock that all ranks share.
    """
    request = Request.of(reports, **common)
    results = request.map(partial(_queues, scope=request.scope), ranked=True).results
    clock = common_clock(request.ranks)
    rows, series = [], []
    for report, part in results:
        path = str(report.path)
        for pid, row in part.rows:
            moment = clock.moment(path, pid, int(row[LONGEST_AT] or 0))
            rows.append((*row[:LONGEST_AT], moment, *row[LONGEST_AT + 1 :]))
        for pid, queue in part.series:
            times = clock.aligned(path, pid, np.asarray(queue.times_ns, dtype=np.int64))
            series.append(replace(queue, times_ns=times.tolist()))
    rows.sort(key=_order)
    series.sort(key=lambda q: (*rank_order(q.rank), q.device, -q.operations, q.stream))
    table = QueueLengths("launch-queues", FIELDS, tuple(rows), series=tuple(series)).first(top)
    return request.finish(table, *_notes([part for _, part in results]))


def _queues(report: SystemReport, *, scope: Scope) -> _Part:
    ran = Work(*(scope.narrow(report, frame) for frame in read_work(report, scope)))
    followed = followed_work(report, ran, np.zeros(ran.kernels.rows, dtype=np.bool_), ends=True)
    if followed is None:
        return _Part([], [], recorded=not any(frame.rows for frame in ran))
    work, calls = followed.work, followed.calls
    call_ns = np.zeros(len(work), dtype=np.int64)
    call_ns[: ran.kernels.rows] = launch_lengths(ran.kernels, calls)
    queues = stream_queues(work, call_ns)
    unlaunched = int(np.count_nonzero(work.launch == NO_TIME))
    rows = [(queue.place[0], _row(report, queue)) for queue in queues]
    return _Part(rows, _series(report, work, queues), unlaunched)


def _row(report: SystemReport, queue: StreamQueue) -> tuple[Value, ...]:
    pid, device = queue.place
    return (
        report.rank_of(pid)[0],
        device,
        queue.stream[-1],
        queue.operations,
        queue.window_ns,
        queue.mean,
        queue.length.peak,
        queue.peak_ns,
        queue.empty_ns / queue.window_ns if queue.window_ns else None,
        queue.bound.stretches.total,
        queue.bound.kernels,
    )


def _series(
    report: SystemReport, work: GpuWork, queues: list[StreamQueue]
) -> list[tuple[int, QueueSeries]]:
    """The busiest streams' queues over the time of the report, their longest in many parts."""
    if not queues:
        return []
    launched = work.launch[work.launch != NO_TIME]
    low, high = int(launched.min()), int(work.end.max())
    made = []
    busiest = sorted(queues, key=lambda queue: -queue.operations)[:MOST_SERIES]
    for queue in busiest:
        pid, device = queue.place
        begins, longest = longest_in(queue.length, low, high, PARTS)
        place = (report.rank_of(pid)[0], device, queue.stream[-1], queue.operations)
        made.append((pid, QueueSeries(*place, [*begins.tolist(), high], longest.tolist())))
    return made


def _notes(parts: list[_Part]) -> list[str]:
    silent = sum(not part.recorded for part in parts)
    unlaunched = sum(part.unlaunched for part in parts)
    said: list[str] = [without_calls("queues", silent, len(parts))] if silent else []
    lost = without_launch_call(f"{format_count(unlaunched)} operations", "left out")
    return [*said, lost] if unlaunched else said


def _order(row: tuple[Value, ...]) -> tuple[object, ...]:
    rank, device, stream, operations = row[:4]
    count = operations if isinstance(operations, int) else 0
    return (-count, rank is None, rank or 0, device, stream)
