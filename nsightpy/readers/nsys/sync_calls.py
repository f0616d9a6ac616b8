"""API calls in which the host waits for the GPU: synchronisations, blocking copies, frees."""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa

from nsightpy.frames import API_CALLS, Frame, Labels
from nsightpy.readers.nsys.events import RUNTIME, without_version
from nsightpy.readers.nsys.tables import NsysExport, column, number, ordered, process_of

# Copies that are not Async block; freeing memory waits for the device.
_SYNCHRONISING = (
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaThreadSynchronize",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cudaMemcpy",
    "cuMemcpy",
    "cudaFree",
    "cuMemFree",
)
COLUMNS = ("start_ns", "end_ns", "pid", "name")


def sync_calls(export: NsysExport) -> Frame:
    """start_ns, end_ns, pid and name of every synchronising call, by start."""
    if not export.has(RUNTIME) or "nameId" not in (table := export.file.tables[RUNTIME]).c:
        return Frame.empty(API_CALLS, COLUMNS)
    found = sorted({i for prefix in _SYNCHRONISING for i in export.strings.matching(prefix)})
    names = export.strings.labels(np.asarray(found, dtype=np.int64))
    ids = [i for row, i in enumerate(found) if "Async" not in names[row]]
    if not ids:
        return Frame.empty(API_CALLS, COLUMNS)
    query = sa.select(
        number(table, "start_ns", column("start"), 0),
        number(table, "end_ns", column("end"), 0),
        number(table, "pid", process_of("globalTid"), 0),
        number(table, "name", column("nameId"), 0),
    ).where(sa.or_(*(table.c.nameId == i for i in ids)))
    raw = export.file.arrays(query, split=table)
    labels = export.strings.labels(Frame(raw).ints("name"))
    raw["name"] = Labels(labels.codes, tuple(map(without_version, labels.values))).merged()
    return ordered(Frame(raw))
