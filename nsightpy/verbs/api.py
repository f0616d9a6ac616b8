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
    tallies = request.map(partial(_tally, scope=request.scope)).values
    table = ranking.rank_by_time("api", merge(tallies).statistics(), (), count="Num Calls", top=top)
    no_device = "API calls belong to no device: --device does not narrow them."
    return request.finish(table, *([no_device] if request.scope.devices is not None else []))


def _tally(report: NsysReport, *, scope: Scope) -> Tally:
    columns = tuple(c for c in scope.columns if c != "device")
    calls = ranking.calls(report.frame("api_calls", (*_COLUMNS, *columns)))
    return ranking.tally_durations(scope.narrow(report, calls), ["name"])
