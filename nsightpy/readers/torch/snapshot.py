"""The frames of a PyTorch memory snapshot.

Times are ns since the first event of the recording; torch records microseconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsightpy import frames
from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, Frame, Ints, Schema
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
    times = columns.ints("event_time_us")
    start = int(times[times >= 0].min()) if (times >= 0).any() else UNKNOWN
    return {
        "allocator_events": _frame(
            columns, "event", frames.ALLOCATOR_EVENTS, start_ns=_since(times, start)
        ),
        "memory_segments": _frame(columns, "segment", frames.MEMORY_SEGMENTS),
        "memory_blocks": _blocks(columns),
        "stack_frames": _stack_frames(columns),
        "snapshot_ranges": _ranges(columns, start),
    }


def _check(path: Path, columns: Columns) -> None:
    """Raise ReportError for numbers beyond any device and any clock: sums of them would wrap."""
    for name in ("event_bytes", "block_bytes", "block_requested_bytes", "segment_bytes"):
        sizes = columns.ints(name)
        if len(sizes) and not 0 <= sizes.min() <= sizes.max() < MOST_BYTES:
            raise ReportError(path, "is no memory snapshot: it holds impossible sizes", _AGAIN)
    for name in ("event_time_us", "annotation_time_us"):
        if columns.ints(name).max(initial=0) > MOST_TIME_US:
            raise ReportError(path, "is no memory snapshot: it holds impossible times", _AGAIN)


def _frame(columns: Columns, rows: str, schema: Schema, **computed: ColumnData) -> Frame:
    """A frame of the decoded columns of some rows, and of those that are computed."""
    decoded = {
        column.name: columns.labels(f"{rows}_{column.name}")
        if column.kind == "label"
        else columns.ints(f"{rows}_{column.name}")
        for column in schema.columns
        if column.name not in computed
    }
    return Frame({**decoded, **computed}).select(schema.names)


def _blocks(columns: Columns) -> Frame:
    blocks = columns.ints("segment_blocks")
    segment = np.repeat(np.arange(len(blocks), dtype=np.int64), blocks)
    of_segment = {name: columns.ints(f"segment_{name}")[segment] for name in ("device", "stream")}
    return _frame(columns, "block", frames.MEMORY_BLOCKS, segment=segment, **of_segment)


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
