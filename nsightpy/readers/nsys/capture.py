"""What an export says of its capture: how it began, and what is asked of every report."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from nsightpy.frames import Frame
from nsightpy.readers.nsys.events import GRAPH_TRACE, RUNTIME
from nsightpy.readers.nsys.identity import (
    Evidence,
    environment_evidence,
    mpi_evidence,
    nvtx_evidence,
)
from nsightpy.readers.nsys.session import Session, process_names, session
from nsightpy.readers.nsys.tables import GPU_TABLES, UNNAMED, NsysExport
from nsightpy.results import Note, notes

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


NO_WORK = Note(
    "The capture holds no GPU work: no kernel, copy or graph tables.",
    "Profile with `-t cuda`, and check that the program ran on a GPU during the capture.",
    kind=notes.NO_WORK,
)
NOT_TRACED = Note(
    "The capture holds CUDA API calls, but no GPU work: no kernel, copy or graph tables.",
    "Either nothing was launched, or the profiler could not trace the GPU; what it said of that, "
    "if anything, is among the notes.",
    kind=notes.NO_WORK,
)
NO_CALLS = Note(
    "No CUDA API calls were recorded: launches cannot be analysed.",
    "`nsys profile -t cuda` records them.",
    kind=notes.NO_CALLS,
)
_LONGEST = 200
# Of the nsys that captured, where a profiler message names its folder.
_VERSION = re.compile(r"nsight-systems(?:-cli)?[-/\\](\d{4}\.\d+\.\d+)", re.IGNORECASE)
_WORTH = ("warning", "error")
# Warnings that bear on GPU figures; those of CPU sampling, OpenGL and the like do not.
_RELEVANT = re.compile(
    r"CUDA|CUPTI|ActivityFlush|NVTX|GPU|NCCL|MPI|lost|dropped|overflow|buffer", re.IGNORECASE
)
# What a device or a build cannot do; what it can is traced as ever.
_UNSUPPORTED = re.compile(r"not supported|cannot be traced|unsupported", re.IGNORECASE)
# Says only that a process did not use a library.
_NOT_USED = re.compile(r"Does the process use")
# What nsys says that makes figures wrong: not of CPU samples, of the OS or of other counters, which
# no figure comes from.
_LOST = re.compile(r"\b(?:lost|dropped|overflow|truncated)", re.IGNORECASE)
_OF_NO_FIGURE = re.compile(
    r"sampl|backtrace|context switch|OS runtime|ftrace|\bperf\b|metrics", re.IGNORECASE
)
_MAY_LACK = re.compile(
    r"not all|(?:have not|not have) been|\b(?:lost|dropped|missing|overflow|truncated)",
    re.IGNORECASE,
)
_OF_CUDA = re.compile(r"CUDA|CUPTI|ActivityFlush", re.IGNORECASE)
_OF_RANGES = re.compile(r"^(?!.*(?:CUDA|CUPTI|GPU)).*NVTX", re.IGNORECASE)


def capture_notes(export: NsysExport, diagnostics: Frame, pids: Sequence[int]) -> list[Note]:
    """Notes on one export with these active processes, most important first, each on one line."""
    notes: list[Note] = []
    if not any(export.has(table) for table in GPU_TABLES):
        notes.append(NOT_TRACED if export.holds_rows(RUNTIME) else NO_WORK)
    if launches := export.count(GRAPH_TRACE):
        reason = f"{launches:,} CUDA graph launches were traced as a whole: their kernels are not "
        reason += "recorded one by one."
        notes.append(Note(reason, "`nsys profile --cuda-graph-trace=node` opens them."))
    if any(export.has(table) for table in GPU_TABLES) and not export.has(RUNTIME):
        notes.append(NO_CALLS)
    if not export.has("StringIds"):
        reason = "The export has no StringIds table: names are shown by number, and what "
        notes.append(Note(f"{reason}communicates counts as compute."))
    return notes + diagnostic_notes(diagnostics, pids)


def diagnostic_notes(diagnostics: Frame, pids: Sequence[int]) -> list[Note]:
    """The profiler's own warnings and errors that bear on GPU figures, each once, on one line."""
    severity, text = diagnostics.labels("severity"), diagnostics.labels("text")
    about = diagnostics.ints("pid")
    lines = [" ".join(value.split()) for value in text.values]
    relevant = [bool(_RELEVANT.search(line)) and not _NOT_USED.search(line) for line in lines]
    worth = severity.equals(_WORTH) & np.asarray([*relevant, False])[text.codes]
    # a process in which tracing failed may have no rows, and be none of the active ones
    concerned = np.isin(about, [0, *pids]) | severity.equals(["error"])
    rows = np.flatnonzero(worth & concerned).tolist()
    said_once = dict.fromkeys((severity[row], lines[text.codes[row]]) for row in rows)
    return [_of_nsys(kind, line) for kind, line in said_once]


def _of_nsys(severity: str, line: str) -> Note:
    """What nsys said, and what it means for figures."""
    wrong = not _OF_NO_FIGURE.search(line) and (
        bool(_LOST.search(line)) or (severity == "error" and bool(_OF_CUDA.search(line)))
    )
    kinds = (notes.LOST, notes.LOST_RANGES) if wrong else (notes.PARTIAL, notes.PARTIAL_RANGES)
    if _UNSUPPORTED.search(line):
        kind = notes.UNSUPPORTED
    elif _MAY_LACK.search(line):
        kind = kinds[1] if _OF_RANGES.search(line) else kinds[0]
    else:
        kind = notes.FAILED if wrong else notes.DIAGNOSTIC
    shown = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return Note(f"nsys {severity}: {shown}", kind=kind)


def _threads(export: NsysExport) -> dict[int, tuple[int | None, str | None]]:
    """Priority and name by global id; of a thread that was renamed, the first by name."""
    stored = export.file.values("ThreadNames", ("globalTid", "nameId", "priority"))
    rows = [row for row in stored if row[0] is not None]
    ids = [UNNAMED if name is None else name for _, name, _ in rows]
    names = export.strings.labels(np.asarray(ids, dtype=np.int64))
    threads: dict[int, tuple[int | None, str | None]] = {}
    named = [(not name, name, row[2] or 0, row) for name, row in zip(names, rows, strict=True)]
    for _, name, _, (thread, _, importance) in sorted(named, key=itemgetter(0, 1, 2)):
        threads.setdefault(thread & 0xFFFFFFFFFFFF, (importance, name or None))
    return threads


@dataclass(frozen=True)
class Capture:
    """What a report says of its capture: an export, or a trace of PyTorch.

    `ranks`: of its processes, `launched`: of itself, strongest first. `pids`: the processes with
    GPU work; without any, with CUDA calls, or those of the host. `notes`: what a reader of any
    figure must know. `threads`: priority and name, by process (bits 24 to 47) and thread. `frames`:
    those of a trace.
    """

    session: Session
    start: CaptureStart
    tool_version: str
    ranks: list[Evidence]
    launched: list[Evidence]
    pids: list[int]
    processes: dict[int, str]
    notes: list[Note]
    threads: dict[int, tuple[int | None, str | None]] = field(default_factory=dict)
    frames: tuple[str, ...] = ()


def capture(export: NsysExport, diagnostics: Frame, pids: list[int]) -> Capture:
    """The facts of one export with these active processes."""
    about, names = session(export), process_names(export, pids)
    version = (found[1] for text in diagnostics.labels("text") if (found := _VERSION.search(text)))
    return Capture(
        about,
        capture_start(export, diagnostics),
        next(version, about.export_version),
        [*mpi_evidence(export), *nvtx_evidence(export)],
        environment_evidence(export),
        pids,
        names,
        capture_notes(export, diagnostics, pids),
        _threads(export),
    )
