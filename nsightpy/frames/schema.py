"""The schema of every frame of a report: column -> kind, unit, meaning, value for "not known".

Those of work on the GPU: gpu_schema.py. Those of the host: host_schema.py.
"""

from __future__ import annotations

from nsightpy.frames.columns import Schema, int_column as _int, label_column as _label
from nsightpy.frames.gpu_schema import (
    COLLECTIVES,
    CUDA_EVENTS,
    GPU_METRICS,
    GRAPH_LAUNCHES,
    KERNELS,
    MEMORY_OPERATIONS,
    MEMORY_USAGE,
    NIC_METRICS,
    PAGE_FAULTS,
    SYNCHRONIZATIONS,
)
from nsightpy.frames.host_schema import (
    API_CALLS,
    CPU_RUNS,
    CPU_SAMPLES,
    GRAPH_NODES,
    LIBRARY_CALLS,
    MPI_CALLS,
    NVTX_RANGES,
    OPERATORS,
    OS_CALLS,
    PYTHON_FUNCTIONS,
)

PROCESSES = Schema(
    "processes",
    "processes with GPU, CUDA or NVTX activity",
    (
        _int("pid", "", "process"),
        _label("name", "executable, where the export knows it"),
        _int("rank", "", "rank of the process; -1 where unknown", -1),
        _label("rank_source", "the evidence the rank rests on"),
    ),
)
DEVICES = Schema(
    "devices",
    "GPUs as the processes see them",
    (
        _int("pid", "", "process that sees the device; 0 = every process"),
        _int("device", "", "CUDA device ordinal inside the process"),
        _int("gpu_id", "", "GPU index on the host", -1),
        _label("name", "product name"),
        _label("uuid", "identity of the GPU; empty in old exports"),
        _label("bus", "PCI bus location"),
        _int("sm_count", "", "streaming multiprocessors"),
        _int("memory_bytes", "bytes", "device memory"),
        _int("memory_bytes_per_s", "bytes/s", "memory bandwidth"),
        _int("clock_hz", "Hz", "maximum clock"),
        _int("compute_major", "", "compute capability"),
        _int("compute_minor", "", "compute capability"),
    ),
)
DIAGNOSTICS = Schema(
    "diagnostics",
    "what the profiler itself said during the capture",
    (
        _int("time_ns", "ns", "time; may lie before the capture"),
        _int("pid", "", "process it is about; 0 = the whole capture"),
        _label("severity", "info, warning, error or verbose"),
        _label("source", "injection, daemon or analysis"),
        _label("text", "message"),
    ),
)
SCHEMAS = {
    schema.name: schema
    for schema in (
        KERNELS,
        GRAPH_LAUNCHES,
        GRAPH_NODES,
        MEMORY_OPERATIONS,
        API_CALLS,
        NVTX_RANGES,
        SYNCHRONIZATIONS,
        CUDA_EVENTS,
        MEMORY_USAGE,
        MPI_CALLS,
        LIBRARY_CALLS,
        PAGE_FAULTS,
        OS_CALLS,
        CPU_SAMPLES,
        CPU_RUNS,
        GPU_METRICS,
        NIC_METRICS,
        PROCESSES,
        DEVICES,
        DIAGNOSTICS,
        OPERATORS,
        PYTHON_FUNCTIONS,
    )
}
# With what is derived from other frames.
EVERY_SCHEMA = {**SCHEMAS, COLLECTIVES.name: COLLECTIVES}
