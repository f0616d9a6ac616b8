"""Which measurement of ncu belongs to which kernel of nsys: by name and geometry, else loosely.

Names are compared as the reports have them; where the styles of their versions differ, without
return type, parameters, casts and blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nsightpy.analysis.selection.launch_places import Extent, Variant
from nsightpy.names import function_name
from nsightpy.results.rooflines import RooflineLaunch, RooflineVariant

MANGLED, FUNCTION, LOOSE = "mangled", "function", "loose"
_NOISE = re.compile(r"\((?:unsigned |signed )?(?:int|bool|char|short|long|long long)\)|\s+")
_UNNAMED = re.compile(r"(?:\(anonymous namespace\)|<unnamed>|unnamed>)::")


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """Launches of one kernel and geometry as ncu saw them; `typical` is that of median duration."""

    number: int
    mangled: str
    base: str
    name: str
    grid: str
    block: str
    count: int
    typical: RooflineLaunch


@dataclass(frozen=True, slots=True)
class Match:
    """The measurement of a kernel, and what they have in common."""

    measured: MeasuredKernel
    way: str


def measurements(variants: Iterable[RooflineVariant]) -> tuple[MeasuredKernel, ...]:
    """What ncu measured, numbered in the order given."""
    return tuple(
        MeasuredKernel(
            number,
            variant.first.mangled_name,
            variant.first.base_name,
            variant.first.name,
            variant.first.grid,
            variant.first.block,
            len(variant.launches),
            variant.typical,
        )
        for number, variant in enumerate(variants)
    )


def match(variant: Variant, measured: Sequence[MeasuredKernel]) -> Match | None:
    """The measurement of a kernel: by mangled name and geometry; by function and geometry; loosely.

    Loosely is the same function under another geometry, that with the nearest number of threads.
    Other template arguments make another kernel, as far as the names have any.
    """
    shaped = [
        kernel
        for kernel in measured
        if _agrees(variant.grid, kernel.grid) and _agrees(variant.block, kernel.block)
    ]
    same = [kernel for kernel in shaped if variant.mangled and kernel.mangled == variant.mangled]
    if same:
        return Match(same[0], MANGLED)
    related = [kernel for kernel in measured if _same_function(variant, kernel)]
    related = [kernel for kernel in related if _same_instance(variant, kernel)]
    exact = [kernel for kernel in related if kernel in shaped]
    if exact:
        return Match(exact[0], FUNCTION)
    if not related:
        return None
    wanted = _threads(variant)
    return Match(min(related, key=lambda kernel: (_apart(kernel, wanted), kernel.number)), LOOSE)


def plain_signature(name: str) -> str:
    """Function and template arguments alone, in the style of no version."""
    short = _UNNAMED.sub("", name.removeprefix("void "))
    if short.endswith(")"):
        depth = 0
        for place in range(len(short) - 1, 0, -1):
            depth += (short[place] == ")") - (short[place] == "(")
            if depth == 0:
                short = short[:place]
                break
    return _NOISE.sub("", short)


def _same_function(variant: Variant, kernel: MeasuredKernel) -> bool:
    return bool({variant.base or function_name(variant.name)} & {_function(kernel)} - {""})


def _function(kernel: MeasuredKernel) -> str:
    return kernel.base or function_name(kernel.name).rpartition("::")[2]


def _same_instance(variant: Variant, kernel: MeasuredKernel) -> bool:
    """Whether template arguments agree, as far as both names have any."""
    if not (variant.name and kernel.name):
        return True
    signature, other = plain_signature(variant.name), plain_signature(kernel.name)
    return signature == other or "<" not in signature or "<" not in other


def _agrees(extent: Extent, text: str) -> bool:
    """Whether the size is that of a text: 128x1x1, or the total where ncu has no more."""
    if "x" in text:
        return text == "x".join(map(str, extent))
    return not text or text == str(extent[0] * extent[1] * extent[2])


def _threads(variant: Variant) -> int:
    total = 1
    for size in (*variant.grid, *variant.block):
        total *= size
    return total


def _apart(kernel: MeasuredKernel, wanted: int) -> float:
    sizes = [int(size) for text in (kernel.grid, kernel.block) for size in re.findall(r"\d+", text)]
    total = 1
    for size in sizes:
        total *= max(size, 1)
    return max(total, wanted) / max(min(total, wanted), 1)
