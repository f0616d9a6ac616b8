"""Which measurement of ncu belongs to which kernel of nsys: by name and geometry, else loosely.

Names are compared as the reports have them; where the styles of their versions differ, without
return type, parameters, casts and blanks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.analysis.selection.launch_places import Extent, Variant, shaped
from nsightpy.names import function_name
from nsightpy.results.rooflines import RooflineVariant

MANGLED, FUNCTION, LOOSE = "mangled", "function", "loose"
_NOISE = re.compile(r"\((?:unsigned |signed )?(?:int|bool|char|short|long|long long)\)|\s+")
_UNNAMED = re.compile(r"(?:\(anonymous namespace\)|<unnamed>|unnamed>)::")


@dataclass(frozen=True, slots=True)
class Match:
    """The measurement of a kernel, and what they have in common."""

    measured: RooflineVariant
    way: str


def match(variant: Variant, measured: Sequence[RooflineVariant]) -> Match | None:
    """The measurement of a kernel: by mangled name and geometry; by function and geometry; loosely.

    Loosely is the same function under another geometry, that with the nearest number of threads.
    Other template arguments make another kernel, as far as the names have any.
    """
    shaped = [
        kernel
        for kernel in measured
        if _agrees(variant.grid, kernel.first.grid) and _agrees(variant.block, kernel.first.block)
    ]
    mangled = variant.mangled
    same = [kernel for kernel in shaped if mangled and kernel.first.mangled_name == mangled]
    if same:
        return Match(same[0], MANGLED)
    related = [kernel for kernel in measured if _same_function(variant, kernel)]
    related = [kernel for kernel in related if _same_instance(variant, kernel)]
    exact = [kernel for kernel in related if kernel in shaped]
    if exact:
        return Match(exact[0], FUNCTION)
    if not related:
        return None
    wanted = math.prod((*variant.grid, *variant.block))
    return Match(min(related, key=lambda kernel: _apart(kernel, wanted)), LOOSE)


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


def _same_function(variant: Variant, kernel: RooflineVariant) -> bool:
    measured = kernel.first.base_name or function_name(kernel.first.name).rpartition("::")[2]
    return measured != "" and measured == (variant.base or function_name(variant.name))


def _same_instance(variant: Variant, kernel: RooflineVariant) -> bool:
    """Whether template arguments agree, as far as both names have any."""
    if not (variant.name and kernel.first.name):
        return True
    signature, other = plain_signature(variant.name), plain_signature(kernel.first.name)
    return signature == other or "<" not in signature or "<" not in other


def _agrees(extent: Extent, text: str) -> bool:
    """Whether the size is that of a text: 128x1x1, or the total where ncu has no more."""
    if "x" in text:
        return text == shaped(extent)
    return not text or text == str(math.prod(extent))


def _apart(kernel: RooflineVariant, wanted: int) -> float:
    extents = (kernel.first.grid, kernel.first.block)
    total = math.prod(max(int(n), 1) for text in extents for n in re.findall(r"\d+", text))
    return max(total, wanted) / max(min(total, wanted), 1)
