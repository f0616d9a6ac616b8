"""FLOP of operators, and of steps, by the shapes of inputs: the model's, not the hardware's.

A multiplication and an addition count as two. Formulas of PyTorch:
https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py
(mm, addmm, bmm, baddbmm, convolution, scaled dot product attention, and their backward passes; a
mask does not reduce attention). The backward of a convolution counts a forward for each gradient
of its output_mask. An operator under one that counts does not count again.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from nsightpy.frames import Floats, Frame
from nsightpy.units import counted

Shape: TypeAlias = Sequence[int]
Formula: TypeAlias = Callable[[list[Any], list[Any]], float]
STEP = "ProfilerStep#"


def operator_flop(operators: Frame) -> Floats:
    """FLOP of each operator that has a formula (columns name, shapes, inputs, parent, depth).

    NaN for others, and where shapes were not recorded.
    """
    names, shapes, inputs = (operators.labels(n) for n in ("name", "shapes", "inputs"))
    flop = np.full(operators.rows, np.nan)
    rows = np.flatnonzero(names.where(lambda name: name in FORMULAS))
    counted = lru_cache(None)(_count)
    for row in rows.tolist():
        flop[row] = counted(names[row], shapes[row], inputs[row])
    counts, above = ~np.isnan(flop), np.zeros(operators.rows, dtype=np.bool_)
    parent, depth = operators.ints("parent"), operators.ints("depth")
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero(depth == level)
        above[rows] = above[parent[rows]] | counts[parent[rows]]
    flop[above] = np.nan
    return flop


def _count(name: str, shapes: str, inputs: str) -> float:
    try:
        flop = FORMULAS[name](_list(shapes), _list(inputs))
    except (ValueError, TypeError, IndexError, KeyError, OverflowError):
        return math.nan
    return float(flop) if flop >= 0 else math.nan


def _list(text: str) -> list[Any]:
    values = json.loads(text) if text else []
    return values if isinstance(values, list) else []


def _sized(shape: Any, least: int, most: int | None = None) -> Shape:
    """A shape with so many dimensions."""
    if not isinstance(shape, list) or not least <= len(shape) <= (most or least):
        raise ValueError("the shapes do not say")
    return shape


def _matmul(first: int) -> Formula:
    """Two matrices, or as many pairs of them, from that input on."""

    def count(shapes: list[Any], _: list[Any]) -> float:
        left, right = (_sized(shape, 2, 3) for shape in shapes[first : first + 2])
        if len(left) != len(right) or left[-1] != right[-2]:
            raise ValueError("the shapes do not say")
        return 2.0 * math.prod(left) * right[-1]

    return count


def _convolution(shapes: list[Any], inputs: list[Any]) -> float:
    """input, weight, bias, stride, padding, dilation, transposed, ..."""
    x, weight = _sized(shapes[0], 3, 5), _sized(shapes[1], 3, 5)
    if str(inputs[6]).lower() == "true":
        # every element of the input meets the whole filter
        return 2.0 * x[0] * math.prod(x[2:]) * math.prod(weight)
    stride, padding, dilation = (_numbers(inputs[i], len(x) - 2) for i in (3, 4, 5))
    output = [
        (size + 2 * pad - spread * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, spread in zip(
            x[2:], weight[2:], stride, padding, dilation, strict=True
        )
    ]
    return 2.0 * x[0] * math.prod(output) * math.prod(weight)


def _convolution_backward(shapes: list[Any], inputs: list[Any]) -> float:
    """grad_output, input, weight, bias sizes, stride, padding, dilation, transposed, ..., mask."""
    gradient, x, weight = (_sized(shape, 3, 5) for shape in shapes[:3])
    moved = x if str(inputs[7]).lower() == "true" else gradient
    wanted = str(inputs[10]).lower().strip("[]").split(",")[:2]
    passes = sum(flag.strip() == "true" for flag in wanted)
    return 2.0 * passes * moved[0] * math.prod(moved[2:]) * math.prod(weight)


def _numbers(text: Any, count: int) -> Shape:
    """[1, 1], or the one number that stands for all, as the profiler writes plain inputs."""
    numbers = json.loads(text) if isinstance(text, str) else text
    numbers = numbers if isinstance(numbers, list) else [numbers]
    return numbers * count if len(numbers) == 1 else numbers


def _attention(first: int, with_key: int, with_value: int) -> Formula:
    """Query, key, value (batch, head, length, size) from that input on.

    So many products of the scores' size with the key's size, and with the value's.
    """

    def count(shapes: list[Any], _: list[Any]) -> float:
        query, key, value = (_sized(shape, 4) for shape in shapes[first : first + 3])
        if key[2] != value[2] or query[3] != key[3]:
            raise ValueError("the shapes do not say")
        scores = 2.0 * query[0] * query[1] * query[2] * key[2]
        return scores * (with_key * query[3] + with_value * value[3])

    return count


_ADDING = ("addmm", "addmm_", "_addmm_activation", "baddbmm", "baddbmm_")
_ATTENTIONS = ("flash_attention", "efficient_attention", "cudnn_attention")
FORMULAS: dict[str, Formula] = {
    **{f"aten::{name}": _matmul(0) for name in ("mm", "bmm", "_scaled_mm")},
    **{f"aten::{name}": _matmul(1) for name in _ADDING},
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
    **{f"aten::_scaled_dot_product_{kind}": _attention(0, 1, 1) for kind in _ATTENTIONS},
    **{f"aten::_scaled_dot_product_{kind}_backward": _attention(1, 3, 2) for kind in _ATTENTIONS},
}

# Dense peaks of tensor cores in FLOP/s with 16 bits a number, from the vendors' data sheets
# (without sparsity), by a piece of the product's name; the first that fits counts.
_PEAKS_16_BIT = (
    ("GB200", 2.5e15),
    ("B200", 2.25e15),
    ("GH200", 989.4e12),
    ("H200", 989.4e12),
    ("H100 PCIe", 756e12),
    ("H100 NVL", 835e12),
    ("H100", 989.4e12),
    ("A100", 312e12),
    ("A30", 165e12),
    ("A40", 149.7e12),
    ("A10", 125e12),
    ("L40S", 362.05e12),
    ("L40", 181.05e12),
    ("L4", 121e12),
    ("V100", 125e12),
    ("T4", 65e12),
    ("MI300X", 1307.4e12),
    ("MI325X", 1307.4e12),
    ("MI300A", 980.6e12),
)
_16_BIT = frozenset({"c10::bfloat16", "c10::half"})


def peak_flop_per_s(gpu: str, types: str) -> float | None:
    """The peak that an operator with these input types can reach on a GPU; None: not known.

    Only for 16 bits a number: of float it is unknown whether TF32 was allowed.
    """
    kinds = {kind.lower() for kind in _list(types) if isinstance(kind, str)}
    floating = {kind for kind in kinds if kind.startswith(("c10::", "float", "double"))}
    if not floating or not floating <= _16_BIT:
        return None
    return next((peak for part, peak in _PEAKS_16_BIT if re.search(rf"\b{part}\b", gpu)), None)


def step_flop(operators: Frame, flop: Floats, ideal_s: Floats, ranges: Frame) -> Floats:
    """Of each step among the ranges (start_ns, end_ns, name) a row of its length in s, the FLOP of
    operators that began in it, and the seconds that they take at the device's peak (NaN where that
    is not known)."""
    steps = ranges.take(ranges.labels("name").where(lambda name: name.startswith(STEP)))
    counted = np.flatnonzero(~np.isnan(flop))
    start = operators.ints("start_ns")[counted]
    low, high = (np.searchsorted(start, steps.ints(name)) for name in ("start_ns", "end_ns"))
    sums = [np.concatenate([[0.0], np.cumsum(values[counted])]) for values in (flop, ideal_s)]
    length = (steps.ints("end_ns") - steps.ints("start_ns")) * 1e-9
    return np.column_stack([length, *(values[high] - values[low] for values in sums)])


def step_notes(parts: Sequence[Floats]) -> list[str]:
    """What is said of the median step of all parts; nothing where no step has FLOP."""
    steps = np.concatenate(parts)
    length, flop, ideal = steps[(steps[:, 0] > 0) & (steps[:, 1] > 0)].T
    if not len(flop):
        return []
    rate, use = float(np.median(flop / length)) * 1e-12, float(np.median(ideal / length))
    text = (
        f"Model FLOP by shapes, median of {counted(len(flop), 'step')}: "
        f"{float(np.median(flop)) * 1e-12:.4g} TFLOP a step, {rate:.4g} TFLOP/s"
    )
    return [text + ("." if np.isnan(use) else f", MFU {100 * use:.1f} %.")]
