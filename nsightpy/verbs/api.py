"""api: where the host's time in CUDA calls went, as nsys stats cuda_api_sum counts it."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from nsightpy.analysis import ranking
from nsightpy.analysis.tally import Tally, merge
from nsightpy.rank_set import Paths
from nsightpy.reports import NsysReport
from nsightpy.results import Table
from nsightpy.verbs.request import Common, Request
from nsightpy.verbs.scope import Scope

_COLUMNS = ("start_ns", "end_ns", "name", "event_class")


def api(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Table:
    """CUDA API functions by total host time; columns of `nsys stats --report cuda_api_sum`, ns.

    A call belongs to a process, not to a device: `device` does not narrow it.
    """
    request = Request.of(reports, **common)
    parts = request.map(partial(_tally, scope=request.scope)).values
    statistics = merge([part for part, _ in parts]).statistics()
    table = ranking.rank_by_time("api", statistics, (), count="Num Calls", top=top)
    return request.finish(table, *_notes(request.scope, sum(dropped for _, dropped in parts)))


def _tally(report: NsysReport, *, scope: Scope) -> tuple[Tally, int]:
    """Durations per function, and how many rows are no calls of their own."""
    columns = tuple(c for c in scope.columns if c != "device")
    rows = scope.narrow(report, report.frame("api_calls", (*_COLUMNS, *columns)))
    calls = ranking.calls(rows)
    return ranking.tally_durations(calls, ["name"]), rows.rows - calls.rows


def _notes(scope: Scope, dropped: int) -> list[str]:
    notes = []
    if dropped:
        notes.append(f"{dropped:,} rows only repeat a call to carry its backtrace: not counted.")
    if scope.devices is not None:
        notes.append("API calls belong to no device: --device does not narrow them.")
    return notes
