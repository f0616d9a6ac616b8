"""The kernels of a simulated transformer: real-looking names, shapes and durations.

kernels.tsv has one a line; durations are ns on an unhurried H100 at scale 1, shared memory is in
bytes, static and dynamic.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

Extent = tuple[int, int, int]

LAUNCH_DRIVER = "cuLaunchKernelEx"


@dataclass(frozen=True)
class KernelSpec:
    """One kernel variant: demangled name, shape, resources and its usual duration in ns."""

    name: str
    duration_ns: int
    grid: Extent
    block: Extent
    registers: int
    shared: tuple[int, int]
    launch: str


def extent(text: str) -> Extent:
    x, y, z = map(int, text.split("x"))
    return x, y, z


def _kernel(row: dict[str, str]) -> KernelSpec:
    shape = extent(row["grid"]), extent(row["block"]), int(row["registers"])
    shared = int(row["static"]), int(row["dynamic"])
    return KernelSpec(row["name"], int(row["ns"]), *shape, shared, row["launch"])


with Path(__file__).with_name("kernels.tsv").open(encoding="utf-8", newline="") as file:
    KERNELS = {row["key"]: _kernel(row) for row in csv.DictReader(file, delimiter="\t")}


def _sequence(keys: str) -> tuple[KernelSpec, ...]:
    return tuple(KERNELS[key] for key in keys.split())


FORWARD_ATTENTION = _sequence("layer_norm qkv rotary rotary flash projection")
FORWARD_MLP = _sequence("layer_norm fc1 gelu fc2")
BACKWARD_MLP = _sequence("dgrad wgrad split_k gelu_backward bias_gradient dgrad wgrad")
BACKWARD_ATTENTION = _sequence(
    "dgrad_small wgrad_small flash_dot flash_backward flash_convert rotary dgrad_small wgrad"
)
BACKWARD_NORM = _sequence("norm_backward norm_gamma add")
LOSS_FORWARD = _sequence("layer_norm head softmax loss")
LOSS_BACKWARD = _sequence("softmax_backward dgrad wgrad")
OPTIMIZER = _sequence("gradient_norm clip adam adam cast")
ADD, EMBEDDING, EMBEDDING_BACKWARD, FILL = _sequence("add embedding embedding_backward fill")
INFERENCE = (
    EMBEDDING,
    *FORWARD_ATTENTION,
    ADD,
    *FORWARD_MLP,
    ADD,
    *_sequence("layer_norm softmax"),
)


def nccl(operation: str, data: str = "bf16") -> KernelSpec:
    """The kernel of an NCCL operation (>= 2.22); its duration comes from the bytes."""
    typed = operation in {"AllReduce", "ReduceScatter"}
    name = f"ncclDevKernel_{operation}" + (f"_Sum_{data}" * typed)
    blocks, threads = 8, 640
    if operation != "SendRecv":
        name, blocks, threads = f"{name}_RING_LL", 24, 544
    name += "(ncclDevKernelArgsStorage<(unsigned long)4096>)"
    shape = (blocks, 1, 1), (threads, 1, 1), 96, (7104, 82240)
    return KernelSpec(name, 0, *shape, LAUNCH_DRIVER)
