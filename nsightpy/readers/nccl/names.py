"""What NCCL itself says: names of kernels of all generations, of the NVTX ranges of its calls, and
the payloads of these, as JSON (`nsys export --include-json=true`).

Of a kernel's name only the collective and the data type are used: from 2.19 on algorithm,
protocol and reduction in the name are those of the compiled variant, not of what ran.
Communicator ids need all 64 bits: they are kept as decimal text, never as a float.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from nsightpy.readers.nsys.nvtx import json_object

SEND_RECV = "SendRecv"
GENERIC = "Generic"
GROUP_START, GROUP_END = "GroupStart", "GroupEnd"

# What begins like another stands before it.
_OPERATIONS = (
    *("AllReduce", "AllGatherV", "AllGather", "ReduceScatter", "Reduce", "Broadcast", "Bcast"),
    *("SendRecv", "AlltoAll", "AllToAll", "Gather", "Scatter", "Send", "Recv"),
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


UNKNOWN = -1
# More than this in one call is damage.
MOST_SENT = 1 << 50
_SIZES = {
    "int8": 1, "uint8": 1, "char": 1, "float8e4m3": 1, "float8e5m2": 1, "float16": 2, "half": 2,
    "bfloat16": 2, "int32": 4, "uint32": 4, "int": 4, "float32": 4, "float": 4, "int64": 8,
    "uint64": 8, "float64": 8, "double": 8,
}  # fmt: skip

Fields: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Payload:
    """The arguments of one NCCL call; -1 and "" where the payload does not say.

    `bytes` is the size of the one buffer that was passed (AllGather and ReduceScatter: one rank's
    part); `ranks`, `rank` and `device` describe the communicator in the call that creates it.
    """

    communicator: str = ""
    bytes: int = UNKNOWN
    root: int = UNKNOWN
    peer: int = UNKNOWN
    reduction: str = ""
    ranks: int = UNKNOWN
    rank: int = UNKNOWN
    device: int = UNKNOWN
    sequence: int = UNKNOWN

    @classmethod
    def of(cls, fields: Fields) -> Payload:
        """The payload of named fields, whichever generation of names they use."""
        communicator = _number(_first(fields, "NCCL communicator ID", "commHash"))
        return cls(
            communicator=str(communicator & 0xFFFFFFFFFFFFFFFF) if communicator else "",
            bytes=_bytes(fields),
            root=_whole(fields, "Root", "root"),
            peer=_whole(fields, "Peer rank", "peer"),
            reduction=str(_first(fields, "Reduction operation", "redOp") or ""),
            ranks=_whole(fields, "No. of ranks", "nRanks", "commNRanks"),
            rank=_whole(fields, "Rank", "commRank", "rank"),
            device=_whole(fields, "CUDA device", "cudaDev"),
            sequence=_whole(fields, "seqNumber"),
        )


NO_PAYLOAD = Payload()


def json_fields(payload: str) -> Fields:
    """The fields of a payload exported as JSON; empty when there is none or it is no object."""
    value = json_object(payload)
    parts = value.get("data")
    if not isinstance(parts, list):
        return value
    fields: dict[str, Any] = {}
    for name, inner in (item for part in parts if isinstance(part, dict) for item in part.items()):
        typed = isinstance(inner, dict) and len(inner) == 1  # {"uint64": value}
        fields[name] = next(iter(inner.values())) if typed else inner
    return fields


def _first(fields: Fields, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        integer = value if isinstance(value, int) else int(str(value), 0)
    except ValueError:
        return None
    return integer if -(2**63) < integer < 2**64 else None


def _whole(fields: Fields, *names: str) -> int:
    integer = _number(_first(fields, *names))
    return UNKNOWN if integer is None else integer


def _bytes(fields: Fields) -> int:
    size = _number(_first(fields, "Message size [bytes]"))
    if size is not None:
        return size
    count, kind = _number(fields.get("count")), _first(fields, "dataType", "datatype")
    size = _SIZES.get(str(kind).removeprefix("nccl").lower())
    return UNKNOWN if count is None or size is None else count * size
