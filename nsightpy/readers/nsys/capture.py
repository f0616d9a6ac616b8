"""What an export says of its capture: what is asked of every report, whatever the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

import numpy as np

from nsightpy.frames import Frame
from nsightpy.readers.nsys.capture_start import CaptureStart, capture_start
from nsightpy.readers.nsys.columns import numbered, whole_number
from nsightpy.readers.nsys.events import GRAPH_TRACE, KERNEL, RUNTIME
from nsightpy.readers.nsys.identity import Evidence, recorded_ranks
from nsightpy.readers.nsys.session import (
    Session,
    capture_version,
    host_pids,
    process_names,
    session,
)
from nsightpy.readers.nsys.strings import UNNAMED
from nsightpy.readers.nsys.tables import GPU_TABLES, NsysExport
from nsightpy.results import Abstention

NO_WORK = Abstention(
    "The capture holds no GPU work: no kernel, copy or graph tables.",
    "Profile with `-t cuda`, and check that the program ran on a GPU during the capture.",
)
NO_CALLS = Abstention(
    "No CUDA API calls were recorded: launches cannot be analysed.",
    "`nsys profile -t cuda` records them.",
)
_LONGEST = 200
_WORTH = ("warning", "error")
# Warnings that bear on GPU figures; those of CPU sampling, OpenGL and the like do not.
_RELEVANT = re.compile(r"CUDA|CUPTI|NVTX|GPU|NCCL|MPI|lost|dropped|overflow|buffer", re.IGNORECASE)
# Says only that a process did not use a library.
_NOT_USED = re.compile(r"Does the process use")


def capture_notes(export: NsysExport, diagnostics: Frame, pids: Sequence[int]) -> list[str]:
    """Notes on one export with these active processes, most important first, each on one line."""
    notes: list[str] = []
    if not any(export.has(table) for table in GPU_TABLES):
        notes.append(NO_WORK)
    elif not export.holds_rows(KERNEL):
        notes.append("The capture holds no kernels of their own.")
    if launches := export.count(GRAPH_TRACE):
        reason = f"{launches:,} CUDA graph launches were traced as a whole: their kernels are not "
        reason += "recorded one by one."
        notes.append(Abstention(reason, "`nsys profile --cuda-graph-trace=node` opens them."))
    if any(export.has(table) for table in GPU_TABLES):
        if not export.has(RUNTIME):
            notes.append(NO_CALLS)
        if not any(export.has(name) for name in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")):
            notes.append("The export does not describe its GPUs: model and limits are unknown.")
    if not export.has("StringIds"):
        notes.append(
            "The export has no StringIds table: names are shown by number, and what communicates "
            "counts as compute."
        )
    return notes + diagnostic_notes(diagnostics, pids)


def diagnostic_notes(said: Frame, pids: Sequence[int]) -> list[str]:
    """The profiler's own warnings and errors that bear on GPU figures, each once, on one line."""
    severity, text, about = said.labels("severity"), said.labels("text"), said.ints("pid")
    lines = [" ".join(value.split()) for value in text.values]
    relevant = [bool(_RELEVANT.search(line)) and not _NOT_USED.search(line) for line in lines]
    worth = severity.equals(_WORTH) & np.asarray([*relevant, False])[text.codes]
    rows = np.flatnonzero(worth & np.isin(about, [0, *pids])).tolist()
    said_once = dict.fromkeys((severity[row], lines[text.codes[row]]) for row in rows)
    return [
        f"nsys {kind}: {line if len(line) <= _LONGEST else line[: _LONGEST - 1] + '…'}"
        for kind, line in said_once
    ]


# Priority and name by process and thread.
ThreadNames: TypeAlias = dict[tuple[int, int], tuple[int | None, str | None]]


def thread_names(export: NsysExport) -> ThreadNames:
    """Priority and name by process and thread; of a thread that was renamed, the first by name."""
    stored = export.rows("ThreadNames", "globalTid", "nameId", optional=("priority",))
    rows = [
        (thread, whole_number(name), whole_number(importance))
        for thread, name, importance in numbered(stored, 1)
    ]
    ids = [UNNAMED if name is None else name for _, name, _ in rows]
    names = export.strings.labels(np.asarray(ids, dtype=np.int64))
    threads: ThreadNames = {}
    named = [(not name, name, row[2] or 0, row) for name, row in zip(names, rows, strict=True)]
    for _, name, _, (thread, _, importance) in sorted(named, key=itemgetter(0, 1, 2)):
        key = ((thread >> 24) & 0xFFFFFF, thread & 0xFFFFFF)
        threads.setdefault(key, (importance, name or None))
    return threads


# Priority and name of a thread of a process.
_Thread = tuple[int, int, int | None, str | None]


@dataclass(frozen=True)
class Capture:
    """What an export says of its capture. `ranks`: of its processes, `launched`: of itself.

    `host_pids`: the processes where none has GPU work or CUDA calls. `thread_names`: process,
    thread, priority, name. `said`: notes, an abstention as its two parts.
    """

    session: Session
    start: CaptureStart
    tool_version: str
    ranks: list[Evidence]
    launched: list[Evidence]
    processes: dict[int, str]
    thread_names: list[_Thread]
    host_pids: list[int]
    said: list[list[str]]

    @property
    def threads(self) -> ThreadNames:
        """Priority and name by process and thread."""
        return {(pid, tid): (priority, name) for pid, tid, priority, name in self.thread_names}

    @property
    def notes(self) -> list[str]:
        """What a reader of any figure must know about the capture."""
        return [Abstention(*parts) if len(parts) > 1 else parts[0] for parts in self.said]


def capture(export: NsysExport, diagnostics: Frame, cuda_pids: list[int]) -> Capture:
    """The facts of one export, of whose processes those with GPU work or CUDA calls are known."""
    threads = thread_names(export)
    hosts = [] if cuda_pids else host_pids(export)
    pids = cuda_pids or hosts
    notes = capture_notes(export, diagnostics, pids)
    return Capture(
        session(export),
        capture_start(export, diagnostics),
        capture_version(diagnostics),
        *recorded_ranks(export),
        process_names(export, pids),
        [(*thread, *named) for thread, named in threads.items()],
        hosts,
        [
            list(note.record().values()) if isinstance(note, Abstention) else [note]
            for note in notes
        ],
    )
