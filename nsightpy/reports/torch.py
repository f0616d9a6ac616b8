"""One trace of PyTorch's profiler: its frames, read on first use, and who it says it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial

from nsightpy.frames import Frame, Schema, blank
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
from nsightpy.readers.torch.trace import (
    PROFILER,
    TRACE_SCHEMAS,
    Trace,
    TraceFacts,
    read_trace,
)
from nsightpy.reports.system import SystemReport
from nsightpy.results import Note
from nsightpy.store.store import FrameSource, Imported
from nsightpy.units import counted

DISTRIBUTED_INFO = "distributedInfo"


class TorchTrace(SystemReport):
    """One trace of PyTorch's profiler (.json or .json.gz).

    It has the frames of Nsight Systems reports, those that a trace cannot have being empty, and
    `operators` and `python_functions`. Times in ns from the first event on, sizes in bytes. Raises
    ReportError when the file cannot be read.
    """

    kind = "torch"

    _trace: Trace | None = None

    def __getstate__(self) -> dict[str, object]:
        """What another process needs to open the same trace: no frames."""
        return {**super().__getstate__(), "earlier_cycles": self.earlier_cycles}

    def close(self) -> None:
        """Let go of the frames; what is asked next reads them again."""
        super().close()
        self._trace = None

    def _read(self) -> Trace:
        """The trace, which is read as a whole, and its columns are kept."""
        if self._trace is None:
            progress = self._progress or (lambda done, message: None)
            progress(None, f"reading {self.path.name}")
            try:
                self._trace = read_trace(self.path)
            finally:
                progress(1.0, "")
            for name in self._trace.frames:
                self.store.frame(self._source_of(name))
        return self._trace

    @cached_property
    def _facts(self) -> TraceFacts:
        facts = self.store.facts(TraceFacts, lambda: self._read().facts)
        if self.store.folder is not None and not self.store.problem:
            self._trace = None  # its columns are mapped
        return facts

    @cached_property
    def session(self) -> Session:
        return self._facts.session

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
        """The processes with GPU work, else those with calls."""
        return list(self._facts.pids)

    @cached_property
    def evidence(self) -> list[Evidence]:
        ranks: list[Evidence] = []
        if len(self.pids) > 1:
            return ranks
        if self.rank_regex is not None:
            ranks += rank_by_regex(self.path.name, self.rank_regex)
        if is_rank(self._facts.rank):
            ranks.append(Evidence(self._facts.rank, DISTRIBUTED_INFO))
        return [*ranks, *rank_in_name(self.path.name)]

    def _read_notes(self) -> list[Note]:
        notes = [*self._facts.notes]
        if self.store.problem:
            notes.append(Note(self.store.problem))
        if self.earlier_cycles:
            earlier = counted(self.earlier_cycles, "earlier cycle")
            reason = f"{earlier} of this process left out: name the file to read one."
            notes.append(Note(reason))
        return notes

    @property
    def reading_bytes(self) -> int:
        """Memory that reading it takes at most, by its size; gzip shrinks to a tenth."""
        return file_size(self.path) * (10 if has_suffix(self.path, (".gz",)) else 1)

    def _source(self, name: str) -> FrameSource | None:
        return self._source_of(name) if name in self._facts.frames else None

    def _source_of(self, name: str) -> FrameSource:
        return FrameSource(TRACE_SCHEMAS[name], partial(self._imported, TRACE_SCHEMAS[name]))

    def _imported(self, schema: Schema, columns: Sequence[str]) -> Imported:
        whole = self._read().frames[schema.name]
        held = {c: whole[c] if c in whole else blank(schema[c], whole.rows) for c in columns}
        return Imported(Frame(held))

    def _process_names(self) -> Mapping[int, str]:
        return self._facts.process_names

    @property
    def calls(self) -> HostCalls:
        """The API calls, all of which count as launching: what a trace keeps is at hand."""
        return HostCalls(partial(self._part, "api_calls"), every=True)
