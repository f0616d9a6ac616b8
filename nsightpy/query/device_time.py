"""What a report's devices did and why they were idle: work with its launches, budgets, causes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.launches import api_calls
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, Launched, launched
from nsightpy.analysis.time_budget import TimeBudget, device_budgets
from nsightpy.analysis.work_graph.binding import binding
from nsightpy.analysis.work_graph.host_activity import HostEvents, kinds_of
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS as CHAIN_COLUMNS
from nsightpy.analysis.work_graph.idle_intervals import IdleIntervals
from nsightpy.analysis.work_graph.launched_work import (
    WORK_COLUMNS,
    LaunchedWork,
    Mask,
    Work,
    launched_work,
)
from nsightpy.frames import API_CALLS, Frame
from nsightpy.names import file_name
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport

KERNEL_COLUMNS = (*WORK_COLUMNS, "name")
OPERATION_COLUMNS = (*WORK_COLUMNS, "operation")
# What the copies of a device's work need to be known by, beside their times.
MEMORY_COLUMNS = ("bytes", "source_memory", "target_memory")
NO_CALLS = Frame.empty(API_CALLS, CALL_COLUMNS)
NOT_ATTRIBUTED = not_recorded("Idle time is not attributed: the capture holds no CUDA API calls.")
SAMPLE_COLUMNS = ("time_ns", "pid", "tid", "name", "module")
_SPANS = ("start_ns", "end_ns", "pid", "tid")
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RankedBudget:
    """The budget of one device of one rank."""

    rank: int | None
    pid: int
    device: int
    budget: TimeBudget

    @property
    def place(self) -> Place:
        """Process and device."""
        return self.pid, self.device


def rank_budgets(
    report: SystemReport,
    scope: Scope,
    work: Work,
    communication: tuple[str, ...] = (),
    windows: Mapping[Place, Spans] | None = None,
) -> list[RankedBudget]:
    """The budgets of one report's devices; `windows` by place replace those of the scope."""
    windows = scope.windows(report) if windows is None else windows
    ends = scope.bounds(report)
    budgets = device_budgets(*work, *ends, communication=communication, windows=windows)
    return [
        RankedBudget(report.rank_of(pid)[0], pid, device, budget)
        for (pid, device), budget in budgets.items()
    ]


def read_work(
    report: SystemReport, scope: Scope, more: tuple[str, ...] = (), shapes: tuple[str, ...] = ()
) -> Work:
    """The GPU work of the ranks and devices in scope, at all times.

    `more` are further columns of the memory operations, `shapes` of the kernels.
    """
    columns = ((*KERNEL_COLUMNS, *shapes), (*OPERATION_COLUMNS, *more), WORK_COLUMNS)
    names = ("kernels", "memory_operations", "graph_launches")
    return Work(
        *(
            scope.whole_time.within(report, report.frame(name, wanted))
            for name, wanted in zip(names, columns, strict=True)
        )
    )


def launching(report: SystemReport, operations: Frame) -> tuple[Frame, Launched] | None:
    """The calls among which are those that launched the operations, and what each launched; None
    without any recorded.

    Calls that usually launch something are read first, the others only where that is not enough.
    """
    if not report.calls.recorded:
        return None
    calls = report.calls.launching()
    launches = launched(operations, calls)
    if len(launches.rows) < operations.rows:
        others = report.calls.launching(others=True)
        calls = Frame.concatenate([calls, others.select(calls)]).ordered()
        launches = launched(operations, calls)
    return calls, launches


def memory_events(report: SystemReport, scope: Scope) -> Frame:
    """What the ranks and devices in scope allocated and freed at all times, by start.

    What was taken before a stretch of time is still live in it.
    """
    events = report.frame("memory_usage").ordered()
    return scope.whole_time.within(report, Frame({**events, "end_ns": events["start_ns"]}))


def suspect_note(name: str) -> str:
    """What is said of a kernel that may be communication but is not on the list."""
    return (
        f"{name!r} is counted as compute, though its name sounds like communication; "
        "--communication REGEX counts it as such."
    )


def followed_work(report: SystemReport, work: Work, communication: Mask) -> LaunchedWork:
    """Work (the memory operations with MEMORY_COLUMNS) with its launches; a mask of kernels."""
    return launched_work(work, communication, api_calls(report.frame("api_calls", CHAIN_COLUMNS)))


def idle_intervals(
    launched: LaunchedWork, windows: Mapping[Place, Spans], events: Mapping[int, HostEvents]
) -> dict[Place, IdleIntervals]:
    """The idle intervals of each place inside its window."""
    return {
        place: binding(launched, number, windows[place], events.get(place[0]))
        for number, place in enumerate(launched.places)
        if place in windows
    }


@dataclass(frozen=True)
class IdleReport:
    """The idle intervals of the devices of a report inside their windows, and what explains them.

    `communicates` is a mask of the kernels, `events` are those of each process, `gaps` by process
    and device.
    """

    work: Work
    communicates: Mask
    launched: LaunchedWork
    events: Mapping[int, HostEvents]
    budgets: Sequence[RankedBudget]
    gaps: Mapping[Place, IdleIntervals]

    def devices(self) -> Iterator[tuple[RankedBudget, IdleIntervals]]:
        """The budget and the idle intervals of each device that did anything."""
        return ((row, self.gaps[row.place]) for row in self.budgets)


def idle_report(
    report: SystemReport,
    scope: Scope,
    communication: tuple[str, ...],
    work: Work | None = None,
    windows: Mapping[Place, Spans] | None = None,
    ranges: Frame | None = None,
) -> IdleReport:
    """The idle intervals of the devices in scope; `work` and `ranges` where they are read already.

    `windows` by place replace those of the scope.
    """
    work = read_work(report, scope, MEMORY_COLUMNS) if work is None else work
    communicates = is_communication(work.kernels.labels("name"), communication)
    launched, events = followed_work(report, work, communicates), host_events(report, ranges)
    budgets = rank_budgets(report, scope, work, communication, windows)
    gaps = idle_intervals(launched, {row.place: row.budget.window for row in budgets}, events)
    return IdleReport(work, communicates, launched, events, budgets, gaps)


def host_events(report: SystemReport, ranges: Frame | None = None) -> dict[int, HostEvents]:
    """What each process's threads did beside CUDA, by process."""
    ranges = report.frame("nvtx_ranges", (*_SPANS, "name")) if ranges is None else ranges
    every = (
        kinds_of(ranges),
        *(report.frame(name, (*_SPANS, "name")) for name in ("os_calls", "mpi_calls")),
        short_modules(report.frame("cpu_samples", SAMPLE_COLUMNS)),
        report.frame("cpu_runs", _SPANS),
    )
    pids = {*report.pids, 0}  # 0: of work that names no process
    return {pid: HostEvents(*(frame.at(pid=pid) for frame in every)) for pid in pids}


def short_modules(samples: Frame) -> Frame:
    """Modules by their file names; paths hold names of users."""
    return Frame({**samples, "module": samples.labels("module").renamed(file_name)})
