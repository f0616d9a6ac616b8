"""The idle intervals of a report's devices, with why they were idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.launches import api_calls
from nsightpy.analysis.work_graph.binding import binding
from nsightpy.analysis.work_graph.host_activity import HostEvents, kinds_of
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS
from nsightpy.analysis.work_graph.idle_intervals import IdleIntervals
from nsightpy.analysis.work_graph.launched_work import LaunchedWork, Mask, Work, launched_work
from nsightpy.frames import Frame
from nsightpy.names import file_name
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.device_time import MEMORY_COLUMNS, RankedBudget, rank_budgets, read_work
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport

NO_CALLS = not_recorded("Idle time is not attributed: the capture holds no CUDA API calls.")
HOST_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")
RUN_COLUMNS = ("start_ns", "end_ns", "pid", "tid")
SAMPLE_COLUMNS = ("time_ns", "pid", "tid", "name", "module")
Place = tuple[int, int]


def followed_work(report: SystemReport, work: Work, communication: Mask) -> LaunchedWork:
    """Work (the memory operations with MEMORY_COLUMNS) with its launches; a mask of kernels."""
    return launched_work(work, communication, api_calls(report.frame("api_calls", CALL_COLUMNS)))


def idle_intervals(
    launched: LaunchedWork, windows: Mapping[Place, Spans], events: Mapping[int, HostEvents]
) -> dict[Place, IdleIntervals]:
    """The idle intervals of each place inside its window."""
    places = enumerate(launched.places)
    return {
        place: binding(launched, number, windows[place], events.get(place[0]))
        for number, place in places
        if place in windows
    }


@dataclass(frozen=True)
class IdleReport:
    """The idle intervals of the devices of a report inside their windows, and what explains them.

    `events` are those of each process, `gaps` by process and device.
    """

    work: Work
    launched: LaunchedWork
    events: Mapping[int, HostEvents]
    budgets: Sequence[RankedBudget]
    gaps: Mapping[Place, IdleIntervals]

    def devices(self) -> Iterator[tuple[RankedBudget, IdleIntervals]]:
        """The budget and the idle intervals of each device that did anything."""
        return ((row, self.gaps[row.place]) for row in self.budgets if row.place in self.gaps)


def idle_report(report: SystemReport, scope: Scope, communication: tuple[str, ...]) -> IdleReport:
    """The idle intervals of the devices in scope."""
    work = read_work(report, scope, MEMORY_COLUMNS)
    communicates = is_communication(work.kernels.labels("name"), communication)
    launched, events = followed_work(report, work, communicates), host_events(report)
    budgets = rank_budgets(report, scope, *work, communication=communication)
    windows = {row.place: row.budget.window for row in budgets}
    gaps = idle_intervals(launched, windows, events)
    return IdleReport(work, launched, events, budgets, gaps)


def host_events(report: SystemReport, ranges: Frame | None = None) -> dict[int, HostEvents]:
    """What each process's threads did beside CUDA, by process."""
    ranges = report.frame("nvtx_ranges", HOST_COLUMNS) if ranges is None else ranges
    every = (
        kinds_of(ranges),
        *(report.frame(name, HOST_COLUMNS) for name in ("os_calls", "mpi_calls")),
        short_modules(report.frame("cpu_samples", SAMPLE_COLUMNS)),
        report.frame("cpu_runs", RUN_COLUMNS),
    )
    pids = {*report.pids, 0}  # 0: of work that names no process
    return {pid: HostEvents(*(frame.at(pid=pid) for frame in every)) for pid in pids}


def short_modules(samples: Frame) -> Frame:
    """Modules by their file names; paths hold names of users."""
    return Frame({**samples, "module": samples.labels("module").renamed(file_name)})
