"""Nsight Systems event tables as frames: GPU work, the API calls that launched it, what orders it.

Schema facts: the Nsight Systems User Guide, "SQLite schema reference". The numbers of
ENUM_CUPTI_SYNC_TYPE changed their meaning between exporters, so the kind of a synchronization is
read from what it names: a stream and an event make a stream wait, and so on.
"""

from __future__ import annotations

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
PLAIN_NAME = Derived(("name",), ("name",), _plain)
_SHAPE: dict[str, Stored] = {
    f"{shape}_{axis}": f"{shape}{axis.upper()}" for shape in ("grid", "block") for axis in "xyz"
}
_GREEN: dict[str, Stored] = {"green_context": "greenContextId"}
_KERNELS = Source(
    KERNEL,
    {
        **SPAN,
        **PLACE,
        **_SHAPE,
        **_GREEN,
        "registers_per_thread": "registersPerThread",
        "static_shared_bytes": "staticSharedMemory",
        "dynamic_shared_bytes": "dynamicSharedMemory",
        "local_bytes_per_thread": "localMemoryPerThread",
        "graph_node_id": "graphNodeId",
    },
    ids=OF_PROCESS,
    names={
        "name": ("demangledName", "mangledName", "shortName"),
        "base_name": ("shortName", "demangledName", "mangledName"),
        "mangled_name": "mangledName",
    },
    essential=("device", "stream", "name", *_SHAPE),
)
_GRAPH_LAUNCHES = Source(
    GRAPH_TRACE,
    {**SPAN, **PLACE, "graph_id": "graphId", "graph_exec_id": "graphExecId"},
    ids=OF_PROCESS,
)
_API_CALLS = Source(
    RUNTIME,
    {
        **SPAN,
        "correlation_id": "correlationId",
        "return_value": "returnValue",
        "event_class": "eventClass",
    },
    ids=OF_THREAD,
    names={"name": "nameId"},
    derived=(PLAIN_NAME,),
)
_OPERATION: dict[str, Stored] = {
    **SPAN,
    **PLACE,
    **_GREEN,
    "bytes": "bytes",
    "graph_node_id": "graphNodeId",
    "address": "virtualAddress",
}
_COPIES = Source(
    MEMCPY,
    _OPERATION,
    ids=OF_PROCESS,
    codes={
        "operation": ("copyKind", COPY_OPERATIONS),
        "source_memory": ("srcKind", MEMORY_KINDS),
        "target_memory": ("dstKind", MEMORY_KINDS),
    },
)
_SETS = Source(
    MEMSET,
    _OPERATION,
    ids=OF_PROCESS,
    codes={"target_memory": ("memKind", MEMORY_KINDS)},
    same={"operation": "[CUDA memset]", "source_memory": ""},
)

# Up to schema 3.7.2 CUDA_GRAPH_EVENTS held these events; it is known by its columns.
_NODE_COLUMNS: dict[str, Stored] = {**SPAN, "graph_node_id": "graphNodeId"}
_NODE_COLUMNS["original_node_id"] = "originalGraphNodeId"
_NODE_TABLES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")


kernels = reader(frames.KERNELS, _KERNELS)
graph_launches = reader(frames.GRAPH_LAUNCHES, _GRAPH_LAUNCHES)
memory_operations = reader(frames.MEMORY_OPERATIONS, _COPIES, _SETS)
api_calls = reader(frames.API_CALLS, _API_CALLS)


def graph_nodes(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of created graph nodes; empty where none were recorded."""
    held = (name for name in _NODE_TABLES if export.table(name, "graphNodeId") is not None)
    source = Source(next(held, ""), _NODE_COLUMNS, ids=OF_THREAD)
    return reader(frames.GRAPH_NODES, source)(export, columns)


SYNCHRONIZATION = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
CUDA_EVENT = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
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


_SYNCHRONIZATIONS = Source(
    SYNCHRONIZATION,
    {**SPAN, **PLACE, "event_id": "eventId", "event_sync_id": "eventSyncId"},
    ids=OF_PROCESS,
    derived=(
        *(Derived((n,), (n,), partial(_known_id, name=n)) for n in ("stream", "event_id")),
        Derived(("kind",), ("stream", "event_id"), _kind),
    ),
)
_CUDA_EVENTS = Source(
    CUDA_EVENT,
    {**PLACE, "time_ns": "timestamp", "event_id": "eventId", "event_sync_id": "eventSyncId"},
    ids=OF_PROCESS,
)
synchronizations = reader(frames.SYNCHRONIZATIONS, _SYNCHRONIZATIONS)
cuda_events = reader(frames.CUDA_EVENTS, _CUDA_EVENTS)


MEMORY_USAGE = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_OPERATIONS = {0: "allocate", 1: "free"}
_NOT_RECORDED = ("tid", "allocated_bytes", "reserved_bytes")
_USAGE = Source(
    MEMORY_USAGE,
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
        "operation": ("memoryOperationType", _OPERATIONS),
    },
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
# Static variables are allocated when they are loaded.
memory_usage = reader(frames.MEMORY_USAGE, _USAGE)
