"""Frames as lanes of a timeline: streams of the GPU, NVTX ranges and API calls of host threads.

Events that overlap are laid out on levels on which none do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.launches import LAUNCH_CLASSES, launch_rows
from nsightpy.analysis.tally import Key
from nsightpy.frames import ColumnData, Frame, Ints, Labels, joined
from nsightpy.results import Value
from nsightpy.results.tracks import (
    CALL,
    CALLS,
    COMMUNICATION,
    COMPUTE,
    COPY,
    GRAPH,
    NO_LAUNCH,
    RANGE,
    RANGES,
    STREAM,
    Lane,
)
from nsightpy.units import format_bytes

_SHAPE = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_THREAD = ("pid", "tid")
_COMMON = ("start_ns", "end_ns", "pid", "device", "stream", "correlation_id")


def stream_lanes(
    kernels: Frame,
    operations: Frame,
    graphs: Frame,
    calls: Frame | None = None,
    communication: Iterable[str] = (),
) -> list[tuple[int, int, Lane]]:
    """One lane per (pid, device, stream) that did anything, with its pid and device.

    `calls` joins every operation with its launch. Grid, block and bytes become details where the
    frames have them.
    """
    events = _gpu_events(kernels, operations, graphs, tuple(communication))
    extra: dict[str, Ints] = {}
    if calls is not None:
        rows = launch_rows(events, calls)
        known = rows != NO_LAUNCH
        for name, column in (("launch_ns", "start_ns"), ("launch_tid", "tid")):
            values = np.full(events.rows, NO_LAUNCH, dtype=np.int64)
            values[known] = calls.ints(column)[rows[known]]
            extra[name] = values
        extra["flows"] = np.where(known, events.ints("correlation_id"), 0)
    lanes = []
    for key, part in _parts(events, extra, ("pid", "device", "stream")):
        pid, device, stream = map(_int, key)
        lanes.append((pid, device, _lane(part, STREAM, f"stream {stream}", stream)))
    return lanes


def range_lanes(ranges: Frame) -> list[tuple[int, Lane]]:
    """One lane of NVTX ranges per (pid, thread, domain), with its pid."""
    keys = ("pid", "tid", "domain")
    return [
        (_int(pid), _lane(part, RANGES, _range_label(_int(tid), str(domain)), _int(tid)))
        for (pid, tid, domain), part in _parts(_host_events(ranges, RANGE, keys), {}, keys)
    ]


def operator_lanes(operators: Frame) -> list[tuple[int, Lane]]:
    """One lane of a framework's operators per (pid, thread), with its pid."""
    return [
        (_int(pid), _lane(part, RANGES, f"operators, thread {tid}", _int(tid)))
        for (pid, tid), part in _parts(_host_events(operators, RANGE, _THREAD), {}, _THREAD)
    ]


def call_lanes(
    calls: Frame, streams: Sequence[tuple[int, int, Lane]] = ()
) -> list[tuple[int, Lane]]:
    """One lane of CUDA API calls per (pid, thread), with its pid; flows lead into the streams."""
    real = calls.take(np.isin(calls.ints("event_class"), LAUNCH_CLASSES))
    events = _host_events(real, CALL, _THREAD)
    flows = np.zeros(real.rows, dtype=np.int64)
    for pid in sorted({pid for pid, _, _ in streams}):
        used = [
            lane.flows for process, _, lane in streams if process == pid and lane.flows is not None
        ]
        launched = (real.ints("pid") == pid) & np.isin(
            real.ints("correlation_id"), np.concatenate([flows[:0], *used])
        )
        flows[launched] = real.ints("correlation_id")[launched]
    return [
        (_int(pid), _lane(part, CALLS, f"API calls, thread {tid}", _int(tid)))
        for (pid, tid), part in _parts(events, {"flows": flows}, _THREAD)
    ]


def _host_events(frame: Frame, category: int, keys: tuple[str, ...]) -> Frame:
    """The times, names and keys of events of host threads, all of one category."""
    return Frame(
        {**frame.select(("start_ns", "end_ns", *keys, "name")), "category": _all(frame, category)}
    )


def _int(value: Value) -> int:
    """A number out of a group's key."""
    return value if isinstance(value, int) else 0


def _range_label(tid: int, domain: str) -> str:
    return f"NVTX {domain}, thread {tid}" if domain else f"NVTX, thread {tid}"


def _gpu_events(kernels: Frame, operations: Frame, graphs: Frame, extra: Sequence[str]) -> Frame:
    """Kernels, memory operations and whole graphs as one frame."""
    names = kernels.labels("name")
    kind = np.where(is_communication(names, extra), COMMUNICATION, COMPUTE)
    parts: list[tuple[Frame, Labels, NDArray[np.int64], Labels]] = [
        (kernels, names, kind, _shapes(kernels)),
        (operations, operations.labels("operation"), _all(operations, COPY), _sizes(operations)),
        (graphs, _graph_names(graphs), _all(graphs, GRAPH), Labels.constant("", graphs.rows)),
    ]
    filled = [part for part in parts if part[0].rows] or parts[:1]
    columns: dict[str, ColumnData] = {
        name: joined([part[0][name] for part in filled]) for name in _COMMON if name in filled[0][0]
    }
    columns["name"] = joined([part[1] for part in filled])
    columns["category"] = np.concatenate([part[2] for part in filled])
    columns["details"] = joined([part[3] for part in filled])
    return Frame(columns)


def _all(frame: Frame, category: int) -> NDArray[np.int64]:
    return np.full(frame.rows, category, dtype=np.int64)


def _shapes(kernels: Frame) -> Labels:
    """Grid and block of each launch, in words."""
    if "grid_x" not in kernels or not kernels.rows:
        return Labels.constant("", kernels.rows)
    groups = group_by(kernels, _SHAPE)
    texts = (
        "grid {}x{}x{}, block {}x{}x{}".format(*key) if any(key) else "" for key in groups.keys
    )
    return Labels(groups.codes, tuple(texts))


def _sizes(operations: Frame) -> Labels:
    """Bytes of each operation and where they went, in words."""
    if "bytes" not in operations or not operations.rows:
        return Labels.constant("", operations.rows)
    groups = group_by(operations, ("bytes", "source_memory", "target_memory"))
    texts = []
    for size, source, target in groups.keys:
        way = f"{source} to {target}" if source and target else str(source or target)
        known = [format_bytes(_int(size))] if _int(size) >= 0 else []
        texts.append(", ".join(filter(None, [*known, way])))
    return Labels(groups.codes, tuple(texts))


def _graph_names(graphs: Frame) -> Labels:
    if "graph_id" not in graphs or not graphs.rows:
        return Labels.constant("CUDA graph, traced as a whole", graphs.rows)
    groups = group_by(graphs, ("graph_id",))
    names = tuple(f"CUDA graph {key[0]}, traced as a whole" for key in groups.keys)
    return Labels(groups.codes, names)


def _parts(
    events: Frame, extra: dict[str, Ints], keys: tuple[str, ...]
) -> Iterator[tuple[Key, Frame]]:
    """The events of each group by start, longest first; groups by their keys."""
    if not events.rows:
        return
    order = by_start(events.ints("start_ns"), events.ints("end_ns"))
    groups = group_by(events, keys)
    codes = groups.codes[order]
    order = order[np.argsort(codes, kind="stable")]
    counts = np.bincount(codes, minlength=len(groups.keys))
    bounds = [0, *np.cumsum(counts).tolist()]
    whole = Frame({**events, **extra})
    wanted = [name for name in whole if name not in keys]
    parts = [
        (key, Frame({name: whole[name] for name in wanted}).take(order[low:high]))
        for key, (low, high) in zip(groups.keys, pairwise(bounds), strict=True)
        if high > low
    ]
    yield from sorted(parts, key=lambda pair: pair[0])


def _lane(part: Frame, kind: str, label: str, number: int) -> Lane:
    starts, ends = part.ints("start_ns"), part.ints("end_ns")
    ends = np.maximum(starts, ends)
    levels = levels_of(starts, ends)
    details = part.labels("details").used() if "details" in part else None
    if details is not None and not any(details.values):
        details = None
    return Lane(
        kind=kind,
        label=label,
        number=number,
        starts=starts,
        ends=ends,
        names=part.labels("name").used(),
        levels=levels,
        categories=part.ints("category").astype(np.uint8),
        nested=kind != STREAM and is_nested(starts, ends, levels),
        details=details,
        launch_ns=part.ints("launch_ns") if "launch_ns" in part else None,
        launch_tid=part.ints("launch_tid") if "launch_tid" in part else None,
        flows=part.ints("flows") if "flows" in part else None,
    )


# What is nested deeper is drawn there.
DEEPEST = 10_000


def levels_of(starts: Ints, ends: Ints) -> NDArray[np.int16]:
    """The level of each event, as few as nesting needs; events by start, longest first.

    An event's level is the number of events open when it starts; where that makes two meet, as
    ranges that cross each other do, each takes the lowest free level. One that has no length
    keeps its place to itself.
    """
    solid = np.maximum(ends, starts + 1)
    if len(starts) < 2 or bool(np.all(starts[1:] >= solid[:-1])):
        return np.zeros(len(starts), dtype=np.int16)
    closed = np.searchsorted(np.sort(solid), starts, side="right")
    levels = np.minimum(np.arange(len(starts)) - closed, DEEPEST).astype(np.int16)
    return levels if _disjoint(starts, solid, levels) else _first_free(starts, solid)


def is_nested(starts: Ints, ends: Ints, levels: NDArray[np.int16]) -> bool:
    """Whether every event of a deeper level lies inside one event of the level above."""
    outer = np.flatnonzero(levels == 0)
    for level in range(1, int(levels.max()) + 1 if len(levels) else 0):
        inner = np.flatnonzero(levels == level)
        place = np.searchsorted(outer, inner) - 1
        if bool(np.any(place < 0)) or bool(np.any(ends[outer[place]] < ends[inner])):
            return False
        outer = inner
    return True


def by_start(starts: Ints, ends: Ints) -> Ints:
    """The order of events by start, longest first."""
    if bool(np.all(starts[1:] > starts[:-1])):
        return np.arange(len(starts))
    return np.lexsort((-ends, starts))


def _disjoint(starts: Ints, ends: Ints, levels: NDArray[np.int16]) -> bool:
    order = np.argsort(levels, kind="stable")
    same = levels[order][1:] == levels[order][:-1]
    overlaps = starts[order][1:] < ends[order][:-1]
    return not bool(np.any(same & overlaps))


def _first_free(starts: Ints, ends: Ints) -> NDArray[np.int16]:
    open_until: list[tuple[int, int]] = []
    free: list[int] = []
    levels = np.empty(len(starts), dtype=np.int16)
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while open_until and open_until[0][0] <= start:
            heappush(free, heappop(open_until)[1])
        level = heappop(free) if free else len(open_until)
        heappush(open_until, (end, level))
        levels[row] = min(level, DEEPEST)
    return levels
