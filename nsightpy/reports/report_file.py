"""What every report is: a file that another process can read, with frames as DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nsightpy import frames
from nsightpy.frames import Schema
from nsightpy.readers.tools.file_check import file_size, has_suffix

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


class OneFile:
    """One report. To another process only its path and settings travel."""

    # by how much more memory than the file reading takes, by suffix; some are compressed
    growth: ClassVar[tuple[tuple[str, int], ...]]
    threads: int | None = None

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated from the size of the file."""
        factor = next(factor for suffix, factor in self.growth if has_suffix(self.path, (suffix,)))
        return file_size(self.path) * factor

    @property
    def facts(self) -> dict[str, Any]:
        """What another process need not open the file for, by attribute."""
        return {}

    def close(self) -> None:
        """Let go of what was read, where that can be read again."""


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
