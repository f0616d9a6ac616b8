"""The frames of reports of whole systems as pandas DataFrames: of one report, or of many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from nsightpy.frames import Frame

if TYPE_CHECKING:
    import pandas as pd


class SystemFrames(ABC):
    """A property for each frame, with the columns of `nsightpy.frames`."""

    @abstractmethod
    def frame(self, name: str) -> Frame:
        """A frame in nsightpy's own columnar form."""

    @property
    def kernels(self) -> pd.DataFrame:
        """GPU kernels, one row per execution (schema: frames.KERNELS)."""
        return self.frame("kernels").to_pandas()

    @property
    def graph_launches(self) -> pd.DataFrame:
        """CUDA graph launches traced as a whole (schema: frames.GRAPH_LAUNCHES)."""
        return self.frame("graph_launches").to_pandas()

    @property
    def graph_nodes(self) -> pd.DataFrame:
        """Nodes of CUDA graphs as they were created (schema: frames.GRAPH_NODES)."""
        return self.frame("graph_nodes").to_pandas()

    @property
    def memory_operations(self) -> pd.DataFrame:
        """Copies and memory sets (schema: frames.MEMORY_OPERATIONS)."""
        return self.frame("memory_operations").to_pandas()

    @property
    def api_calls(self) -> pd.DataFrame:
        """CUDA API calls (schema: frames.API_CALLS)."""
        return self.frame("api_calls").to_pandas()

    @property
    def nvtx_ranges(self) -> pd.DataFrame:
        """NVTX ranges (schema: frames.NVTX_RANGES)."""
        return self.frame("nvtx_ranges").to_pandas()

    @property
    def synchronizations(self) -> pd.DataFrame:
        """Threads and streams that wait (schema: frames.SYNCHRONIZATIONS)."""
        return self.frame("synchronizations").to_pandas()

    @property
    def cuda_events(self) -> pd.DataFrame:
        """CUDA events recorded on streams (schema: frames.CUDA_EVENTS)."""
        return self.frame("cuda_events").to_pandas()

    @property
    def memory_usage(self) -> pd.DataFrame:
        """Allocations and frees of memory (schema: frames.MEMORY_USAGE)."""
        return self.frame("memory_usage").to_pandas()

    @property
    def collectives(self) -> pd.DataFrame:
        """NCCL operations with the arguments of their calls (schema: frames.COLLECTIVES)."""
        return self.frame("collectives").to_pandas()

    @property
    def mpi_calls(self) -> pd.DataFrame:
        """MPI calls (schema: frames.MPI_CALLS)."""
        return self.frame("mpi_calls").to_pandas()

    @property
    def library_calls(self) -> pd.DataFrame:
        """cuBLAS and cuDNN calls (schema: frames.LIBRARY_CALLS)."""
        return self.frame("library_calls").to_pandas()

    @property
    def page_faults(self) -> pd.DataFrame:
        """Page faults of unified memory (schema: frames.PAGE_FAULTS)."""
        return self.frame("page_faults").to_pandas()

    @property
    def os_calls(self) -> pd.DataFrame:
        """Calls into the operating system's libraries (schema: frames.OS_CALLS)."""
        return self.frame("os_calls").to_pandas()

    @property
    def cpu_samples(self) -> pd.DataFrame:
        """CPU samples of threads (schema: frames.CPU_SAMPLES)."""
        return self.frame("cpu_samples").to_pandas()

    @property
    def gpu_metrics(self) -> pd.DataFrame:
        """Sampled GPU metrics (schema: frames.GPU_METRICS)."""
        return self.frame("gpu_metrics").to_pandas()

    @property
    def operators(self) -> pd.DataFrame:
        """Operators of PyTorch on the host (schema: frames.OPERATORS)."""
        return self.frame("operators").to_pandas()

    @property
    def python_functions(self) -> pd.DataFrame:
        """Python functions of a PyTorch trace (schema: frames.PYTHON_FUNCTIONS)."""
        return self.frame("python_functions").to_pandas()

    @property
    def processes(self) -> pd.DataFrame:
        """Processes with activity, and their ranks (schema: frames.PROCESSES)."""
        return self.frame("processes").to_pandas()

    @property
    def devices(self) -> pd.DataFrame:
        """GPUs as the processes see them (schema: frames.DEVICES)."""
        return self.frame("devices").to_pandas()

    @property
    def diagnostics(self) -> pd.DataFrame:
        """What the profiler said during the capture (schema: frames.DIAGNOSTICS)."""
        return self.frame("diagnostics").to_pandas()
