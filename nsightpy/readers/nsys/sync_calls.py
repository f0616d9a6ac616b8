"""API calls in which the host waits for the GPU: synchronisations, blocking copies, frees."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nsightpy.frames import API_CALLS, Frame, Labels
from nsightpy.readers.host_calls import ALLOCATING, SYNCHRONISING
from nsightpy.readers.nsys.columns import NO_END, SPAN, column, process_of, stored, thread_of
from nsightpy.readers.nsys.events import RUNTIME, without_version
from nsightpy.readers.nsys.table_frames import countable_columns
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa
from nsightpy.readers.sqlite import Query

# Rows of other classes repeat a call to carry its backtrace.
CLASSES = (0, 1, 13)
_IDS = {
    "pid": process_of("globalTid"),
    "tid": thread_of("globalTid"),
    "name": column("nameId"),
}
COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")


def sync_calls(export: NsysExport) -> Frame:
    """start_ns, end_ns, pid, tid and name of every synchronising call, by start."""
    ids = _synchronising(export)
    if not ids:
        return Frame.empty(API_CALLS, COLUMNS)
    return _calls(export, lambda table: sa.or_(*(table.c.nameId == i for i in ids)))


def calls_named(export: NsysExport, prefixes: Sequence[str]) -> Frame:
    """The same of every call whose name begins with one of the prefixes."""
    ids = export.strings.matching(*prefixes)
    if not ids:
        return Frame.empty(API_CALLS, COLUMNS)
    return _calls(export, lambda table: sa.or_(*(table.c.nameId == i for i in ids)))


def holding_calls(export: NsysExport, least_ns: int) -> Frame:
    """The same of every call that synchronises, allocates or took at least so long."""
    ids = sorted({*_synchronising(export), *export.strings.matching(*ALLOCATING)})
    return _calls(
        export,
        lambda table: sa.or_(
            table.c["end"] - table.c["start"] >= least_ns, *(table.c.nameId == i for i in ids)
        ),
    )


def _synchronising(export: NsysExport) -> list[int]:
    """The ids of the names of functions that wait for the GPU."""
    ids = export.strings.matching(*SYNCHRONISING)
    names = export.strings.labels(np.asarray(ids, dtype=np.int64))
    return [i for row, i in enumerate(ids) if "Async" not in names[row]]


def _calls(export: NsysExport, wanted: Callable[[sa.TableClause], sa.ColumnElement[bool]]) -> Frame:
    table = export.file.tables[RUNTIME] if export.has(RUNTIME) else None
    if table is None or not {"nameId", "start", "end"} <= set(table.c.keys()):
        return Frame.empty(API_CALLS, COLUMNS)
    condition = wanted(table)
    if "eventClass" in table.c:
        condition &= table.c.eventClass.in_(CLASSES)

    def query(*, careful: bool) -> Query:
        spans = [stored(table, n, made, NO_END, careful=careful) for n, made in SPAN.items()]
        ids = [stored(table, name, made, 0, careful=careful) for name, made in _IDS.items()]
        return sa.select(*spans, *ids).where(condition)

    calls = countable_columns(export, table, query)
    raw = dict(calls)
    labels = export.strings.labels(calls.ints("name"))
    raw["name"] = Labels(labels.codes, tuple(map(without_version, labels.values))).merged()
    return Frame(raw).ordered()
