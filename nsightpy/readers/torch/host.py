"""What a trace says of the host: API calls, annotated ranges, operators, Python functions, waits,
recorded events, allocations, as frames."""

from __future__ import annotations

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Ints, Labels, distinct
from nsightpy.readers.torch.nesting import ROOT, callers

PUSH_POP = "PushPop"
FORWARD, BACKWARD = "forward", "backward"
_ENGINE = "autograd::engine::evaluate_function"
# c10::DeviceType
_CPU = 0
_ACCELERATORS = (1, 6, 12, 15, 19, 20)  # CUDA, HIP, XPU, HPU, MTIA, PrivateUse1
_MEMORY = {_CPU: "CPU"} | dict.fromkeys(_ACCELERATORS, "Device")
_KINDS = {
    "stream wait event": "stream wait",
    "event sync": "event",
    "stream sync": "stream",
    "stream synchronize": "stream",
    "context sync": "context",
    "device sync": "context",
}


def api_calls(table: Frame) -> Frame:
    """The frame of runtime and driver calls; a trace has no return values."""
    names = table.labels("name")
    return Frame(
        {
            **_spans(table),
            "correlation_id": table["correlation"],
            "name": names,
            "return_value": frames.constant(0, table.rows),
            "event_class": names.map(_is_driver, np.int64),
        }
    )


def _is_driver(name: str) -> bool:
    """Whether a function is of CUDA's driver: cuLaunchKernel, and not cudaLaunchKernel."""
    return name.startswith("cu") and name[2:3].isupper()


def nvtx_ranges(table: Frame) -> Frame:
    """The frame of ranges: record_function and the profiler's steps."""
    return Frame(
        {
            **_spans(table),
            "end_tid": table["tid"],
            "name": table["name"],
            "domain": Labels.constant("", table.rows),
            "style": Labels.constant(PUSH_POP, table.rows),
        }
    )


def operators(table: Frame) -> Frame:
    """The frame of operators, by start; `parent` is a row of the same frame."""
    start, end = table.ints("start"), table.ints("end")
    calling = callers(start, end, thread_code(table))
    order = np.argsort(start, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    parent = calling.parent[order]
    parent = np.where(parent == ROOT, ROOT, place[parent])
    rows = table.take(order)
    depth = calling.depth[order]
    return Frame(
        {
            **_spans(rows),
            "name": rows["name"],
            "depth": depth,
            "parent": parent,
            "shapes": rows["dims"],
            "types": rows["types"],
            "inputs": rows["concrete"],
            "sequence": rows["sequence"],
            "direction": _direction(rows, parent, depth),
            "forward_tid": np.maximum(rows.ints("forward_thread"), 0),
        }
    )


def _direction(rows: Frame, parent: Ints, depth: Ints) -> Labels:
    """Which operators autograd runs backward, with what they call; which it will run forward."""
    backward = rows.labels("name").where(lambda name: name.startswith(_ENGINE))
    backward |= rows.ints("forward_thread") > 0
    for level in range(1, int(depth.max(initial=0)) + 1):
        mine = np.flatnonzero(depth == level)
        backward[mine] |= backward[parent[mine]]
    recorded = rows.ints("sequence") >= 0
    codes = np.where(backward, 2, recorded.astype(np.int64))
    return Labels(codes.astype(np.int32), ("", FORWARD, BACKWARD))


def python_functions(table: Frame) -> Frame:
    """The frame of Python calls (with_stack), by start; modules have a number of their own."""
    return Frame(
        {
            **_spans(table),
            "name": table["name"],
            "python_id": table["python_id"],
            "parent_id": table["python_parent"],
            "module_id": table["python_module"],
        }
    )


def synchronizations(table: Frame, pid: Ints) -> Frame:
    """The frame of synchronizations; recordings are known by the call that made them."""
    kinds = table.labels("name").renamed(lambda name: _KINDS.get(name.lower(), name.lower()))
    return Frame(
        {
            "start_ns": table["start"],
            "end_ns": table["end"],
            "pid": pid,
            "device": table["device"],
            "context": table["context"],
            "stream": table["stream"],
            "correlation_id": table["correlation"],
            "kind": kinds,
            "event_id": table["event"],
            "event_sync_id": np.maximum(table.ints("record"), 0),
        }
    )


def cuda_events(recorded: Frame, waits: Frame, pids: tuple[Ints, Ints]) -> Frame:
    """The frame of recorded events: those of the trace, and those that waits speak of."""
    known = (waits.ints("record") > 0) & (waits.ints("wait_on") >= 0)
    named = waits.take(known)
    _, first = np.unique(named.ints("record"), return_index=True)
    named, pid = named.take(first), pids[1][known][first]
    new = ~np.isin(named.ints("record"), recorded.ints("correlation"))
    named, pid = named.take(new), pid[new]
    return Frame.concatenate(
        [
            _events(recorded, pids[0], "stream", "correlation", recorded.ints("end")),
            _events(named, pid, "wait_on", "record", np.zeros(named.rows, dtype=np.int64)),
        ]
    )


def _events(table: Frame, pid: Ints, stream: str, correlation: str, time: Ints) -> Frame:
    return Frame(
        {
            "pid": pid,
            "device": table["device"],
            "context": table["context"],
            "stream": table[stream],
            "correlation_id": table[correlation],
            "time_ns": time,
            "event_id": table["event"],
            "event_sync_id": table[correlation],
        }
    )


def memory_usage(table: Frame) -> Frame:
    """The frame of allocations and frees of torch's allocators (profile_memory)."""
    sizes = table.ints("bytes")
    kinds, codes = distinct(table.ints("device_type"))
    names = tuple(_MEMORY.get(kind, f"device type {kind}") for kind in kinds.tolist())
    return Frame(
        {
            "start_ns": table["start"],
            "pid": table["pid"],
            "device": np.maximum(table.ints("device"), 0),
            "context": frames.constant(0, table.rows),
            "correlation_id": frames.constant(0, table.rows),
            "address": table["address"],
            "bytes": np.abs(sizes),
            "memory": Labels(codes, names),
            "operation": Labels((sizes < 0).astype(np.int32), ("allocate", "free")),
            "variable": Labels.constant("", table.rows),
            "tid": table["tid"],
            "allocated_bytes": table["total_allocated"],
            "reserved_bytes": table["total_reserved"],
        }
    )


def thread_code(table: Frame) -> Ints:
    """One number for each thread of each process."""
    _, pid = distinct(table.ints("pid"))
    threads, tid = distinct(table.ints("tid"))
    return pid.astype(np.int64) * max(len(threads), 1) + tid


def _spans(table: Frame) -> dict[str, ColumnData]:
    return {
        "start_ns": table["start"],
        "end_ns": table["end"],
        "pid": table["pid"],
        "tid": table["tid"],
    }
