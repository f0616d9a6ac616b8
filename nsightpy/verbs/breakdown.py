"""breakdown: how each device's time divides into compute, communication, copies and idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.communication import is_communication, suspects
from nsightpy.analysis.idle.gpu_work import WORK_COLUMNS
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.time_budget import TimeBudget, device_budgets
from nsightpy.frames import Frame, Labels
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Field, Table, Value
from nsightpy.verbs.asking.request import Common, Request
from nsightpy.verbs.asking.scope import Scope
from nsightpy.verbs.gathering.idleness import (
    CAUSES,
    NOT_ATTRIBUTED,
    DeviceIdle,
    LaunchReader,
    ReportIdle,
    Work,
    launches_of,
    report_idle,
    residual_note,
    stream_waits_note,
)

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
FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    *(Field(name, "ns") for name in (*BUDGET, *CAUSES, "unattributed_ns")),
)
KERNEL_COLUMNS = (*WORK_COLUMNS, "name")
OPERATION_COLUMNS = (*WORK_COLUMNS, "operation")


@dataclass(frozen=True, slots=True)
class RankedBudget:
    """The budget of one device of one rank, and why the device was idle."""

    rank: int | None
    pid: int
    device: int
    budget: TimeBudget
    idle: DeviceIdle = NOT_ATTRIBUTED


def breakdown(
    reports: Paths,
    *,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """The time budget of every rank and device, in ns.

    Every figure is the measure of a union over all streams, clipped to the window: from the first
    start to the last end on the device, or from_time to to_time, or with nvtx the projected
    intervals of those ranges on the device, whoever launched what ran in them. launch_starved,
    blocking, dependency_stalled and unattributed add up to the time without compute; host, kernel
    and other wait are gaps on single streams, added over a device's streams (see analysis.idle).
    Causes that the capture does not tell are None, with a note. `communication` adds regular
    expressions to the names that count as communication kernels.
    """
    request = Request.of(reports, **common)
    work = partial(_budgets, communication=tuple(communication), scope=request.scope)
    parts = request.map(work, ranked=True).values
    rows = sorted((row for part in parts for row in part.rows), key=budget_order)
    doubtful = dict.fromkeys(name for part in parts for name in part.doubtful)
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    table = Table("breakdown", FIELDS, tuple(budget_row(row) for row in rows))
    residual = residual_note([row.idle for row in rows])
    waits = stream_waits_note([(row.budget.window_ns, row.idle) for row in rows])
    return request.finish(table, *map(suspect_note, doubtful), *notes, *residual, *waits)


def rank_budgets(
    report: NsysReport,
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
    found = device_budgets(
        kernels,
        operations,
        graphs,
        communication=communication,
        start_ns=scope.from_ns,
        end_ns=scope.to_ns,
        windows=scope.windows(report) if windows is None else windows,
    )
    return [
        RankedBudget(report.rank_of(one.pid)[0], one.pid, one.device, one.budget) for one in found
    ]


def budget_order(row: RankedBudget) -> tuple[bool, int, int, int]:
    """Ranks ascending, unknown ones last; then process and device."""
    return (row.rank is None, row.rank or 0, row.pid, row.device)


def budget_row(row: RankedBudget) -> tuple[Value, ...]:
    """The row of the table; causes that are not known are None."""
    figures = (getattr(row.budget, name) for name in BUDGET)
    return (row.rank, row.device, *figures, *row.idle.columns.values())


def suspect_note(name: str) -> str:
    """What is said of a kernel that may be communication but is not on the list."""
    return (
        f"{name!r} is counted as compute, though its name sounds like communication; "
        "--communication REGEX counts it as such."
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What one report contributes."""

    rows: list[RankedBudget]
    doubtful: list[str]
    notes: tuple[str, ...]


def _budgets(report: NsysReport, *, communication: tuple[str, ...], scope: Scope) -> _Part:
    with launches_of(report) as launches:
        work = read_work(report, scope)
        doubtful = doubtful_names(scope.within(report, work.kernels), communication)
        rows, idle = attributed(report, scope, work, launches, communication)
    return _Part(rows, doubtful, idle.notes)


def attributed(
    report: NsysReport,
    scope: Scope,
    work: Work,
    launches: LaunchReader | None,
    communication: tuple[str, ...] = (),
    windows: Mapping[tuple[int, int], Spans] | None = None,
) -> tuple[list[RankedBudget], ReportIdle]:
    """The budgets of one report's devices with their idle time attributed, and how it was."""
    rows = rank_budgets(report, scope, *work, communication=communication, windows=windows)
    communicates = is_communication(work.kernels.labels("name"), communication)
    found = {(row.pid, row.device): row.budget.window for row in rows}
    idle = report_idle(report, work, communicates, launches, found)
    known = idle.places
    return [
        replace(row, idle=known.get((row.pid, row.device), NOT_ATTRIBUTED)) for row in rows
    ], idle


def read_work(report: NsysReport, scope: Scope, more: tuple[str, ...] = ()) -> Work:
    """The GPU work of the ranks and devices in scope, at all times.

    `more` are further columns of the memory operations.
    """
    everywhen = replace(scope, from_ns=None, to_ns=None, nvtx=None)
    columns = (KERNEL_COLUMNS, (*OPERATION_COLUMNS, *more), WORK_COLUMNS)
    names = ("kernels", "memory_operations", "graph_launches")
    return Work(
        *(
            everywhen.within(report, report.frame(name, wanted))
            for name, wanted in zip(names, columns, strict=True)
        )
    )


def doubtful_names(kernels: Frame, communication: tuple[str, ...]) -> list[str]:
    """Kernels with a material share of the work that may be unlisted communication."""
    names = kernels.labels("name").merged()
    length = kernels.ints("end_ns") - kernels.ints("start_ns")
    work = np.bincount(names.codes, weights=length, minlength=len(names.values))
    each = Labels(np.arange(len(names.values), dtype=np.int32), names.values)
    compute = np.flatnonzero(~is_communication(each, communication)).tolist()
    return suspects([names.values[c] for c in compute], [int(work[c]) for c in compute])
