"""One trace of PyTorch's profiler: its frames, read on first use, and who it says it is."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from functools import cached_property, partial

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.extent import Extent, bounds_of, extent_of_frames
from nsightpy.readers.host_calls import HostCalls
from nsightpy.readers.nsys.capture_start import TORCH_PROFILER, CaptureStart
from nsightpy.readers.nsys.identity import (
    Evidence,
    is_rank,
    rank_by_regex,
    rank_in_name,
)
from nsightpy.readers.nsys.session import Session
from nsightpy.readers.tools.file_check import file_size, has_suffix
from nsightpy.readers.torch.cache import CachedTrace, cached, keep
from nsightpy.readers.torch.host_calls import TraceCalls
from nsightpy.readers.torch.trace import Trace, TraceFacts, read_trace
from nsightpy.reports.presentation import facts_table
from nsightpy.reports.system import SystemReport
from nsightpy.side_by_side import shared_property
from nsightpy.units import counted

DISTRIBUTED_INFO = "distributedInfo"
PROFILER = "PyTorch profiler"
GPU_FRAMES = ("kernels", "memory_operations")
_SCHEMAS = {**frames.SCHEMAS, frames.COLLECTIVES.name: frames.COLLECTIVES}
HOST_FRAMES = ("api_calls", "nvtx_ranges", "operators")


class TorchTrace(SystemReport):
    """One trace of PyTorch's profiler (.json or .json.gz).

    It has the frames of Nsight Systems reports, those that a trace cannot have being empty, and
    `operators` and `python_functions`. Times in ns from the first event on, sizes in bytes. Raises
    ReportError when the file cannot be read.
    """

    kind = "torch"

    _cache_problem = ""

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to open the same trace: no frames."""
        return {**super().__getstate__(), "earlier_cycles": self.earlier_cycles}

    def close(self) -> None:
        """Let go of the frames; what is asked next reads them again."""
        self._owned.release()
        self.__dict__.pop("_source", None)
        self.__dict__.pop("calls", None)

    @shared_property
    def _source(self) -> Trace | CachedTrace:
        if self.use_cache and (trace := cached(self.path)) is not None:
            return trace
        return self._read()

    def _read(self) -> Trace:
        progress = self._progress or (lambda done, message: None)
        progress(None, f"reading {self.path.name}")
        try:
            trace = read_trace(self.path)
        finally:
            progress(1.0, "")
        if self.use_cache and (problem := keep(self.path, trace)):
            self._cache_problem = problem
        return trace

    @cached_property
    def _facts(self) -> TraceFacts:
        return self._source.facts

    def _read_session(self) -> Session:
        """Clock and length of the capture; a trace names no host that may be shown."""
        facts = self._facts
        return Session(
            host="",
            export_version=PROFILER,
            schema_version=facts.schema_version,
            utc_ns=facts.utc_ns,
            shift_ns=0,
            system_clock_ns=None,
            duration_ns=facts.duration_ns,
            uuid="",
        )

    @property
    def capture_start(self) -> CaptureStart:
        """The profiler; a trace does not tell how long its program had run."""
        return CaptureStart(TORCH_PROFILER)

    @property
    def tool_version(self) -> str:
        """What captured, and the runtime that the program used."""
        return ", ".join(filter(None, (PROFILER, self._facts.runtime)))

    def _read_pids(self) -> list[int]:
        """The processes with GPU work, else those with calls."""
        return list(self._facts.pids)

    def _read_evidence(self) -> list[Evidence]:
        ranks: list[Evidence] = []
        if len(self.pids) > 1:
            return ranks
        if self.rank_regex is not None:
            ranks += rank_by_regex(self.path.name, self.rank_regex)
        if is_rank(self._facts.rank):
            ranks.append(Evidence(self._facts.rank, DISTRIBUTED_INFO))
        return [*ranks, *rank_in_name(self.path.name)]

    def _read_notes(self) -> list[str]:
        problem = [self._cache_problem] if self._cache_problem else []
        return [*self._facts.notes, *problem, *self._cycle_notes]

    @property
    def _cycle_notes(self) -> list[str]:
        if not self.earlier_cycles:
            return []
        earlier = counted(self.earlier_cycles, "earlier cycle")
        return [f"{earlier} of this process left out: name the file to read one."]

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, by its size; gzip shrinks to a tenth."""
        return file_size(self.path) * (10 if has_suffix(self.path, (".gz",)) else 1)

    def frame(self, name: str, columns: Sequence[str] | None = None) -> Frame:
        """A frame, or only the wanted columns of it, in nsightpy's own columnar form."""
        if name == "processes":
            whole = self._processes()
            return whole if columns is None else whole.select(columns)
        schema = _SCHEMAS.get(name)
        if schema is None:
            raise KeyError(f"no frame {name!r}; there are {', '.join(_SCHEMAS)}")
        return self._owned.read(schema, partial(self._made, name), columns, None)

    def _made(self, name: str, columns: Sequence[str]) -> Frame:
        try:
            return self._stored(name, columns)
        except (OSError, ValueError, zipfile.BadZipFile):
            # the cache's entry is damaged or gone: the trace itself is there
            self._source = self._read()
            return self._stored(name, columns)

    def _stored(self, name: str, columns: Sequence[str]) -> Frame:
        if set(columns) & _SIZES.keys() and name == "kernels":
            stored = self._stored(
                name, [c for column in columns for c in _SIZES.get(column, (column,))]
            )
            made = dict(stored)
            for column in set(columns) & _SIZES.keys():
                x, y, z = map(stored.ints, _SIZES[column])
                made[column] = x * y * z
            return Frame(made).select(columns)
        source = self._source
        if isinstance(source, CachedTrace):
            return source.frame(name, columns) if name in source else _empty(name, columns)
        whole = source.frames.get(name)
        if whole is None:
            return _empty(name, columns)
        return whole.select(columns)

    def _process_names(self) -> Mapping[int, str]:
        return self._facts.process_names

    @cached_property
    def calls(self) -> HostCalls:
        """The API calls."""
        return TraceCalls(partial(self.frame, "api_calls"))

    @property
    def extent(self) -> Extent:
        """Where and when the GPU work was."""
        columns = ("start_ns", "end_ns", "pid", "device")
        gpu_frames = [self.frame(name, columns) for name in GPU_FRAMES]
        return extent_of_frames(gpu_frames[0].rows, gpu_frames)

    def bounds(self, *, gpu: bool) -> tuple[int, int] | None:
        """First start and last end of the host's events, and of the GPU's; None without any."""
        names = (*GPU_FRAMES, *HOST_FRAMES) if gpu else HOST_FRAMES
        return bounds_of(self.frame(name, ("start_ns", "end_ns")) for name in names)

    @property
    def has_memory_usage(self) -> bool:
        """Whether allocations were recorded (profile_memory)."""
        return self.frame("memory_usage", ("start_ns",)).rows > 0

    def _repr_html_(self) -> str:
        facts = {
            "trace": str(self.path),
            "GPU": ", ".join(sorted(set(self.frame("devices").labels("name").values))),
            "tool": self.tool_version,
            "kernels": f"{self.extent.kernels:,}",
            "notes": " ".join(self.notes),
        }
        return facts_table(facts)


_SIZES = {
    name: tuple(f"{shape}_{axis}" for axis in "xyz")
    for name, shape in (("blocks", "grid"), ("threads", "block"))
}


def _empty(name: str, columns: Sequence[str] | None) -> Frame:
    return Frame.empty(_SCHEMAS[name], columns)
