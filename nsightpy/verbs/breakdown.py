"""breakdown: how each device's time divides into compute, communication, copies and idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Unpack

from nsightpy.analysis.communication import suspects
from nsightpy.analysis.ranking import tally_durations
from nsightpy.analysis.time_budget import TimeBudget, device_budgets
from nsightpy.frames import Frame
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Field, Table, Value
from nsightpy.verbs.request import Common, Request
from nsightpy.verbs.scope import Scope

BUDGET = (
    "window_ns",
    "busy_ns",
    "compute_ns",
    "communication_ns",
    "memory_ns",
    "overlap_ns",
    "exposed_communication_ns",
    "copy_only_ns",
    "opaque_graph_ns",
    "idle_ns",
)
IDLE_CAUSES = (
    "launch_starved_ns",
    "blocking_ns",
    "dependency_stalled_ns",
    "host_wait_ns",
    "kernel_wait_ns",
    "other_wait_ns",
)
FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    *(Field(name, "ns") for name in (*BUDGET, *IDLE_CAUSES)),
)
KERNEL_COLUMNS = ("start_ns", "end_ns", "pid", "device", "name")
PLACED_COLUMNS = ("start_ns", "end_ns", "pid", "device")


@dataclass(frozen=True, slots=True)
class RankedBudget:
    """The budget of one device of one rank."""

    rank: int | None
    pid: int
    device: int
    budget: TimeBudget


def breakdown(
    reports: Paths,
    *,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """The time budget of every rank and device, in ns.

    Every figure is the measure of a union over all streams, clipped to the window: from the first
    start to the last end on the device, or from_time to to_time. Why the device was idle is not
    attributed yet: those columns are empty. `communication` adds regular expressions to the names
    that count as communication kernels.
    """
    request = Request.of(reports, **common)
    work = partial(_budgets, communication=tuple(communication), scope=request.scope)
    parts = request.map(work, ranked=True).values
    rows = sorted((row for rows, _ in parts for row in rows), key=budget_order)
    doubtful = dict.fromkeys(name for _, names in parts for name in names)
    table = Table("breakdown", FIELDS, tuple(budget_row(row) for row in rows))
    return request.finish(table, *map(suspect_note, doubtful))


def rank_budgets(
    report: NsysReport,
    scope: Scope,
    kernels: Frame,
    operations: Frame,
    graphs: Frame,
    communication: tuple[str, ...] = (),
) -> list[RankedBudget]:
    """The budgets of one report's devices; the frames carry pid, device and times."""
    found = device_budgets(
        kernels,
        operations,
        graphs,
        communication=communication,
        start_ns=scope.from_ns,
        end_ns=scope.to_ns,
    )
    return [
        RankedBudget(report.rank_of(one.pid)[0], one.pid, one.device, one.budget) for one in found
    ]


def budget_order(row: RankedBudget) -> tuple[bool, int, int, int]:
    """Ranks ascending, unknown ones last; then process and device."""
    return (row.rank is None, row.rank or 0, row.pid, row.device)


def budget_row(row: RankedBudget) -> tuple[Value, ...]:
    """The row of the table; causes of idleness are not known here."""
    figures = (getattr(row.budget, name) for name in BUDGET)
    return (row.rank, row.device, *figures, *(None for _ in IDLE_CAUSES))


def suspect_note(name: str) -> str:
    """What is said of a kernel that may be communication but is not on the list."""
    return (
        f"{name!r} is counted as compute, though its name sounds like communication; "
        "--communication REGEX counts it as such."
    )


def _budgets(
    report: NsysReport, *, communication: tuple[str, ...], scope: Scope
) -> tuple[list[RankedBudget], list[str]]:
    kernels = scope.narrow(report, report.frame("kernels", KERNEL_COLUMNS))
    operations = scope.narrow(report, report.frame("memory_operations", PLACED_COLUMNS))
    graphs = scope.narrow(report, report.frame("graph_launches", PLACED_COLUMNS))
    rows = rank_budgets(report, scope, kernels, operations, graphs, communication)
    return rows, doubtful_names(kernels, communication)


def doubtful_names(kernels: Frame, communication: tuple[str, ...]) -> list[str]:
    """Kernels with a material share of the work that may be unlisted communication."""
    from nsightpy.analysis.communication import is_communication

    compute = kernels.take(~is_communication(kernels.labels("name"), communication))
    work = tally_durations(compute, ["name"]).statistics()
    return suspects([str(key[0]) for key in work.keys], work.total.tolist())
