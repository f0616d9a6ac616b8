"""What the annotated steps of an inference engine worked on.

Steps are the annotations of vLLM (execute_NEW_context_N(...)_generation_M(...)) and SGLang
(step[DECODE bs=32], step[EXTEND bs=1 toks=888]); a context request is a prefill.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nsightpy.analysis.iterations.vocabulary import numbers_folded
from nsightpy.frames import Frame

_VLLM = re.compile(r"execute_(?:(\d+)_)?context_(\d+)\(([^)]*)\)_generation_(\d+)\(([^)]*)\)")
_SGLANG = re.compile(r"step\[(\w+) bs=(\d+)(?: toks=(\d+))?")
_DETAILS = re.compile(r"(?<=\[).*(?=\])|\([^)]*\)")
_QUERY = re.compile(r"(?:sq)?(\d+)")


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


def engine_step(name: str) -> str:
    """One name for the steps of an engine, whatever they work on; empty for other names."""
    return "" if batch_of(name) is None else numbers_folded(_DETAILS.sub("", name))


def batches_of(ranges: Frame) -> list[Batch]:
    """What the steps among the ranges (by start) worked on, one entry a step; of nested annotations
    those of the engine's inner one."""
    names = ranges.labels("name")
    inner = names.where(lambda name: _SGLANG.match(name) is not None)
    steps = names.take(inner if inner.any() else names.where(batch_of))
    return [batch for name in steps if (batch := batch_of(name)) is not None]
