"""What a reader of any figure must know about the capture: gaps, opaque parts, warnings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nsightpy.frames import Frame
from nsightpy.readers.nsys.events import GRAPH_TRACE, KERNEL, RUNTIME
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
