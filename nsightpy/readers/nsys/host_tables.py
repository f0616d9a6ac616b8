"""Calls of the host beside CUDA's and MPI's, CPU samples, context switches, and sampled counters of
GPUs (--gpu-metrics-devices) and networks (--nic-metrics), as frames.

Made from the Nsight Systems User Guide, "SQLite schema reference". No public capture with rows of
CUBLAS_EVENTS, CUDNN_EVENTS or counters was at hand: those are tested on simulated exports only;
OSRT_API on real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels, distinct, distinct_pairs
from nsightpy.readers.nsys.events import OF_THREAD, PLAIN, SPAN
from nsightpy.readers.nsys.table_frames import Derived, Source, readable_table, reader, stored_frame
from nsightpy.readers.nsys.tables import UNNAMED, NsysExport, number, process_part, thread_part
from nsightpy.readers.sql import sa

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
library_calls = reader(
    frames.LIBRARY_CALLS,
    *(
        Source(table, SPAN, OF_THREAD, {"name": "nameId"}, same={"library": name}, derived=PLAIN)
        for table, name in LIBRARY_TABLES.items()
    ),
)


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


def _interfaces(export: NsysExport, samples: Frame) -> dict[str, ColumnData]:
    """The name and the id of the interface of each row."""
    listed = export.file.values("TARGET_INFO_NIC_INFO", ("globalId", "nicId", "GUID"), ("name",))
    # older exports have the number that samples have in place of the id
    about = {global_id: (name, None) for global_id, _, _, name in listed}
    by_id = {nic: (name, guid) for _, nic, guid, name in listed}
    for global_id, nic in export.file.values("NIC_ID_MAP", ("globalId", "nicId")):
        about[global_id] = by_id.get(nic, (None, None))
    values, codes = distinct(samples.ints("nic"))
    interfaces = [about.get(global_id, (None, None)) for global_id in values.tolist()]
    guids = tuple(
        f"0x{guid & 2**64 - 1:016X}" if isinstance(guid, int) else "" for _, guid in interfaces
    )
    shown = tuple(str(name or "") for name, _ in interfaces)
    return {"nic_name": Labels(codes, shown).merged(), "guid": Labels(codes, guids)}


def _metric(
    export: NsysExport, samples: Frame, table: str, columns: tuple[str, ...]
) -> dict[str, ColumnData]:
    """The name and the unit of each row, by the two numbers that a table of names has in columns;
    unnamed metrics go by the second number."""
    *keys, name = columns
    rows = export.file.values(table, keys, (name, "unit"))
    named = {(first, second): (text or "", unit or "") for first, second, text, unit in rows}
    pairs, codes = distinct_pairs(samples.ints("list"), samples.ints("place"))
    texts = [named.get(key, (f"metric {key[1]}", "")) for key in pairs]
    return {
        column: Labels(codes, tuple(text[part] for text in texts)).merged()
        for part, column in enumerate(("metric", "metric_unit"))
    }


gpu_metrics = reader(
    frames.GPU_METRICS,
    Source(
        "GPU_METRICS",
        {"time_ns": "timestamp", "value": "value", "list": "typeId", "place": "metricId"},
        derived=(
            Derived(("gpu_id",), ("list",), lambda _, rows: {"gpu_id": rows.ints("list") & 0xFF}),
            Derived(
                ("metric",),
                ("list", "place"),
                partial(
                    _metric,
                    table="TARGET_INFO_GPU_METRICS",
                    columns=("typeId", "metricId", "metricName"),
                ),
            ),
        ),
    ),
)
nic_metrics = reader(
    frames.NIC_METRICS,
    Source(
        "NET_NIC_METRIC",
        {
            "start_ns": ("start", 0),
            "end_ns": "end",
            "nic": "globalId",
            "port": "portId",
            "value": "value",
            "list": "metricsListId",
            "place": "metricsIdx",
        },
        derived=(
            Derived(
                ("metric", "metric_unit"),
                ("list", "place"),
                partial(
                    _metric,
                    table="TARGET_INFO_NETWORK_METRICS",
                    columns=("metricsListId", "metricsIdx", "name"),
                ),
            ),
            Derived(("nic_name", "guid"), ("nic",), _interfaces),
        ),
        where=lambda table: table.c["end"].is_not(None) if "end" in table.c else None,
    ),
)
