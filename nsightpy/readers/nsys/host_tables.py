"""Calls of the host beside CUDA's and MPI's, CPU samples, context switches, and sampled counters of
GPUs (--gpu-metrics-devices), as frames.

Made from the Nsight Systems User Guide, "SQLite schema reference". No public capture with rows of
CUBLAS_EVENTS, CUDNN_EVENTS or counters was at hand: those are tested on simulated exports only;
OSRT_API on real ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels, distinct_pairs
from nsightpy.readers.nsys.events import OF_THREAD, PLAIN, SPAN
from nsightpy.readers.nsys.table_frames import Derived, Source, readable_table, reader, stored_frame
from nsightpy.readers.nsys.tables import UNNAMED, NsysExport, number, process_part, thread_part
from nsightpy.readers.sql import sa

# How the tables of libraries begin.
_LIBRARIES = {
    "CUBLAS_EVENTS": "cuBLAS",
    "CUDNN_EVENTS": "cuDNN",
    "CUPTI_ACTIVITY_KIND_OPENACC_": "OpenACC",
    "OPENMP_EVENT_KIND_": "OpenMP",
    "SYSCALL": "syscall",
}
# Rows that only say when the tracing of a process began and finished.
_NO_CALLS = (31, 32)
_SWITCHES = Source(
    "SCHED_EVENTS",
    {"start_ns": "start", "cpu": "cpu", "begins": "isSchedIn"},
    OF_THREAD,
    needs=("isSchedIn", "globalTid"),
)
os_calls = reader(
    frames.OS_CALLS,
    Source(
        "OSRT_API",
        {**SPAN, "return_value": "returnValue", "nesting_level": "nestingLevel"},
        ids=OF_THREAD,
        names={"name": "nameId"},
        where=lambda t: t.c.eventClass.not_in(_NO_CALLS) if "eventClass" in t.c else None,
    ),
)


def library_calls(export: NsysExport, columns: Sequence[str]) -> Frame:
    """The frame of calls of libraries and of the system, of one table after the other."""
    sources = (
        Source(table, SPAN, OF_THREAD, {"name": "nameId"}, same={"library": name}, derived=PLAIN)
        for start, name in _LIBRARIES.items()
        for table in sorted(export.file.tables)
        if table.startswith(start) and not table.endswith("CALLCHAINS")
    )
    return reader(frames.LIBRARY_CALLS, Source("", {}), *sources)(export, columns)


def cpu_samples(export: NsysExport, columns: Sequence[str]) -> Frame:
    """The frame of CPU samples; empty where callchains were not recorded."""
    wanted = tuple(columns)
    samples = export.table("COMPOSITE_EVENTS", "id", "start")
    chains = export.table("SAMPLING_CALLCHAINS", "id", "symbol", "module", "stackDepth")
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


def _metric(export: NsysExport, samples: Frame) -> dict[str, ColumnData]:
    """The name of each row's metric; unnamed ones go by their number."""
    rows = export.file.values("TARGET_INFO_GPU_METRICS", ("typeId", "metricId"), ("metricName",))
    named = {(kind, metric): name or "" for kind, metric, name in rows}
    pairs, codes = distinct_pairs(samples.ints("list"), samples.ints("place"))
    texts = (named.get(pair, f"metric {pair[1]}") for pair in pairs)
    return {"metric": Labels(codes, tuple(texts)).merged()}


gpu_metrics = reader(
    frames.GPU_METRICS,
    Source(
        "GPU_METRICS",
        {"time_ns": "timestamp", "value": "value", "list": "typeId", "place": "metricId"},
        derived=(
            Derived(("gpu_id",), ("list",), lambda _, rows: {"gpu_id": rows.ints("list") & 0xFF}),
            Derived(("metric",), ("list", "place"), _metric),
        ),
    ),
)
