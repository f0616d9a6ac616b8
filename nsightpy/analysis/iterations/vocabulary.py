"""What names say about iterations: of NVTX ranges, of kernels, of API calls.

A range called "step 12" is a step, "blocks.7" a layer of a model; a name without any of these
words says nothing.
"""

from __future__ import annotations

import enum
import re

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels

LIBRARY_DOMAINS = (
    *("NCCL", "NVSHMEM", "MPI", "cuBLAS", "cuBLASLt", "cuDNN", "cuFFT", "cuSOLVER", "cuSPARSE"),
    *("CCCL", "TensorRT", "TSL", "STDPAR", "UCX", "OpenACC", "NVTX"),
)


class Role(enum.Enum):
    """What the name of a range says it is. Blocks are layers as a whole, passes go through all."""

    STEP = "step"
    ENGINE = "step of an inference engine"
    EPOCH = "epoch"
    PASS = "pass"
    PHASE = "phase"
    PLAIN = "plain"
    BLOCK = "layer"
    PART = "part of a layer"
    OPERATOR = "operator"
    WARM_UP = "warm-up"


def _words(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE)


# The first that a name has is its role.
_ROLES = (
    (Role.STEP, re.compile(r"^ProfilerStep")),
    (Role.ENGINE, re.compile(r"^execute_\S*context_#|^step\[\]")),
    (
        Role.OPERATOR,
        re.compile(
            r"^(?!FSDP|DDP)\w+::(?!\w*[_ ]?(?:step|iter))|^(?:cu|nccl|MPI_|nvte_)[A-Za-z]*\("
            r"|(?:Backward[\d#]*|Function|AccumulateGrad)$"
        ),
    ),
    (Role.WARM_UP, re.compile(r"warm(?:ing)?[-_ ]?up|(?<![a-z])burn[-_ ]?in", re.IGNORECASE)),
    (
        Role.BLOCK,
        _words(
            r"\w*layers?[._\s:#-]*\d*|\w*blocks?[._\s:#-]*\d*|\w*sub-?layer|attention\w*|\w*attn"
            r"|mlp|ffn|feed[-_ ]?forward|h\.[#\d]+"
        ),
    ),
    (
        Role.PART,
        _words(
            r"\w*norm|q_?proj|linear|softmax|masking|embedding|encoder|decoder|conv\d?d?|matmul"
            r"|lm_?head|expert|moe|rope|sdpa|transformer\w*|gelu|relu"
        ),
    ),
    (Role.STEP, _words(r"\w*(?:train|decode|batch|iter)\w*_?(?:step|iter|iteration|batch)s?")),
    (
        Role.PASS,
        _words(r"fwd|forward\w*|bwd|backward\w*|optimi[sz]er\w*|opt|prefill"),
    ),
    (
        Role.PHASE,
        _words(
            r"loss\w*|zero_?grad|data\w*|h2d|d2h|copy\w*|i/?o|grad\w*|all_?reduce|broadcast"
            r"|sync\w*|setup|init\w*|inference|compute|save|load\w*|write|read|checkpoint\w*|wait"
        ),
    ),
    (
        Role.STEP,
        _words(
            r"(?:\w*_)?(?:time_?step|step|iter|iteration|batch|minibatch|microstep|frame|cycle"
            r"|sweep|generation|tick|sample|request|query|decode|timed|measured?|it)s?(?:_\w*)?"
        ),
    ),
    (Role.PART, re.compile(r"(?<![a-z])[a-z_]+\.#", re.IGNORECASE)),
    (Role.EPOCH, _words(r"\w*epochs?|train(?:ing)?(?:[-_ ]?loop)?|fit|eval\w*|validat\w*")),
)
_NUMBER = re.compile(r"\d+")
_WAIT = re.compile(r"Synchronize|^(?:cuda|cu|hip)Memcpy(?!.*Async)")
# Of neural networks, by the words of what they compute and of the compilers that write kernels.
_LEARNING = re.compile(
    r"at::native|cudnn|attention|softmax|(?:layer|batch|group|rms)_?norm|gelu|relu|silu|embedding|triton|flash|fmha|fus(?:ed|"
    r"ion|er)|multi_tensor|xmma|rotary|moe_",
    re.IGNORECASE,
)
_ATTENTION = re.compile(r"attention|flash|fmha|mha_|(?:layer|rms)_?norm|rsqrt|rotary", re.I)
_OPTIMIZER = re.compile(r"(?<!h)adam|multi_tensor_apply|(?<![a-z])sgd|_foreach|lamb_", re.I)
_ONCE = re.compile(
    r"cross_?entropy|_loss|argmax|multinomial|(?<!rotary_)(?<!rotary)embedding|indexSelect"
    r"|^CUDA graph",
    re.IGNORECASE,
)


def role_of(name: str) -> Role:
    """What the name of a range says."""
    return next((role for role, words in _ROLES if words.search(name)), Role.PLAIN)


def numbers_folded(name: str) -> str:
    """A name with # for its numbers."""
    return _NUMBER.sub("#", name)


def is_wait(names: Labels) -> NDArray[np.bool_]:
    """Mask of API calls that wait for the GPU: synchronising calls and blocking copies."""
    return names.where(_WAIT.search)


def is_learning(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels of neural networks."""
    return names.where(_LEARNING.search)


def is_attention(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels that come in each layer of a transformer: attention and normalisation."""
    return names.where(_ATTENTION.search)


def is_optimizer(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels that update parameters, which a training step does once."""
    return names.where(_OPTIMIZER.search)


def comes_once(names: Labels) -> NDArray[np.bool_]:
    """Mask of kernels that come once a pass, not once a layer: loss, embedding, sampling."""
    return names.where(_ONCE.search)
