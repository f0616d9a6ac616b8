"""Frames as lanes of a timeline: streams of the GPU, NVTX ranges and API calls of host threads.

Events that overlap are laid out on levels on which none do.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.grouping import group_by, named_by, rows_of_groups
from nsightpy.analysis.launches import LAUNCH_CLASSES, launch_rows, of_calls
from nsightpy.frames import Frame, Ints, Labels
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
_COMMON = ("start_ns", "end_ns", "pid", "device", "stream", "correlation_id")


def stream_lanes(
    kernels: Frame,
    operations: Frame,
    graphs: Frame,
    calls: Frame | None,
    communication: tuple[str, ...],
) -> list[tuple[int, int, Lane]]:
    """One lane per (pid, device, stream) that did anything, with its pid and device.

    `calls` joins every operation with its launch. Grid, block and bytes become details where the
    frames have them.
    """
    events = _gpu_events(kernels, operations, graphs, communication)
    if calls is not None:
        rows = launch_rows(events, calls)
        launched = {
            name: of_calls(calls.ints(column), rows, NO_LAUNCH)
            for name, column in (("launch_ns", "start_ns"), ("launch_tid", "tid"))
        }
        flows = np.where(rows != NO_LAUNCH, events.ints("correlation_id"), 0)
        events = Frame({**events, **launched, "flows": flows})
    lanes = []
    for (pid, device, stream), part in _parts(events, ("pid", "device", "stream")):
        lanes.append((pid, device, _lane(part, STREAM, f"stream {stream}", stream)))
    return lanes


def host_lanes(
    events: Frame, label: str, kind: str = RANGES, category: int = RANGE
) -> list[tuple[int, Lane]]:
    """One lane per (pid, thread, domain where there are any) of ranges or calls, with its pid."""
    events = Frame({**events, "category": np.full(events.rows, category, dtype=np.int64)})
    keys = tuple(name for name in ("pid", "tid", "domain") if name in events)
    lanes = []
    for (pid, tid, *domain), part in _parts(events, keys):
        of = " ".join([label, *filter(None, map(str, domain))])
        lanes.append((pid, _lane(part, kind, f"{of}, thread {tid}", tid)))
    return lanes


def call_lanes(calls: Frame, streams: Sequence[tuple[int, int, Lane]]) -> list[tuple[int, Lane]]:
    """One lane of CUDA API calls per (pid, thread), with its pid; flows lead into the streams."""
    real = calls.take(np.isin(calls.ints("event_class"), LAUNCH_CLASSES))
    ids, flows = real.ints("correlation_id"), np.zeros(real.rows, dtype=np.int64)
    for pid in {pid for pid, _, _ in streams}:
        used = [lane.flows for of, _, lane in streams if of == pid and lane.flows is not None]
        launched = (real.ints("pid") == pid) & np.isin(ids, np.concatenate([flows[:0], *used]))
        flows[launched] = ids[launched]
    return host_lanes(Frame({**real, "flows": flows}), "API calls", CALLS, CALL)


def _gpu_events(
    kernels: Frame, operations: Frame, graphs: Frame, communication: tuple[str, ...]
) -> Frame:
    """Kernels, memory operations and whole graphs as one frame."""
    names = kernels.labels("name")
    kinds = np.where(is_communication(names, communication), COMMUNICATION, COMPUTE)
    copies, whole = np.full(operations.rows, COPY), np.full(graphs.rows, GRAPH)
    called = Labels.constant("CUDA graph, traced as a whole", graphs.rows)
    if "graph_id" in graphs:
        called = _labelled(graphs, ("graph_id",), "CUDA graph {}, traced as a whole".format)
    shapes = _labelled(kernels, _SHAPE, _shape_text)
    sizes = _labelled(operations, ("bytes", "source_memory", "target_memory"), _copy_text)
    parts = (
        (kernels, names, kinds, shapes),
        (operations, operations.labels("operation"), copies, sizes),
        (graphs, called, whole, Labels.constant("", graphs.rows)),
    )
    frames = [
        Frame({**frame.select(_COMMON), "name": name, "category": category, "details": details})
        for frame, name, category, details in parts
    ]
    return Frame.concatenate([frame for frame in frames if frame.rows] or frames[:1])


def _labelled(frame: Frame, names: Sequence[str], text: Callable[..., str]) -> Labels:
    """A text made of some columns for each row; empty where the frame has none of them."""
    if names[0] not in frame:
        return Labels.constant("", frame.rows)
    return named_by(frame, names, text)


def _shape_text(*shape: int) -> str:
    """Grid and block of a launch."""
    return "grid {}x{}x{}, block {}x{}x{}".format(*shape) if any(shape) else ""


def _copy_text(size: int, source: str, target: str) -> str:
    """Bytes of an operation and where they went."""
    way = f"{source} to {target}" if source and target else source or target
    return ", ".join(filter(None, [format_bytes(size) if size >= 0 else "", way]))


def _parts(events: Frame, keys: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], Frame]]:
    """The events of each group by start, longest first; groups by their keys."""
    if not events.rows:
        return
    order = by_start(events.ints("start_ns"), events.ints("end_ns"))
    groups = group_by(events, keys)
    columns = events.select(tuple(name for name in events if name not in keys))
    by_group = rows_of_groups(groups.codes[order], len(groups.keys))
    stretches = zip(groups.keys, by_group, strict=True)
    for key, rows in sorted(stretches, key=lambda pair: pair[0]):
        yield key, columns.take(order[rows])


def _lane(part: Frame, kind: str, label: str, number: int) -> Lane:
    starts, ends = part.ints("start_ns"), part.ints("end_ns")
    ends = np.maximum(starts, ends)
    levels = levels_of(starts, ends)
    details = part.labels("details").used() if "details" in part else None
    if details is not None and not any(details.values):
        details = None
    launches = {n: part.ints(n) for n in ("launch_ns", "launch_tid", "flows") if n in part}
    return Lane(
        kind,
        label,
        number,
        starts,
        ends,
        part.labels("name").used(),
        levels,
        part.ints("category").astype(np.uint8),
        nested=kind != STREAM and is_nested(starts, ends, levels),
        details=details,
        **launches,
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
    order = np.argsort(levels, kind="stable")
    same = levels[order][1:] == levels[order][:-1]
    overlaps = starts[order][1:] < solid[order][:-1]
    return _first_free(starts, solid) if np.any(same & overlaps) else levels


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
