"""The frames of a PyTorch memory snapshot."""

from __future__ import annotations

from nsightpy.frames.columns import Schema, int_column as _int, label_column as _label

_AT_NS = _int("start_ns", "ns", "time since the recording began; -1 where none is known", -1)
_CUDA = (
    _int("device", "", "CUDA device ordinal"),
    _int("stream", "", "CUDA stream, as a pointer"),
    _int("address", "", "first byte; -1 where there is none", -1),
)
ALLOCATOR_EVENTS = Schema(
    "allocator_events",
    "what PyTorch's allocator did, in order: a ring buffer that may have lost its beginning",
    (
        _AT_NS,
        *_CUDA,
        _int("bytes", "bytes", "size that was asked for"),
        _int("device_free_bytes", "bytes", "free memory of the device at an oom; else -1", -1),
        _label("action", "alloc, free_requested, free_completed, segment_alloc, oom, ..."),
        _int("stack", "", "call stack, of stack_frames; -1 = none", -1),
    ),
)
MEMORY_SEGMENTS = Schema(
    "memory_segments",
    "device memory that PyTorch's allocator held at the dump",
    (
        *_CUDA,
        _int("bytes", "bytes", "size"),
        _int("allocated_bytes", "bytes", "in blocks that the program held"),
        _int("active_bytes", "bytes", "the same, and blocks that a stream still uses"),
        _int("requested_bytes", "bytes", "what the program asked for; -1 in old snapshots", -1),
        _label("kind", "small or large"),
        _int("expandable", "", "1 = grows in place"),
    ),
)
MEMORY_BLOCKS = Schema(
    "memory_blocks",
    "what those segments were divided into",
    (
        *_CUDA,
        _int("bytes", "bytes", "size"),
        _int("requested_bytes", "bytes", "what the program asked for"),
        _label("state", "active_allocated, active_awaiting_free or inactive"),
        _int("segment", "", "row of its segment in memory_segments"),
        _int("stack", "", "call stack that allocated it, of stack_frames; -1 = none", -1),
    ),
)
STACK_FRAMES = Schema(
    "stack_frames",
    "call stacks, innermost frame first",
    (
        _int("stack", "", "call stack"),
        _label("function", "function"),
        _label("file", "source file, as the program knew it; ?? for unknown C++"),
        _int("line", "", "line; 0 = not known"),
    ),
)
SNAPSHOT_RANGES = Schema(
    "snapshot_ranges",
    "ranges of the program: optimizer steps and other record_function annotations",
    (
        _AT_NS,
        _int("end_ns", "ns", "end; -1 where it was not recorded", -1),
        _int("device", "", "CUDA device ordinal", -1),
        _label("name", "Optimizer.step#AdamW.step, ProfilerStep#3"),
    ),
)
SNAPSHOT_SCHEMAS = {
    schema.name: schema
    for schema in (
        ALLOCATOR_EVENTS,
        MEMORY_SEGMENTS,
        MEMORY_BLOCKS,
        STACK_FRAMES,
        SNAPSHOT_RANGES,
    )
}
