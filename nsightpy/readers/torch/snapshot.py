"""The frames of a PyTorch memory snapshot.

Times are ns since the first event of the recording; torch records microseconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsightpy import frames
from nsightpy.errors import ReportError
from nsightpy.frames import Frame, Ints
from nsightpy.readers.torch.snapshot_process import Columns, decode

UNKNOWN = -1
MOST_BYTES, MOST_TIME_US = 2**48, 2**53
_AGAIN = "write it again with torch.cuda.memory._dump_snapshot(FILE)."
_BEGIN, _END = "START", "END"


def read_snapshot(path: Path) -> dict[str, Frame]:
    """Every frame of a snapshot, by name (schemas: frames.SNAPSHOT_SCHEMAS).

    Raises ReportError where the file is no snapshot, or one that cannot be read safely.
    """
    columns = decode(path)
    _check(path, columns)
    known = columns.ints("event_time_us")[columns.ints("event_time_us") >= 0]
    start = int(known.min()) if len(known) else UNKNOWN
    made = {
        "allocator_events": _events(columns, start),
        "memory_segments": _segments(columns),
        "memory_blocks": _blocks(columns),
        "stack_frames": _stack_frames(columns),
        "snapshot_ranges": _ranges(columns, start),
    }
    return {
        name: Frame({key: made[name][key] for key in frames.SNAPSHOT_SCHEMAS[name].names})
        for name in made
    }


def _check(path: Path, columns: Columns) -> None:
    """Raise ReportError for numbers beyond any device and any clock: sums of them would wrap."""
    for name in ("event_bytes", "block_bytes", "block_requested", "segment_total_size"):
        sizes = columns.ints(name)
        if len(sizes) and not 0 <= sizes.min() <= sizes.max() < MOST_BYTES:
            raise ReportError(path, "is no memory snapshot: it holds impossible sizes", _AGAIN)
    for name in ("event_time_us", "annotation_time_us"):
        if columns.ints(name).max(initial=0) > MOST_TIME_US:
            raise ReportError(path, "is no memory snapshot: it holds impossible times", _AGAIN)


def _events(columns: Columns, start: int) -> Frame:
    return Frame(
        {
            "start_ns": _since(columns.ints("event_time_us"), start),
            "device": columns.ints("event_device"),
            "stream": columns.ints("event_stream"),
            "address": columns.ints("event_address"),
            "bytes": columns.ints("event_bytes"),
            "device_free_bytes": columns.ints("event_device_free"),
            "action": columns.labels("event_action"),
            "stack": columns.ints("event_stack"),
        }
    )


def _segments(columns: Columns) -> Frame:
    return Frame(
        {
            "device": columns.ints("segment_device"),
            "stream": columns.ints("segment_stream"),
            "address": columns.ints("segment_address"),
            "bytes": columns.ints("segment_total_size"),
            "allocated_bytes": columns.ints("segment_allocated_size"),
            "active_bytes": columns.ints("segment_active_size"),
            "requested_bytes": columns.ints("segment_requested_size"),
            "kind": columns.labels("segment_kind"),
            "expandable": columns.ints("segment_expandable"),
        }
    )


def _blocks(columns: Columns) -> Frame:
    blocks = columns.ints("segment_blocks")
    segment = np.repeat(np.arange(len(blocks), dtype=np.int64), blocks)
    return Frame(
        {
            "device": columns.ints("segment_device")[segment],
            "stream": columns.ints("segment_stream")[segment],
            "address": columns.ints("block_address"),
            "bytes": columns.ints("block_bytes"),
            "requested_bytes": columns.ints("block_requested"),
            "state": columns.labels("block_state"),
            "segment": segment,
            "stack": columns.ints("block_stack"),
        }
    )


def _stack_frames(columns: Columns) -> Frame:
    lengths = np.diff(columns.ints("stack_end"))
    row = columns.ints("stack_frame") - 1
    return Frame(
        {
            "stack": np.repeat(np.arange(len(lengths), dtype=np.int64), lengths),
            "function": columns.labels("frame_function").take(row),
            "file": columns.labels("frame_file").take(row),
            "line": columns.ints("frame_line")[row],
        }
    )


def _ranges(columns: Columns, start: int) -> Frame:
    """Each start with the end of its name and device that follows it; -1 where none does."""
    stage = columns.labels("annotation_stage")
    names = columns.labels("annotation_name")
    device = columns.ints("annotation_device")
    order = np.lexsort((np.arange(len(device)), device, names.codes))
    begins = stage.equals([_BEGIN])[order]
    same = (device[order][1:] == device[order][:-1]) & (
        names.codes[order][1:] == names.codes[order][:-1]
    )
    closed = same & begins[:-1] & stage.equals([_END])[order][1:]
    times = _since(columns.ints("annotation_time_us"), start)
    ends = np.full(len(device), UNKNOWN, dtype=np.int64)
    ends[order[:-1][closed]] = times[order[1:][closed]]
    rows = np.flatnonzero(stage.equals([_BEGIN]))
    return Frame(
        {
            "start_ns": times[rows],
            "end_ns": ends[rows],
            "device": device[rows],
            "name": names.take(rows),
        }
    )


def _since(times_us: Ints, start: int) -> Ints:
    known = (times_us >= 0) if start != UNKNOWN else np.zeros(len(times_us), dtype=np.bool_)
    return np.where(known, (times_us - start) * 1000, UNKNOWN)
