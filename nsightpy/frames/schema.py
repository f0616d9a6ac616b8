"""The schema of every frame of a report: column -> kind, unit, meaning, value for "not known".

Those of work on the GPU: gpu_schema.py. Those of the host: host_schema.py.
"""

from __future__ import annotations

from nsightpy.frames import gpu_schema as gpu, host_schema as host
from nsightpy.frames.columns import Schema, int_column as _int, label_column as _label

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
        *(gpu.KERNELS, gpu.GRAPH_LAUNCHES, host.GRAPH_NODES, gpu.MEMORY_OPERATIONS, host.API_CALLS),
        *(host.NVTX_RANGES, gpu.SYNCHRONIZATIONS, gpu.CUDA_EVENTS, gpu.MEMORY_USAGE),
        *(host.MPI_CALLS, host.LIBRARY_CALLS, gpu.PAGE_FAULTS, host.OS_CALLS),
        *(host.CPU_SAMPLES, host.CPU_RUNS, gpu.GPU_METRICS, gpu.NIC_METRICS),
        *(PROCESSES, DEVICES, DIAGNOSTICS),
        *(host.OPERATORS, host.PYTHON_FUNCTIONS),
    )
}
# With what is derived from other frames.
EVERY_SCHEMA = {**SCHEMAS, gpu.COLLECTIVES.name: gpu.COLLECTIVES}
