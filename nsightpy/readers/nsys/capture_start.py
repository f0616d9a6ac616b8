"""How a capture began: with its program, at the program's own call, at an NVTX range, or late."""

from __future__ import annotations

from dataclasses import dataclass

from nsightpy.frames import Frame
from nsightpy.readers.nsys.tables import NsysExport

CUDA_PROFILER_API, NVTX_RANGE = "cudaProfilerApi", "nvtx"
TORCH_PROFILER = "torch.profiler"
_TRIGGERS = (
    ("Profiling started due to cudaProfilerStart", CUDA_PROFILER_API),
    ("Starting the profiling session using NVTX trigger", NVTX_RANGE),
)
_LAUNCHED = "Process was launched by the profiler"
# A program that nsys launches and captures from its start is launched within milliseconds.
_AT_ONCE_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class CaptureStart:
    """What began a capture (cudaProfilerApi, nvtx, torch.profiler; empty: not known), how late.

    `late_ns`: from the launch of the program to time 0 of the report; 0 where it was captured from
    its start, or where the export does not say.
    """

    trigger: str = ""
    late_ns: int = 0


def capture_start(export: NsysExport, diagnostics: Frame) -> CaptureStart:
    """What the profiler itself said of the start (the diagnostics frame, else the strings)."""
    texts = list(diagnostics.labels("text"))
    launched = [
        at for at, words in diagnostics.tuples("time_ns", "text") if words.startswith(_LAUNCHED)
    ]
    late = -min(launched, default=0)
    if launched and late < _AT_ONCE_NS:
        return CaptureStart()
    for start, trigger in _TRIGGERS:
        if any(words.startswith(start) for words in texts):
            return CaptureStart(trigger, late)
        if not texts and export.strings.starting(start):
            return CaptureStart(trigger)
    return CaptureStart("", late)
