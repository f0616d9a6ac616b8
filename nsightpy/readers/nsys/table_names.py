"""The names of the tables of an export."""

from __future__ import annotations

# How the tables of an export begin; `nsys export --tables` may leave any of them out.
EXPORT_TABLES = (
    *("StringIds", "META_DATA_", "EXPORT_META_DATA", "TARGET_INFO_", "ANALYSIS_", "ENUM_"),
    *("CUPTI_ACTIVITY_", "CUDA_", "CUDNN_", "CUBLAS_", "NVTX_", "MPI_", "UCX_", "NVSHMEM_"),
    *("OSRT_", "SCHED_EVENTS", "COMPOSITE_EVENTS", "GENERIC_EVENT", "GPU_", "DIAGNOSTIC_EVENT"),
    *("ThreadNames", "ProcessStreams", "PROFILER_OVERHEAD", "NET_", "NIC_"),
)
# The tables of events, in the order in which commands need them.
EVENT_TABLES = (
    *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "GRAPH_TRACE", "MEMCPY", "MEMSET")),
    *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("RUNTIME", "SYNCHRONIZATION", "CUDA_EVENT")),
    *("NVTX_EVENTS", "CUDA_GPU_MEMORY_USAGE_EVENTS", "OSRT_API", "GPU_METRICS", "StringIds"),
)
# Those of work on the GPU.
GPU_TABLES = EVENT_TABLES[:4]
MPI_TABLES = (
    *("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"),
)
