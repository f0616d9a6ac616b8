"""One report file: its frames, read on first use, and who it says it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from nsightpy import frames
from nsightpy.frames import GPU_FRAMES, Frame, constant, distinct
from nsightpy.readers.export.nsys_export import ExportedReport, sqlite_of
from nsightpy.readers.host_calls import CALL_COLUMNS, EVENT_CLASS, LAUNCH_COLUMNS
from nsightpy.readers.nsys import events, host_tables, metrics, mpi_calls, nvtx
from nsightpy.readers.nsys.capture import Capture, capture
from nsightpy.readers.nsys.session import (
    devices,
    diagnostics,
)
from nsightpy.readers.nsys.tables import MPI_TABLES, NsysExport
from nsightpy.readers.tools.file_check import has_suffix
from nsightpy.reports.system import SystemReport
from nsightpy.store.store import COUNTED, FrameSource, Imported

NSYS_SUFFIXES = (".nsys-rep", ".qdrep")
SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")

_Reader: TypeAlias = Callable[[NsysExport, Sequence[str]], Frame]


@dataclass(frozen=True, slots=True)
class _Frame:
    """How a frame is read; the column that its rows are in the order of, whether they are counted;
    what is read in one pass."""

    read: _Reader
    order: str | None = "start_ns"
    counted: bool = True
    together: tuple[str, ...] = ()


def _about(read: Callable[[NsysExport], Frame]) -> _Frame:
    """A small frame about the capture itself."""
    return _Frame(lambda export, columns: read(export).select(columns), None, counted=False)


_READERS: Mapping[str, _Frame] = {
    "kernels": _Frame(events.kernels),
    "graph_launches": _Frame(events.graph_launches),
    "graph_nodes": _Frame(events.graph_nodes),
    "memory_operations": _Frame(events.memory_operations),
    "api_calls": _Frame(events.api_calls, together=(*CALL_COLUMNS, *LAUNCH_COLUMNS, EVENT_CLASS)),
    "nvtx_ranges": _Frame(nvtx.nvtx_ranges),
    "synchronizations": _Frame(events.synchronizations),
    "cuda_events": _Frame(events.cuda_events, "time_ns", counted=False),
    "memory_usage": _Frame(events.memory_usage),
    "mpi_calls": _Frame(mpi_calls.mpi_calls),
    "library_calls": _Frame(host_tables.library_calls),
    "page_faults": _Frame(events.page_faults),
    "os_calls": _Frame(host_tables.os_calls),
    "gpu_metrics": _Frame(metrics.gpu_metrics, "time_ns", counted=False),
    "nic_metrics": _Frame(metrics.nic_metrics, counted=False),
    "cpu_samples": _Frame(host_tables.cpu_samples, "time_ns", counted=False),
    "cpu_runs": _Frame(host_tables.cpu_runs, counted=False),
    "devices": _about(devices),
    "diagnostics": _about(diagnostics),
}


class NsysReport(SystemReport):
    """One Nsight Systems report (.nsys-rep, .qdrep, or its .sqlite export).

    The frames are pandas DataFrames with the columns of `nsightpy.frames`; times in ns, sizes in
    bytes. Raises ReportError when a file cannot be read.
    """

    kind = "nsys"
    growth = ((".nsys-rep", 8), (".qdrep", 8), ("", 2))

    def close(self) -> None:
        """Let go of the file and of what was read; what is asked next opens it again."""
        super().close()
        if "export" in self.__dict__:
            self.export.file.close()
            del self.export

    @cached_property
    def _exported(self) -> ExportedReport:
        """The SQLite export behind the report; made with nsys when the report is binary."""
        if not has_suffix(self.path, NSYS_SUFFIXES):
            return ExportedReport(self.path)
        return sqlite_of(self.path, use_cache=self.use_cache, progress=self._progress)

    @property
    def _stored_as(self) -> Path:
        return self._exported.path

    @cached_property
    def export(self) -> NsysExport:
        """The tables of the export, for what was not imported yet."""
        return NsysExport(self._exported.path, self.threads)

    def _read_capture(self) -> Capture:
        return capture(self.export, self.frame("diagnostics"), self._cuda_pids())

    @property
    def _input_notes(self) -> Sequence[str]:
        return self._exported.notes

    def _cuda_pids(self) -> list[int]:
        """The processes with GPU work; without any, with CUDA calls."""
        for names in (GPU_FRAMES, ("api_calls",)):
            owners = (distinct(self.frame(name, ("pid",)).ints("pid"))[0] for name in names)
            if pids := {pid for owner in owners for pid in owner.tolist()} - {0}:
                return sorted(pids)
        return []

    def _source(self, name: str) -> FrameSource | None:
        if name == "collectives":
            return FrameSource(frames.COLLECTIVES, self._import_collectives)
        if name not in _READERS:
            return None
        read = _READERS[name]
        if name == "mpi_calls":
            return FrameSource(frames.MPI_CALLS, self._import_mpi, read.order, read.counted)
        reading = partial(self._imported, read.read)
        return FrameSource(frames.SCHEMAS[name], reading, read.order, read.counted, read.together)

    def _imported(self, read: _Reader, columns: Sequence[str]) -> Imported:
        self.export.noted()
        return Imported(read(self.export, columns), self.export.noted())

    def _import_collectives(self, columns: Sequence[str]) -> Imported:
        from nsightpy.readers.nccl.collectives import collectives

        return Imported(collectives(self.export, self.frame))

    def _import_mpi(self, columns: Sequence[str]) -> Imported:
        """MPI calls, of their own tables or as the NVTX ranges that stand for them."""
        if any(map(self.export.holds_rows, MPI_TABLES)):  # some exports hold empty ones
            return self._imported(mpi_calls.mpi_calls, columns)
        calls = Frame.empty(frames.MPI_CALLS)
        if mpi_calls.MPI_DOMAIN in nvtx.domain_names(self.export).values():
            calls = mpi_calls.mpi_ranges(self.frame("nvtx_ranges", mpi_calls.MPI_COLUMNS))
        return Imported(Frame({**calls, COUNTED: constant(1, calls.rows)}))
