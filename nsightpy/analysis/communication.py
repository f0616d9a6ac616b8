"""Which kernels are communication. The list is data, and a user's own patterns extend it."""

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.thresholds import MATERIAL
from nsightpy.errors import UsageError
from nsightpy.frames import Frame, Labels
from nsightpy.names import function_name

# NCCL in all its generations of names, then libraries and frameworks with kernels of their own;
# with each pattern a word that no match is without.
COMMUNICATION_KERNELS = (
    (r"^(?:void )?nccl(?:Dev|Sym(?:k)?Dev)?Kernel_", "nccl"),
    (r"^(?:void )?nccl\w+Kernel", "nccl"),
    (r"nvshmem", "nvshmem"),
    (r"deep_ep::", "deep_ep::"),
    (r"mscclpp::", "mscclpp::"),
    (r"\bcross_device_reduce_", "cross_device_reduce_"),
    (r"\bmultimem_all_(?:reduce|gather)", "multimem_all_"),
    (r"\b(?:one|two)_shot_all_reduce", "_shot_all_reduce"),
    (r"tensorrt_llm::.*(?:[aA]ll_?[rR]educe|[lL]amport)", "tensorrt_llm::"),
    (r"flashinfer::.*(?:all_?reduce|trtllm_allreduce)", "flashinfer::"),
    (r"\bk?userbuffers_", "userbuffers_"),  # Transformer Engine
    (r"\bquickreduce::", "quickreduce::"),
    (r"\buc[pt]_\w*kernel", "kernel"),
)
_HINT = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv|broadcast_kernel_p2p",
    re.IGNORECASE,
)


def is_communication(names: Labels, extra: Iterable[str] = ()) -> NDArray[np.bool_]:
    """Mask of the rows whose kernel name is communication; `extra` adds regular expressions."""
    patterns = tuple(extra)
    try:
        for pattern in patterns:
            re.compile(pattern)
    except re.error as error:
        raise UsageError(f"a communication pattern is no regular expression: {error}") from None
    return names.where(lambda name: communicates(name, patterns))


@lru_cache(1 << 14)
def communicates(name: str, extra: tuple[str, ...] = ()) -> bool:
    """Whether a kernel is communication; the reports of a job hold the same names."""
    patterns = (*COMMUNICATION_KERNELS, *((pattern, "") for pattern in extra))
    # to look for a word is far cheaper than for a pattern
    return any(word in name and re.search(pattern, name) for pattern, word in patterns)


def doubtful_names(kernels: Frame, extra: Iterable[str] = ()) -> list[str]:
    """Kernels counted as compute whose name sounds like communication, from 1 % of all work up."""
    names = kernels.labels("name").merged()
    length = kernels.ints("end_ns") - kernels.ints("start_ns")
    work = np.bincount(names.codes, length, len(names.values))
    each = Labels(np.arange(len(names.values), dtype=np.int32), names.values)
    compute = ~is_communication(each, extra)
    material = compute & (work >= MATERIAL * work[compute].sum())
    shown = (names.values[code] for code in np.flatnonzero(material).tolist())
    return [name for name in shown if _HINT.search(name)]


_OPERATION = re.compile(
    r"nccl(?:Dev|Sym(?:k)?Dev)?(?:Kernel_)?"
    r"(AllReduce|AllGatherV|AllGather|ReduceScatter|Reduce|Broadcast|SendRecv|AllToAll|Generic)"
)


def operation_of(name: str) -> str:
    """The collective that a communication kernel's name says: AllReduce, ...; else its own name.

    From NCCL 2.19 on the name says only collective and data width, so nothing more is read.
    """
    match = _OPERATION.search(name)
    return match[1] if match else function_name(name)
