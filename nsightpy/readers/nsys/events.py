"""Nsight Systems event tables as frames: GPU work, the API calls that launched it, what orders it.

Schema facts: the Nsight Systems User Guide, "SQLite schema reference". The numbers of
ENUM_CUPTI_SYNC_TYPE changed their meaning between exporters, so the kind of a synchronization is
read from what it names: a stream and an event make a stream wait, and so on.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels
from nsightpy.readers.nsys.table_frames import Derived, Source, Stored, reader
from nsightpy.readers.nsys.tables import NsysExport

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
GRAPH_TRACE = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET = "CUPTI_ACTIVITY_KIND_MEMSET"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"

# Names of operations and kinds of memory by the number that the export has.
_COPY_KINDS = (
    *("Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host"),
    *("Array-to-Array", "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host"),
    *("Peer-to-Peer", "Unified Host-to-Device", "Unified Device-to-Host"),
    "Unified Device-to-Device",
)
COPY_OPERATIONS = {n: f"[CUDA memcpy {kind}]" for n, kind in enumerate(_COPY_KINDS)}
_MEMORY_KINDS = ("Pageable", "Pinned", "Device", "Array", "Managed")
MEMORY_KINDS = dict(enumerate((*_MEMORY_KINDS, "Device Static", "Managed Static", "Unknown")))

SPAN: dict[str, Stored] = {"start_ns": "start", "end_ns": "end"}
PLACE: dict[str, Stored] = {"device": "deviceId", "context": "contextId", "stream": "streamId"}
PLACE["correlation_id"] = "correlationId"
OF_PROCESS = {"pid": "globalPid"}
OF_THREAD = {"pid": "globalTid", "tid": "globalTid"}


def without_version(name: str) -> str:
    """An API name without exactly one `_v` and four digits at its end, as nsys stats prints it."""
    stem, mark, digits = name[:-6], name[-6:-4], name[-4:]
    return stem if mark == "_v" and digits.isdecimal() and digits.isascii() and stem else name


def _plain(_export: NsysExport, calls: Frame) -> dict[str, ColumnData]:
    return {"name": calls.labels("name").renamed(without_version)}


# The names of calls without their version suffix.
PLAIN = (Derived(("name",), ("name",), _plain),)
_SHAPE: dict[str, Stored] = {
    f"{shape}_{axis}": f"{shape}{axis.upper()}" for shape in ("grid", "block") for axis in "xyz"
}
_WORK: dict[str, Stored] = {**SPAN, **PLACE}
_OF_GRAPH: dict[str, Stored] = {"green_context": "greenContextId", "graph_node_id": "graphNodeId"}
_OPERATION: dict[str, Stored] = {
    **_WORK,
    **_OF_GRAPH,
    "bytes": "bytes",
    "address": "virtualAddress",
}
kernels = reader(
    frames.KERNELS,
    Source(
        KERNEL,
        {
            **_WORK,
            **_OF_GRAPH,
            **_SHAPE,
            "registers_per_thread": "registersPerThread",
            "static_shared_bytes": "staticSharedMemory",
            "dynamic_shared_bytes": "dynamicSharedMemory",
            "local_bytes_per_thread": "localMemoryPerThread",
        },
        ids=OF_PROCESS,
        names={
            "name": ("demangledName", "mangledName", "shortName"),
            "base_name": ("shortName", "demangledName", "mangledName"),
            "mangled_name": "mangledName",
        },
        essential=("device", "stream", "name", *_SHAPE),
    ),
)
graph_launches = reader(
    frames.GRAPH_LAUNCHES,
    Source(
        GRAPH_TRACE,
        {**_WORK, "graph_id": "graphId", "graph_exec_id": "graphExecId"},
        ids=OF_PROCESS,
    ),
)
memory_operations = reader(
    frames.MEMORY_OPERATIONS,
    Source(
        MEMCPY,
        _OPERATION,
        ids=OF_PROCESS,
        codes={
            "operation": ("copyKind", COPY_OPERATIONS),
            "source_memory": ("srcKind", MEMORY_KINDS),
            "target_memory": ("dstKind", MEMORY_KINDS),
        },
    ),
    Source(
        MEMSET,
        _OPERATION,
        ids=OF_PROCESS,
        codes={"target_memory": ("memKind", MEMORY_KINDS)},
        same={"operation": "[CUDA memset]", "source_memory": ""},
    ),
)
api_calls = reader(
    frames.API_CALLS,
    Source(
        RUNTIME,
        {
            **SPAN,
            "correlation_id": "correlationId",
            "return_value": "returnValue",
            "event_class": "eventClass",
        },
        ids=OF_THREAD,
        names={"name": "nameId"},
        derived=PLAIN,
    ),
)


def graph_nodes(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of created graph nodes; empty where none were recorded."""
    # up to schema 3.7.2 CUDA_GRAPH_EVENTS held these events; it is known by its columns
    tables = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
    held = (name for name in tables if export.table(name, "graphNodeId") is not None)
    nodes: dict[str, Stored] = {"graph_node_id": "graphNodeId"}
    nodes["original_node_id"] = "originalGraphNodeId"
    source = Source(next(held, ""), {**SPAN, **nodes}, ids=OF_THREAD)
    return reader(frames.GRAPH_NODES, source)(export, columns)


# by (names a stream) + 2 x (names an event)
KINDS = ("context", "stream", "event", "stream wait")
_NONE = 0xFFFFFFFF


def _known_id(_export: NsysExport, rows: Frame, name: str) -> dict[str, ColumnData]:
    """Ids, -1 for the profiler's "invalid"."""
    ids = rows.ints(name)
    return {name: np.where((ids == _NONE) | (ids < 0), -1, ids)}


def _kind(export: NsysExport, rows: Frame) -> dict[str, ColumnData]:
    """What a row waits for, by whether it names a stream, and an event."""
    names = ("stream", "event_id")
    stream, event = (Frame(_known_id(export, rows, name)).ints(name) >= 0 for name in names)
    return {"kind": Labels((stream + 2 * event).astype(np.int32), KINDS)}


_EVENT: dict[str, Stored] = {"event_id": "eventId", "event_sync_id": "eventSyncId"}
synchronizations = reader(
    frames.SYNCHRONIZATIONS,
    Source(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        {**_WORK, **_EVENT},
        ids=OF_PROCESS,
        derived=(
            *(Derived((n,), (n,), partial(_known_id, name=n)) for n in ("stream", "event_id")),
            Derived(("kind",), ("stream", "event_id"), _kind),
        ),
    ),
)
cuda_events = reader(
    frames.CUDA_EVENTS,
    Source(
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
        {**PLACE, "time_ns": "timestamp", **_EVENT},
        ids=OF_PROCESS,
    ),
)
_NOT_RECORDED = ("tid", "allocated_bytes", "reserved_bytes")
# Static variables are allocated when they are loaded.
memory_usage = reader(
    frames.MEMORY_USAGE,
    Source(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        {
            "start_ns": "start",
            **{name: PLACE[name] for name in ("device", "context", "correlation_id")},
            "address": "address",
            "bytes": "bytes",
            **{name: int(frames.MEMORY_USAGE[name].missing) for name in _NOT_RECORDED},
        },
        ids=OF_PROCESS,
        needs=("bytes",),
        texts={"variable": "name"},
        codes={
            "memory": ("memKind", MEMORY_KINDS),
            "operation": ("memoryOperationType", {0: "allocate", 1: "free"}),
        },
    ),
)
_FAULT: dict[str, Stored] = {"start_ns": "start", "address": "address"}
# Those of processors first.
page_faults = reader(
    frames.PAGE_FAULTS,
    Source(
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        {**_FAULT, "end_ns": "start", "device": -1, "faults": 1, "instruction": "originalFaultPc"},
        ids=OF_PROCESS,
    ),
    Source(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        {**_FAULT, **SPAN, "device": "deviceId", "faults": "numberOfPageFaults", "instruction": 0},
        ids=OF_PROCESS,
    ),
)
