"""Memory as frames: allocations (CUDA_GPU_MEMORY_USAGE_EVENTS), page faults of unified memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.nsys.events import MEMORY_KINDS, OF_PROCESS, PLACE, SPAN
from nsightpy.readers.nsys.table_frames import Source, read, reader
from nsightpy.readers.nsys.tables import NsysExport

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
    texts={"variable": "name"},
    codes={
        "memory": ("memKind", MEMORY_KINDS),
        "operation": ("memoryOperationType", _OPERATIONS),
    },
)


# Those of processors first.
page_faults = reader(
    frames.PAGE_FAULTS,
    Source(
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        {
            "start_ns": "start",
            "end_ns": "start",
            "address": "address",
            "device": -1,
            "faults": 1,
            "instruction": "originalFaultPc",
        },
        ids=OF_PROCESS,
    ),
    Source(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        {
            **SPAN,
            "address": "address",
            "device": "deviceId",
            "faults": "numberOfPageFaults",
            "instruction": 0,
        },
        ids=OF_PROCESS,
    ),
)


def memory_usage(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of allocations and frees; static variables are allocated when they are loaded."""
    source = _USAGE
    if export.has(MEMORY_USAGE) and not _USAGE.has(export, "bytes"):
        export.note(f"its table {MEMORY_USAGE} has no column bytes and is left out.")
        source = replace(source, table="")
    return read(export, frames.MEMORY_USAGE, source, columns)
