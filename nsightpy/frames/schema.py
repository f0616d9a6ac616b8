"""The frames of the capture and of what threads of the host did, and all frames of a report.

Those of work on the GPU: gpu_schema.py.
"""

from __future__ import annotations

from nsightpy.frames import gpu_schema as gpu
from nsightpy.frames.columns import CALL, SPAN, int_column as _int, label_column as _label, schema

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
    _label("library", "cuBLAS, cuDNN, OpenACC, OpenMP, syscall, or NvVideo and its API"),
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
    _int("python_id", "", "number of the call; -1 = not known", -1),
    _int("parent_id", "", "number of the calling call; -1 = none", -1),
    _int("module_id", "", "number of the nn.Module among those of its class; -1 = none", -1),
)
SCHEMAS = {
    each.name: each
    for each in (
        *(gpu.KERNELS, gpu.GRAPH_LAUNCHES, GRAPH_NODES, gpu.MEMORY_OPERATIONS, API_CALLS),
        *(NVTX_RANGES, gpu.SYNCHRONIZATIONS, gpu.CUDA_EVENTS, gpu.MEMORY_USAGE),
        *(MPI_CALLS, LIBRARY_CALLS, gpu.PAGE_FAULTS, OS_CALLS),
        *(CPU_SAMPLES, CPU_RUNS, gpu.GPU_METRICS, gpu.NIC_METRICS),
        *(PROCESSES, DEVICES, DIAGNOSTICS),
        *(OPERATORS, PYTHON_FUNCTIONS),
    )
}
# With what is derived from other frames.
EVERY_SCHEMA = {**SCHEMAS, gpu.COLLECTIVES.name: gpu.COLLECTIVES}
