"""The idle intervals of a report's devices, and what its host did in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.findings.copy_use import DIRECTIONS, large
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.idle.gap_activity import with_host
from nsightpy.analysis.idle.gap_causes import (
    HOST_GAP_NS,
    LONG_CALL_NS,
    TO_DEVICE,
    TO_HOST,
    IdleGaps,
)
from nsightpy.analysis.idle.gpu_work import GRAPH, GpuWork
from nsightpy.analysis.idle.host_activity import HostEvents, kinds_of
from nsightpy.analysis.idle.host_calls import COPY, WAIT, kinds_of_calls
from nsightpy.analysis.idle.idle_gaps import Launches, idle_gaps
from nsightpy.analysis.idle.idle_time import NO_ROW, IdleTime, idle_time
from nsightpy.analysis.intervals import Spans, measure_inside, union
from nsightpy.analysis.launches import NO_TIME, of_calls
from nsightpy.analysis.memory.copies import PAGEABLE, UNIFIED, host_memory
from nsightpy.frames import CPU_RUNS, CPU_SAMPLES, Frame
from nsightpy.names import file_name
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.device_time import RankedBudget, rank_budgets, read_work
from nsightpy.query.iteration_search import waiting_calls
from nsightpy.query.launched_work import FollowedWork, Work, followed_work
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport

NO_CALLS = not_recorded("Idle time is not attributed: the capture holds no CUDA API calls.")
HOST_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")
# What the copies of a device's work need to be known by, beside their times.
MEMORY_COLUMNS = ("bytes", "source_memory", "target_memory")
RUN_COLUMNS = ("start_ns", "end_ns", "pid", "tid")
# A thread that others wait for has gone on this long after they could.
SOON_NS = 500_000
SAMPLE_COLUMNS = ("time_ns", "pid", "tid", "name", "module")


@dataclass(frozen=True)
class IdleReport:
    """The idle intervals of the devices of a report inside their windows, and what explains them.

    `gaps` by process and device know what the launching threads did; `waiting` are the calls that
    block, allocate or last.
    """

    work: Work
    gpu_work: GpuWork
    waiting: Frame
    host_events: Mapping[int, HostEvents]
    budgets: Sequence[RankedBudget]
    gaps: Mapping[tuple[int, int], IdleGaps]

    def devices(self) -> Iterator[tuple[RankedBudget, IdleGaps]]:
        """The budget and the idle intervals of each device that did anything."""
        return ((row, self.gaps[row.place]) for row in self.budgets if row.place in self.gaps)


def idle_report(report: SystemReport, scope: Scope, communication: tuple[str, ...]) -> IdleReport:
    """The idle intervals of the devices in scope."""
    work = read_work(report, scope, MEMORY_COLUMNS)
    communicates = is_communication(work.kernels.labels("name"), communication)
    followed = followed_work(report, work, communicates, ends=True)
    waiting, events = waiting_calls(report), host_events(report)
    budgets = rank_budgets(report, scope, *work, communication=communication)
    windows = {row.place: row.budget.window for row in budgets}
    idle = gaps_of(work, followed, waiting, windows)
    gaps = {place: with_host(idle[place], events[place[0]]) for place in idle}
    return IdleReport(work, followed.work, waiting, events, budgets, gaps)


@dataclass(frozen=True)
class LaunchedIdleTime:
    """All idle time of the places of some work, and the launches of that."""

    work: GpuWork
    launches: Launches
    places: Mapping[tuple[int, int], IdleTime]

    def gaps(
        self, waiting: Frame, windows: Mapping[tuple[int, int], Spans]
    ) -> dict[tuple[int, int], IdleGaps]:
        """The idle intervals of each place inside its window; `waiting`: blocking, long calls."""
        gaps = {
            place: idle_gaps(idle, windows[place], self.launches, waiting.at(pid=place[0]))
            for place, idle in self.places.items()
            if place in windows
        }
        return {
            place: _with_others(place, gaps[place], self.work, waiting.at(pid=place[0]))
            for place in gaps
        }


def launched_idle_time(work: Work, followed: FollowedWork | None) -> LaunchedIdleTime | None:
    """The idle time of each place, at all times; None where launches are not known.

    The memory operations need MEMORY_COLUMNS, the calls of `followed` start_ns, end_ns, pid, tid
    and correlation_id.
    """
    if followed is None:
        return None
    gpu_work = followed.work
    places = {place: idle_time(gpu_work, number) for number, place in enumerate(gpu_work.places)}
    return LaunchedIdleTime(gpu_work, launches_of_work(work, gpu_work, followed.calls), places)


def gaps_of(
    work: Work,
    followed: FollowedWork | None,
    waiting: Frame,
    windows: Mapping[tuple[int, int], Spans],
) -> dict[tuple[int, int], IdleGaps]:
    """The idle intervals of each place inside its window; none where launches are not known.

    Needs what `launched_idle_time` needs; `waiting` are the blocking and long calls.
    """
    idle = launched_idle_time(work, followed)
    return {} if idle is None else idle.gaps(waiting, windows)


def _with_others(place: tuple[int, int], gaps: IdleGaps, work: GpuWork, calls: Frame) -> IdleGaps:
    """The intervals of a place with the time in which other devices of its process worked.

    Of a thread outside of CUDA that counts where it went on when another one had waited for those.
    """
    others = [n for n, other in enumerate(work.places) if other[0] == place[0] and other != place]
    waits = gaps.drained & (gaps.waiting > 0)
    queued = (gaps.queued >= LONG_CALL_NS) | (gaps.after == NO_ROW)
    outside = gaps.outside >= HOST_GAP_NS
    if not others or not (waits | queued | outside).any():
        return gaps
    outside &= _after_waits_of_others(gaps, calls)
    rows = np.isin(work.place, others)
    left = measure_inside(union(work.start[rows], work.end[rows]), gaps.opened, gaps.closed)
    elsewhere = np.where(gaps.after == NO_ROW, left, 0)
    left -= elsewhere
    parts = {"waiting": waits, "queued": queued, "outside": outside}
    for name, counts in parts.items():
        part = getattr(gaps, name)
        taken = np.where(counts, np.minimum(left, part), 0)
        gaps = replace(gaps, **{name: part - taken})
        elsewhere, left = elsewhere + taken, left - taken
    return replace(gaps, elsewhere=elsewhere)


def _after_waits_of_others(gaps: IdleGaps, calls: Frame) -> NDArray[np.bool_]:
    """Which intervals' next launch came soon after a blocking call of another thread ended."""
    calls = calls.take(np.isin(kinds_of_calls(calls.labels("name")), (WAIT, COPY)))
    soon, begun = np.zeros(len(gaps), dtype=np.bool_), gaps.closed - gaps.queued - gaps.in_call
    for tid in np.unique(gaps.thread).tolist():
        mine = gaps.thread == tid
        ended = np.sort(calls.ints("end_ns")[calls.ints("tid") != tid])
        early, done = (np.searchsorted(ended, begun[mine] - ago, "right") for ago in (SOON_NS, 0))
        soon[mine] = done > early
    return soon


def launches_of_work(work: Work, gpu_work: GpuWork, calls: Frame) -> Launches:
    """The launching call of each operation, in the rows of the GPU work."""
    end = of_calls(calls.ints("end_ns"), gpu_work.call, NO_TIME)
    thread = of_calls(calls.ints("tid"), gpu_work.call, -1)
    first = _first_launches(work.kernels, gpu_work)
    migrates = _migrates(work) & (gpu_work.launch == NO_TIME)
    launches = Launches(gpu_work.launch, end, thread, first, *_stages(work), migrates)
    return _touched(launches, gpu_work) if migrates.any() else launches


def _migrates(work: Work) -> NDArray[np.bool_]:
    """Which operations move pages of unified memory."""
    migrates = np.zeros(sum(frame.rows for frame in work), dtype=np.bool_)
    unified = work.operations.labels("operation").where(lambda name: name.startswith(UNIFIED))
    migrates[work.kernels.rows : work.kernels.rows + work.operations.rows] = unified
    return migrates


def _touched(launches: Launches, work: GpuWork) -> Launches:
    """The same with pages that migrate as if the thread that launches next did it at that time."""
    start, end, thread = (times.copy() for times in (launches.start, launches.end, launches.thread))
    pids = np.asarray([pid for pid, _ in work.places])[work.place]
    for pid in np.unique(pids[launches.migrates]).tolist():
        known = np.flatnonzero((pids == pid) & (launches.start != NO_TIME))
        if not len(known):
            continue
        known = known[np.argsort(work.start[known], kind="stable")]
        rows = np.flatnonzero((pids == pid) & launches.migrates)
        after = np.searchsorted(work.start[known], work.start[rows])
        thread[rows] = launches.thread[known[np.minimum(after, len(known) - 1)]]
        start[rows] = end[rows] = work.start[rows]
    return replace(launches, start=start, end=end, thread=thread)


def _stages(work: Work) -> tuple[NDArray[np.int8], NDArray[np.bool_], NDArray[np.bool_]]:
    """What calls count for that copy between host and device; which stage, and which block."""
    stages = np.full(sum(frame.rows for frame in work), -1, dtype=np.int8)
    staged = np.zeros(len(stages), dtype=np.bool_)
    names = work.operations.labels("operation")
    copies = slice(work.kernels.rows, work.kernels.rows + work.operations.rows)
    for cause, direction in ((TO_DEVICE, "h2d"), (TO_HOST, "d2h")):
        stages[copies][names.equals(DIRECTIONS[direction])] = cause
    staged[copies] = large(work.operations) & host_memory(work.operations).equals([PAGEABLE])
    blocks = stages == TO_HOST
    blocks[copies] &= work.operations.labels("target_memory").equals(["Pageable"])
    return stages, staged, blocks


def _first_launches(kernels: Frame, work: GpuWork) -> NDArray[np.bool_]:
    """Whether each operation is the first launch of its kernel, or of a graph on its device."""
    first = np.zeros(len(work), dtype=np.bool_)
    launch = work.launch[: kernels.rows]
    if kernels.rows:
        kinds = group_by(kernels, ("pid", "name")).codes
        earliest = np.full(int(kinds.max()) + 1, np.iinfo(np.int64).max)
        known = launch != NO_TIME
        known = slice(None) if known.all() else known
        np.minimum.at(earliest, kinds[known], launch[known])
        first[: kernels.rows] = launch <= earliest[kinds]
    graphs = np.flatnonzero(work.kind == GRAPH)
    for place in np.unique(work.place[graphs]).tolist():
        first[graphs[work.place[graphs] == place][0]] = True
    return first


def host_events(report: SystemReport, ranges: Frame | None = None) -> dict[int, HostEvents]:
    """What each process's threads did beside CUDA, by process."""
    ranges = report.frame("nvtx_ranges", HOST_COLUMNS) if ranges is None else ranges
    ranges = kinds_of(ranges)
    os_calls = report.frame("os_calls", HOST_COLUMNS)
    mpi_calls = report.frame("mpi_calls", HOST_COLUMNS)
    samples = short_modules(report.frame("cpu_samples", SAMPLE_COLUMNS))
    runs = report.frame("cpu_runs", RUN_COLUMNS)
    every = (ranges, os_calls, mpi_calls, samples, runs)
    pids = {*report.pids, 0}  # 0: of work that names no process
    return {pid: HostEvents(*(frame.at(pid=pid) for frame in every)) for pid in pids}


def with_host_calls(
    report: SystemReport, gaps: Mapping[tuple[int, int], IdleGaps], ranges: Frame
) -> dict[tuple[int, int], IdleGaps]:
    """The intervals of each place with what its threads did outside of CUDA."""
    frames = [ranges, *(report.frame(name, HOST_COLUMNS) for name in ("os_calls", "mpi_calls"))]
    # CPU samples, which may be many, tell of long stretches only
    long = any((idle.outside >= HOST_GAP_NS).any() for idle in gaps.values())
    nothing = Frame.empty(CPU_SAMPLES, SAMPLE_COLUMNS)
    frames.append(report.frame("cpu_samples", SAMPLE_COLUMNS) if long else nothing)
    frames.append(Frame.empty(CPU_RUNS, RUN_COLUMNS))
    return {
        place: with_host(idle, HostEvents(*(frame.at(pid=place[0]) for frame in frames)))
        for place, idle in gaps.items()
    }


def short_modules(samples: Frame) -> Frame:
    """Modules by their file names; paths hold names of users."""
    return Frame({**samples, "module": samples.labels("module").renamed(file_name)})
