"""Calls of the host beside CUDA's and MPI's, as frames: cuBLAS, cuDNN, the operating system.

Made from the Nsight Systems User Guide, "SQLite schema reference". No public capture with rows in
CUBLAS_EVENTS or CUDNN_EVENTS was at hand: those are tested on simulated exports only; OSRT_API on
real ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.nsys.columns import SPAN, Expression, column, process_of, thread_of
from nsightpy.readers.nsys.events import plain_calls
from nsightpy.readers.nsys.table_frames import Source, read
from nsightpy.readers.nsys.tables import NsysExport

OSRT = "OSRT_API"
_OPENMP = (
    *("THREAD", "PARALLEL", "SYNC_REGION_WAIT", "SYNC_REGION", "TASK", "MASTER", "REDUCTION"),
    *("TASK_CREATE", "TASK_SCHEDULE", "CANCEL", "MUTEX_WAIT", "CRITICAL_SECTION"),
    *("MUTEX_RELEASED", "LOCK_INIT", "LOCK_DESTROY", "WORKSHARE", "DISPATCH", "FLUSH"),
)
LIBRARY_TABLES = {
    "CUBLAS_EVENTS": "cuBLAS",
    "CUDNN_EVENTS": "cuDNN",
    **{f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}": "OpenACC" for kind in ("DATA", "LAUNCH", "OTHER")},
    **{f"OPENMP_EVENT_KIND_{kind}": "OpenMP" for kind in _OPENMP},
    "SYSCALL": "syscall",
    **{f"NVVIDEO_{kind.upper()}_API": f"NvVideo {kind}" for kind in ("Encoder", "Decoder", "JPEG")},
}
_THREAD: dict[str, Expression] = {
    **SPAN,
    "pid": process_of("globalTid"),
    "tid": thread_of("globalTid"),
}
# Rows that only say when the tracing of a process began and finished.
_NO_CALLS = (31, 32)


_OS_CALLS = Source(
    OSRT,
    {**_THREAD, "return_value": column("returnValue"), "nesting_level": column("nestingLevel")},
    {"name": "nameId"},
    where=lambda t: t.c.eventClass.not_in(_NO_CALLS) if "eventClass" in t.c else None,
)


def os_calls(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of calls into the operating system's libraries."""
    return read(export, frames.OS_CALLS, _OS_CALLS, columns)


def library_calls(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of calls of cuBLAS, cuDNN and NvVideo, of OpenACC, OpenMP and system calls."""
    parts = [
        read(
            export,
            frames.LIBRARY_CALLS,
            Source(table, _THREAD, {"name": "nameId"}, same={"library": library}),
            columns,
        )
        for table, library in LIBRARY_TABLES.items()
    ]
    return plain_calls(Frame.concatenate(parts))
