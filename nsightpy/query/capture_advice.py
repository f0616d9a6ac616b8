"""How a capture records what a question needs, in the words of the tool that captured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nsightpy.results.abstention import Abstention

CUDA, CUDA_NVTX = "-t cuda", "-t cuda,nvtx"
# What records in PyTorch's profiler what these options of `nsys profile` record.
_IN_TORCH = {CUDA: "ProfilerActivity.CUDA", CUDA_NVTX: "torch.profiler.record_function"}


def not_recorded(reason: str, options: str = CUDA, verb: str = "records them") -> Abstention:
    """What is missing, that `nsys profile` with these options would have recorded."""
    nsys, torch = f"`nsys profile {options}`", _IN_TORCH.get(options)
    other = f"PyTorch's profiler never does; {nsys} of Nsight Systems {verb}."
    return Abstention(reason, f"{nsys} {verb}.", f"{torch} {verb}." if torch else other)


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
