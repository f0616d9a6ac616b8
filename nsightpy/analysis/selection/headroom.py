"""What a kernel could gain: its share of the step x its distance to the nearest roof; a ceiling.

The step is the time of the devices, window by window; a variant's share is the union of its
launches in it. The nearest roof is the largest of: work against the roofs of every precision and
memory level, NVIDIA's compute and memory throughput (speed of light). Ceilings of disjoint time
add up: an instant in which several kernels ran counts once, for the one farthest from its roof.

Which measurement of ncu belongs to which kernel of nsys is found by name and geometry, else
loosely. Names are compared as the reports have them; where the styles of their versions differ,
in the style of no demangler.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import Spans, union, union_of
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.selection.launch_places import VARIANT, Extent, Variant, shaped, variant_of
from nsightpy.analysis.selection.thresholds import APART, CLOCKS_APART, UNEXPLAINED
from nsightpy.analysis.tally import Tally, tally
from nsightpy.frames import Frame
from nsightpy.names import canonical_name, function_name
from nsightpy.results.rooflines import RooflineLaunch, RooflineVariant


@dataclass(frozen=True)
class StepParts:
    """The kernels of one report against its step, ns; what reports add up.

    `step_ns` sums the windows of all devices, `covered_ns` is by variant the union of its launches,
    `disjoint_ns` the part of that in which no matched variant farther from its roof ran.
    """

    times: Tally
    variants: Mapping[Variant, int] = field(default_factory=dict)
    disjoint: Mapping[Variant, int] = field(default_factory=dict)
    step_ns: int = 0


def step_parts(
    kernels: Frame,
    windows: Mapping[tuple[int, int], Spans],
    distance: Callable[[Variant], float | None],
) -> StepParts:
    """The parts of one report's kernels (launch_places.COLUMNS, pid and device).

    `windows` are by (pid, device) the time that counts; `distance` is a variant's distance to its
    roof, None where it was not measured.
    """
    launches = group_by(kernels, VARIANT)
    groups, variants = launches.codes, [variant_of(key) for key in launches.keys]
    times = tally(groups, durations(kernels), launches.keys)
    covered: dict[Variant, int] = dict.fromkeys(variants, 0)
    disjoint: dict[Variant, int] = {}
    distances = [(distance(variant), number) for number, variant in enumerate(variants)]
    far = sorted((-far, variants[n].order, n) for far, n in distances if far is not None)
    start, end = kernels.ints("start_ns"), kernels.ints("end_ns")
    step = 0
    for (pid, device), window in windows.items():
        step += window.total
        here = np.flatnonzero(kernels.rows_at(pid=pid, device=device))
        here = here[np.argsort(groups[here], kind="stable")]
        edges = np.searchsorted(groups[here], np.arange(len(variants) + 1)).tolist()
        spans = {}
        for number, (low, high) in enumerate(pairwise(edges)):
            if low < high:
                rows = here[low:high]
                spans[number] = union(start[rows], end[rows]) & window
                covered[variants[number]] += spans[number].total
        taken: list[Spans] = []
        for _, _, number in far:
            if number in spans:
                apart = spans[number] - union_of(taken)
                disjoint[variants[number]] = disjoint.get(variants[number], 0) + apart.total
                taken.append(spans[number])
    return StepParts(times, covered, disjoint, step)


def unlike(nsys_ns: float, ncu_ns: float, profiled_hz: float | None, usual_hz: float | None) -> str:
    """Why the durations of a kernel are apart, as far as clocks show; empty where they agree."""
    if not nsys_ns or not ncu_ns:
        return ""
    ratio = ncu_ns / nsys_ns
    if 1 / APART <= ratio <= APART:
        return ""
    if ratio < 1:
        return "slower in nsys: other work shared the GPU, or another launch was measured"
    clocks = usual_hz / profiled_hz if usual_hz and profiled_hz else 1.0
    reasons = []
    if clocks >= CLOCKS_APART and usual_hz and profiled_hz:
        reasons.append(
            f"locked clocks ({profiled_hz / 1e6:.0f} of {usual_hz / 1e6:.0f} MHz: x{clocks:.2f})"
        )
    if ratio / clocks >= UNEXPLAINED or not reasons:
        reasons.append("cold caches (ncu flushes them before every pass)")
    return " and ".join(reasons)


MANGLED, FUNCTION, LOOSE = "mangled", "function", "loose"


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
    for kernel in shaped:
        if variant.mangled and kernel.first.mangled_name == variant.mangled:
            return Match(kernel, MANGLED)
    related = [kernel for kernel in measured if _same_kernel(variant, kernel.first)]
    exact = [kernel for kernel in related if kernel in shaped]
    if exact:
        return Match(exact[0], FUNCTION)
    wanted = math.prod((*variant.grid, *variant.block))

    def apart(kernel: RooflineVariant) -> float:
        sizes = re.findall(r"\d+", f"{kernel.first.grid} {kernel.first.block}")
        total = math.prod(max(int(size), 1) for size in sizes)
        return max(total, wanted) / max(min(total, wanted), 1)

    return Match(min(related, key=apart), LOOSE) if related else None


def _same_kernel(variant: Variant, first: RooflineLaunch) -> bool:
    """Whether functions agree, and template arguments as far as both names have any."""
    measured = first.base_name or function_name(first.name).rpartition("::")[2]
    if not measured or measured != (variant.base or function_name(variant.name)):
        return False
    names = [canonical_name(name) for name in (variant.name, first.name)]
    return names[0] == names[1] or any("<" not in name.partition("(")[0] for name in names)


def _agrees(extent: Extent, text: str) -> bool:
    """Whether the size is that of a text: 128x1x1, or the total where ncu has no more."""
    if "x" in text:
        return text == shaped(extent)
    return not text or text == str(math.prod(extent))
