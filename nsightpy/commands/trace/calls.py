"""trace --api: CUDA API calls by start, as nsys stats cuda_api_trace lists them."""

from __future__ import annotations

from collections.abc import Iterator

from nsightpy.commands.trace.cells import Place, batches, in_time_order, listed, rows_of, texts
from nsightpy.query.scope import Scope
from nsightpy.results import Field, Row, fields_in

FIELDS = (
    Field("Start (ns)", "ns"),
    Field("Duration (ns)", "ns"),
    Field("Name", "text"),
    *fields_in("id", "Result", "CorrID", "Pid", "Tid", "T-Pri"),
    Field("Thread Name", "text"),
)
COLUMNS = ("start_ns", "end_ns", "name", "return_value", "correlation_id", "pid", "tid")


def columns(_: str = "") -> dict[str, tuple[str, ...]]:
    """The columns of each frame that are read."""
    return {"api_calls": COLUMNS}


def listing(place: Place, scope: Scope, _: str = "") -> Iterator[Row]:
    """The rows of a report in time order."""
    report = place.report
    threads = report.threads_named
    for stretch in in_time_order(report, columns(), scope):
        for calls in stretch.values():
            for frame in batches(calls.ordered()):
                start, end = frame.ints("start_ns"), frame.ints("end_ns")
                pids, tids = frame.ints("pid").tolist(), frame.ints("tid").tolist()
                about = [threads.get(pair, (None, None)) for pair in zip(pids, tids, strict=True)]
                yield from rows_of(
                    [
                        place.times(frame, start),
                        listed(end - start),
                        texts(frame.labels("name")),
                        listed(frame.ints("return_value")),
                        place.correlations(frame),
                        pids,
                        tids,
                        [priority for priority, _ in about],
                        [name for _, name in about],
                    ]
                )
