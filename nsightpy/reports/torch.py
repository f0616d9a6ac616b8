"""One trace of PyTorch's profiler: its frames, read on first use, and who it says it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nsightpy.frames import EVERY_SCHEMA, Frame, Schema, blank
from nsightpy.readers.activity import HostCalls
from nsightpy.readers.nsys.capture import Capture
from nsightpy.readers.torch.trace import Trace, read_trace
from nsightpy.reports.system import SystemReport
from nsightpy.store.store import FrameSource, Imported


class TorchTrace(SystemReport):
    """One trace of PyTorch's profiler (.json or .json.gz).

    It has the frames of Nsight Systems reports, those that a trace cannot have being empty, and
    `operators` and `python_functions`. Times in ns from the first event on, sizes in bytes. Raises
    ReportError when the file cannot be read.
    """

    kind = "torch"
    growth = ((".gz", 10), ("", 1))

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

    @property
    def calls(self) -> HostCalls:
        """The API calls, all of which count as launching: what a trace keeps is at hand."""
        return HostCalls(partial(self._part, "api_calls"), every=True)
