"""One report file: its frames, read on first use, and who it says it is."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeAlias

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.extent import Extent
from nsightpy.readers.host_calls import HostCalls
from nsightpy.readers.nsys import (
    events,
    host_tables,
    memory,
    metrics,
    mpi_calls,
    nvtx,
    parts,
    streams,
    windows,
)
from nsightpy.readers.nsys.capture_notes import capture_notes
from nsightpy.readers.nsys.capture_start import CaptureStart, capture_start
from nsightpy.readers.nsys.extent import HOST_TABLES, bounds, extent_of
from nsightpy.readers.nsys.host_calls import NsysCalls
from nsightpy.readers.nsys.identity import Evidence, evidence
from nsightpy.readers.nsys.session import (
    Session,
    active_pids,
    capture_version,
    devices,
    diagnostics,
    process_names,
    program_of,
    session,
)
from nsightpy.readers.nsys.tables import GPU_TABLES, NsysExport
from nsightpy.readers.nsys.threads import ThreadNames, thread_names
from nsightpy.readers.tools.file_check import file_size, has_suffix
from nsightpy.reports.presentation import facts_table
from nsightpy.reports.system import SystemReport, Wanted
from nsightpy.side_by_side import shared_property

NSYS_SUFFIXES = (".nsys-rep", ".qdrep")
SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")

# Frames of so many rows in a table are not held as a whole where their rows are only passed on.
LARGE_ROWS = 1 << 20

_Reader: TypeAlias = Callable[[NsysExport, Sequence[str]], Frame]
# How each frame is read, and the column of times that its rows are in the order of.
_READERS: Mapping[str, tuple[_Reader, str]] = {
    "kernels": (events.kernels, "start_ns"),
    "graph_launches": (events.graph_launches, "start_ns"),
    "graph_nodes": (events.graph_nodes, "start_ns"),
    "memory_operations": (events.memory_operations, "start_ns"),
    "api_calls": (events.api_calls, "start_ns"),
    "nvtx_ranges": (nvtx.nvtx_ranges, "start_ns"),
    "synchronizations": (streams.synchronizations, "start_ns"),
    "cuda_events": (streams.cuda_events, "time_ns"),
    "memory_usage": (memory.memory_usage, "start_ns"),
    "mpi_calls": (mpi_calls.mpi_calls, "start_ns"),
    "library_calls": (host_tables.library_calls, "start_ns"),
    "page_faults": (memory.page_faults, "start_ns"),
    "os_calls": (host_tables.os_calls, "start_ns"),
    "gpu_metrics": (metrics.gpu_metrics, "time_ns"),
    "nic_metrics": (metrics.nic_metrics, "start_ns"),
    "cpu_samples": (host_tables.cpu_samples, "time_ns"),
    "cpu_runs": (host_tables.cpu_runs, "start_ns"),
}
# Small frames about the capture itself, kept as long as the report.
_FACTS: Mapping[str, Callable[[NsysExport], Frame]] = {
    "devices": devices,
    "diagnostics": diagnostics,
}


class NsysReport(SystemReport):
    """One Nsight Systems report (.nsys-rep, .qdrep, or its .sqlite export).

    The frames are pandas DataFrames with the columns of `nsightpy.frames`; times in ns, sizes in
    bytes. Raises ReportError when a file cannot be read.
    """

    kind = "nsys"
    _export_notes: tuple[str, ...] = ()

    def _prepare(self) -> None:
        importlib.import_module("sqlalchemy.dialects.sqlite")

    def close(self) -> None:
        """Let go of the file and of what was read; what is asked next opens it again."""
        self._owned.release()
        if "export" in self.__dict__:
            self.export.file.close()

    @shared_property
    def export(self) -> NsysExport:
        """The SQLite export behind the report; made with nsys when the report is binary."""
        if not has_suffix(self.path, NSYS_SUFFIXES):
            return NsysExport(self.path, self.threads)
        from nsightpy.readers.export.nsys_export import sqlite_of

        made = sqlite_of(self.path, use_cache=self.use_cache, progress=self._progress)
        self._export_notes = made.notes
        return NsysExport(made.path, self.threads)

    def _read_session(self) -> Session:
        names = self._names_of_processes.values()
        programs = frozenset(map(program_of, names)) - {""}
        return replace(session(self.export), programs=programs)

    def _read_pids(self) -> list[int]:
        return active_pids(self.export)

    def _read_evidence(self) -> list[Evidence]:
        return evidence(self.export, self.path.name, self.pids, self.rank_regex)

    def _read_notes(self) -> list[str]:
        # tables are read side by side: which of them says something first is chance
        return [*self._export_notes, *self._capture_notes, *sorted(self.export.notes)]

    @cached_property
    def calls(self) -> HostCalls:
        """The API calls, a few columns at a time."""
        return NsysCalls(self.export, partial(self.frame, "api_calls"))

    @property
    def extent(self) -> Extent:
        """Where and when the GPU work was, without reading it."""
        return self.export.once(extent_of)

    def bounds(self, *, gpu: bool) -> tuple[int, int] | None:
        """First start and last end of the host's events, and of the GPU's; None without any."""
        return bounds(self.export, (*GPU_TABLES, *HOST_TABLES) if gpu else HOST_TABLES)

    @property
    def has_memory_usage(self) -> bool:
        """Whether allocations were recorded."""
        return self.export.holds_rows(memory.MEMORY_USAGE)

    @cached_property
    def capture_start(self) -> CaptureStart:
        """What began the capture, and how late that was."""
        return capture_start(self.export, self.frame("diagnostics"))

    @cached_property
    def tool_version(self) -> str:
        """The nsys that captured, else the one that exported; empty where neither is known."""
        return capture_version(self.frame("diagnostics")) or self.session.export_version

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, estimated from its size; binary is compressed."""
        return file_size(self.path) * (8 if has_suffix(self.path, NSYS_SUFFIXES) else 2)

    @cached_property
    def _capture_notes(self) -> list[str]:
        return capture_notes(self.export, self.frame("diagnostics"), lambda: self.pids)

    def frame(self, name: str, columns: Sequence[str] | None = None) -> Frame:
        """A frame, or only the wanted columns of it, in nsightpy's own columnar form.

        Its rows and their order do not depend on the columns. Each column is read once.
        """
        if name == "processes" or name in _FACTS:
            whole = self.export.once(_FACTS[name]) if name in _FACTS else self._processes()
            return whole if columns is None else whole.select(columns)
        if name == "mpi_calls" and not mpi_calls.has_mpi(self.export):
            return self._owned.whole(name, self._mpi_ranges, columns)
        if name == "collectives":
            from nsightpy.readers.nccl.collectives import collectives

            made = partial(collectives, self.export, self.frame)
            return self._owned.whole(name, made, columns)
        if name not in _READERS:
            if name in frames.SCHEMAS:  # what only a PyTorch trace records
                return Frame.empty(frames.SCHEMAS[name], columns)
            raise KeyError(f"no frame {name!r}; there are {', '.join(frames.SCHEMAS)}")
        reader, order = _READERS[name]
        reader_of_file = partial(reader, self.export)
        return self._owned.read(frames.SCHEMAS[name], reader_of_file, columns, order)

    def stretches(
        self, wanted: Wanted, low_ns: int | None, high_ns: int | None
    ) -> Iterator[dict[str, list[Frame]]]:
        """The wanted columns of some frames, one stretch of time in memory at a time."""
        return windows.stretches(self.export, wanted, high_ns)

    def parts(self, name: str) -> Iterator[Frame]:
        """The rows of a frame, one that has very many of them some ten thousand at a time."""
        if parts.are_many(self.export, name, LARGE_ROWS):
            reader, order = _READERS[name]
            yield from parts.in_parts(self.export, name, reader, frames.SCHEMAS[name].names, order)
        else:
            yield from super().parts(name)

    @property
    def threads_named(self) -> ThreadNames:
        """Priority and name of threads by process and thread."""
        return thread_names(self.export)

    def _mpi_ranges(self) -> Frame:
        if not mpi_calls.has_mpi_ranges(self.export):
            return Frame.empty(frames.MPI_CALLS)
        return mpi_calls.mpi_ranges(self.frame("nvtx_ranges", mpi_calls.MPI_COLUMNS))

    def _process_names(self) -> Mapping[int, str]:
        return self._names_of_processes

    @cached_property
    def _names_of_processes(self) -> dict[int, str]:
        return process_names(self.export, self.pids)

    def _repr_html_(self) -> str:
        gpus = sorted(set(self.frame("devices").labels("name").values))
        facts = {
            "report": str(self.path),
            "host": self.session.host,
            "GPU": ", ".join(gpus),
            "tool": self.tool_version,
            "kernels": f"{self.export.count(events.KERNEL):,}",
            "notes": " ".join(self.notes),
        }
        return facts_table(facts)
