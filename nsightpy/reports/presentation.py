"""What users of the library see of a report: its frames as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsightpy import frames
from nsightpy.frames import Schema

if TYPE_CHECKING:
    import pandas as pd


class DataFrameOf(property):
    """A frame of a report as a property: a pandas DataFrame with the columns of its schema."""

    def __init__(self, schema: Schema) -> None:
        def read(report: Any) -> Any:
            return report.frame(schema.name).to_pandas()

        meaning = f"{schema.meaning[:1].upper()}{schema.meaning[1:]}"
        read.__doc__ = f"{meaning} (schema: frames.{schema.name.upper()})."
        super().__init__(read)

    if TYPE_CHECKING:

        def __get__(  # type: ignore[override]
            self, report: Any, owner: type | None = None, /
        ) -> pd.DataFrame: ...


class SystemFrames:
    """A property for each frame of a report of a whole system."""

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
