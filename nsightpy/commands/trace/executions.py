"""trace --launches: launch, queue and kernel by API start (nsys stats cuda_kern_exec_trace)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.commands.trace.cells import Place, listed, rows_of, texts
from nsightpy.frames import Frame
from nsightpy.query.request import without_launch_call
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Value, fields_in

FIELDS = (
    *(
        Field(f"{phase} {what} (ns)", "ns")
        for phase in ("API", "Queue", "Kernel")
        for what in ("Start", "Dur")
    ),
    Field("Total Dur (ns)", "ns"),
    *fields_in("id", "PID", "TID", "DevId"),
    *fields_in("text", "API Function", "GridXYZ", "BlockXYZ", "Kernel Name"),
)
_SPAN = ("start_ns", "end_ns", "pid", "correlation_id")
_SHAPE = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")


def unlaunched(reports: Iterable[SystemReport], scope: Scope) -> list[str]:
    """The note on kernels of which none has a recorded launch; none without kernels."""
    columns = ("start_ns", "end_ns", *scope.columns)
    work = (scope.narrow(report, report.frame("kernels", columns)) for report in reports)
    lost = sum(kernels.rows for kernels in work)
    return [without_launch_call(f"{lost:,} kernels", "left out")] if lost else []


def listing(place: Place, scope: Scope, name: str) -> Iterator[Row]:
    """The rows of a report by the start of the launch; kernels without a recorded one are none."""
    report = place.report
    wanted = dict.fromkeys((*_SPAN, "device", *_SHAPE, name, *scope.columns))
    kernels = scope.narrow(report, report.frame("kernels", tuple(wanted)))
    calls = report.frame("api_calls", (*_SPAN, "tid", "name", "event_class"))
    rows = launch_rows(kernels, calls)
    launched = np.flatnonzero(rows != NO_LAUNCH)
    order = launched[np.argsort(calls.ints("start_ns")[rows[launched]], kind="stable")]
    for low in range(0, len(order), 1 << 16):
        chosen = order[low : low + (1 << 16)]
        yield from _rows(place, kernels.take(chosen), calls.take(rows[chosen]), name)


def _rows(place: Place, kernels: Frame, calls: Frame, name: str) -> list[Row]:
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    begin, back = calls.ints("start_ns"), calls.ints("end_ns")
    waited = (start - back).tolist()
    returned = place.times(calls, back)
    pairs = list(zip(waited, returned, strict=True))
    return rows_of(
        [
            place.times(calls, begin),
            listed(back - begin),
            [time if wait >= 0 else None for wait, time in pairs],
            [wait if wait >= 0 else None for wait in waited],
            place.times(kernels, start),
            listed(end - start),
            listed(np.maximum(back, end) - begin),
            *(listed(calls.ints(c)) for c in ("pid", "tid")),
            listed(kernels.ints("device")),
            texts(calls.labels("name")),
            _shapes(kernels, _SHAPE[:3]),
            _shapes(kernels, _SHAPE[3:]),
            texts(kernels.labels(name)),
        ]
    )


def _shapes(kernels: Frame, columns: tuple[str, ...]) -> list[Value]:
    """Three sizes in one text, four places each, as nsys writes them; None where one is missing."""
    return [
        f"{x:4d} {y:4d} {z:4d}" if x and y and z else None for x, y, z in kernels.tuples(*columns)
    ]
