"""The frames of a PyTorch memory snapshot.

Times are ns since the first event of the recording; torch records microseconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsightpy import frames
from nsightpy.errors import ReportError
from nsightpy.frames import Frame, Ints, Labels
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
    numbers = columns.numbers
    _check(path, columns)
    known = numbers["event_time_us"][numbers["event_time_us"] >= 0]
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
        sizes = columns.numbers.get(name)
        if sizes is not None and len(sizes) and not 0 <= sizes.min() <= sizes.max() < MOST_BYTES:
            raise ReportError(path, "is no memory snapshot: it holds impossible sizes", _AGAIN)
    for name in ("event_time_us", "annotation_time_us"):
        if columns.numbers[name].max(initial=0) > MOST_TIME_US:
            raise ReportError(path, "is no memory snapshot: it holds impossible times", _AGAIN)


def _events(columns: Columns, start: int) -> Frame:
    numbers = columns.numbers
    return Frame(
        {
            "start_ns": _since(numbers["event_time_us"], start),
            "device": numbers["event_device"],
            "stream": numbers["event_stream"],
            "address": numbers["event_address"],
            "bytes": numbers["event_bytes"],
            "device_free_bytes": numbers["event_device_free"],
            "action": _labels(columns, "event_action"),
            "stack": numbers["event_stack"],
        }
    )


def _segments(columns: Columns) -> Frame:
    numbers = columns.numbers
    return Frame(
        {
            "device": numbers["segment_device"],
            "stream": numbers["segment_stream"],
            "address": numbers["segment_address"],
            "bytes": numbers["segment_total_size"],
            "allocated_bytes": numbers["segment_allocated_size"],
            "active_bytes": numbers["segment_active_size"],
            "requested_bytes": numbers["segment_requested_size"],
            "kind": _labels(columns, "segment_kind"),
            "expandable": numbers["segment_expandable"],
        }
    )


def _blocks(columns: Columns) -> Frame:
    numbers = columns.numbers
    blocks = numbers["segment_blocks"]
    segment = np.repeat(np.arange(len(blocks), dtype=np.int64), blocks)
    empty = np.empty(0, dtype=np.int64)
    block = {
        name: numbers.get(f"block_{name}", empty)
        for name in ("address", "bytes", "requested", "stack")
    }
    return Frame(
        {
            "device": numbers["segment_device"][segment],
            "stream": numbers["segment_stream"][segment],
            "address": block["address"],
            "bytes": block["bytes"],
            "requested_bytes": block["requested"],
            "state": _labels(columns, "block_state"),
            "segment": segment,
            "stack": block["stack"],
        }
    )


def _stack_frames(columns: Columns) -> Frame:
    numbers = columns.numbers
    lengths = np.diff(numbers["stack_end"])
    row = numbers.get("stack_frame", np.empty(0, dtype=np.int64)) - 1
    return Frame(
        {
            "stack": np.repeat(np.arange(len(lengths), dtype=np.int64), lengths),
            "function": _labels(columns, "frame_function").take(row),
            "file": _labels(columns, "frame_file").take(row),
            "line": numbers["frame_line"][row],
        }
    )


def _ranges(columns: Columns, start: int) -> Frame:
    """Each start with the end of its name and device that follows it; -1 where none does."""
    numbers = columns.numbers
    stage = _labels(columns, "annotation_stage")
    names = _labels(columns, "annotation_name")
    device = numbers["annotation_device"]
    order = np.lexsort((np.arange(len(device)), device, names.codes))
    begins = stage.equals([_BEGIN])[order]
    same = (device[order][1:] == device[order][:-1]) & (
        names.codes[order][1:] == names.codes[order][:-1]
    )
    closed = same & begins[:-1] & stage.equals([_END])[order][1:]
    times = _since(numbers["annotation_time_us"], start)
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


def _labels(columns: Columns, name: str) -> Labels:
    codes = columns.numbers.get(name, np.empty(0, dtype=np.int64))
    return Labels(codes.astype(np.int32), columns.texts.get(name, ()))
