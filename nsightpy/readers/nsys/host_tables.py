"""Calls of the host beside CUDA's, as frames: MPI, cuBLAS, cuDNN, the operating system.

Made from the Nsight Systems User Guide, "SQLite schema reference". No public capture with rows in
MPI_*, CUBLAS_EVENTS or CUDNN_EVENTS was at hand: those are tested on simulated exports only;
OSRT_API and MPI as NVTX ranges on real ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels
from nsightpy.readers.nsys.columns import SPAN, Expression, column, process_of, thread_of
from nsightpy.readers.nsys.events import without_version
from nsightpy.readers.nsys.tables import NsysExport, Source, read

OSRT = "OSRT_API"
MPI_DOMAIN = "MPI"
# What is read of NVTX ranges where they stand for MPI calls.
MPI_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "domain")
MPI_TABLES = {
    "MPI_P2P_EVENTS": "point-to-point",
    "MPI_COLLECTIVES_EVENTS": "collective",
    "MPI_START_WAIT_EVENTS": "wait",
    "MPI_OTHER_EVENTS": "other",
}
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
}
_THREAD: dict[str, Expression] = {
    **SPAN,
    "pid": process_of("globalTid"),
    "tid": thread_of("globalTid"),
}
# Rows that only say when the tracing of a process began and finished.
_NO_CALLS = (31, 32)


def _is_call(table: sa.TableClause) -> sa.ColumnElement[Any] | None:
    return table.c.eventClass.not_in(_NO_CALLS) if "eventClass" in table.c else None


_OS_CALLS = Source(
    OSRT,
    {**_THREAD, "return_value": column("returnValue"), "nesting_level": column("nestingLevel")},
    {"name": "nameId"},
    where=_is_call,
)


def os_calls(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of calls into the operating system's libraries."""
    return read(export, frames.OS_CALLS, _OS_CALLS, columns)


def library_calls(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of calls of cuBLAS and cuDNN, of OpenACC and OpenMP events, of system calls."""
    parts = [
        read(
            export,
            frames.LIBRARY_CALLS,
            Source(table, _THREAD, {"name": "nameId"}, same={"library": library}),
            columns,
        )
        for table, library in LIBRARY_TABLES.items()
    ]
    return _plain(Frame.concatenate(parts))


def has_mpi(export: NsysExport) -> bool:
    """Whether an export has the tables of MPI calls."""
    return any(export.has(table) for table in MPI_TABLES)


def mpi_calls(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of MPI calls, from the MPI tables."""
    parts = [
        read(
            export,
            frames.MPI_CALLS,
            Source(
                table,
                {
                    **_THREAD,
                    "bytes": column("size"),
                    "peer": _peer,
                    "communicator": column("commHandle"),
                },
                {"name": "textId"},
                same={"kind": kind},
            ),
            columns,
        )
        for table, kind in MPI_TABLES.items()
    ]
    return Frame.concatenate(parts)


def _peer(table: sa.TableClause) -> sa.ColumnElement[Any] | None:
    name = next((name for name in ("remoteRank", "rootRank") if name in table.c), None)
    found = None if name is None else column(name)(table)
    return None if found is None else sa.func.coalesce(found, -1)


def mpi_ranges(ranges: Frame) -> Frame:
    """MPI calls of an export that has them as NVTX ranges of domain MPI only (2022 and before)."""
    mine = ranges.take(ranges.labels("domain").equals([MPI_DOMAIN]))
    kinds = tuple(_kind_of(name) for name in mine.labels("name").values)
    made: dict[str, ColumnData] = {
        **{name: mine[name] for name in MPI_COLUMNS if name != "domain"},
        "kind": Labels(mine.labels("name").codes, kinds).merged(),
        "bytes": np.zeros(mine.rows, dtype=np.int64),
        "peer": np.full(mine.rows, -1, dtype=np.int64),
        "communicator": np.zeros(mine.rows, dtype=np.int64),
    }
    return Frame({name: made[name] for name in frames.MPI_CALLS.names})


def _kind_of(name: str) -> str:
    """The kind of an MPI function, as the tables of later exports sort them."""
    plain = name.removeprefix("MPI_").lower()
    if plain.startswith(("wait", "test", "start")):
        return "wait"
    if plain.lstrip("i").startswith(("send", "recv", "bsend", "ssend", "rsend", "probe", "mrecv")):
        return "point-to-point"
    words = ("bcast", "reduce", "gather", "scatter", "alltoall", "barrier", "scan")
    return "collective" if any(word in plain for word in words) else "other"


def _plain(frame: Frame) -> Frame:
    """Names without their version suffix."""
    if "name" not in frame:
        return frame
    names = frame.labels("name")
    plain = Labels(names.codes, tuple(map(without_version, names.values))).merged()
    return Frame({**frame, "name": plain})
