"""sync-waits: calls in which the host waited, and how much of that cost GPU time."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from nsightpy.analysis.idle.sync_costs import sync_costs
from nsightpy.analysis.intervals import difference, spans_of, union_of
from nsightpy.query.device_time import rank_budgets, read_work
from nsightpy.query.request import Common, Request, without_calls
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value

FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    Field("api", "text"),
    Field("calls"),
    Field("total_ns", "ns"),
    Field("med_ns", "ns", 1),
    Field("max_ns", "ns"),
    Field("device_idle_ns", "ns"),
    Field("idle_share", "ratio", 4),
)


@command_function
def sync_waits(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Table:
    """Synchronising calls per rank, device and API function, most idle device time first; ns.

    Synchronisations, copies that block, frees. device_idle is the part of the calls in which the
    device did nothing at all inside its window: the rest waited for work that was running.
    idle_share is its share of the window. Calls outside of the window are left out.
    """
    request = Request.of(reports, **common)
    parts = request.map(partial(_waits, scope=request.scope), ranked=True).values
    rows = sorted((row for part in parts for row in part or ()), key=_order)
    silent = sum(part is None for part in parts)
    notes = [without_calls("waits", silent, len(parts))] if silent else []
    return request.finish(Table("sync-waits", FIELDS, tuple(rows)).first(top), *notes)


def _waits(report: SystemReport, *, scope: Scope) -> list[tuple[Value, ...]] | None:
    """The rows of one report; None where its capture has no API calls."""
    if not report.calls.recorded:
        return None
    calls, work = report.calls.synchronising(), read_work(report, scope)
    rows: list[tuple[Value, ...]] = []
    for budget in rank_budgets(report, scope, *work):
        window = budget.budget.window
        ran = (spans_of(frame.at(pid=budget.pid, device=budget.device)) for frame in work)
        idle = difference(window, union_of(ran))
        process_calls = calls.at(pid=budget.pid)
        for cost in sync_costs(process_calls, window, idle):
            share = cost.idle_ns / budget.budget.window_ns if budget.budget.window_ns else None
            times = (cost.total_ns, cost.median_ns, cost.longest_ns, cost.idle_ns)
            rows.append((budget.rank, budget.device, cost.api, cost.calls, *times, share))
    return rows


def _order(row: tuple[Value, ...]) -> tuple[object, ...]:
    rank, device, api, _, total, *_, idle, _ = row
    cost = idle if isinstance(idle, int) else 0
    lasted = total if isinstance(total, int) else 0
    return (-cost, -lasted, rank is None, rank or 0, device, api)
