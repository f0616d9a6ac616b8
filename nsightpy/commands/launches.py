"""launches: from the API call through the queue to the kernel, as nsys stats cuda_kern_exec_sum
counts it; and how much work waited on every stream."""

from functools import partial
from typing import Annotated, TypeAlias

import numpy as np

from nsightpy.analysis.intervals import concurrency
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.ranking import Ranking, tallies
from nsightpy.analysis.tally import Tally
from nsightpy.analysis.work_graph.idle_intervals import Cause
from nsightpy.commands.stats.launches import launched_kernels
from nsightpy.frames import Ints
from nsightpy.query import NAME_COLUMNS, NameStyle, Option, Parts, Question, Scope, SystemReport
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
# What kernels are grouped by and measured, and what PHASES show of that behind the rank.
_KEYS, _MEASURES = ("pid", "device", "name", "function"), ("duration", "api", "queued", "total")
_SHOWN = (
    *("device", "function", "instances", "instances of queued", "median of api"),
    *("median of queued", "median", "median of total", "maximum of queued", "name"),
)
# Process and row without rank of each stream, in the report's own time; how many operations have no
# known launch; whether calls were recorded, where there is any work.
_Queues: TypeAlias = tuple[list[tuple[int, Row]], int, bool]


@command(layouts=(PHASES, QUEUES), keys=row_keys(KERNEL, "name"))
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
    Moments are on the clock that all ranks share.
    """
    if by == "stream":
        return Question(_queues, _queue_table, identified=True, clock=True)
    work = partial(_tallies, label=NAME_COLUMNS[name])
    return Question(work, _phase_table, identified=True)


def _tallies(report: SystemReport, scope: Scope, *, label: str) -> tuple[list[Tally], int]:
    """The phases of each group of kernels; how many kernels have no known call."""
    kernels = launched_kernels(report, scope, label)
    unmatched = scope.read(report, "kernels").rows - kernels.rows
    return tallies(kernels, _KEYS, _MEASURES), unmatched


def _phase_table(parts: Parts[tuple[list[Tally], int]]) -> Table:
    rows: list[tuple[int, Row]] = []
    for report, (phases, _) in parts.results:
        statistics = [phase.statistics() for phase in phases]
        measures = dict(zip(_MEASURES, statistics, strict=True))
        ranking = Ranking(_KEYS, statistics[0].keys, measures)
        columns = map(ranking.values, ("total", "pid", *_SHOWN))
        for total, pid, *row in zip(*columns, strict=True):
            rows.append((total, (report.rank_of(pid)[0], *row)))
    rows.sort(key=lambda row: (-row[0], *((v is not None, str(v)) for v in row[1])))
    unmatched = sum(missing for _, missing in parts.values)
    notes = [without_launch_call(f"{unmatched:,} kernels", "left out")] * bool(unmatched)
    return Table("launches", PHASES, tuple(row for _, row in rows), notes=tuple(notes))


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
    (times, waiting), low = concurrency(launch, start), int(launch.min())
    lasted, waited, window = np.diff(times), waiting[:-1], int(end.max()) - low
    peak = int(times[np.argmax(waiting)]) if len(times) else low
    mean = float((waited * lasted).sum() / window) if window else 0.0
    empty = (window - int(lasted[waited > 0].sum())) / window if window else None
    return len(launch), window, mean, int(waiting.max(initial=0)), peak, empty


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
