"""What a trace says of the host: API calls, annotated ranges, operators, Python functions, waits,
recorded events, allocations, as frames."""

import numpy as np
from numpy.typing import NDArray

from nsightpy import frames
from nsightpy.frames import Frame, Ints, Labels, distinct_pairs

PUSH_POP = "PushPop"
ROOT = -1  # the parent of operators that none calls
_NEVER = 2**63
FORWARD, BACKWARD = "forward", "backward"
_ENGINE = "autograd::engine::evaluate_function"
_CPU = 0  # of c10::DeviceType; the others are of accelerators
_EVENT = ("pid", "device", "context", "stream", "correlation_id", "time_ns", "event_id")
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
    # cuLaunchKernel is CUDA's driver, cudaLaunchKernel is not
    driver = table.labels("name").where(lambda name: name[:2] == "cu" and name[2:3].isupper())
    return Frame({**table, "event_class": driver.astype(np.int64)})


def nvtx_ranges(table: Frame) -> Frame:
    """The frame of ranges: record_function and the profiler's steps."""
    style = Labels.constant(PUSH_POP, table.rows)
    return Frame({**table, "end_tid": table["tid"], "style": style})


def operators(table: Frame) -> Frame:
    """The frame of operators, by start; `parent` is a row of the same frame."""
    rows = table.take(np.argsort(table.ints("start_ns"), kind="stable"))
    _, thread = distinct_pairs(rows.ints("pid"), rows.ints("tid"))
    parent, depth = callers(rows.ints("start_ns"), rows.ints("end_ns"), thread)
    return Frame(
        {
            **rows,
            "depth": depth,
            "parent": parent,
            "direction": _direction(rows, parent, depth),
            "forward_tid": np.maximum(rows.ints("forward_tid"), 0),
        }
    )


def _direction(rows: Frame, parent: Ints, depth: Ints) -> Labels:
    """Which operators autograd runs backward, with what they call; which it will run forward."""
    backward = rows.labels("name").where(lambda name: name.startswith(_ENGINE))
    backward |= rows.ints("forward_tid") > 0
    for level in range(1, int(depth.max(initial=0)) + 1):
        callees = np.flatnonzero(depth == level)
        backward[callees] |= backward[parent[callees]]
    recorded = rows.ints("sequence") >= 0
    codes = np.where(backward, 2, recorded.astype(np.int64))
    return Labels(codes.astype(np.int32), ("", FORWARD, BACKWARD))


def synchronizations(table: Frame, pid: Ints) -> Frame:
    """The frame of synchronizations; recordings are known by the call that made them."""
    kinds = table.labels("name").renamed(lambda name: _KINDS.get(name.lower(), name.lower()))
    recording = np.maximum(table.ints("event_sync_id"), 0)
    return Frame({**table, "pid": pid, "kind": kinds, "event_sync_id": recording})


def cuda_events(recorded: Frame, waits: Frame, pids: tuple[Ints, Ints]) -> Frame:
    """The frame of recorded events: those of the trace, and those that waits speak of."""
    names_recording = (waits.ints("event_sync_id") > 0) & (waits.ints("wait_on") >= 0)
    _, first = np.unique(waits.ints("event_sync_id")[names_recording], return_index=True)
    rows = np.flatnonzero(names_recording)[first]
    new = ~np.isin(waits.ints("event_sync_id")[rows], recorded.ints("correlation_id"))
    named = waits.take(rows[new])
    of_waits = {
        "pid": pids[1][rows[new]],
        "stream": named["wait_on"],
        "correlation_id": named["event_sync_id"],
        "time_ns": frames.constant(0, named.rows),
    }
    of_trace = {**recorded, "pid": pids[0], "time_ns": recorded["end_ns"]}
    parts = (Frame(of_trace), Frame({**named, **of_waits}))
    events = Frame.concatenate([part.select(_EVENT) for part in parts])
    return Frame({**events, "event_sync_id": events["correlation_id"]})


def memory_usage(table: Frame) -> Frame:
    """The frame of allocations and frees of torch's allocators (profile_memory)."""
    sizes = table.ints("bytes")
    of_accelerator = table.ints("device_type") != _CPU
    return Frame(
        {
            **table,
            "device": np.maximum(table.ints("device"), 0),
            "context": frames.constant(0, table.rows),
            "bytes": np.abs(sizes),
            "memory": Labels(of_accelerator.astype(np.int32), ("CPU", "Device")),
            "operation": Labels((sizes < 0).astype(np.int32), ("allocate", "free")),
        }
    )


def callers(start: Ints, end: Ints, thread: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """For each operator the row of its caller (ROOT: none), and how many callers are above it.

    Operators are given by start, of one start in the order of the file.
    """
    parent, depth = np.empty(len(start), dtype=np.int64), np.empty(len(start), dtype=np.int64)
    by_thread = np.lexsort((-end, start, thread))
    for rows in np.split(by_thread, np.flatnonzero(np.diff(thread[by_thread])) + 1):
        above, depth[rows] = _of_thread(start[rows].tolist(), end[rows].tolist())
        parent[rows] = np.append(rows, ROOT)[above]
    return parent, depth


def _of_thread(starts: list[int], ends: list[int]) -> tuple[list[int], list[int]]:
    """Caller (a row) and depth of one thread's operators, by start, the longer first."""
    above, depth, open_rows = [], [], [ROOT]
    ends.append(_NEVER)  # of ROOT, the last one
    for row, start in enumerate(starts):
        while ends[open_rows[-1]] <= start:
            open_rows.pop()
        above.append(open_rows[-1])
        depth.append(len(open_rows) - 1)
        open_rows.append(row)
    return above, depth
