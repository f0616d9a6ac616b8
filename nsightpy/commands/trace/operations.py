"""trace: kernels, copies and memory sets by start, as nsys stats cuda_gpu_trace lists them."""

from __future__ import annotations

from collections.abc import Iterator

from nsightpy.commands.trace.cells import (
    Place,
    absent,
    batches,
    in_time_order,
    listed,
    megabytes,
    positive,
    rows_of,
    texts,
    throughputs,
)
from nsightpy.frames import Frame
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Value, fields_in

FIELDS = (
    Field("Start (ns)", "ns"),
    Field("Duration (ns)", "ns"),
    Field("CorrId", "id"),
    *(Field(f"{what}{axis}") for what in ("Grd", "Blk") for axis in "XYZ"),
    Field("Reg/Trd"),
    *fields_in("MB", "StcSMem (MB)", "DymSMem (MB)", "Bytes (MB)", decimals=3),
    Field("Throughput (MB/s)", "MB/s", 3),
    *fields_in("text", "SrcMemKd", "DstMemKd", "Device"),
    *fields_in("id", "Ctx", "GreenCtx", "Strm"),
    Field("Name", "text"),
)
_PLACE = ("start_ns", "end_ns", "pid", "device", "context", "stream", "correlation_id")
_SHAPE = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
_SHARED = ("static_shared_bytes", "dynamic_shared_bytes")
_KERNELS = (*_PLACE, *_SHAPE, "registers_per_thread", *_SHARED, "green_context")
_MEMORY = (*_PLACE, "operation", "bytes", "source_memory", "target_memory", "green_context")
MEMORY_SET = "[CUDA memset]"


def columns(name: str) -> dict[str, tuple[str, ...]]:
    """The columns of each frame that are read, kernels under that name of theirs."""
    return {"kernels": (*_KERNELS, name), "memory_operations": _MEMORY}


def listing(place: Place, scope: Scope, name: str) -> Iterator[Row]:
    """The rows of a report in time order."""
    devices = device_names(place.report)
    for stretch in in_time_order(place.report, columns(name), scope):
        rows: list[Row] = []
        for frame, every in stretch.items():
            made = _kernels if frame == "kernels" else _memory
            for batch in batches(every):
                rows += made(place, batch, devices, name)
        yield from sorted(rows, key=lambda row: int(row[0] or 0))


def device_names(report: SystemReport) -> dict[tuple[int, int], str]:
    """Product names by process (0: every one) and CUDA device."""
    devices = report.frame("devices").tuples("pid", "device", "name")
    return {(pid, device): name or "GPU" for pid, device, name in devices}


def _kernels(
    place: Place, frame: Frame, devices: dict[tuple[int, int], str], name: str
) -> list[Row]:
    return rows_of(
        [
            *_when(place, frame),
            *(positive(frame.ints(column)) for column in _SHAPE),
            positive(frame.ints("registers_per_thread")),
            *(megabytes(frame.ints(column)) for column in _SHARED),
            *[absent(frame.rows)] * 4,
            *_where(frame, devices),
            texts(frame.labels(name)),
        ]
    )


def _memory(place: Place, frame: Frame, devices: dict[tuple[int, int], str], _: str) -> list[Row]:
    sizes = frame.ints("bytes")
    kind, source, target = (
        texts(frame.labels(c)) for c in ("operation", "source_memory", "target_memory")
    )
    is_set = [operation == MEMORY_SET for operation in kind]
    ends = zip(is_set, source, target, strict=True)
    # nsys names the memory that is set as the source
    pairs = [(there, None) if sets else (here, there) for sets, here, there in ends]
    return rows_of(
        [
            *_when(place, frame),
            *[absent(frame.rows)] * 9,
            megabytes(sizes),
            throughputs(sizes, frame.ints("end_ns") - frame.ints("start_ns")),
            [source for source, _ in pairs],
            [target for _, target in pairs],
            *_where(frame, devices),
            kind,
        ]
    )


def _when(place: Place, frame: Frame) -> list[list[Value]]:
    starts = frame.ints("start_ns")
    lengths = listed(frame.ints("end_ns") - starts)
    return [place.times(frame, starts), lengths, place.correlations(frame)]


def _where(frame: Frame, devices: dict[tuple[int, int], str]) -> list[list[Value]]:
    """Device, context, green context and stream; None where a row names none."""
    pairs = list(frame.tuples("pid", "device"))
    shown = {
        (pid, device): f"{devices.get((pid, device)) or devices.get((0, device), '')} ({device})"
        for pid, device in set(pairs)
        if device >= 0
    }
    names: list[Value] = [shown.get(pair) for pair in pairs]
    context, stream = (
        [None if value < 0 else value for value in frame.ints(name).tolist()]
        for name in ("context", "stream")
    )
    return [names, context, positive(frame.ints("green_context")), stream]
