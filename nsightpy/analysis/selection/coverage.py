"""Which kernels are worth ncu's hours: the fewest variants that cover the GPU time, and the cost.

Shares are of the GPU time of the kernels that may be chosen, over all reports. Variants by time,
most first: the fewest whose times together reach the coverage.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from nsightpy.analysis.selection.launch_places import Portion, Sample, Variant
from nsightpy.analysis.selection.thresholds import COVERAGE, MOST_CHOSEN

# Passes over a kernel per set, as seen on GPUs from Volta to Hopper; newer chips and tools differ.
PASSES = {"basic": 9, "default": 9, "detailed": 25, "roofline": 30, "full": 45}
PASSES_OTHERWISE = 30


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A variant worth profiling: where, by which launch, and its weight over all processes."""

    variant: Variant
    home: Portion
    sample: Sample
    instances: int
    total_ns: int
    from_graph: bool


@dataclass(frozen=True)
class Selection:
    """The chosen variants, most time first, and what they are a part of.

    `whole_ns`: GPU time of all variants that might have been chosen, in `variants` of them.
    `unreachable`: variants that the coverage asks for, but no launch of which ncu could find.
    `not_wanted`: variants that the coverage asks for, beyond what people run.
    """

    choices: Sequence[KernelChoice]
    whole_ns: int
    variants: int
    unreachable: Sequence[Variant] = ()
    not_wanted: int = 0

    def share(self, part_ns: int) -> float:
        """A part of the whole, from 0 to 1."""
        return part_ns / self.whole_ns if self.whole_ns else 0.0


def choose_kernels(
    offered: Iterable[Portion], *, coverage: float | None = None, top: int | None = None
) -> Selection:
    """The fewest variants that cover that share of the time, or the top N.

    By default the usual share, in no more runs than people start. What took no time is never
    chosen. Every variant is profiled in one process: as few processes as possible, those with the
    most chosen time first, lower ranks before higher ones.
    """
    parts: dict[Variant, list[Portion]] = defaultdict(list)
    for portion in offered:
        parts[portion.variant].append(portion)
    totals = {variant: sum(p.total_ns for p in held) for variant, held in parts.items()}
    ranked = sorted(parts, key=lambda variant: (-totals[variant], variant.order))
    taking_time = [variant for variant in ranked if totals[variant] > 0]
    needed = taking_time[:top]
    if top is None:
        covered = [0, *accumulate(totals[variant] for variant in taking_time)]
        needed = needed[: bisect_left(covered, (coverage or COVERAGE) * covered[-1])]
    wanted = needed[:MOST_CHOSEN] if top is None and coverage is None else needed
    homes = _homes({v: [p for p in parts[v] if p.sample] for v in wanted}, totals)
    choices, lost = [], []
    for variant in wanted:
        home, held = homes.get(variant), parts[variant]
        if home is None or home.sample is None:
            lost.append(variant)
            continue
        instances = sum(portion.instances for portion in held)
        in_graph = any(portion.from_graph for portion in held)
        choices.append(
            KernelChoice(variant, home, home.sample, instances, totals[variant], in_graph)
        )
    whole = sum(totals.values())
    return Selection(choices, whole, len(ranked), lost, len(needed) - len(wanted))


def _homes(
    reachable: Mapping[Variant, Sequence[Portion]], totals: Mapping[Variant, int]
) -> dict[Variant, Portion]:
    """The process in which each variant is profiled."""
    homes: dict[Variant, Portion] = {}
    while left := [v for v, held in reachable.items() if held and v not in homes]:
        weight: dict[tuple[bool, int, str, int], int] = defaultdict(int)
        for variant in left:
            for portion in reachable[variant]:
                weight[portion.process] += totals[variant]
        best = min(weight, key=lambda process: (-weight[process], process))
        homes |= {v: p for v in left for p in reachable[v] if p.process == best}
    return homes
