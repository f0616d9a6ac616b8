"""API calls in which the host waits for the GPU: synchronisations, blocking copies, frees."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nsightpy.frames import API_CALLS, Frame
from nsightpy.readers.host_calls import ALLOCATING, CALL_CLASSES, CALL_COLUMNS, SYNCHRONISING
from nsightpy.readers.nsys.columns import column, process_of, thread_of
from nsightpy.readers.nsys.events import RUNTIME, without_version
from nsightpy.readers.nsys.table_frames import timed_rows
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

_IDS = {
    "pid": process_of("globalTid"),
    "tid": thread_of("globalTid"),
    "name": column("nameId"),
}


def sync_calls(export: NsysExport) -> Frame:
    """start_ns, end_ns, pid, tid and name of every synchronising call, by start."""
    return _calls_of(export, _synchronising(export))


def calls_named(export: NsysExport, prefixes: Sequence[str]) -> Frame:
    """The same of every call whose name begins with one of the prefixes."""
    return _calls_of(export, export.strings.matching(*prefixes))


def _calls_of(export: NsysExport, ids: Sequence[int]) -> Frame:
    if not ids:
        return Frame.empty(API_CALLS, CALL_COLUMNS)
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
        return Frame.empty(API_CALLS, CALL_COLUMNS)
    condition = wanted(table)
    if "eventClass" in table.c:
        condition &= table.c.eventClass.in_(CALL_CLASSES)
    calls = timed_rows(export, table, _IDS, condition)
    raw = dict(calls)
    raw["name"] = export.strings.labels(calls.ints("name")).renamed(without_version)
    return Frame(raw).ordered()
