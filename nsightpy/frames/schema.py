"""The frames of reports of a whole system: what devices, threads of the host and captures did."""

from nsightpy.frames.columns import (
    CALL,
    PLACE,
    SPAN,
    int_column as _int,
    label_column as _label,
    schema,
)

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
PROCESSES = schema(
    "processes",
    "processes with GPU, CUDA or NVTX activity",
    _int("pid", "", "process"),
    _label("name", "executable, where the export knows it"),
    _int("rank", "", "rank of the process; -1 where unknown", -1),
    _label("rank_source", "the evidence the rank rests on"),
)
DEVICES = schema(
    "devices",
    "GPUs as the processes see them",
    _int("pid", "", "process that sees the device; 0 = every process"),
    _int("device", "", "CUDA device ordinal inside the process"),
    _int("gpu_id", "", "GPU index on the host", -1),
    _label("name", "product name"),
    _label("uuid", "identity of the GPU; empty in old exports"),
    _label("bus", "PCI bus location"),
    _int("sm_count", "", "streaming multiprocessors"),
    _int("memory_bytes", "bytes", "device memory"),
    _int("memory_bytes_per_s", "bytes/s", "memory bandwidth"),
    _int("clock_hz", "Hz", "maximum clock"),
    _int("compute_major", "", "compute capability"),
    _int("compute_minor", "", "compute capability"),
)
DIAGNOSTICS = schema(
    "diagnostics",
    "what the profiler itself said during the capture",
    _int("time_ns", "ns", "time; may lie before the capture"),
    _int("pid", "", "process it is about; 0 = the whole capture"),
    _label("severity", "info, warning, error or verbose"),
    _label("source", "injection, daemon or analysis"),
    _label("text", "message"),
)
API_CALLS = schema(
    "api_calls",
    "CUDA runtime and driver calls on the host",
    *CALL,
    _int("correlation_id", "", "what the call launched, unique inside one process; 0 = none"),
    _label("name", "function, without its four-digit version suffix"),
    _int("return_value", "", "CUDA error code; 0 = success"),
    _int("event_class", "", "0 runtime, 1 driver; other classes are not calls of their own"),
)
GRAPH_NODES = schema(
    "graph_nodes",
    "creation of nodes of CUDA graphs on the host",
    *CALL,
    _int("graph_node_id", "", "the node"),
    _int("original_node_id", "", "node that it was cloned from; 0 = none"),
)
NVTX_RANGES = schema(
    "nvtx_ranges",
    "NVTX push/pop and start/end ranges",
    *SPAN,
    _int("pid", "", "process"),
    _int("tid", "", "thread that opened the range"),
    _int("end_tid", "", "thread that closed it; equals tid for push/pop ranges"),
    _label("name", "range text"),
    _label("domain", "domain name; empty for the default domain"),
    _label("style", "PushPop or StartEnd"),
)
MPI_CALLS = schema(
    "mpi_calls",
    "MPI calls on the host; from NVTX ranges of domain MPI where an old export has no table",
    *CALL,
    _label("name", "function, MPI_Allreduce"),
    _label("kind", "point-to-point, collective, wait or other"),
    _int("bytes", "bytes", "bytes sent as the profiler estimates them; 0 = none or not known"),
    _int("peer", "", "rank (in the communicator) at the other end, or root; -1 = none", -1),
    _int("communicator", "", "handle of the communicator in this process; 0 = not known"),
    _int("receive_bytes", "bytes", "bytes received in a collective; 0 = none or not known"),
    _int("tag", "", "tag of a message; -1 = none or any", -1),
    _int("request", "", "handle of the request in this process; 0 = none"),
    _label("communicator_id", "the communicator by a name that all processes share"),
    _int("communicator_size", "", "ranks in the communicator; 0 = not known"),
    _int("communicator_rank", "", "own rank in the communicator; -1 = not known", -1),
)
LIBRARY_CALLS = schema(
    "library_calls",
    "calls into cuBLAS, cuDNN and video libraries, OpenACC and OpenMP events, system calls",
    *CALL,
    _label("name", "function, without its four-digit version suffix"),
    _label("library", "cuBLAS, cuDNN, OpenACC, OpenMP or syscall"),
)
OS_CALLS = schema(
    "os_calls",
    "calls into the operating system's libraries",
    *CALL,
    _label("name", "function, poll"),
    _int("return_value", "", "what the call returned"),
    _int("nesting_level", "", "0 = not called by another traced one"),
)
CPU_SAMPLES = schema(
    "cpu_samples",
    "CPU samples of threads, one row per sample",
    _int("time_ns", "ns", "time of the sample, in the report's own time"),
    _int("pid", "", "process"),
    _int("tid", "", "thread"),
    _label("name", "function on top of the stack; where it was not resolved, its address"),
    _label("module", "file of that function"),
)
CPU_RUNS = schema(
    "cpu_runs",
    "when threads ran on a CPU (context switches), one row per uninterrupted run",
    *SPAN,
    _int("pid", "", "process"),
    _int("tid", "", "thread"),
    _int("cpu", "", "number of the CPU"),
)
OPERATORS = schema(
    "operators",
    "operators of a framework as its own profiler saw them (PyTorch traces)",
    *CALL,
    _label("name", "operator, aten::mm"),
    _int("depth", "", "number of operators that are open above it"),
    _int("parent", "", "row of the innermost operator open when it began; -1 = none", -1),
    _label("shapes", "sizes of its inputs as JSON (record_shapes); empty where not recorded"),
    _label("types", "types of its inputs as JSON; empty where not recorded"),
    _label("inputs", "values of its plain inputs as JSON; empty where not recorded"),
    _int("sequence", "", "number that a backward operator has from its forward one", -1),
    _label("direction", "backward: run by autograd; forward: autograd will; empty: neither"),
    _int("forward_tid", "", "thread of the forward operator, as autograd counts; 0 = none"),
)
PYTHON_FUNCTIONS = schema(
    "python_functions",
    "calls of Python functions and modules (PyTorch traces with_stack)",
    *CALL,
    _label("name", "file(line): function, or nn.Module: Name_0"),
)
SCHEMAS = {
    each.name: each
    for each in (
        *(KERNELS, GRAPH_LAUNCHES, GRAPH_NODES, MEMORY_OPERATIONS, API_CALLS),
        *(NVTX_RANGES, SYNCHRONIZATIONS, CUDA_EVENTS, MEMORY_USAGE),
        *(MPI_CALLS, LIBRARY_CALLS, PAGE_FAULTS, OS_CALLS),
        *(CPU_SAMPLES, CPU_RUNS, GPU_METRICS),
        *(PROCESSES, DEVICES, DIAGNOSTICS),
        *(OPERATORS, PYTHON_FUNCTIONS),
    )
}
# With what is derived from other frames.
EVERY_SCHEMA = {**SCHEMAS, COLLECTIVES.name: COLLECTIVES}
# The frames of work on the GPU.
GPU_FRAMES = (KERNELS.name, MEMORY_OPERATIONS.name, GRAPH_LAUNCHES.name)
