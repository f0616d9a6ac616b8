"""What names say about iterations: of NVTX ranges, of kernels, of API calls.

A range called "step 12" is a step, "blocks.7" a layer of a model; a name without any of these
words says nothing.
"""

from __future__ import annotations

import enum
import re

LIBRARY_DOMAINS = (
    *("NCCL", "NVSHMEM", "MPI", "cuBLAS", "cuBLASLt", "cuDNN", "cuFFT", "cuSOLVER", "cuSPARSE"),
    *("CCCL", "TensorRT", "TSL", "STDPAR", "UCX", "OpenACC", "NVTX"),
)


class Role(enum.Enum):
    """What the name of a range says it is, for people.

    Blocks are layers as a whole, passes go through all of them.
    """

    STEP = "a step"
    ENGINE = "a step of an inference engine"
    PASS = "a pass"
    PLAIN = "something else"
    OPERATOR = "an operator"
    BLOCK = "a layer"
    PART = "a part of a layer"
    EPOCH = "an epoch"
    WARM_UP = "warm-up"


# Such ranges may repeat and hold the work, and are no steps.
NO_STEPS = (Role.BLOCK, Role.PART, Role.EPOCH, Role.WARM_UP)
# What names of a role look like, and whole words in them; the first that a name has is its role.
_ROLES = (
    (Role.STEP, re.compile(r"^ProfilerStep")),
    (Role.ENGINE, re.compile(r"^execute_\S*context_#|^step\[\]")),
    (Role.OPERATOR, re.compile(r"^(?!FSDP|DDP)\w+::(?!\w*[_ ]?(?:step|iter))")),
    (Role.OPERATOR, re.compile(r"^(?:cu|nccl|MPI_|nvte_)[A-Za-z]*\(")),
    (Role.OPERATOR, re.compile(r"(?:Backward[\d#]*|Function|AccumulateGrad)$")),
    (Role.WARM_UP, re.compile(r"warm(?:ing)?[-_ ]?up|(?<![a-z])burn[-_ ]?in", re.IGNORECASE)),
    *(
        (role, re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(words.split())})(?![a-z])"))
        for role, words in (
            (
                Role.BLOCK,
                r"\w*layers?[._\s:#-]*\d* \w*blocks?[._\s:#-]*\d* \w*sub-?layer h\.[#\d]+",
            ),
            (Role.BLOCK, r"attention\w* \w*attn mlp ffn feed[-_\s]?forward"),
            (Role.PART, r"\w*norm q_?proj linear softmax masking embedding encoder decoder matmul"),
            (Role.PART, r"lm_?head expert moe rope sdpa transformer\w* gelu relu conv\d?d?"),
            (Role.STEP, r"\w*(?:train|decode|batch|iter)\w*_?(?:step|iter|iteration|batch)s?"),
            (Role.PASS, r"fwd forward\w* bwd backward\w* optimi[sz]er\w* opt prefill"),
            (Role.PLAIN, r"loss\w* zero_?grad data\w* h2d d2h copy\w* i/?o grad\w* all_?reduce"),
            (Role.PLAIN, r"broadcast sync\w* setup init\w* inference compute wait"),
            (Role.PLAIN, r"save load\w* write read checkpoint\w*"),
            (
                Role.STEP,
                r"(?:\w*_)?(?:time_?step|step|iter|iteration|it|(?:mini)?batch)s?(?:_\w*)?",
            ),
            (Role.STEP, r"(?:\w*_)?(?:microstep|frame|cycle|sweep|generation|tick)s?(?:_\w*)?"),
            (Role.STEP, r"(?:\w*_)?(?:sample|request|query|decode|timed|measured?)s?(?:_\w*)?"),
            (Role.PART, r"[a-z_]+\.#"),
            (Role.EPOCH, r"\w*epochs? train(?:ing)?(?:[-_\s]?loop)? fit eval\w* validat\w*"),
        )
    ),
)
_NUMBER = re.compile(r"\d+")
# API calls that wait for the GPU: synchronising calls and blocking copies.
WAIT = re.compile(r"Synchronize|^(?:cuda|cu|hip)Memcpy(?!.*Async)")
# Kernels of neural networks: what they compute, and the compilers that write them.
LEARNING = re.compile(
    r"at::native|cudnn|attention|softmax|(?:layer|batch|group|rms)_?norm|gelu|relu|silu|embedding"
    r"|triton|flash|fmha|fus(?:ed|ion|er)|multi_tensor|xmma|rotary|moe_",
    re.IGNORECASE,
)
# Products of matrices, without which there is no layer.
PRODUCT = re.compile(
    r"gemm|gemv|nvjet|conv|mma|matmul|cutlass|dot|attention|flash|Cijk", re.IGNORECASE
)
# Those that come in each layer of a transformer.
ATTENTION = re.compile(r"attention|flash|fmha|mha_|(?:layer|rms)_?norm|rsqrt|rotary", re.I)
# Those that update parameters, which a training step does once.
OPTIMIZER = re.compile(r"(?<!h)adam|multi_tensor_apply|(?<![a-z])sgd|_foreach|lamb_", re.I)
# Those that come once a pass, not once a layer: loss, embedding, sampling; and graphs.
ONCE = re.compile(
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
