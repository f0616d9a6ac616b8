"""What names say about iterations: of NVTX ranges, of kernels, of API calls.

Programs name what they do: a range called "step 12" is a step, "blocks.7" a layer of a model. The
words are those of frameworks (PyTorch modules and profiler, DeepSpeed, Megatron, JAX) and of
solvers; a name without any of them says nothing.
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels

_KEPT = 1 << 14
LIBRARY_DOMAINS = frozenset(
    (
        *("NCCL", "NVSHMEM", "MPI", "cuBLAS", "cuBLASLt", "cuDNN", "cuFFT", "cuSOLVER"),
        *("cuSPARSE", "CCCL", "TensorRT", "TSL", "STDPAR", "UCX", "OpenACC", "NVTX"),
    )
)


class Role(enum.Enum):
    """What the name of a range says it is."""

    STEP = "step"
    EPOCH = "epoch"
    PHASE = "phase"
    PLAIN = "plain"
    LAYER = "layer"
    OPERATOR = "operator"
    WARM_UP = "warm-up"


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{'|'.join(words)})(?![a-z])", re.IGNORECASE)


_OPERATOR = re.compile(
    r"^(?:aten|torch|c10d?|prims|autograd|cudnn|nccl|flash_attn|cub|thrust|xla|jit|FSDP\d?|DDP)::"
    r"|(?:Backward[\d#]*|Function|AccumulateGrad)$|^autograd::|^(?:cu|nccl|MPI_|nvte_)[A-Za-z]*\("
)
_WARM_UP = re.compile(r"warm(?:ing)?[-_ ]?up|(?<![a-z])burn[-_ ]?in(?![a-z])", re.IGNORECASE)
_LAYER = _words(
    *(r"\w*layers?[._\s:#-]*\d*", r"\w*blocks?[._\s:#-]*\d*", r"\w*sub-?layer", r"attention\w*"),
    *(r"\w*attn", r"mlp", r"ffn", r"feed[-_ ]?forward", r"\w*norm", r"q_?proj", r"linear"),
    *(r"softmax", r"masking", r"embedding", r"encoder", r"decoder", r"conv\d?d?", r"matmul"),
    *(r"lm_?head", r"expert", r"moe", r"rope", r"sdpa", r"transformer\w*", r"gelu", r"relu"),
)
_PHASE = _words(
    *(r"fwd", r"forward\w*", r"bwd", r"backward\w*", r"optimi[sz]er\w*", r"opt", r"loss\w*"),
    *(r"zero_?grad", r"data\w*", r"h2d", r"d2h", r"copy\w*", r"i/?o", r"grad\w*", r"prefill"),
    *(r"all_?reduce", r"broadcast", r"sync\w*", r"setup", r"init\w*", r"inference", r"compute"),
    *(r"save", r"load\w*", r"write", r"read", r"checkpoint\w*", r"wait"),
)
_STEP = re.compile(
    r"^profilerstep|(?<![a-z])(?:\w*_)?(?:time_?step|step|iter|iteration|batch|minibatch|microstep|"
    r"frame|cycle|sweep|generation|tick|sample|request|query|decode|timed|measured?|it)s?"
    r"(?:_\w*)?(?![a-z])",
    re.IGNORECASE,
)
_LAYER_INDEX = re.compile(
    r"(?<![a-z])(?:\w*layers?|\w*blocks?|\w*sub-?layer|attention\w*|\w*attn|mlp|ffn|"
    r"feed[-_ ]?forward|h)(?![a-z])|attention",
    re.IGNORECASE,
)
_PASS = re.compile(
    r"(?<![a-z])(?:forward|fwd|backward|bwd|optimi[sz]er|prefill|step|iteration|iter)(?![a-z])",
    re.IGNORECASE,
)
_EPOCH = _words(
    *(r"\w*epochs?", r"train(?:ing)?(?:[-_ ]?loop)?", r"fit", r"eval\w*", r"validat\w*"),
)
# a module in a list of modules, as PyTorch names it: "h.#", "features.#.0"
_MODULE = re.compile(r"(?<![a-z])[a-z_]+\.#", re.IGNORECASE)
_PROFILER = re.compile(r"^ProfilerStep")
# of vLLM: execute_8192_context_9(...)_generation_37(...), execute_new_3_cached_20; of SGLang:
# step[DECODE bs=32], step[EXTEND bs=1 toks=888]
_ENGINE = re.compile(r"^execute_(?:[#\d]+_)?(?:context|new)_[#\d]|^step\[[A-Z]")
_ENGINE_PHASE = re.compile(r"^step\[[A-Z_]+\b.*")
_ENGINE_LENGTHS = re.compile(r"\([^)]*\)")
_WAIT = re.compile(
    r"Synchronize|^(?:cuda|cu|hip)Memcpy(?!.*Async)|^cudaMemcpy(?:To|From)Symbol(?!Async)"
)
_LEARNING = re.compile(
    r"at::native|at_cuda|cudnn|attention|softmax|layer_?norm|batch_?norm|rms_?norm|gelu|relu|silu|"
    r"embedding|triton|tensorrt|flash|fmha|nvfuser|fused_adam|multi_tensor|xmma|fusion|vllm|sgl_|aiter|kvcache|moe_|rotary",
    re.IGNORECASE,
)
_LAYER_KERNEL = re.compile(
    r"attention|flash|fmha|(?:layer|rms)_?norm|rsqrt|mha_|rotary", re.IGNORECASE
)
_OPTIMIZER_KERNEL = re.compile(
    r"(?<!h)adam|multi_tensor_apply|(?<![a-z])sgd|_foreach|lamb_", re.IGNORECASE
)
_STEP_KERNEL = re.compile(
    r"cross_?entropy|mse_?loss|_loss|argmax|multinomial|(?<!rotary_)(?<!rotary)embedding|"
    r"indexSelect|^CUDA graph",
    re.IGNORECASE,
)
_PRODUCT = re.compile(
    r"gemm|gemv|xmma|cutlass|nvjet|Cijk_|bmm_|matmul|s\d+16\w*|winograd|implicit_con|wgrad|dgrad|splitK",
    re.IGNORECASE,
)


def role_of(name: str) -> Role:
    """What the name of a range says; operators and layers win over the words of steps."""
    if _OPERATOR.search(name):
        return Role.OPERATOR
    if _PROFILER.search(name) or is_engine_step(name):
        return Role.STEP
    if _WARM_UP.search(name):
        return Role.WARM_UP
    if _LAYER.search(name):
        return Role.LAYER
    step, phase = _STEP.search(name), _PHASE.search(name)
    if phase and not (step and re.search(r"train|decode|batch|iter|\d", name, re.IGNORECASE)):
        return Role.PHASE
    if step:
        return Role.STEP
    if _MODULE.search(name):
        return Role.LAYER
    return Role.EPOCH if _EPOCH.search(name) else Role.PLAIN


def names_a_layer(name: str) -> bool:
    """Whether a range's name is that of one of a model's layers, blocks or their parts."""
    return bool(_LAYER_INDEX.search(name))


def names_a_pass(name: str) -> bool:
    """Whether a range's name is that of one pass over a model or one step: "forward", "step"."""
    return bool(_PASS.search(name)) and not _OPERATOR.search(name)


def is_profiler_step(name: str) -> bool:
    """Whether PyTorch's profiler made the range, once a step."""
    return bool(_PROFILER.search(name))


def is_engine_step(name: str) -> bool:
    """Whether an inference engine (vLLM, SGLang) made the range, once a step."""
    return bool(_ENGINE.search(name))


def phases_folded(name: str) -> str:
    """One name for the steps of an engine, whatever their phase and lengths; others as they are."""
    if not is_engine_step(name):
        return name
    return _ENGINE_LENGTHS.sub("", _ENGINE_PHASE.sub("step[...]", name))


def is_wait(names: Labels) -> NDArray[np.bool_]:
    """Mask of API calls that wait for the GPU: synchronising calls and blocking copies."""
    return _hits(names, _WAIT)


def is_learning(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels of neural networks, by the names that their libraries give them."""
    return _hits(names, _LEARNING)


def is_layer_kernel(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels that a transformer's layers hold: attention and its normalisation."""
    return _hits(names, _LAYER_KERNEL)


def is_step_kernel(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels that come once a pass, not once a layer: loss, embedding, sampling."""
    return _hits(names, _STEP_KERNEL)


def is_optimizer_kernel(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels that update parameters, which a training step does once."""
    return _hits(names, _OPTIMIZER_KERNEL)


def is_product(names: Labels) -> NDArray[np.bool_]:
    """Mask of matrix products and convolutions."""
    return _hits(names, _PRODUCT)


def products_folded(names: Labels) -> Labels:
    """Kernel names with all matrix products under one: libraries choose them by shape."""
    return names.renamed(lambda name: "product" if _says(_PRODUCT, name) else name)


def _hits(names: Labels, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    return names.where(partial(_says, pattern))


@lru_cache(_KEPT)
def _says(pattern: re.Pattern[str], name: str) -> bool:
    """Whether a name has a pattern; the reports of a job hold the same names."""
    return pattern.search(name) is not None
