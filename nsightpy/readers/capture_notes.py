"""What a reader of any figure must know about the capture: gaps, opaque parts, warnings."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nsightpy.frames import Frame
from nsightpy.readers.nsys import GRAPH_TRACE, KERNEL, RUNTIME
from nsightpy.readers.nsys_tables import NsysExport
from nsightpy.readers.session import GPU_TABLES, diagnostics

_LONGEST = 200
_WORTH = ("warning", "error")
# Warnings that bear on GPU figures; those of CPU sampling, OpenGL and the like do not.
_RELEVANT = re.compile(r"CUDA|CUPTI|NVTX|GPU|NCCL|MPI|lost|dropped|overflow|buffer", re.IGNORECASE)
# Says only that a process did not use a library.
_NOT_USED = re.compile(r"Does the process use")


def capture_notes(export: NsysExport, pids: Sequence[int]) -> list[str]:
    """Notes on one export and its active processes, most important first; each is one line."""
    notes = []
    if not any(export.has(table) for table in GPU_TABLES):
        notes.append(
            "The capture holds no GPU work: no kernel, copy or graph tables. Profile with "
            "`-t cuda`, and check that the program ran on a GPU during the capture."
        )
    elif export.count(KERNEL) == 0:
        notes.append("The capture holds no kernels of their own.")
    notes += _graph_note(export)
    if any(export.has(table) for table in GPU_TABLES):
        if not export.has(RUNTIME):
            notes.append("No CUDA API calls were recorded: launches cannot be analysed.")
        if not any(export.has(name) for name in ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")):
            notes.append("The export does not describe its GPUs: model and limits are unknown.")
    if not export.has("StringIds"):
        notes.append("The export has no StringIds table: names are shown by number.")
    return notes + diagnostic_notes(diagnostics(export), pids)


def diagnostic_notes(said: Frame, pids: Sequence[int]) -> list[str]:
    """The profiler's own warnings and errors that bear on GPU figures, each once, on one line."""
    severity, text = said.labels("severity"), said.labels("text")
    about = np.isin(said.ints("pid"), [0, *pids])
    notes: dict[str, None] = {}
    for row in np.flatnonzero(about).tolist():
        line = " ".join(text[row].split())
        if severity[row] not in _WORTH or _NOT_USED.search(line) or not _RELEVANT.search(line):
            continue
        short = line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
        notes[f"nsys {severity[row]}: {short}"] = None
    return list(notes)


def _graph_note(export: NsysExport) -> list[str]:
    launches = export.count(GRAPH_TRACE)
    if not launches:
        return []
    return [
        (
            f"{launches:,} CUDA graph launches were traced as a whole; their kernels are not recorded "
            "one by one. `nsys profile --cuda-graph-trace=node` opens them."
        )
    ]
