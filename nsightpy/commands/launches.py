"""launches: from the API call to the kernel's end, as nsys stats cuda_kern_exec_sum counts it."""

from __future__ import annotations

from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.launches import (
    NO_LAUNCH,
    LaunchStatistics,
    launch_rows,
    launch_statistics,
)
from nsightpy.errors import require_choice
from nsightpy.frames import Frame
from nsightpy.query.parameters import NAME_COLUMNS
from nsightpy.query.request import Common, Request, without_launch_call
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Table, Value, fields_in

FIELDS = (
    Field("rank", "id"),
    Field("device", "id"),
    Field("api", "text"),
    Field("count"),
    Field("queued_count"),
    *fields_in("ns", "api_med_ns", "queue_med_ns", "kernel_med_ns", "total_med_ns", decimals=1),
    Field("queue_max_ns", "ns"),
    Field("name", "text"),
)
_SPAN = ("start_ns", "end_ns", "pid", "correlation_id")


@command_function
def launches(
    reports: Paths,
    *,
    name: str = "demangled",
    top: int | None = None,
    **common: Unpack[Common],
) -> Table:
    """Launch phases per rank, device, kernel name and API function, most kernel time first.

    Medians in ns; the queue's over the launches that waited. A kernel and a call belong together
    when process and correlation id agree.
    """
    require_choice("name", name, NAME_COLUMNS)
    request = Request.of(reports, **common)
    work = partial(_statistics, label=NAME_COLUMNS[name], scope=request.scope)
    parts = request.map(work, ranked=True).values
    keyed_rows = [row for rows, _ in parts for row in rows]
    keyed_rows.sort(key=lambda pair: (-pair[1].kernel_total_ns, *map(_sortable, _row(*pair))))
    unmatched = sum(missing for _, missing in parts)
    note = without_launch_call(f"{unmatched:,} kernels", "left out")
    table = Table("launches", FIELDS, tuple(_row(*pair) for pair in keyed_rows)).first(top)
    return request.finish(table, *([note] if unmatched else []))


def _statistics(
    report: SystemReport, *, label: str, scope: Scope
) -> tuple[list[tuple[int | None, LaunchStatistics]], int]:
    columns = tuple(dict.fromkeys((*_SPAN, "device", label, *scope.columns)))
    kernels = scope.narrow(report, report.frame("kernels", columns))
    calls = report.frame("api_calls", (*_SPAN, "name", "event_class"))
    keyed = Frame({**kernels, "label": kernels[label]})
    unmatched = int(np.count_nonzero(launch_rows(kernels, calls) == NO_LAUNCH))
    statistics = launch_statistics(keyed, calls, ("pid", "device", "label"))
    return [(report.rank_of(_pid(row))[0], row) for row in statistics], unmatched


def _pid(row: LaunchStatistics) -> int:
    pid = row.key[0]
    return pid if isinstance(pid, int) else 0


def _row(rank: int | None, row: LaunchStatistics) -> tuple[Value, ...]:
    _, device, label = row.key
    return (
        rank,
        device,
        row.api,
        row.count,
        row.queued_count,
        row.api_med_ns,
        row.queue_med_ns,
        row.kernel_med_ns,
        row.total_med_ns,
        row.queue_max_ns,
        label,
    )


def _sortable(value: Value) -> tuple[bool, str]:
    return (value is not None, str(value))
