"""launches: from the API call through the queue to the kernel, as nsys stats cuda_kern_exec_sum
counts it; and how much work waited on every stream."""

from __future__ import annotations

from functools import partial
from typing import Annotated, TypeAlias

import numpy as np

from nsightpy.analysis.intervals import concurrency
from nsightpy.analysis.launches import (
    NO_LAUNCH,
    NO_TIME,
    LaunchStatistics,
    launch_rows,
    launch_statistics,
)
from nsightpy.analysis.work_graph.idle_intervals import Cause
from nsightpy.frames import Frame, Ints
from nsightpy.query import (
    NAME_COLUMNS,
    NameStyle,
    Option,
    Parts,
    Question,
    Scope,
    SystemReport,
)
from nsightpy.query.command import command
from nsightpy.query.device_time import IdleReport, idle_report
from nsightpy.query.request import without_calls, without_launch_call
from nsightpy.results import Field, Row, Said, Table, rank_order
from nsightpy.results.keys import KERNEL, row_keys
from nsightpy.units import format_count

PHASES = (
    Field("rank", "id", importance=6),
    Field("device", "id", importance=8),
    Field("api", "name", heading="API function", importance=10),
    Field("count", importance=2),
    Field("queued_count", heading="queued"),
    Field("api_med_ns", "time", 1, heading="call", importance=5),
    Field("queue_med_ns", "time", 1, heading="queue", importance=3),
    Field("kernel_med_ns", "time", 1, heading="kernel", importance=4),
    Field("total_med_ns", "time", 1, heading="call to end", importance=7),
    Field("queue_max_ns", "time", heading="longest queue", importance=9),
    Field("name", "name", importance=1),
)
QUEUES = (
    Field("rank", "id", importance=2),
    Field("device", "id", importance=3),
    Field("stream", "id", importance=1),
    Field("operations", importance=4),
    Field("window_ns", "time", importance=10),
    Field("queue_mean", "count", 2, heading="mean queue", importance=7),
    Field("queue_max", heading="longest queue", importance=8),
    Field("queue_max_at_ns", "moment", heading="longest at"),
    Field("empty_share", "share", 4, importance=6),
    Field("launch_bound_ns", "time", heading="launch-bound", importance=5),
    Field("launch_bound_kernels", heading="launch-bound kernels", importance=9),
)
_SPAN = ("start_ns", "end_ns", "pid", "correlation_id")
# Process and row without rank of each stream, in the report's own time; how many operations have no
# known launch; whether calls were recorded, where there is any work.
_Queues: TypeAlias = tuple[list[tuple[int, Row]], int, bool]


@command(
    layouts=(PHASES, QUEUES),
    keys=row_keys(KERNEL, "name"),
)
def launches(
    *,
    by: Annotated[
        str,
        Option("Phases of each kernel, or the queue of each stream.", choices=("kernel", "stream")),
    ] = "kernel",
    name: NameStyle = "demangled",
) -> Question[Table]:
    """Medians of the phases of a launch: the API call, the wait in the queue (of the launches that
    waited), the kernel; most kernel time first. A kernel and a call belong together when process
    and correlation id agree.

    --by stream: an operation waits from the begin of its launch call until it begins to run.
    queue_mean is over the stream's time from its first launch to its last end, empty_share the part
    of it in which nothing waited. launch_bound: how long, and before how many operations of the
    stream, its device was idle because launches came late, as `nsightpy gaps` counts it.
    Moments are on the clock that all ranks
    share.
    """
    if by == "stream":
        return Question(_queues, _queue_table, identified=True, clock=True)
    work = partial(_statistics, label=NAME_COLUMNS[name])
    return Question(work, _phase_table, identified=True)


def _statistics(
    report: SystemReport, scope: Scope, *, label: str
) -> tuple[list[LaunchStatistics], int]:
    """The phases by process, device, name and API function; how many kernels have no known call."""
    kernels = scope.read(report, "kernels", (*_SPAN, "device", label))
    calls = report.frame("api_calls", (*_SPAN, "name", "event_class"))
    keyed = Frame({**kernels, "label": kernels[label]})
    unmatched = int(np.count_nonzero(launch_rows(kernels, calls) == NO_LAUNCH))
    return launch_statistics(keyed, calls, ("pid", "device", "label")), unmatched


def _phase_table(parts: Parts[tuple[list[LaunchStatistics], int]]) -> Table:
    rows = []
    for report, (statistics, _) in parts.results:
        for phases in statistics:
            pid, device, label = phases.key
            rank = report.rank_of(pid if isinstance(pid, int) else 0)[0]
            medians = (phases.api_med_ns, phases.queue_med_ns, phases.kernel_med_ns)
            about = (rank, device, phases.api, phases.count, phases.queued_count, *medians)
            row: Row = (*about, phases.total_med_ns, phases.queue_max_ns, label)
            rows.append((phases.kernel_total_ns, row))
    rows.sort(key=lambda row: (-row[0], *((v is not None, str(v)) for v in row[1])))
    unmatched = sum(missing for _, missing in parts.values)
    note = without_launch_call(f"{unmatched:,} kernels", "left out")
    notes = (note,) if unmatched else ()
    return Table("launches", PHASES, tuple(row for _, row in rows), notes=notes)


def _queues(report: SystemReport, scope: Scope) -> _Queues:
    idle = idle_report(report, scope, ())
    if not report.calls.recorded:
        return [], 0, not len(idle.launched)
    work = idle.launched
    counted = np.concatenate([scope.mask(report, frame) for frame in idle.work])
    known, bound = counted & (work.launch != NO_TIME), _launch_bound(idle)
    rows: list[tuple[int, Row]] = []
    for number, (pid, _, stream) in enumerate(work.streams):
        operations = work.by_stream[work.bounds[number] : work.bounds[number + 1]]
        operations = operations[known[operations]]
        if len(operations):
            device = work.places[int(work.place[operations[0]])][1]
            figures = _queue(*(times[operations] for times in (work.launch, work.start, work.end)))
            rows.append((pid, (device, stream, *figures, *bound[:, number].tolist())))
    return rows, int(np.count_nonzero(counted & ~known)), True


def _queue(launch: Ints, start: Ints, end: Ints) -> Row:
    """How the queue of a stream was, from the first launch of its operations to their last end.

    Its length: +1 when the launching call begins, -1 when the operation begins to run.
    """
    length, low, high = concurrency(launch, start), int(launch.min()), int(end.max())
    lasted, waited, window = np.diff(length.times), length.counts[:-1], high - low
    peak = int(length.times[np.argmax(length.counts)]) if len(length.times) else low
    mean = float((waited * lasted).sum() / window) if window else 0.0
    empty = (window - int(lasted[waited > 0].sum())) / window if window else None
    return len(launch), window, mean, length.peak, peak, empty


def _launch_bound(idle: IdleReport) -> Ints:
    """By stream: launch-bound idle time before its operations, in ns, and before how many."""
    streams = idle.launched.stream
    bound = np.zeros((2, len(idle.launched.streams)), dtype=np.int64)
    for _, gaps in idle.devices():
        rows = np.flatnonzero(gaps.times[:, Cause.LAUNCH_BOUND])
        stream = streams[gaps.after[rows]]
        np.add.at(bound[0], stream, gaps.times[rows, Cause.LAUNCH_BOUND])
        np.add.at(bound[1], stream, 1)
    return bound


def _queue_table(parts: Parts[_Queues]) -> Table:
    rows: list[Row] = []
    for report, (queues, *_) in parts.results:
        for pid, row in queues:
            longest_at = parts.clock.moment(str(report.path), pid, int(row[6] or 0))
            rows.append((report.rank_of(pid)[0], *row[:6], longest_at, *row[7:]))
    rows.sort(key=lambda row: (-int(row[3] or 0), *map(rank_order, row[:3])))
    notes: list[Said] = []
    if silent := sum(not recorded for *_, recorded in parts.values):
        notes.append(without_calls("queues", silent, len(parts.values)))
    if unlaunched := sum(lost for _, lost, _ in parts.values):
        lost = f"{format_count(unlaunched)} operations"
        notes.append(without_launch_call(lost, "left out"))
    return Table("launches", QUEUES, tuple(rows), notes=tuple(notes))
