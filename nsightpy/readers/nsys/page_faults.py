"""Page faults of unified memory in an export (`--cuda-um-cpu-page-faults`, `-gpu-page-faults`)."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy import frames
from nsightpy.frames import Frame
from nsightpy.readers.nsys.columns import Expression, column, process_of
from nsightpy.readers.nsys.table_frames import Source, read
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

HOST = -1


def _constant(value: int) -> Expression:
    return lambda table: sa.literal_column(str(value))


_PLACE = {"start_ns": column("start"), "pid": process_of("globalPid"), "address": column("address")}
_SOURCES = (
    Source(
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        {
            **_PLACE,
            "end_ns": column("start"),
            "device": _constant(HOST),
            "faults": _constant(1),
            "instruction": column("originalFaultPc"),
        },
    ),
    Source(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        {
            **_PLACE,
            "end_ns": column("end"),
            "device": column("deviceId"),
            "faults": column("numberOfPageFaults"),
            "instruction": _constant(0),
        },
    ),
)
TABLES = tuple(source.table for source in _SOURCES)


def page_faults(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of page faults, those of processors first."""
    return Frame.concatenate(
        [read(export, frames.PAGE_FAULTS, source, columns) for source in _SOURCES]
    )
