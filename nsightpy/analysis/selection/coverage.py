"""Which kernels are worth ncu's hours: the fewest variants that cover the GPU time, and the cost.

Shares are of the GPU time of the kernels that may be chosen, over all reports. Variants by time,
most first: the fewest whose times together reach the coverage.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from nsightpy.analysis.selection.launch_places import Portion, Sample, Variant
from nsightpy.results import rank_order

# Passes over a kernel per set, as seen on GPUs from Volta to Hopper; newer chips and tools differ.
PASSES = {"basic": 9, "default": 9, "detailed": 25, "roofline": 30, "full": 45}
PASSES_OTHERWISE = 30
# What is chosen unasked: this share of the time, in no more runs than people start.
COVERAGE = 0.8
MOST_CHOSEN = 25


@dataclass(frozen=True, slots=True)
class ProfiledProcess:
    """A process that can be profiled: its report, rank (None: not known) and pid."""

    report: str
    rank: int | None
    pid: int
    rank_source: str = ""

    @property
    def order(self) -> tuple[bool, int, str, int]:
        return (*rank_order(self.rank), self.report, self.pid)


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A variant worth profiling: where to profile it, which launches, and its weight over all."""

    variant: Variant
    unit: ProfiledProcess
    sample: Sample
    instances: int
    total_ns: int
    from_graph: bool = False


@dataclass(frozen=True)
class Selection:
    """The chosen variants, most time first, and what they are a part of.

    `whole_ns`: GPU time of all variants that might have been chosen, in `variants` of them.
    `unreachable`: variants that the coverage asks for, but no launch of which ncu could find.
    `not_wanted`: variants that the coverage asks for, beyond what people run.
    """

    choices: tuple[KernelChoice, ...]
    whole_ns: int
    variants: int
    unreachable: tuple[Variant, ...] = ()
    not_wanted: int = 0

    @property
    def covered_ns(self) -> int:
        return sum(choice.total_ns for choice in self.choices)

    def share(self, part_ns: int) -> float:
        """A part of the whole, from 0 to 1."""
        return part_ns / self.whole_ns if self.whole_ns else 0.0


def choose_kernels(
    profiled: Iterable[tuple[ProfiledProcess, Portion]],
    *,
    coverage: float = COVERAGE,
    top: int | None = None,
    most: int | None = None,
) -> Selection:
    """The fewest variants that cover that share of the time, or the top N.

    `most` bounds what the coverage asks for. Every variant is profiled in one process: as few
    processes as possible, those with the most chosen time first, lower ranks before higher ones.
    """
    by_variant: dict[Variant, list[tuple[ProfiledProcess, Portion]]] = defaultdict(list)
    for unit, portion in profiled:
        by_variant[portion.variant].append((unit, portion))
    totals = {v: sum(p.total_ns for _, p in parts) for v, parts in by_variant.items()}
    ranked = sorted(by_variant, key=lambda variant: (-totals[variant], variant.order))
    whole = sum(totals.values())
    enough = _enough([totals[v] for v in ranked], whole, coverage, top)
    kept = enough if most is None or top is not None else min(enough, most)
    wanted = ranked[:kept]
    lost = tuple(v for v in wanted if not any(p.sample for _, p in by_variant[v]))
    homes = _homes({v: by_variant[v] for v in wanted if v not in lost}, totals)
    choices = tuple(_choice(v, homes[v], by_variant[v]) for v in wanted if v in homes)
    return Selection(choices, whole, len(ranked), lost, enough - kept)


def _enough(totals: Sequence[int], whole: int, coverage: float, top: int | None) -> int:
    """How many of the largest are wanted; those that took no time never are."""
    positive = sum(total > 0 for total in totals)
    covered = [0, *accumulate(totals[:positive])]
    enough = bisect_left(covered, coverage * whole) if top is None else top
    return min(enough, positive)


def _homes(
    parts: dict[Variant, list[tuple[ProfiledProcess, Portion]]], totals: dict[Variant, int]
) -> dict[Variant, ProfiledProcess]:
    """The process in which each variant is profiled."""
    left = {v: {u for u, p in held if p.sample} for v, held in parts.items()}
    homes: dict[Variant, ProfiledProcess] = {}
    while left:
        weight: dict[ProfiledProcess, int] = defaultdict(int)
        for variant, units in left.items():
            for unit in units:
                weight[unit] += totals[variant]
        best = min(weight, key=lambda unit: (-weight[unit], unit.order))
        here = [variant for variant, units in left.items() if best in units]
        homes |= dict.fromkeys(here, best)
        left = {v: units for v, units in left.items() if v not in homes}
    return homes


def _choice(
    variant: Variant, home: ProfiledProcess, parts: Sequence[tuple[ProfiledProcess, Portion]]
) -> KernelChoice:
    return KernelChoice(
        variant,
        home,
        next(p.sample for unit, p in parts if unit == home and p.sample is not None),
        sum(portion.instances for _, portion in parts),
        sum(portion.total_ns for _, portion in parts),
        any(portion.from_graph for _, portion in parts),
    )
