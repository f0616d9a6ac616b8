"""breakdown: how each device's time divides into compute, communication, copies and idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

from nsightpy.analysis.communication import is_communication
from nsightpy.query.device_time import (
    RankedBudget,
    attributed,
    budget_order,
    doubtful_names,
    rank_budgets,
    read_work,
)
from nsightpy.query.idle_time import (
    CAUSES,
    followed_work,
    residual_note,
    stream_waits_note,
)
from nsightpy.query.request import Common, Request
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value

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
MORE = ("unattributed_ns", "launch_starved_idle_ns")
FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    *(Field(name, "ns") for name in (*BUDGET, *CAUSES, *MORE)),
)


@command_function
def breakdown(
    reports: Paths,
    *,
    top: int | None = None,
    communication: Iterable[str] = (),
    **common: Unpack[Common],
) -> Table:
    """The time budget of every rank and device, in ns.

    Every figure is the measure of a union over all streams, clipped to the window: from the first
    start to the last end on the device, or from_time to to_time, or with nvtx the projected
    intervals of those ranges on the device, whoever launched what ran in them. launch_starved,
    blocking, dependency_stalled and unattributed add up to the time without compute; host, kernel
    and other wait are gaps on single streams, added over a device's streams (see analysis.idle).
    launch_starved_idle is the part of launch_starved that is idle: nothing else ran in it either.
    Causes that the capture does not show are None, with a note.
    """
    request = Request.of(reports, **common)
    work = partial(_budgets, communication=tuple(communication), scope=request.scope)
    parts = request.map(work, ranked=True).values
    rows = sorted((row for part in parts for row in part.rows), key=budget_order)
    doubtful = dict.fromkeys(name for part in parts for name in part.doubtful)
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    table = Table("breakdown", FIELDS, tuple(map(budget_row, rows))).first(top)
    residual = residual_note([row.idle for row in rows])
    waits = stream_waits_note([(row.budget.window_ns, row.idle) for row in rows])
    return request.finish(table, *map(suspect_note, doubtful), *notes, *residual, *waits)


def budget_row(row: RankedBudget) -> tuple[Value, ...]:
    """The row of the table; causes that are not known are None."""
    figures = (getattr(row.budget, name) for name in BUDGET)
    return (row.rank, row.device, *figures, *row.idle.columns.values())


def beside_idle(table: Table) -> Table:
    """The table for people: launch-starved time that something else fills is shown as that."""
    at, part = (table.columns.index(f"launch_starved{name}_ns") for name in ("", "_idle"))
    rows = ((*row[:at], row[part], *row[at + 1 : part], *row[part + 1 :]) for row in table.rows)
    fields = (*table.fields[:part], *table.fields[part + 1 :])
    return replace(table, fields=fields, rows=tuple(rows))


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


def _budgets(report: SystemReport, *, communication: tuple[str, ...], scope: Scope) -> _Part:
    work = read_work(report, scope)
    communicates = is_communication(work.kernels.labels("name"), communication)
    followed = followed_work(report, work, communicates)
    doubtful = doubtful_names(scope.within(report, work.kernels), communication)
    rows = rank_budgets(report, scope, *work, communication=communication)
    rows, idle = attributed(report, rows, followed)
    return _Part(rows, doubtful, idle.notes)
