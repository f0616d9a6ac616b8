"""The frames of a PyTorch memory snapshot, decoded in a child process under limits by its size.

Times are ns since the first event of the recording; torch records microseconds.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nsightpy import frames
from nsightpy.errors import ReportError
from nsightpy.frames import ColumnData, Frame, Ints, Labels, Schema
from nsightpy.readers.limits import available_memory
from nsightpy.readers.tools.file_check import file_errors, size_of_regular
from nsightpy.readers.torch import snapshot_decoder
from nsightpy.units import format_bytes

# Measured on snapshots of 200 MB and 1 GB: 8.2 bytes of memory for a byte of the file.
BASE_BYTES, BYTES_PER_BYTE = 256_000_000, 10
BASE_SECONDS, BYTES_PER_SECOND = 60, 2_000_000
HEADER = re.compile(rb"\x80[\x02-\x05]|[(}\]]")
KEYS = (b"segment", b"device_traces")
_AGAIN = "write it again with torch.cuda.memory._dump_snapshot(FILE)."
Columns: TypeAlias = dict[str, Any]
_HARMFUL = "nothing in it was run; a snapshot written by torch needs no such thing."


def is_snapshot(start: bytes) -> bool:
    """Whether the beginning of a file is that of a pickle that names what snapshots hold."""
    return HEADER.match(start) is not None and any(key in start for key in KEYS)


def _decode(path: Path) -> Columns:
    """The columns of a snapshot. Raises ReportError when it is none, holds code, or needs more
    memory than there is."""
    with file_errors(path):
        size = size_of_regular(path)
        path.open("rb").close()
    need, there = BASE_BYTES + BYTES_PER_BYTE * size, available_memory()
    if there is not None and need > there:
        problem = (
            f"is a memory snapshot of {format_bytes(size)}: decoding it may take "
            f"{format_bytes(need)} of memory, and {format_bytes(there)} are free"
        )
        advice = "read it on a larger machine, or record fewer events (max_entries=100000)."
        raise ReportError(path, problem, advice)
    seconds = BASE_SECONDS + size // BYTES_PER_SECOND
    program = [sys.executable, "-I", "-S", snapshot_decoder.__file__]
    arguments = [str(path.absolute()), str(need), str(seconds)]
    try:
        process = subprocess.run([*program, *arguments], capture_output=True, check=False)
    except OSError as error:
        problem = f"cannot be decoded: {sys.executable} cannot be started: {error.strerror}"
        raise ReportError(path, problem, "check this Python installation.") from None
    if process.returncode:
        raise _failure(path, process.returncode, process.stderr, need, seconds)
    output = process.stdout
    offset = output.index(b"\n") + 1
    header = json.loads(output[:offset])
    columns: Columns = {}
    for name, length in header["columns"]:
        values = np.frombuffer(output, dtype=np.int64, count=length, offset=offset)
        texts = header["texts"].get(name)
        columns[name] = values if texts is None else Labels(values.astype(np.int32), tuple(texts))
        offset += 8 * length
    return columns


def _failure(path: Path, code: int, message: bytes, need: int, seconds: int) -> ReportError:
    """The message about a file that was not decoded."""
    detail = message.decode("utf-8", "replace").strip().strip("'\"")
    if code == snapshot_decoder.REFUSED:
        return ReportError(path, f"is refused: the pickle asks for {detail}", _HARMFUL)
    if code == snapshot_decoder.DAMAGED:
        return ReportError(path, f"is a damaged pickle: {detail}", f"was it cut off? {_AGAIN}")
    problem = (
        f"is no memory snapshot: {detail}"
        if code == snapshot_decoder.NO_SNAPSHOT
        else f"is refused: it was not decoded within {seconds} s of processor time and "
        f"{format_bytes(need)} of memory, or is nested without end"
    )
    return ReportError(path, problem, _AGAIN)


UNKNOWN = -1
MOST_BYTES, MOST_TIME_US = 2**48, 2**53
_BEGIN, _END = "START", "END"


def read_snapshot(path: Path) -> dict[str, Frame]:
    """Every frame of a snapshot, by name (schemas: frames.SNAPSHOT_SCHEMAS).

    Raises ReportError where the file is no snapshot, or one that cannot be read safely.
    """
    columns = _decode(path)
    _check(path, columns)
    times = columns["event_time_us"]
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
        sizes = columns[name]
        if len(sizes) and not 0 <= sizes.min() <= sizes.max() < MOST_BYTES:
            raise ReportError(path, "is no memory snapshot: it holds impossible sizes", _AGAIN)
    for name in ("event_time_us", "annotation_time_us"):
        if columns[name].max(initial=0) > MOST_TIME_US:
            raise ReportError(path, "is no memory snapshot: it holds impossible times", _AGAIN)


def _frame(columns: Columns, rows: str, schema: Schema, **computed: ColumnData) -> Frame:
    """A frame of the decoded columns of some rows, and of those that are computed."""
    given = {name: columns[f"{rows}_{name}"] for name in schema.names if name not in computed}
    return Frame({**given, **computed}).select(schema.names)


def _blocks(columns: Columns) -> Frame:
    blocks = columns["segment_blocks"]
    segment = np.repeat(np.arange(len(blocks), dtype=np.int64), blocks)
    of_segment = {name: columns[f"segment_{name}"][segment] for name in ("device", "stream")}
    return _frame(columns, "block", frames.MEMORY_BLOCKS, segment=segment, **of_segment)


def _stack_frames(columns: Columns) -> Frame:
    lengths = columns["stack_length"]
    row = columns["stack_frame"] - 1
    return Frame(
        {
            "stack": np.repeat(np.arange(len(lengths), dtype=np.int64), lengths),
            "function": columns["frame_function"].take(row),
            "file": columns["frame_file"].take(row),
            "line": columns["frame_line"][row],
        }
    )


def _ranges(columns: Columns, start: int) -> Frame:
    """Each start with the end of its name and device that follows it; -1 where none does."""
    stages, names = (columns[f"annotation_{name}"] for name in ("stage", "name"))
    device = columns["annotation_device"]
    times = _since(columns["annotation_time_us"], start)
    ends = np.full(len(device), UNKNOWN, dtype=np.int64)
    open_rows: dict[object, int] = {}
    keys = zip(names.codes.tolist(), device.tolist(), strict=True)
    for row, (key, stage) in enumerate(zip(keys, stages, strict=True)):
        begun = open_rows.pop(key, None)
        if stage == _BEGIN:
            open_rows[key] = row
        elif stage == _END and begun is not None:
            ends[begun] = times[row]
    ranges = Frame({"start_ns": times, "end_ns": ends, "device": device, "name": names})
    return ranges.take(np.flatnonzero(stages.equals([_BEGIN])))


def _since(times_us: Ints, start: int) -> Ints:
    known = (times_us >= 0) if start != UNKNOWN else np.zeros(len(times_us), dtype=np.bool_)
    return np.where(known, (times_us - start) * 1000, UNKNOWN)
