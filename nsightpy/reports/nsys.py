"""One report file: its frames, read on first use, and who it says it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from nsightpy import frames
from nsightpy.frames import GPU_FRAMES, Frame, constant, distinct
from nsightpy.readers.export.nsys_export import ExportedReport, sqlite_of
from nsightpy.readers.host_calls import CALL_COLUMNS, EVENT_CLASS, LAUNCH_COLUMNS
from nsightpy.readers.nsys import events, host_tables, memory, metrics, mpi_calls, nvtx
from nsightpy.readers.nsys.capture import Capture, ThreadNames, capture
from nsightpy.readers.nsys.capture_start import CaptureStart
from nsightpy.readers.nsys.identity import Evidence, evidence
from nsightpy.readers.nsys.session import (
    Session,
    devices,
    diagnostics,
    program_of,
)
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.tools.file_check import file_size, has_suffix
from nsightpy.reports.system import SystemReport
from nsightpy.results import Note
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
    "memory_usage": _Frame(memory.memory_usage),
    "mpi_calls": _Frame(mpi_calls.mpi_calls),
    "library_calls": _Frame(host_tables.library_calls),
    "page_faults": _Frame(memory.page_faults),
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

    @cached_property
    def capture(self) -> Capture:
        """What the export says of its capture."""
        return self.store.facts(
            Capture,
            lambda: capture(self.export, self.frame("diagnostics"), self._cuda_pids),
        )

    @cached_property
    def session(self) -> Session:
        programs = frozenset(map(program_of, self.capture.processes.values())) - {""}
        return replace(self.capture.session, programs=programs)

    @cached_property
    def pids(self) -> list[int]:
        return self._cuda_pids or self.capture.host_pids

    @cached_property
    def _cuda_pids(self) -> list[int]:
        """The processes with GPU work; without any, with CUDA calls."""
        for names in (GPU_FRAMES, ("api_calls",)):
            owners = (distinct(self.frame(name, ("pid",)).ints("pid"))[0] for name in names)
            if pids := {pid for owner in owners for pid in owner.tolist()} - {0}:
                return sorted(pids)
        return []

    @cached_property
    def evidence(self) -> list[Evidence]:
        recorded = (self.capture.ranks, self.capture.launched)
        return evidence(*recorded, self.path.name, self.pids, self.rank_regex)

    def _read_notes(self) -> list[Note]:
        # which table says something first is chance
        problem = [self.store.problem] if self.store.problem else []
        notes = (*problem, *sorted(self.store.notes))
        return [*map(Note, self._exported.notes), *self.capture.notes, *map(Note, notes)]

    @property
    def capture_start(self) -> CaptureStart:
        """What began the capture, and how late that was."""
        return self.capture.start

    @cached_property
    def tool_version(self) -> str:
        """The nsys that captured, else the one that exported; empty where neither is known."""
        return self.capture.tool_version or self.session.export_version

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated from its size; binary is compressed."""
        return file_size(self.path) * (8 if has_suffix(self.path, NSYS_SUFFIXES) else 2)

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
        if mpi_calls.has_mpi(self.export):
            return self._imported(mpi_calls.mpi_calls, columns)
        calls = Frame.empty(frames.MPI_CALLS)
        if mpi_calls.has_mpi_ranges(self.export):
            calls = mpi_calls.mpi_ranges(self.frame("nvtx_ranges", mpi_calls.MPI_COLUMNS))
        return Imported(Frame({**calls, COUNTED: constant(1, calls.rows)}))

    @property
    def threads_named(self) -> ThreadNames:
        """Priority and name of threads by process and thread."""
        return self.capture.threads

    def _process_names(self) -> Mapping[int, str]:
        return self.capture.processes
