"""The frames of reports of whole systems as pandas DataFrames: of one report, or of many."""

from __future__ import annotations

from abc import ABC, abstractmethod

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.reports.presentation import DataFrameOf


class SystemFrames(ABC):
    """A property for each frame, with the columns of `nsightpy.frames`."""

    @abstractmethod
    def frame(self, name: str) -> Frame:
        """A frame in nsightpy's own columnar form."""

    kernels = DataFrameOf(frames.KERNELS)
    graph_launches = DataFrameOf(frames.GRAPH_LAUNCHES)
    graph_nodes = DataFrameOf(frames.GRAPH_NODES)
    memory_operations = DataFrameOf(frames.MEMORY_OPERATIONS)
    api_calls = DataFrameOf(frames.API_CALLS)
    nvtx_ranges = DataFrameOf(frames.NVTX_RANGES)
    synchronizations = DataFrameOf(frames.SYNCHRONIZATIONS)
    cuda_events = DataFrameOf(frames.CUDA_EVENTS)
    memory_usage = DataFrameOf(frames.MEMORY_USAGE)
    collectives = DataFrameOf(frames.COLLECTIVES)
    mpi_calls = DataFrameOf(frames.MPI_CALLS)
    library_calls = DataFrameOf(frames.LIBRARY_CALLS)
    page_faults = DataFrameOf(frames.PAGE_FAULTS)
    os_calls = DataFrameOf(frames.OS_CALLS)
    cpu_samples = DataFrameOf(frames.CPU_SAMPLES)
    cpu_runs = DataFrameOf(frames.CPU_RUNS)
    gpu_metrics = DataFrameOf(frames.GPU_METRICS)
    nic_metrics = DataFrameOf(frames.NIC_METRICS)
    operators = DataFrameOf(frames.OPERATORS)
    python_functions = DataFrameOf(frames.PYTHON_FUNCTIONS)
    processes = DataFrameOf(frames.PROCESSES)
    devices = DataFrameOf(frames.DEVICES)
    diagnostics = DataFrameOf(frames.DIAGNOSTICS)
