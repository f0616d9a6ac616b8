"""Calls of the host beside CUDA's and MPI's, CPU samples and context switches, as frames.

Made from the Nsight Systems User Guide, "SQLite schema reference". No public capture with rows in
CUBLAS_EVENTS or CUDNN_EVENTS was at hand: those are tested on simulated exports only; OSRT_API on
real ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.nsys.events import OF_THREAD, PLAIN_NAME, SPAN
from nsightpy.readers.nsys.table_frames import (
    Source,
    process_part,
    readable_table,
    reader,
    stored_frame,
    thread_part,
)
from nsightpy.readers.nsys.tables import UNNAMED, NsysExport, number
from nsightpy.readers.sql import sa

OSRT = "OSRT_API"
SAMPLES = "COMPOSITE_EVENTS"
CALLCHAINS = "SAMPLING_CALLCHAINS"
SWITCHES = "SCHED_EVENTS"
_OPENMP = (
    *("THREAD", "PARALLEL", "SYNC_REGION_WAIT", "SYNC_REGION", "TASK", "MASTER", "REDUCTION"),
    *("TASK_CREATE", "TASK_SCHEDULE", "CANCEL", "MUTEX_WAIT", "CRITICAL_SECTION"),
    *("MUTEX_RELEASED", "LOCK_INIT", "LOCK_DESTROY", "WORKSHARE", "DISPATCH", "FLUSH"),
)
LIBRARY_TABLES = {
    "CUBLAS_EVENTS": "cuBLAS",
    "CUDNN_EVENTS": "cuDNN",
    **{f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}": "OpenACC" for kind in ("DATA", "LAUNCH", "OTHER")},
    **{f"OPENMP_EVENT_KIND_{kind}": "OpenMP" for kind in _OPENMP},
    "SYSCALL": "syscall",
    **{f"NVVIDEO_{kind.upper()}_API": f"NvVideo {kind}" for kind in ("Encoder", "Decoder", "JPEG")},
}
# Rows that only say when the tracing of a process began and finished.
_NO_CALLS = (31, 32)


_OS_CALLS = Source(
    OSRT,
    {**SPAN, "return_value": "returnValue", "nesting_level": "nestingLevel"},
    ids=OF_THREAD,
    names={"name": "nameId"},
    where=lambda t: t.c.eventClass.not_in(_NO_CALLS) if "eventClass" in t.c else None,
)
_LIBRARY_CALLS = (
    Source(
        table, SPAN, OF_THREAD, {"name": "nameId"}, same={"library": library}, derived=(PLAIN_NAME,)
    )
    for table, library in LIBRARY_TABLES.items()
)
_SWITCHES = Source(
    SWITCHES,
    {"start_ns": "start", "cpu": "cpu", "begins": "isSchedIn"},
    OF_THREAD,
    needs=("isSchedIn", "globalTid"),
)
os_calls = reader(frames.OS_CALLS, _OS_CALLS)
library_calls = reader(frames.LIBRARY_CALLS, *_LIBRARY_CALLS)


def cpu_samples(export: NsysExport, columns: Sequence[str]) -> Frame:
    """The frame of CPU samples; empty where callchains were not recorded."""
    wanted = tuple(columns)
    samples = export.table(SAMPLES, "id", "start")
    chains = export.table(CALLCHAINS, "id", "symbol", "module", "stackDepth")
    if samples is None or chains is None:
        return Frame.empty(frames.CPU_SAMPLES, wanted)
    query = (
        sa.select(
            number(samples, "start", 0).label("time_ns"),
            number(samples, "globalTid", 0).label("thread"),
            number(chains, "symbol", UNNAMED).label("name"),
            number(chains, "module", UNNAMED).label("module"),
        )
        .select_from(samples.join(chains, samples.c.id == chains.c.id))
        .where(chains.c.stackDepth == 0)
    )
    raw = Frame(export.file.arrays(query))
    every = {
        **raw,
        "pid": process_part(raw.ints("thread")),
        "tid": thread_part(raw.ints("thread")),
        "name": export.strings.labels(raw.ints("name")),
        "module": export.strings.labels(raw.ints("module")),
    }
    return Frame({name: every[name] for name in wanted})


def cpu_runs(export: NsysExport, columns: Sequence[str]) -> Frame:
    """The frame of when threads ran on a CPU: from being put on it to leaving it."""
    wanted = tuple(columns)
    table = readable_table(export, _SWITCHES)
    if table is None:
        return Frame.empty(frames.CPU_RUNS, wanted)
    columns = ("start_ns", "pid", "tid", "cpu", "begins")
    raw = stored_frame(export, frames.CPU_RUNS, _SWITCHES, table, columns)
    raw = raw.take(np.lexsort([raw.ints(name) for name in ("start_ns", "tid", "pid")]))
    pid, tid, begins = raw.ints("pid"), raw.ints("tid"), raw.ints("begins") != 0
    # what began before the capture, or was lost, has no other half
    same = (pid[1:] == pid[:-1]) & (tid[1:] == tid[:-1])
    rows = np.flatnonzero(same & begins[:-1] & ~begins[1:])
    every = {**raw.take(rows), "end_ns": raw.ints("start_ns")[rows + 1]}
    return Frame({name: every[name] for name in wanted})
