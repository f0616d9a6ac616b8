"""One iteration's launch sequence: what every GPU of the job does, over and over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.large.names import COMMUNICATION_NAMES, KERNEL_NAMES, OTHER_CALLS, RECORD, WAIT

Ints = NDArray[np.int64]

KERNELS_PER_ITERATION = 2_000
LAYER = 40
BLOCK = 20
MAIN_STREAM, AUXILIARY_STREAM, COPY_STREAM, COMMUNICATION_STREAM = 7, 13, 14, 17

RECORDED_STREAMS = (MAIN_STREAM, AUXILIARY_STREAM, COPY_STREAM)

NO_MEMORY_OPERATION, HOST_TO_DEVICE, DEVICE_TO_HOST, SET = 0, 1, 2, 3

_OP_EDGES = (0, 3, 6, 9, 12, 15, 17, 20, 22, 24, 27, 30, 32, 34, 37, 40)
STEP_TEXT = "train_step"
BLOCK_TEXTS = ("attention", "mlp")
OP_TEXTS = (
    "aten::linear",
    "aten::layer_norm",
    "aten::addmm",
    "aten::scaled_dot_product_attention",
    "aten::view",
    "aten::add",
    "aten::dropout",
    "aten::linear",
    "aten::gelu",
    "aten::mul",
    "aten::native_layer_norm_backward",
    "aten::addmm",
    "aten::silu",
    "aten::sum",
    "aten::copy_",
)
COLLECTIVE_TEXTS = ("ncclAllReduce", "ncclReduceScatter", "ncclAllGather")
COLLECTIVE_LEVEL = 4


@dataclass(frozen=True)
class Ranges:
    """NVTX push/pop ranges of one iteration, as launch slots; level 0 is outermost."""

    first: Ints
    last: Ints
    level: Ints
    text: tuple[str, ...]


@dataclass(frozen=True)
class Events:
    """CUDA events of one iteration: slots that record one, slots that make a stream wait for one.

    Wait i is for record `awaited[i]`, the last one before it.
    """

    recorded: Ints
    recorded_on: Ints
    waited: Ints
    waiting: Ints
    awaited: Ints


@dataclass(frozen=True)
class Pattern:
    """Slot i makes one other API call, perhaps a copy or memset, then launches kernel `name[i]`."""

    name: Ints
    stream: Ints
    other_call: Ints
    memory_operation: Ints
    ranges: Ranges
    events: Events

    def __len__(self) -> int:
        return len(self.name)


def _ranges(slots: int) -> Ranges:
    rows: list[tuple[int, int, int, str]] = [(0, slots, 0, STEP_TEXT)]
    for layer, begin in enumerate(range(0, slots, LAYER)):
        rows.append((begin, begin + LAYER, 1, f"layer_{layer:02d}"))
        for half, text in enumerate(BLOCK_TEXTS):
            block = begin + half * BLOCK
            rows.append((block, block + BLOCK, 2, text))
            collective = COLLECTIVE_TEXTS[(block // BLOCK) % COMMUNICATION_NAMES]
            rows.append((block + BLOCK - 1, block + BLOCK, COLLECTIVE_LEVEL, collective))
        for low, high, text in zip(_OP_EDGES[:-1], _OP_EDGES[1:], OP_TEXTS, strict=True):
            rows.append((begin + low, begin + high, 3, text))
    kept = sorted(
        (first, level, min(end, slots) - 1, text)
        for first, end, level, text in rows
        if first < slots
    )
    first, level, last = np.array([row[:3] for row in kept]).T
    return Ranges(first, last, level, tuple(row[3] for row in kept))


def make_pattern(slots: int, seed: int) -> Pattern:
    """The launch sequence of one iteration of `slots` kernels; shorter ones are prefixes."""
    random = np.random.default_rng([seed, 1])
    whole = max(slots, KERNELS_PER_ITERATION)
    compute = KERNEL_NAMES - COMMUNICATION_NAMES
    weight = 1.0 / np.arange(3, 3 + compute) ** 0.9
    slot = np.arange(whole)
    communicates = slot % BLOCK == BLOCK - 1
    name = slot // BLOCK % COMMUNICATION_NAMES
    free = whole - int(communicates.sum())
    drawn = random.choice(compute, size=free - compute, p=weight / weight.sum())
    every = random.permutation(np.append(np.arange(compute), drawn))
    name[~communicates] = COMMUNICATION_NAMES + every
    stream = np.where(random.random(whole) < 0.08, AUXILIARY_STREAM, MAIN_STREAM)
    stream = np.where(communicates, COMMUNICATION_STREAM, stream)
    memory = random.choice(4, size=whole, p=[0.95, 0.02, 0.01, 0.02])
    memory = np.where(communicates, NO_MEMORY_OPERATION, memory)
    other = random.choice(6, size=whole, p=[0.4, 0.2, 0.15, 0.15, 0.05, 0.05])
    head = slice(0, slots)
    other, memory = other[head], memory[head]
    events = _events(other, memory, random)
    return Pattern(name[head], stream[head], other, memory, _ranges(slots), events)


def _events(other: Ints, memory: Ints, random: np.random.Generator) -> Events:
    """Who records and waits; waits without a record before them become records, in `other`."""
    calls = np.where(memory == NO_MEMORY_OPERATION, other, -1)
    record, wait = OTHER_CALLS.index(RECORD), OTHER_CALLS.index(WAIT)
    first = np.flatnonzero((calls == record) | (calls == wait))[:1]
    calls[first] = other[first] = record
    recorded, waited = np.flatnonzero(calls == record), np.flatnonzero(calls == wait)
    streams = random.choice(RECORDED_STREAMS, size=len(recorded), p=(0.7, 0.2, 0.1))
    waiting = random.choice((AUXILIARY_STREAM, COMMUNICATION_STREAM), size=len(waited))
    return Events(recorded, streams, waited, waiting, np.searchsorted(recorded, waited) - 1)
