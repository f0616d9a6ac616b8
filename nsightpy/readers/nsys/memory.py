"""Memory as frames: allocations (CUDA_GPU_MEMORY_USAGE_EVENTS), page faults of unified memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame
from nsightpy.readers.nsys.columns import Expression, column, process_of, text
from nsightpy.readers.nsys.events import MEMORY_KINDS, PLACE
from nsightpy.readers.nsys.table_frames import Source, read
from nsightpy.readers.nsys.tables import NsysExport
from nsightpy.readers.sql import sa

MEMORY_USAGE = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_OPERATIONS = {0: "allocate", 1: "free"}
_NOT_RECORDED = ("tid", "allocated_bytes", "reserved_bytes")
_USAGE = Source(
    MEMORY_USAGE,
    {
        "start_ns": column("start"),
        **{name: PLACE[name] for name in ("pid", "device", "context", "correlation_id")},
        "address": column("address"),
        "bytes": column("bytes"),
    },
    codes={
        "memory": ("memKind", MEMORY_KINDS),
        "operation": ("memoryOperationType", _OPERATIONS),
    },
)


def _constant(value: int) -> Expression:
    return lambda table: sa.literal_column(str(value))


_FAULT = {"start_ns": column("start"), "pid": process_of("globalPid"), "address": column("address")}
_FAULTS = (
    Source(
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS",
        {
            **_FAULT,
            "end_ns": column("start"),
            "device": _constant(-1),
            "faults": _constant(1),
            "instruction": column("originalFaultPc"),
        },
    ),
    Source(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        {
            **_FAULT,
            "end_ns": column("end"),
            "device": column("deviceId"),
            "faults": column("numberOfPageFaults"),
            "instruction": _constant(0),
        },
    ),
)
FAULT_TABLES = tuple(source.table for source in _FAULTS)


def memory_usage(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of allocations and frees; static variables are allocated when they are loaded."""
    wanted = tuple(columns or frames.MEMORY_USAGE.names)
    if export.has(MEMORY_USAGE) and "bytes" not in export.file.tables[MEMORY_USAGE].c:
        export.notes[f"its table {MEMORY_USAGE} has no column bytes and is left out."] = None
        return Frame.empty(frames.MEMORY_USAGE, wanted)
    plain = tuple(name for name in wanted if name != "variable" and name not in _NOT_RECORDED)
    usage = read(export, frames.MEMORY_USAGE, _USAGE, plain or ("start_ns",))
    made = dict(usage)
    if "variable" in wanted:
        made |= _variables(export)
    for name in _NOT_RECORDED:
        made[name] = frames.constant(int(frames.MEMORY_USAGE[name].missing), usage.rows)
    return Frame({name: made[name] for name in wanted})


def _variables(export: NsysExport) -> Mapping[str, ColumnData]:
    """The names of static variables, of the rows that count."""
    if not export.has(MEMORY_USAGE):
        return Frame.empty(frames.MEMORY_USAGE, ["variable"])
    table = export.file.tables[MEMORY_USAGE]
    query = sa.select(text(table, "name").label("variable")).select_from(table)
    return export.countable(MEMORY_USAGE, Frame(export.file.arrays(query)))


def page_faults(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of page faults, those of processors first."""
    return Frame.concatenate(
        [read(export, frames.PAGE_FAULTS, source, columns) for source in _FAULTS]
    )
