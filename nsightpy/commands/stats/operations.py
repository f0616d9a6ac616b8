"""Kernels, memory operations and calls: their sums and traces."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from nsightpy.analysis import ranking
from nsightpy.analysis.grouping import named_by
from nsightpy.analysis.kernel_categories import category_of
from nsightpy.analysis.launches import api_calls
from nsightpy.analysis.memory.copies import host_memory
from nsightpy.analysis.ranking import durations, spread
from nsightpy.commands.stats.reports import (
    Listing,
    Reports,
    Sum,
    by_time,
    in_time_order,
    known,
    numbered_by,
    sum_of,
)
from nsightpy.frames import ColumnData, Frame, Ints, Labels, constant
from nsightpy.query import Scope, SystemReport
from nsightpy.query.launching_lines import launching_lines
from nsightpy.results.keys import API, KERNEL, MEMORY, RowKey, row_keys

# The columns of each frame that name its rows, or choose them.
_COLUMNS = {
    "kernels": (),
    "memory_operations": ("operation", "bytes"),
    "api_calls": ("name", "event_class"),
    "os_calls": ("name", "pid", "tid"),
    "library_calls": ("name", "pid", "tid", "library"),
    "mpi_calls": ("name", "pid", "tid", "kind"),
}
# Those that each split takes.
SPLIT_COLUMNS = {
    "rank": ("pid",),
    "process": ("pid",),
    "device": ("device",),
    "stream": ("stream",),
    "grid": ("grid_x", "grid_y", "grid_z"),
    "block": ("block_x", "block_y", "block_z"),
    "category": ("name",),
    "line": ("pid", "correlation_id"),
    "memory": ("source_memory", "target_memory"),
}
MEMORY_SET = "[CUDA memset]"
_NS_PER_S = 10**9
_PLACE = ("pid", "device", "context", "stream", "correlation_id", "green_context")
_SHAPE = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
_OF_KERNELS = (*_SHAPE, "registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes")
_OF_MEMORY = ("bytes", "source_memory", "target_memory")
_CALLS = ("name", "return_value", "correlation_id", "pid", "tid")


def events(
    report: SystemReport,
    scope: Scope,
    label: str,
    *,
    name: str,
    library: str = "",
    splits: Sequence[str] = (),
) -> Frame:
    """The rows of a frame in scope under their names; of libraries whose names begin so."""
    columns = [column for split in splits for column in SPLIT_COLUMNS[split]]
    labels = kernel_names(label) if name == "kernels" else ()
    frame = scope.read(report, name, (*_COLUMNS[name], *labels, *columns))
    if name == "api_calls":
        frame = api_calls(frame)
    elif library:
        frame = frame.take(frame.labels("library").where(lambda name: name.startswith(library)))
    return Frame(
        {**named(frame, label), **{split: _split(report, frame, split) for split in splits}}
    )


def kernel_names(label: str) -> tuple[str, ...]:
    """The columns that are read for kernels to go by those in the column `label`."""
    return (label, "name") if label == "mangled_name" else (label,)


def named(frame: Frame, label: str) -> Frame:
    """The rows under the names that are asked for: kernels under those in the column `label`.

    A kernel without a mangled name goes by its demangled one, as in nsys.
    """
    if "operation" in frame:
        return Frame({**frame, "name": frame["operation"]})
    if label not in frame:
        return frame
    names = frame.labels(label)
    if label == "mangled_name" and "" in names.values:
        demangled = frame.labels("name")
        codes, empty = names.codes.copy(), names.equals([""])
        codes[empty] = demangled.codes[empty] + len(names.values)
        names = Labels(codes, names.values + demangled.values).merged()
    return Frame({**frame, "name": names})


def _split(report: SystemReport, frame: Frame, split: str) -> ColumnData:
    if split == "memory":
        return host_memory(frame)
    if split == "category":
        return frame.labels("name").renamed(category_of)
    if split == "line":
        return launching_lines(report, frame)
    shaped = split in ("grid", "block")
    return ranking.shaped(frame, split) if shaped else frame[SPLIT_COLUMNS[split][0]]


def _together(
    report: SystemReport, scope: Scope, label: str, *, categories: Sequence[str]
) -> Frame:
    """The rows of several frames, each under what nsys calls those of its frame."""
    parts = []
    for category in categories:
        frame = events(report, scope, label, name=_FRAMES[category])
        labels = {"category": Labels.constant(category, frame.rows)}
        parts.append(Frame({**frame.select(("start_ns", "end_ns", "name")), **labels}))
    return Frame.concatenate(parts)


def _operations(report: SystemReport, scope: Scope, label: str) -> Iterator[Frame]:
    """Kernels and memory operations together; what rows of a kind lack is -1 or empty."""
    wanted = {
        "kernels": (*_PLACE, *_OF_KERNELS, *kernel_names(label)),
        "memory_operations": (*_PLACE, *_OF_MEMORY, "operation"),
    }
    columns = ("start_ns", "end_ns", "name", *_PLACE, *_OF_KERNELS, *_OF_MEMORY)
    for stretch in in_time_order(report, wanted, scope):
        parts = []
        for frame in stretch.values():
            lacking: dict[str, ColumnData] = dict.fromkeys(columns, constant(-1, frame.rows))
            lacking |= dict.fromkeys(_OF_MEMORY[1:], Labels.constant("", frame.rows))
            parts.append(Frame({**lacking, **named(frame, label)}).select(columns))
        both = Frame.concatenate(parts)
        yield _described(report, both.take(np.argsort(both.ints("start_ns"), kind="stable")))


def _described(report: SystemReport, frame: Frame) -> Frame:
    """Operations with what nsys says of them: rate in bytes per second, kinds of memory, device."""
    lengths, sizes = durations(frame), frame.ints("bytes")
    rates = sizes * (_NS_PER_S // np.maximum(lengths, 1))
    memory = frame.select(("name", "source_memory", "target_memory"))
    devices = report.frame("devices").tuples("pid", "device", "name")
    products = {(pid, device): name or "GPU" for pid, device, name in devices}

    def device_name(pid: int, device: int) -> str:
        product = products.get((pid, device)) or products.get((0, device), "")
        return f"{product} ({device})" if device >= 0 else ""

    # nsys names the memory that is set as the source
    return Frame(
        {
            **frame,
            "correlation_id": _correlations(report, frame),
            "rate": known(rates, (sizes >= 0) & (lengths > 0)),
            "source": named_by(memory, tuple(memory), lambda n, s, t: t if n == MEMORY_SET else s),
            "target": named_by(memory, tuple(memory), lambda n, _, t: "" if n == MEMORY_SET else t),
            "device_name": named_by(frame, ("pid", "device"), device_name),
        }
    )


def _correlations(report: SystemReport, frame: Frame) -> Ints:
    """Correlation ids, as nsys lists them; what a trace does not write is not known."""
    ids = frame.ints("correlation_id")
    return known(ids, ids != 0) if report.kind == "torch" else ids


def _api_calls(report: SystemReport, scope: Scope, _: str) -> Iterator[Frame]:
    named, unknown = report.capture.threads.items(), (None, None)
    threads = {(key >> 24, key & 0xFFFFFF): names for key, names in named}
    for stretch in in_time_order(report, {"api_calls": _CALLS}, scope):
        calls = stretch["api_calls"].ordered()
        ids = ("pid", "tid")
        yield Frame(
            {
                **calls,
                "correlation_id": _correlations(report, calls),
                "priority": numbered_by(calls, ids, lambda *ids: threads.get(ids, unknown)[0]),
                "thread": named_by(calls, ids, lambda *ids: threads.get(ids, unknown)[1] or ""),
            }
        )


# The frames of what nsys calls these.
_FRAMES = {"CUDA_KERNEL": "kernels", "MEMORY_OPER": "memory_operations", "CUDA_API": "api_calls"}
_CATEGORIES = tuple(
    RowKey(kind, ("Operation",), only=("Category", category))
    for kind, category in zip((KERNEL, MEMORY, API), _FRAMES, strict=True)
)
_BY_CATEGORY = {"category": "Category", "name": "Operation"}
_MEMORY = partial(events, name="memory_operations")


def _calls(
    records: str,
    name: str = "library_calls",
    library: str = "",
    count: str = "Num Calls",
    **about: Any,
) -> Sum:
    work = partial(events, name=name, library=library)
    return by_time(work, count, records=f"-t {records}", on_host=True, **about)


# What `kernels`, `memory` and `api` rank.
KERNELS = by_time(partial(events, name="kernels"), identity=row_keys(KERNEL, "Name"))
OPERATIONS = Sum(
    _MEMORY,
    ("name",),
    ranking.MEMORY,
    measures=("duration", "bytes"),
    identity=row_keys(MEMORY, "Operation"),
)
CALLS = by_time(
    partial(events, name="api_calls"), "Num Calls", identity=row_keys(API, "Name"), on_host=True
)
REPORTS: Reports = {
    "cuda_gpu_kern_sum": KERNELS,
    "cuda_api_sum": CALLS,
    "cuda_gpu_mem_time_sum": by_time(
        _MEMORY, "Count", {"name": "Operation"}, identity=OPERATIONS.identity
    ),
    "cuda_gpu_mem_size_sum": sum_of(
        _MEMORY,
        ("name",),
        "Total (MB)=total of bytes, Count=instances of bytes, "
        f"{spread(unit='MB', of='bytes')}, Operation=name",
        measures=("bytes",),
        identity=OPERATIONS.identity,
    ),
    "cuda_gpu_sum": by_time(
        partial(_together, categories=("CUDA_KERNEL", "MEMORY_OPER")),
        keys=_BY_CATEGORY,
        identity=_CATEGORIES,
    ),
    "cuda_api_gpu_sum": by_time(
        partial(_together, categories=tuple(_FRAMES)), keys=_BY_CATEGORY, identity=_CATEGORIES
    ),
    "osrt_sum": _calls("osrt", "os_calls"),
    "openacc_sum": _calls("openacc", library="OpenACC", count="Count"),
    "openmp_sum": _calls("openmp", library="OpenMP", count="Count"),
    "syscall_sum": _calls("syscall", library="syscall"),
    "cuda_gpu_trace": Listing(
        _operations,
        "Start (ns)=start_ns, Duration (ns)=duration, CorrId=correlation_id, GrdX=grid_x>0, "
        "GrdY=grid_y>0, GrdZ=grid_z>0, BlkX=block_x>0, BlkY=block_y>0, BlkZ=block_z>0, "
        "Reg/Trd=registers_per_thread>0, StcSMem (MB)=static_shared_bytes>-1, "
        "DymSMem (MB)=dynamic_shared_bytes>-1, Bytes (MB)=bytes>-1, Throughput (MB/s)=rate, "
        "SrcMemKd=source, DstMemKd=target, Device=device_name, Ctx=context>-1, "
        "GreenCtx=green_context>0, Strm=stream>-1, Name=name",
        identity=row_keys(KERNEL, "Name"),
    ),
    "cuda_api_trace": Listing(
        _api_calls,
        "Start (ns)=start_ns, Duration (ns)=duration, Name=name, Result=return_value, "
        "CorrID=correlation_id, Pid=pid, Tid=tid, T-Pri=priority, Thread Name=thread",
        identity=row_keys(API, "Name"),
    ),
}
