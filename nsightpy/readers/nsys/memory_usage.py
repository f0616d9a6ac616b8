"""Allocations of device and pinned memory (CUDA_GPU_MEMORY_USAGE_EVENTS) as a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame
from nsightpy.readers.nsys.columns import column, text
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


def memory_usage(export: NsysExport, columns: Sequence[str] | None = None) -> Frame:
    """The frame of allocations and frees; static variables are allocated when they are loaded."""
    wanted = tuple(columns or frames.MEMORY_USAGE.names)
    plain = tuple(name for name in wanted if name != "variable" and name not in _NOT_RECORDED)
    usage = read(export, frames.MEMORY_USAGE, _USAGE, plain or ("start_ns",))
    made = dict(usage)
    if "variable" in wanted:
        made |= _variables(export)
    for name in _NOT_RECORDED:
        made[name] = frames.constant(int(frames.MEMORY_USAGE[name].missing), usage.rows)
    return Frame({name: made[name] for name in wanted})


def _variables(export: NsysExport) -> Mapping[str, ColumnData]:
    if not export.has(MEMORY_USAGE):
        return Frame.empty(frames.MEMORY_USAGE, ["variable"])
    table = export.file.tables[MEMORY_USAGE]
    return export.file.arrays(sa.select(text(table, "name").label("variable")).select_from(table))
