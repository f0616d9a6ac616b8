"""Memory as frames: allocations (CUDA_GPU_MEMORY_USAGE_EVENTS), page faults of unified memory."""

from __future__ import annotations

from nsightpy import frames
from nsightpy.readers.nsys.events import MEMORY_KINDS, OF_PROCESS, PLACE, SPAN
from nsightpy.readers.nsys.table_frames import Source, reader

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
# Static variables are allocated when they are loaded.
memory_usage = reader(frames.MEMORY_USAGE, _USAGE)
