"""How a capture records what a question needs, in the words of the tool that captured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nsightpy.results.abstention import Abstention, reworded

# What is said of Nsight Systems reports, and what of PyTorch traces instead.
_OF_TRACES = (
    ("`nsys profile -t cuda` records them.", "ProfilerActivity.CUDA records them."),
    (
        (
            "Exports of nsys 2025.1 on say it (eventSyncId); `nsys profile "
            "--cuda-event-trace=true` records events where that is off."
        ),
        "enable_cuda_sync_events in torch.profiler's experimental_config records it.",
    ),
    (
        "sizes are in NCCL's NVTX payload, which these exports lack.",
        "sizes are arguments of NCCL's kernels, which these traces lack.",
    ),
    (
        (
            "It takes NCCL 2.16 and `nsys profile -t cuda,nvtx`, and an export with "
            "`--include-json true` (nsys 2025 on)."
        ),
        "PyTorch 2.3 and later write them.",
    ),
    (
        "`nsys profile --gpu-metrics-devices=all` samples them.",
        "Traces of PyTorch never do; `nsys profile --gpu-metrics-devices=all` samples them.",
    ),
    (
        "`nsys profile --nic-metrics=lf` samples them.",
        "Traces of PyTorch never do; `nsys profile --nic-metrics=lf` samples them.",
    ),
    (
        "`nsys profile -t cuda` records what is listed here.",
        "ProfilerActivity.CUDA records what is listed here.",
    ),
    (
        "`nsys profile -t cuda,nvtx` records what is listed here.",
        "torch.profiler.record_function makes them.",
    ),
    ("The capture holds no MPI calls", "A PyTorch trace holds no MPI calls"),
    ("The capture holds nothing of it.", "The trace holds nothing of it."),
    ("The capture holds none in scope.", "The trace holds none in scope."),
    (
        "The capture holds no calls of this library.",
        "A PyTorch trace holds calls of CUDA and HIP only.",
    ),
    (
        "An NVTX range around each step shows them.",
        "The profiler's step(), or a record_function around each step, shows them.",
    ),
    (
        "the capture holds no NVTX ranges; profile with `-t cuda,nvtx`.",
        "the trace holds no ranges; torch.profiler.record_function makes them.",
    ),
)


@dataclass(frozen=True, slots=True)
class Recording:
    """What an empty table is empty of, and what would record it, by the tool that captures."""

    what: str
    nsys: str
    torch: str

    def missing(self, kind: str) -> str:
        """What to say of reports without any, of this kind (nsys, torch).

        It is no abstention where nothing would have recorded more: there was none.
        """
        capture, advice = ("trace", self.torch) if kind == "torch" else ("capture", self.nsys)
        reason = f"The {capture} holds no {self.what}."
        return Abstention(reason, advice) if advice else reason


# What the rows of a command are made of, beside GPU work: reports without any say so themselves.
ROWS_OF: Mapping[str, Recording] = {
    "api": Recording(
        "API calls", "`nsys profile -t cuda` records them.", "ProfilerActivity.CUDA records them."
    ),
    "nvtx": Recording(
        "code ranges",
        "`nsys profile -t cuda,nvtx` records them, where the program or a library pushes any; "
        "`--pytorch=autograd-nvtx` makes them for PyTorch.",
        "torch.profiler.record_function makes them.",
    ),
    "memory": Recording("copies or memory sets", "", ""),
    "sync-waits": Recording("call in which the host waits for the GPU", "", ""),
    "gaps": Recording("stretch in which a device was idle", "", ""),
    "graphs": Recording("launches of CUDA graphs", "", ""),
    "inference-steps": Recording("steps that vLLM or SGLang annotated", "", ""),
    "modules": Recording(
        "modules",
        "They are NVTX ranges: `nsys profile -t cuda,nvtx --pytorch=autograd-nvtx`.",
        "Record them with_stack (or with_modules).",
    ),
    "operators": Recording(
        "operators",
        "They are in traces of PyTorch's profiler; `nsightpy nvtx` lists the ranges of reports.",
        "ProfilerActivity.CPU records them.",
    ),
    "collectives": Recording(
        "collectives of NCCL",
        "`nsys profile -t cuda,nvtx` of every rank records its kernels, where there are any.",
        "ProfilerActivity.CUDA in every rank records its kernels, where there are any.",
    ),
}


def nothing_recorded(command: str, kind: str) -> list[str]:
    """What to say of an answer without rows, though the question was about whole reports."""
    return [ROWS_OF[command].missing(kind)] if command in ROWS_OF else []


# Warnings of nsys that single tables need; `info`, `summarize` and `findings` have all of them.
_DIAGNOSTIC = re.compile(r"(?:^|: )nsys (?:warning|error): ")
_LOST = re.compile(
    r"not all|(?:have not|not have) been|\b(?:lost|dropped|missing|overflow|truncated)",
    re.IGNORECASE,
)
_ABOUT_RANGES = re.compile(r"^(?!.*(?:CUDA|CUPTI|GPU)).*NVTX", re.IGNORECASE)
_EVERYTHING = ("info", "summarize", "findings")
_OF_RANGES = ("compare", "iterations", "inference-steps", "collectives", "pipeline")
_RANGES = {"range", "Range", "RangeStack", "module"}


def bearing_on(
    notes: Iterable[str], command: str, columns: Iterable[str] = (), *, ranges: bool = False
) -> list[str]:
    """The notes without warnings of the profiler that change nothing in a command's table.

    Those stay that say that events are missing; of NVTX events where the table is made of ranges,
    or the question was about `ranges`.
    """
    ranges = ranges or command in _OF_RANGES or not _RANGES.isdisjoint(columns)
    return [
        note
        for note in notes
        if command in _EVERYTHING
        or not _DIAGNOSTIC.search(note)
        or (_LOST.search(note) and (ranges or not _ABOUT_RANGES.search(note)))
    ]


def for_kind(note: str, kind: str) -> str:
    """A note in the words of the tool that made the reports (nsys, torch)."""
    return reworded(note, _of_traces, _of_traces) if kind == "torch" else note


def _of_traces(text: str) -> str:
    for said, instead in _OF_TRACES:
        text = text.replace(said, instead)
    return text
