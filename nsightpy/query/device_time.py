"""What a report's devices did: their work with its launches, and budgets of time by rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, Launched, launched
from nsightpy.analysis.time_budget import TimeBudget, device_budgets
from nsightpy.analysis.work_graph.launched_work import WORK_COLUMNS, Work
from nsightpy.frames import API_CALLS, Frame
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import rank_order

KERNEL_COLUMNS = (*WORK_COLUMNS, "name")
OPERATION_COLUMNS = (*WORK_COLUMNS, "operation")
# What the copies of a device's work need to be known by, beside their times.
MEMORY_COLUMNS = ("bytes", "source_memory", "target_memory")
NO_CALLS = Frame.empty(API_CALLS, CALL_COLUMNS)


@dataclass(frozen=True, slots=True)
class RankedBudget:
    """The budget of one device of one rank."""

    rank: int | None
    pid: int
    device: int
    budget: TimeBudget

    @property
    def place(self) -> tuple[int, int]:
        """Process and device."""
        return self.pid, self.device


def rank_budgets(
    report: SystemReport,
    scope: Scope,
    kernels: Frame,
    operations: Frame,
    graphs: Frame,
    communication: tuple[str, ...] = (),
    windows: Mapping[tuple[int, int], Spans] | None = None,
) -> list[RankedBudget]:
    """The budgets of one report's devices; the frames carry pid, device and times.

    `windows` by process and device replace those of the scope.
    """
    low, high = scope.bounds(report)
    budgets = device_budgets(
        kernels,
        operations,
        graphs,
        communication=communication,
        start_ns=low,
        end_ns=high,
        windows=scope.windows(report) if windows is None else windows,
    )
    return [
        RankedBudget(report.rank_of(pid)[0], pid, device, budget)
        for (pid, device), budget in budgets.items()
    ]


def budget_order(row: RankedBudget) -> tuple[bool, int, int, int]:
    """Ranks ascending, unknown ones last; then process and device."""
    return (*rank_order(row.rank), row.pid, row.device)


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
    calls = report.calls.launching(whole=True)
    done = launched(operations, calls)
    if len(done.rows) < operations.rows:
        others = report.calls.launching(others=True, whole=True)
        calls = Frame.concatenate([calls, others.select(calls)]).ordered()
        done = launched(operations, calls)
    return calls, done


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
