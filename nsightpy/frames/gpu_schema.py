"""The frames of what devices and network interfaces did."""

from __future__ import annotations

from nsightpy.frames.columns import PLACE, SPAN, int_column as _int, label_column as _label, schema

_GREEN_CONTEXT = _int("green_context", "", "green context; 0 = none")
KERNELS = schema(
    "kernels",
    "GPU kernels, one row per execution",
    *SPAN,
    *PLACE,
    _label("name", "demangled name with template arguments"),
    _label("base_name", "function name without arguments"),
    _label("mangled_name", "mangled name; empty where the capture has none"),
    *(_int(f"grid_{axis}", "blocks", "grid size") for axis in "xyz"),
    *(_int(f"block_{axis}", "threads", "block size") for axis in "xyz"),
    _int("registers_per_thread", "", "registers of a thread"),
    _int("static_shared_bytes", "bytes", "static shared memory of a block"),
    _int("dynamic_shared_bytes", "bytes", "dynamic shared memory of a block"),
    _int("local_bytes_per_thread", "bytes", "local memory of a thread"),
    _int("graph_node_id", "", "CUDA graph node that launched it; 0 = none"),
    derived=(
        _int("blocks", "", "blocks of the grid: x * y * z"),
        _int("threads", "", "threads of a block: x * y * z"),
        _GREEN_CONTEXT,
    ),
)
GRAPH_LAUNCHES = schema(
    "graph_launches",
    "CUDA graph launches traced as a whole: their kernels are not recorded one by one",
    *SPAN,
    *PLACE,
    _int("graph_id", "", "CUDA graph"),
    _int("graph_exec_id", "", "executable graph"),
)
MEMORY_OPERATIONS = schema(
    "memory_operations",
    "copies and memory sets on the GPU",
    *SPAN,
    *PLACE,
    _label("operation", "NVIDIA's name of the operation, [CUDA memcpy Host-to-Device]"),
    _int("bytes", "bytes", "size; -1 where the capture does not say", -1),
    _label("source_memory", "memory the data came from: Pageable, Pinned, Device, ..."),
    _label("target_memory", "memory the data went to"),
    _int("graph_node_id", "", "CUDA graph node that launched it; 0 = none"),
    _int("address", "", "virtual address of what unified memory moved; 0 = none or not known"),
    derived=(_GREEN_CONTEXT,),
)
COLLECTIVES = schema(
    "collectives",
    "NCCL operations on the GPU, one row per operation (its kernels together) on one device",
    *SPAN,
    *PLACE,
    _label("operation", "AllReduce, AllGather, SendRecv, ...; from the call, else the kernel"),
    _label("kernel", "function name of its (first) kernel"),
    _label("data_type", "f32, bf16, ... as the kernel's name says; empty where it does not"),
    _label("communicator", "NCCL's 64-bit id as decimal text; empty where unknown"),
    _int("group_size", "", "ranks of the communicator; 0 where unknown"),
    _int("group_rank", "", "own rank in the communicator; -1 where unknown", -1),
    _int("bytes", "bytes", "size of the buffer this rank passed; -1 where unknown", -1),
    _int("root", "", "root of a Broadcast or Reduce; -1 = none or unknown", -1),
    _int("peer", "", "the other rank of a Send or Recv; -1 = none, several or unknown", -1),
    _label("reduction", "Sum, Avg, ...; empty where unknown"),
    _int("sequence", "", "NCCL's own number of the operation; -1 where unknown", -1),
    _int("calls", "", "NCCL calls that were served together (grouped calls); 0 = not known"),
    _label("evidence", "what ties it to its call: range, group, or only the kernel name"),
    _label("sent", "bytes sent to ranks of the communicator, `0:4096 1:512`; empty = unknown"),
)
SYNCHRONIZATIONS = schema(
    "synchronizations",
    "threads waiting for streams, contexts and events, and streams made to wait for an event",
    *SPAN,
    *PLACE[:3],
    _int("stream", "", "stream waited for, or made to wait; -1 = none", -1),
    PLACE[4],
    _label("kind", "stream wait, event, stream or context, by what the row names"),
    _int("event_id", "", "CUDA event, used again after a while; -1 = none", -1),
    _int("event_sync_id", "", "the one recording of the event that is meant; 0 = unknown"),
)
CUDA_EVENTS = schema(
    "cuda_events",
    "CUDA events recorded on streams (cudaEventRecord)",
    *PLACE,
    _int("time_ns", "ns", "when the GPU came to the event; 0 where the capture has no time"),
    _int("event_id", "", "CUDA event, used again after a while"),
    _int("event_sync_id", "", "this one recording of the event; 0 = unknown"),
)
MEMORY_USAGE = schema(
    "memory_usage",
    "memory that the process allocates and frees through CUDA",
    _int("start_ns", "ns", "time, in the report's own time"),
    *PLACE[:3],
    PLACE[4],
    _int("address", "", "first byte of the allocation"),
    _int("bytes", "bytes", "size of the allocation"),
    _label("memory", "kind of memory: Device, Pinned, Managed, ..."),
    _label("operation", "allocate or free"),
    _label("variable", "name of a static variable; empty for allocations"),
    _int("tid", "", "thread that allocated or freed; 0 where nothing tells"),
    _int("allocated_bytes", "bytes", "live bytes of the allocator after it; -1 = unknown", -1),
    _int("reserved_bytes", "bytes", "what the allocator then holds; -1 = unknown", -1),
)
PAGE_FAULTS = schema(
    "page_faults",
    "page faults of unified memory, of processors and GPUs",
    *SPAN,
    _int("pid", "", "process that owns the memory"),
    _int("device", "", "CUDA device ordinal; -1 = a processor", -1),
    _int("address", "", "virtual address"),
    _int("faults", "", "number of page faults", 1),
    _int("instruction", "", "address of the processor's instruction; 0 = unknown"),
)
GPU_METRICS = schema(
    "gpu_metrics",
    "hardware metrics of GPUs, sampled at a fixed rate",
    _int("time_ns", "ns", "time of the sample, in the report's own time"),
    _int("gpu_id", "", "GPU index on the host, as in the devices frame"),
    _label("metric", "NVIDIA's name of the metric, SM Active [Throughput %]"),
    _int("value", "", "value; per cent for most metrics"),
)
NIC_METRICS = schema(
    "nic_metrics",
    "counters of network interfaces, one row per interface, counter and interval",
    *SPAN,
    _int("nic", "", "number of the interface in the capture"),
    _int("port", "", "port of the interface; 0 where the export does not say"),
    _label("metric", "NVIDIA's name of the counter, IB: Bytes sent"),
    _label("metric_unit", "unit of the values, bytes/ms"),
    _int("value", "", "mean rate over the interval, in that unit"),
    _label("nic_name", "name of the interface, mlx5_0; empty where the export does not say"),
    _label("guid", "its globally unique id in hexadecimal; empty where not recorded"),
)
# The frames of work on the GPU.
GPU_FRAMES = (KERNELS.name, MEMORY_OPERATIONS.name, GRAPH_LAUNCHES.name)
