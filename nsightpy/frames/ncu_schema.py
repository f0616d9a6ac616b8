"""The frames of an Nsight Compute report."""

from __future__ import annotations

from nsightpy.frames.columns import (
    Schema,
    float_column as _float,
    int_column as _int,
    label_column as _label,
)

LAUNCHES = Schema(
    "launches",
    "results of an Nsight Compute report, mostly kernel launches",
    (
        _int("launch", "", "number of the result in its report, from 0, as ncu prints it"),
        _label("name", "demangled name; of a CSV file whatever ncu printed"),
        _label("base_name", "function name without arguments"),
        _label("mangled_name", "mangled name; empty where the file has none"),
        _int("grid_x", "blocks", "grid size; 0 where only the total is known"),
        _int("grid_y", "blocks", "grid size"),
        _int("grid_z", "blocks", "grid size"),
        _int("block_x", "threads", "block size; 0 where only the total is known"),
        _int("block_y", "threads", "block size"),
        _int("block_z", "threads", "block size"),
        _int("blocks", "blocks", "size of the whole grid; 0 = not known"),
        _int("threads_per_block", "threads", "size of a block; 0 = not known"),
        _int("device", "", "CUDA device ordinal; -1 = not known", -1),
        _int("context", "", "CUDA context; -1 = not known", -1),
        _int("stream", "", "CUDA stream; -1 = not known", -1),
        _int("pid", "", "process; 0 = not known"),
        _label("process", "executable of the process"),
        _label("gpu", "product name of the GPU; empty where the file does not say"),
        _int("compute_major", "", "compute capability; 0 = not known"),
        _int("compute_minor", "", "compute capability"),
        _label("nvtx", "open NVTX push/pop ranges, outermost first, as A/B@domain"),
        _int("duration_ns", "ns", "duration under the profiler; -1 = not known", -1),
    ),
)
METRICS = Schema(
    "metrics",
    "metrics of an Nsight Compute report, one row per launch and metric that has a value",
    (
        _int("launch", "", "number of the result in its report"),
        _label("metric", "NVIDIA's name of the metric, verbatim"),
        _float("value", "", "value in its unit; NaN for a text"),
        _label("unit", "base unit: ns, byte, hz, byte/s, %, or what is counted"),
        _label("text", "value of a metric that is a text; empty for numbers"),
    ),
)
RULES = Schema(
    "rules",
    "what ncu's own rules said, one row per message",
    (
        _int("launch", "", "number of the result in its report"),
        _label("rule", "identifier of the rule, SOLBottleneck"),
        _label("section", "identifier of the section"),
        _label("type", "ok, optimization, warning or error; empty where the rule gave none"),
        _label("title", "title of the message; empty in old reports and in CSV files"),
        _label("message", "message, without links and markup"),
        _float("speedup_pct", "%", "speedup that the rule estimates"),
        _label("speedup_scope", "local or global; empty without an estimate"),
    ),
)

NCU_SCHEMAS = {schema.name: schema for schema in (LAUNCHES, METRICS, RULES)}
