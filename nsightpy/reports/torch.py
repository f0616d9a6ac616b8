"""One trace of PyTorch's profiler: its frames, read on first use, and who it says it is."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from nsightpy import frames
from nsightpy.frames import Frame, Labels
from nsightpy.readers.extent import Extent, extent_of_frames
from nsightpy.readers.host_calls import HostCalls
from nsightpy.readers.nsys.capture_start import TORCH_PROFILER, CaptureStart
from nsightpy.readers.nsys.identity import (
    Evidence,
    decide_ranks,
    evidence_for,
    is_rank,
    rank_by_regex,
    rank_in_name,
)
from nsightpy.readers.nsys.session import Session
from nsightpy.readers.tools.file_check import file_size
from nsightpy.readers.torch.cache import CachedTrace, cached, keep
from nsightpy.readers.torch.host_calls import TraceCalls
from nsightpy.readers.torch.trace import Trace, TraceFacts, read_trace
from nsightpy.reports.html_facts import facts_table
from nsightpy.reports.owned_frames import OwnedFrames
from nsightpy.reports.system import Progress, ReportFacts, SystemReport
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

    def __init__(
        self,
        path: Path | str,
        *,
        use_cache: bool = True,
        rank_regex: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.path = Path(path)
        self.use_cache = use_cache
        self.rank_regex = rank_regex
        self.ranks: dict[int, tuple[int | None, str]] = {}
        self._progress = progress
        self._owned = OwnedFrames()
        self.earlier_cycles = 0
        self._said: dict[str, None] = {}
        self._adopted_notes: list[str] | None = None

    def __repr__(self) -> str:
        return f"TorchTrace({str(self.path)!r})"

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to open the same trace: no frames."""
        fresh = TorchTrace(self.path, use_cache=self.use_cache, rank_regex=self.rank_regex)
        return {**fresh.__dict__, "ranks": self.ranks, "earlier_cycles": self.earlier_cycles}

    def close(self) -> None:
        """Let go of the frames; what is asked next reads them again."""
        self._owned.release()
        self.__dict__.pop("_source", None)
        self.__dict__.pop("calls", None)

    @cached_property
    def _source(self) -> Trace | CachedTrace:
        if self.use_cache and (found := cached(self.path)) is not None:
            return found
        return self._read()

    def _read(self) -> Trace:
        if self._progress is not None:
            self._progress(None, f"reading {self.path.name}")
        trace = read_trace(self.path)
        if self.use_cache and (problem := keep(self.path, trace)):
            self._said[problem] = None
        return trace

    @cached_property
    def _facts(self) -> TraceFacts:
        return self._source.facts

    @cached_property
    def session(self) -> Session:
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
            graph_mode="",
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

    @cached_property
    def pids(self) -> list[int]:
        """The processes with GPU work, else those with calls; ascending."""
        return list(self._facts.pids)

    @cached_property
    def evidence(self) -> list[Evidence]:
        """What the trace says about its rank, strongest first."""
        found: list[Evidence] = []
        if len(self.pids) > 1:
            return found
        if self.rank_regex is not None:
            found += rank_by_regex(self.path.name, self.rank_regex)
        if is_rank(self._facts.rank):
            found.append(Evidence(self._facts.rank, DISTRIBUTED_INFO))
        return [*found, *rank_in_name(self.path.name)]

    @property
    def facts(self) -> ReportFacts:
        """What another process is told that has to do with the same trace."""
        return ReportFacts(self.pids, self.session, self.notes, self.evidence)

    def adopt(self, facts: ReportFacts) -> None:
        """Take over what another process found out; this one then need not open the file."""
        self.pids, self.session = facts.pids, facts.session
        self._adopted_notes = facts.notes
        if facts.evidence is not None:
            self.evidence = facts.evidence

    @property
    def notes(self) -> list[str]:
        """What a reader of any figure of this trace must know."""
        if self._adopted_notes is not None:
            return list(self._adopted_notes)
        return [*self._facts.notes, *self._said, *self._cycle_notes]

    @property
    def _cycle_notes(self) -> list[str]:
        if not self.earlier_cycles:
            return []
        earlier = counted(self.earlier_cycles, "earlier cycle")
        return [f"{earlier} of this process left out: name the file to read one."]

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, by its size; gzip shrinks to a tenth."""
        return file_size(self.path) * (10 if self.path.suffix == ".gz" else 1)

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
        source = self._source
        if isinstance(source, CachedTrace):
            return source.frame(name, columns) if name in source else _empty(name, columns)
        whole = source.frames.get(name)
        if whole is None:
            return _empty(name, columns)
        return whole.select(columns)

    def _processes(self) -> Frame:
        names = self._facts.process_names
        ranks = [self.rank_of(pid) for pid in self.pids]
        return Frame(
            {
                "pid": np.asarray(self.pids, dtype=np.int64),
                "name": Labels.of(names.get(pid, "") for pid in self.pids),
                "rank": np.asarray([-1 if r is None else r for r, _ in ranks], dtype=np.int64),
                "rank_source": Labels.of(source for _, source in ranks),
            }
        )

    def rank_of(self, pid: int) -> tuple[int | None, str]:
        """The rank of a process and the evidence for it; None where nothing tells."""
        if not self.ranks:
            own = {(str(self.path), p): evidence_for(self.evidence, p) for p in self.pids}
            self.ranks = {pid: decision for (_, pid), decision in decide_ranks(own).items()}
        return self.ranks.get(pid, (None, ""))

    @cached_property
    def calls(self) -> HostCalls:
        """The API calls."""
        return TraceCalls(self.frame("api_calls"))

    @property
    def extent(self) -> Extent:
        """Where and when the GPU work was."""
        columns = ("start_ns", "end_ns", "pid", "device")
        found = [self.frame(name, columns) for name in GPU_FRAMES]
        return extent_of_frames(found[0].rows, found)

    def bounds(self, *, gpu: bool) -> tuple[int, int] | None:
        """First start and last end of the host's events, and of the GPU's; None without any."""
        names = (*GPU_FRAMES, *HOST_FRAMES) if gpu else HOST_FRAMES
        found = [frame for name in names if (frame := self.frame(name, _SPAN)).rows]
        if not found:
            return None
        starts = [int(frame.ints("start_ns").min()) for frame in found]
        return min(starts), max(int(frame.ints("end_ns").max()) for frame in found)

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


_SPAN = ("start_ns", "end_ns")


def _empty(name: str, columns: Sequence[str] | None) -> Frame:
    return Frame.empty(_SCHEMAS[name], columns)
