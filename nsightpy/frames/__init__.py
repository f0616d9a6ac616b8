"""Frames: columns by name, and the schema of each public frame."""

from __future__ import annotations

from nsightpy.frames.columns import Column as Column, Schema as Schema
from nsightpy.frames.file_schemas import (
    ALLOCATOR_EVENTS as ALLOCATOR_EVENTS,
    LAUNCHES as LAUNCHES,
    MEMORY_BLOCKS as MEMORY_BLOCKS,
    MEMORY_SEGMENTS as MEMORY_SEGMENTS,
    METRICS as METRICS,
    NCU_SCHEMAS as NCU_SCHEMAS,
    RULES as RULES,
    SNAPSHOT_RANGES as SNAPSHOT_RANGES,
    SNAPSHOT_SCHEMAS as SNAPSHOT_SCHEMAS,
    STACK_FRAMES as STACK_FRAMES,
)
from nsightpy.frames.frame import (
    ColumnData as ColumnData,
    Floats as Floats,
    Frame as Frame,
    Ints as Ints,
    Labels as Labels,
    blank as blank,
    constant as constant,
    distinct as distinct,
    distinct_pairs as distinct_pairs,
    is_constant as is_constant,
    joined as joined,
    sort_key as sort_key,
    taken as taken,
)
from nsightpy.frames.order import (
    last_before as last_before,
    positions as positions,
    time_order as time_order,
)
from nsightpy.frames.schema import (
    API_CALLS as API_CALLS,
    COLLECTIVES as COLLECTIVES,
    CPU_RUNS as CPU_RUNS,
    CPU_SAMPLES as CPU_SAMPLES,
    CUDA_EVENTS as CUDA_EVENTS,
    DEVICES as DEVICES,
    DIAGNOSTICS as DIAGNOSTICS,
    EVERY_SCHEMA as EVERY_SCHEMA,
    GPU_FRAMES as GPU_FRAMES,
    GPU_METRICS as GPU_METRICS,
    GRAPH_LAUNCHES as GRAPH_LAUNCHES,
    GRAPH_NODES as GRAPH_NODES,
    KERNELS as KERNELS,
    LIBRARY_CALLS as LIBRARY_CALLS,
    MEMORY_OPERATIONS as MEMORY_OPERATIONS,
    MEMORY_USAGE as MEMORY_USAGE,
    MPI_CALLS as MPI_CALLS,
    NIC_METRICS as NIC_METRICS,
    NVTX_RANGES as NVTX_RANGES,
    OPERATORS as OPERATORS,
    OS_CALLS as OS_CALLS,
    PAGE_FAULTS as PAGE_FAULTS,
    PROCESSES as PROCESSES,
    PYTHON_FUNCTIONS as PYTHON_FUNCTIONS,
    SCHEMAS as SCHEMAS,
    SYNCHRONIZATIONS as SYNCHRONIZATIONS,
)
