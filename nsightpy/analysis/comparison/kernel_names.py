"""What names of kernels have in common: a name without numbers, without arguments; a class."""

from __future__ import annotations

import re
from functools import lru_cache

from nsightpy.names import function_name

_NUMBER = re.compile(r"\d+")
# An autotuner chooses among variants of these by size, shape and clock.
TUNED = frozenset({"matrix product", "convolution", "attention"})
GRAPH = "CUDA graph"
# Words of a name that do not say what is computed, but on which type; without numbers.
_TYPE = re.compile(
    "bool|char|short|u?int|long|(un)?signed|tf|float|double|(nv_)?half(_t)?|Half|(nv_)?bfloat(_t)?|"
    "BFloat|complex|size_t|std|const|void|true|false|.?"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
# The first that fits; names of libraries and compilers, not of programs.
_CATEGORIES = (
    (GRAPH, r"^CUDA graph \d+$"),
    ("communication", r"nccl|nvshmem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"),
    ("attention", r"flash|fmha|attention|\bmha_|sdpa|paged_?attn"),
    ("convolution", r"conv|winograd|scudnn|fprop|cudnn.*(?:dgrad|wgrad)|im2col"),
    (
        "matrix product",
        r"gemm|gemv|xmma|cutlass|nvjet|Cijk_|bmm_|matmul|_mm_|wgmma|splitK|s\d+16\w*",
    ),
    ("optimizer", r"multi_tensor_apply|adam|lamb_|sgd"),
    ("normalization", r"layer_?norm|batch_?norm|bn_(?:fw|bw)|rms_?norm|group_?norm"),
    ("softmax", r"softmax|cross_entropy|nll_loss"),
    ("reduction", r"reduce"),
    ("embedding", r"embedding|indexing|index_|gather|scatter"),
    ("element-wise", r"elementwise|pointwise|triton_poi|copy|fill|CatArray"),
)
_KNOWN = tuple((name, re.compile(text, re.IGNORECASE)) for name, text in _CATEGORIES)


@lru_cache(maxsize=4096)
def without_numbers(name: str) -> str:
    """The name with every number replaced: tiles, versions, counters of compilers."""
    return _NUMBER.sub("#", name)


@lru_cache(maxsize=4096)
def base_of(name: str) -> str:
    """The name without template arguments, parameters and numbers."""
    return without_numbers(function_name(name))


@lru_cache(maxsize=4096)
def program_of(name: str) -> str:
    """The base of a name with what its arguments compute: functors, but no types and numbers.

    Of kernels that autotuners choose, arguments say how and not what: the base alone.
    """
    if category_of(name) in TUNED:
        return base_of(name)
    words = _WORD.findall(without_numbers(name))
    plain = {word.strip("_") for word in words}
    return " ".join([base_of(name), *sorted(word for word in plain if not _TYPE.fullmatch(word))])


@lru_cache(maxsize=4096)
def category_of(name: str) -> str:
    """The class of a kernel by its name; empty where the name says none."""
    short = function_name(name)
    for text in (short, name):
        for category, pattern in _KNOWN:
            if pattern.search(text):
                return category
    return ""
