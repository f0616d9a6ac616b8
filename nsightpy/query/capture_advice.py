"""How a capture records what a question needs, in the words of the tool that captured."""

from collections.abc import Iterable, Mapping

from nsightpy.results import Note, notes

CUDA, CUDA_NVTX = "-t cuda", "-t cuda,nvtx"
# What records in PyTorch's profiler what these options of `nsys profile` record.
_IN_TORCH = {
    CUDA: "ProfilerActivity.CUDA",
    CUDA_NVTX: "torch.profiler.record_function",
    "--cuda-memory-usage=true": "`torch.profiler.profile(profile_memory=True)`",
}


def not_recorded(reason: str, options: str = CUDA, verb: str = "records them") -> Note:
    """What is missing, that `nsys profile` with these options would have recorded."""
    nsys, torch = f"`nsys profile {options}`", _IN_TORCH.get(options)
    other = f"PyTorch's profiler never does; {nsys} of Nsight Systems {verb}."
    return Note(reason, f"{nsys} {verb}.", f"{torch} {verb}." if torch else other)


def holds_no(what: str, nsys: str = "", torch: str = "") -> Note:
    """What a capture is empty of, and what would record it, by the tool that captures."""
    return Note(f"The capture holds no {what}.", nsys, torch)


MODULES = holds_no(
    "modules",
    "They are NVTX ranges: `nsys profile -t cuda,nvtx --pytorch=autograd-nvtx`.",
    "Record them with_stack (or with_modules).",
)
# What the rows of a command are made of, beside GPU work: reports without any say so themselves.
# It is said of an answer without rows to a question about whole reports.
ROWS_OF: Mapping[str, Note] = {
    "api": not_recorded("The capture holds no API calls."),
    "nvtx": holds_no(
        "code ranges",
        "`nsys profile -t cuda,nvtx` records them, where the program or a library pushes any; "
        "`--pytorch=autograd-nvtx` makes them for PyTorch.",
        "torch.profiler.record_function makes them.",
    ),
    "memory": holds_no("copies or memory sets"),
    "graphs": holds_no("launches of CUDA graphs"),
    "operators": holds_no(
        "operators",
        "They are in traces of PyTorch's profiler; `nsightpy nvtx` lists the ranges of reports.",
        "ProfilerActivity.CPU records them.",
    ),
    "collectives": holds_no(
        "collectives of NCCL",
        "`nsys profile -t cuda,nvtx` of every rank records its kernels, where there are any.",
        "ProfilerActivity.CUDA in every rank records its kernels, where there are any.",
    ),
}

# What the profiler said of events is for single tables where some of theirs are missing;
# these commands have all of it.
_EVERYTHING = ("info", "summarize", "findings")
_OF_RANGES = ("compare", "iterations", "collectives")
_RANGES = {"range", "Range", "RangeStack", "module", "stage"}


def bearing_on(
    said: Iterable[Note], command: str, columns: Iterable[str] = (), *, ranges: bool = False
) -> list[Note]:
    """The notes without what the profiler said that changes nothing in a command's table.

    What is missing of code ranges bears on tables of ranges, and on questions about `ranges`.
    """
    if command in _EVERYTHING:
        return list(said)
    passed_by = {notes.DIAGNOSTIC, notes.FAILED, notes.UNSUPPORTED}
    if not (ranges or command in _OF_RANGES or not _RANGES.isdisjoint(columns)):
        passed_by |= {notes.LOST_RANGES, notes.PARTIAL_RANGES}
    return [note for note in said if note.kind not in passed_by]
