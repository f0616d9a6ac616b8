"""The frames of Nsight Compute reports and of PyTorch memory snapshots."""

from nsightpy.frames.columns import (
    float_column as _float,
    int_column as _int,
    label_column as _label,
    schema,
)

LAUNCHES = schema(
    "launches",
    "results of an Nsight Compute report, mostly kernel launches",
    _int("launch", "", "number of the result in its report, from 0, as ncu prints it"),
    _label("name", "demangled name; of a CSV file whatever ncu printed"),
    _label("base_name", "function name without arguments"),
    _label("mangled_name", "mangled name; empty where the file has none"),
    _int("grid_x", "blocks", "grid size; 0 where only the total is known"),
    *(_int(f"grid_{axis}", "blocks", "grid size") for axis in "yz"),
    _int("block_x", "threads", "block size; 0 where only the total is known"),
    *(_int(f"block_{axis}", "threads", "block size") for axis in "yz"),
    _int("blocks", "blocks", "size of the whole grid; 0 = not known"),
    _int("threads_per_block", "threads", "size of a block; 0 = not known"),
    _int("device", "", "CUDA device ordinal; -1 = not known", -1),
    *(_int(n, "", f"CUDA {n}; -1 = not known", -1) for n in ("context", "stream")),
    _int("pid", "", "process; 0 = not known"),
    _label("process", "executable of the process"),
    _label("gpu", "product name of the GPU; empty where the file does not say"),
    _int("compute_major", "", "compute capability; 0 = not known"),
    _int("compute_minor", "", "compute capability"),
    _label("nvtx", "open NVTX push/pop ranges, outermost first, as A/B@domain"),
    _int("duration_ns", "ns", "duration under the profiler; -1 = not known", -1),
)
METRICS = schema(
    "metrics",
    "metrics of an Nsight Compute report, one row per launch and metric that has a value",
    _int("launch", "", "number of the result in its report"),
    _label("metric", "NVIDIA's name of the metric, verbatim"),
    _float("value", "", "value in its unit; NaN for a text"),
    _label("unit", "base unit: ns, byte, hz, byte/s, %, or what is counted"),
    _label("text", "value of a metric that is a text; empty for numbers"),
)
RULES = schema(
    "rules",
    "what ncu's own rules said, one row per message",
    _int("launch", "", "number of the result in its report"),
    _label("rule", "identifier of the rule, SOLBottleneck"),
    _label("section", "identifier of the section"),
    _label("type", "ok, optimization, warning or error; empty where the rule gave none"),
    _label("title", "title of the message; empty in old reports and in CSV files"),
    _label("message", "message, without links and markup"),
    _float("speedup_pct", "%", "speedup that the rule estimates"),
    _label("speedup_scope", "local or global; empty without an estimate"),
)

NCU_SCHEMAS = {each.name: each for each in (LAUNCHES, METRICS, RULES)}
_AT_NS = _int("start_ns", "ns", "time since the recording began; -1 where none is known", -1)
_CUDA = (
    _int("device", "", "CUDA device ordinal"),
    _int("stream", "", "CUDA stream, as a pointer"),
    _int("address", "", "first byte; -1 where there is none", -1),
)
ALLOCATOR_EVENTS = schema(
    "allocator_events",
    "what PyTorch's allocator did, in order: a ring buffer that may have lost its beginning",
    _AT_NS,
    *_CUDA,
    _int("bytes", "bytes", "size that was asked for"),
    _int("device_free_bytes", "bytes", "free memory of the device at an oom; else -1", -1),
    _label("action", "alloc, free_requested, free_completed, segment_alloc, oom, ..."),
    _int("stack", "", "call stack, of stack_frames; -1 = none", -1),
)
MEMORY_SEGMENTS = schema(
    "memory_segments",
    "device memory that PyTorch's allocator held at the dump",
    *_CUDA,
    _int("bytes", "bytes", "size"),
)
MEMORY_BLOCKS = schema(
    "memory_blocks",
    "what those segments were divided into",
    *_CUDA,
    _int("bytes", "bytes", "size"),
    _int("requested_bytes", "bytes", "what the program asked for"),
    _label("state", "active_allocated, active_awaiting_free or inactive"),
    _int("segment", "", "row of its segment in memory_segments"),
    _int("stack", "", "call stack that allocated it, of stack_frames; -1 = none", -1),
)
STACK_FRAMES = schema(
    "stack_frames",
    "call stacks, innermost frame first",
    _int("stack", "", "call stack"),
    _label("function", "function"),
    _label("file", "source file, as the program knew it; ?? for unknown C++"),
    _int("line", "", "line; 0 = not known"),
)
SNAPSHOT_RANGES = schema(
    "snapshot_ranges",
    "ranges of the program: optimizer steps and other record_function annotations",
    _AT_NS,
    _int("end_ns", "ns", "end; -1 where it was not recorded", -1),
    _int("device", "", "CUDA device ordinal", -1),
    _label("name", "Optimizer.step#AdamW.step, ProfilerStep#3"),
)
SNAPSHOT_SCHEMAS = {
    each.name: each
    for each in (ALLOCATOR_EVENTS, MEMORY_SEGMENTS, MEMORY_BLOCKS, STACK_FRAMES, SNAPSHOT_RANGES)
}
