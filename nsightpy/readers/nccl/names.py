"""What NCCL's own names say: kernels of all generations, and the NVTX ranges of its calls.

Of a kernel's name only the collective and the data type are used: from 2.19 on algorithm,
protocol and reduction in the name are those of the compiled variant, not of what ran.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SEND_RECV = "SendRecv"
GENERIC = "Generic"
GROUP_START, GROUP_END = "GroupStart", "GroupEnd"

_OPERATIONS = (
    "AllReduce",
    "AllGatherV",
    "AllGather",
    "ReduceScatter",
    "Reduce",
    "Broadcast",
    "Bcast",
    "SendRecv",
    "AlltoAll",
    "AllToAll",
    "Gather",
    "Scatter",
    "Send",
    "Recv",
)
_KERNEL = re.compile(
    r"(?:void )?nccl(?:(?:Dev|Sym(?:k)?Dev)?Kernel_)?"
    rf"(?P<operation>{'|'.join(_OPERATIONS)}|{GENERIC})(?P<rest>\w*)"
)
_ANY_KERNEL = re.compile(r"(?:void )?nccl(?:(?:Dev|Sym(?:k)?Dev)?Kernel_|\w+Kernel)")
# Collectives of inference engines and of PyTorch's symmetric memory: kernels of all ranks that meet
# in each other's memory. Of vLLM, SGLang and AITER; PyTorch; TensorRT-LLM; FlashInfer; AITER.
_CUSTOM = (
    (re.compile(r"\bcross_device_reduce_[12]stage"), "AllReduce"),
    (re.compile(r"\b(?:multimem|one_shot|two_shot|multimem_one_shot)_all_reduce"), "AllReduce"),
    (re.compile(r"\b(?:one|two)ShotAllReduceKernel|\blamport\w*all_?reduce", re.I), "AllReduce"),
    (re.compile(r"\ballreduce_fusion_kernel_(?:one|two)shot"), "AllReduce"),
    (re.compile(r"\ballreduce_prototype_(?:one|two)shot"), "AllReduce"),
    (re.compile(r"\bmultimem_all_gather"), "AllGather"),
)
_DATA_TYPE = re.compile(
    r"_(bf16|f8e4m3|f8e5m2|[iu](?:8|32|64)|f(?:16|32|64)|__nv_bfloat16|half|float|double"
    r"|u?int(?:8|32|64)_t)(?=_|$)"
)
_CXX_TYPES = {
    "__nv_bfloat16": "bf16",
    "half": "f16",
    "float": "f32",
    "double": "f64",
    **{f"{sign}int{n}_t": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (8, 32, 64)},
}
_SPELLINGS = {"Bcast": "Broadcast", "AlltoAll": "AllToAll"}
# Kernels that serve calls of another name: point to point moves these as well.
_SERVED_BY_SEND_RECV = frozenset({"Send", "Recv", "AllToAll", "Gather", "Scatter", SEND_RECV})


class KernelName(NamedTuple):
    """The operation ("" where the name is NCCL's but has none) and the data type, if known."""

    operation: str
    data_type: str


def parse_kernel(name: str) -> KernelName | None:
    """What a kernel name of any NCCL generation says, or of custom collectives; else None."""
    if not _ANY_KERNEL.match(name):
        return next((KernelName(does, "") for kernel, does in _CUSTOM if kernel.search(name)), None)
    match = _KERNEL.match(name)
    if match is None:
        return KernelName("", "")
    typed = _DATA_TYPE.search(match["rest"])
    data = _CXX_TYPES.get(typed[1], typed[1]) if typed else ""
    return KernelName(_SPELLINGS.get(match["operation"], match["operation"]), data)


def serves(kernel: str, operation: str) -> bool:
    """Whether a kernel of that operation can be what a call of an operation launched."""
    if kernel in ("", GENERIC) or kernel == operation:
        return True
    return kernel == SEND_RECV and operation in _SERVED_BY_SEND_RECV


def call_of(text: str, *, in_domain: bool) -> str | None:
    """The NCCL call that a range names: AllReduce, GroupEnd, CommInitRank, ...; None: no call.

    From nsys 2025.6 (`-t nccl`) the names lack their prefix: they count in NCCL's domain only.
    """
    plain = text.removeprefix("nccl")
    if plain == text and not in_domain:
        return None
    plain = _SPELLINGS.get(plain, plain)
    return plain if plain in RANGES or plain.startswith("CommInit") else None


CALLS = frozenset(_SPELLINGS.get(operation, operation) for operation in _OPERATIONS)
# Ranges of `-t nccl` around what a group of calls launches.
API_GROUP = "API Group"
LAUNCHES = frozenset({API_GROUP, "GroupLaunch", "GroupRuntime", "KernelLaunch"})
RANGES = CALLS | LAUNCHES | {GROUP_START, GROUP_END}
RANGE_TEXTS = tuple(
    sorted({*_OPERATIONS, *RANGES} | {f"nccl{name}" for name in {*_OPERATIONS, *RANGES}})
)
