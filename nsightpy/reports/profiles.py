"""Reports of Nsight Systems and of PyTorch's profiler: their frames, read on first use, and who
they say they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nsightpy import frames
from nsightpy.frames import EVERY_SCHEMA, GPU_FRAMES, Frame, Schema, blank, constant, distinct
from nsightpy.readers.activity import CALL_COLUMNS, EVENT_CLASS, LAUNCH_COLUMNS
from nsightpy.readers.export.nsys_export import ExportedReport, sqlite_of
from nsightpy.readers.nsys import events, host_tables, mpi_calls, nvtx
from nsightpy.readers.nsys.capture import Capture, capture
from nsightpy.readers.nsys.session import devices, diagnostics
from nsightpy.readers.nsys.tables import MPI_TABLES, NsysExport
from nsightpy.readers.tools.file_check import NSYS_SUFFIXES, has_suffix
from nsightpy.reports.system import SystemReport
from nsightpy.store.store import COUNTED, FrameSource, Imported

if TYPE_CHECKING:
    from nsightpy.readers.torch.trace import Trace

_Reader: TypeAlias = Callable[[NsysExport, Sequence[str]], Frame]


# Rows with a start that can be counted, by start; samples, by their time.
_EVENTS = partial(FrameSource, order="start_ns", counted=True)
_SAMPLES = partial(FrameSource, order="time_ns")
_CALLS = partial(_EVENTS, together=(*CALL_COLUMNS, *LAUNCH_COLUMNS, EVENT_CLASS))
_READERS: Mapping[str, tuple[_Reader, Callable[..., FrameSource]]] = {
    "kernels": (events.kernels, _EVENTS),
    "graph_launches": (events.graph_launches, _EVENTS),
    "graph_nodes": (events.graph_nodes, _EVENTS),
    "memory_operations": (events.memory_operations, _EVENTS),
    "api_calls": (events.api_calls, _CALLS),
    "nvtx_ranges": (nvtx.nvtx_ranges, _EVENTS),
    "synchronizations": (events.synchronizations, _EVENTS),
    "cuda_events": (events.cuda_events, _SAMPLES),
    "memory_usage": (events.memory_usage, _EVENTS),
    "library_calls": (host_tables.library_calls, _EVENTS),
    "page_faults": (events.page_faults, _EVENTS),
    "os_calls": (host_tables.os_calls, _EVENTS),
    "gpu_metrics": (host_tables.gpu_metrics, _SAMPLES),
    "cpu_samples": (host_tables.cpu_samples, _SAMPLES),
    "cpu_runs": (host_tables.cpu_runs, partial(FrameSource, order="start_ns")),
    # about the capture itself
    "devices": (lambda export, columns: devices(export).select(columns), FrameSource),
    "diagnostics": (diagnostics, _SAMPLES),
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
        pids = self._pids_of(*GPU_FRAMES) or self._pids_of("api_calls")
        pids = pids or nvtx.nvtx_pids(self.export) or self._pids_of("mpi_calls")
        return capture(self.export, self.frame("diagnostics"), sorted(pids))

    @property
    def _input_notes(self) -> Sequence[str]:
        return self._exported.notes

    def _pids_of(self, *names: str) -> set[int]:
        owners = (distinct(self.frame(name, ("pid",)).ints("pid"))[0] for name in names)
        return {pid for owner in owners for pid in owner.tolist()} - {0}

    def _source(self, name: str) -> FrameSource | None:
        if name == "collectives":
            return FrameSource(frames.COLLECTIVES, self._import_collectives)
        if name == "mpi_calls":
            return _EVENTS(frames.MPI_CALLS, self._import_mpi)
        if name not in _READERS:
            return None
        read, source = _READERS[name]
        return source(frames.SCHEMAS[name], partial(self._imported, read))

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


class TorchTrace(SystemReport):
    """One trace of PyTorch's profiler (.json or .json.gz).

    It has the frames of Nsight Systems reports, those that a trace cannot have being empty, and
    `operators` and `python_functions`. Times in ns from the first event on, sizes in bytes. Raises
    ReportError when the file cannot be read.
    """

    kind = "torch"
    growth = ((".gz", 10), ("", 1))

    _trace: Trace | None = None

    def close(self) -> None:
        """Let go of the frames; what is asked next reads them again."""
        super().close()
        self._trace = None

    def _read(self) -> Trace:
        """The trace, which is read as a whole, and its columns are kept."""
        if self._trace is None:
            from nsightpy.readers.torch.trace import read_trace

            self._trace = read_trace(self.path)
            for name in self._trace.frames:
                self.store.frame(self._source_of(name))
        return self._trace

    def _read_capture(self) -> Capture:
        capture = self._read().capture
        if self.store.folder is not None and not self.store.problem:
            self._trace = None  # its columns are mapped
        return capture

    def _source(self, name: str) -> FrameSource | None:
        return self._source_of(name) if name in self.capture.frames else None

    def _source_of(self, name: str) -> FrameSource:
        return FrameSource(EVERY_SCHEMA[name], partial(self._imported, EVERY_SCHEMA[name]))

    def _imported(self, schema: Schema, columns: Sequence[str]) -> Imported:
        whole = self._read().frames[schema.name]
        held = {c: whole[c] if c in whole else blank(schema[c], whole.rows) for c in columns}
        return Imported(Frame(held))
