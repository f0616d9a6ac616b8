"""What names say about iterations: of NVTX ranges, of kernels, of API calls.

A range called "step 12" is a step, "blocks.7" a layer of a model; a name without any of these
words says nothing.
"""

import enum
import re
from dataclasses import dataclass

from nsightpy.frames import Frame
from nsightpy.names import without_numbers

LIBRARY_DOMAINS = (
    *("NCCL", "NVSHMEM", "MPI", "cuBLAS", "cuBLASLt", "cuDNN", "cuFFT", "cuSOLVER", "cuSPARSE"),
    *("CCCL", "TensorRT", "TSL", "STDPAR", "UCX", "OpenACC", "NVTX"),
)


class Role(enum.Enum):
    """What the name of a range says it is, for people; passes go through all layers."""

    STEP = "a step"
    ENGINE = "a step of an inference engine"
    PASS = "a pass"
    PLAIN = "something else"
    OPERATOR = "an operator"
    LAYER = "a layer or a part of one"
    EPOCH = "an epoch"
    WARM_UP = "warm-up"


STEPS = (Role.STEP, Role.ENGINE)
# Such ranges may repeat and hold the work, and are no steps.
NO_STEPS = (Role.LAYER, Role.EPOCH, Role.WARM_UP)
_OPERATOR = (
    r"^(?!FSDP|DDP)\w+::(?!\w*[_ ]?(?:step|iter))|^(?:cu|nccl|MPI_|nvte_)[A-Za-z]*\("
    r"|(?:Backward[\d#]*|Function|AccumulateGrad)$"
)
# Whole words in names of a role.
_WORDS = (
    (
        Role.LAYER,
        (
            r"\w*layers?[._\s:#-]*\d* \w*blocks?[._\s:#-]*\d* \w*sub-?layer h\.[#\d]+ attention\w*"
            r" \w*attn mlp ffn feed[-_\s]?forward \w*norm q_?proj linear softmax masking embedding"
            r" encoder decoder matmul lm_?head expert moe rope sdpa transformer\w* gelu relu"
            r" conv\d?d?"
        ),
    ),
    (Role.STEP, r"\w*(?:train|decode|batch|iter)\w*_?(?:step|iter|iteration|batch)s?"),
    (Role.PASS, r"fwd forward\w* bwd backward\w* optimi[sz]er\w* opt prefill"),
    (
        Role.PLAIN,
        (
            r"loss\w* zero_?grad data\w* h2d d2h copy\w* i/?o grad\w* all_?reduce broadcast sync\w*"
            r" setup init\w* inference compute wait save load\w* write read checkpoint\w*"
        ),
    ),
    (
        Role.STEP,
        (
            r"(?:\w*_)?(?:time_?step|step|iter|iteration|it|(?:mini)?batch|microstep|frame|cycle|sweep"
            r"|generation|tick|sample|request|query|decode|timed|measured?)s?(?:_\w*)?"
        ),
    ),
    (Role.LAYER, r"[a-z_]+\.#"),
    (Role.EPOCH, r"\w*epochs? train(?:ing)?(?:[-_\s]?loop)? fit eval\w* validat\w*"),
)
# What names of a role look like; the first that a name has is its role.
_ROLES = (
    (Role.STEP, re.compile(r"^ProfilerStep")),
    (Role.ENGINE, re.compile(r"^execute_\S*context_#|^step\[\]")),
    (Role.OPERATOR, re.compile(_OPERATOR)),
    (Role.WARM_UP, re.compile(r"warm(?:ing)?[-_ ]?up|(?<![a-z])burn[-_ ]?in", re.IGNORECASE)),
    *(
        (role, re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(words.split())})(?![a-z])"))
        for role, words in _WORDS
    ),
)
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
# What vLLM and SGLang call their steps: execute_NEW_context_N(...)_generation_M(...),
# step[DECODE bs=32], step[EXTEND bs=1 toks=888]; a context request is a prefill.
_VLLM = re.compile(r"execute_(?:(\d+)_)?context_(\d+)\(([^)]*)\)_generation_(\d+)\(([^)]*)\)")
_SGLANG = re.compile(r"step\[(\w+) bs=(\d+)(?: toks=(\d+))?")
_DETAILS = re.compile(r"(?<=\[).*(?=\])|\([^)]*\)")
_QUERY = re.compile(r"(?:sq)?(\d+)")


def role_of(name: str) -> Role:
    """What the name of a range says."""
    return next((role for role, words in _ROLES if words.search(name)), Role.PLAIN)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a step worked on: kind (prefill, decode, mixed), requests, tokens."""

    kind: str
    requests: int
    tokens: int


def batch_of(name: str) -> Batch | None:
    """What an annotation says of its step; None for other names."""
    if match := _VLLM.match(name):
        context, generation = int(match[2]), int(match[4])
        query = _QUERY.match(match[3])
        prefilled = int(query[1]) if query and context else 0
        tokens = int(match[1]) if match[1] else prefilled + generation
        kind = "mixed" if context and generation else "prefill" if context else "decode"
        return Batch(kind, context + generation, tokens)
    if match := _SGLANG.match(name):
        decodes = "DECODE" in match[1].upper()
        kind = "decode" if decodes else "mixed" if "MIX" in match[1].upper() else "prefill"
        return Batch(kind, int(match[2]), int(match[3] or (match[2] if decodes else 0)))
    return None


def step_name(name: str) -> str:
    """A name with # for its numbers; one for the steps of an engine, whatever they work on."""
    return without_numbers(name if batch_of(name) is None else _DETAILS.sub("", name))


def batches_of(ranges: Frame) -> list[Batch]:
    """What the steps among the ranges (by start) worked on, one entry a step; of nested annotations
    those of the engine's inner one."""
    names = ranges.labels("name")
    inner = names.where(lambda name: _SGLANG.match(name) is not None)
    steps = names.take(inner if inner.any() else names.where(batch_of))
    return [batch for name in steps if (batch := batch_of(name)) is not None]
