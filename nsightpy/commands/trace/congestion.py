"""trace -r network_congestion: when interfaces had data to send and could not.

Made from the documentation of that report; no public capture with such counters was at hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nsightpy.commands.trace.cells import Place, listed, rows_of, texts
from nsightpy.frames import Frame, constant
from nsightpy.query.scope import Scope
from nsightpy.results import Field, Row

FIELDS = (
    *(Field(f"{name} (ns)", "ns") for name in ("Start", "End", "Duration")),
    Field("Send wait rate", "count"),
    Field("GUID", "text"),
    Field("Name", "text"),
)
# nsys lists intervals above this many ticks/ms.
LEAST_TICKS = 10_000
_WAITS = re.compile(r"send.?waits?", re.IGNORECASE)


def listing(place: Place, scope: Scope, _: str = "") -> Iterator[Row]:
    """The intervals of a report in which an interface waited, by start."""
    report = place.report
    frame = report.frame("nic_metrics")
    waits = frame.labels("metric").where(_WAITS.search)
    frame = frame.take(waits & (frame.ints("value") > LEAST_TICKS)).ordered()
    # interfaces belong to no process; those of a report share its clock
    pid = constant(next(iter(report.pids), 0), frame.rows)
    frame = scope.within(report, Frame({**frame, "pid": pid}))
    start, end = frame.ints("start_ns"), frame.ints("end_ns")
    yield from rows_of(
        [
            place.times(frame, start),
            place.times(frame, end),
            listed(end - start),
            listed(frame.ints("value")),
            texts(frame.labels("guid")),
            texts(frame.labels("nic_name")),
        ]
    )
