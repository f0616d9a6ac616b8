"""What there is to gain: kernels with their measurements, and the table made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nsightpy.analysis.findings.gains import Replayable
from nsightpy.analysis.selection.headroom import LOOSE, Match, StepParts, match, unlike
from nsightpy.analysis.selection.launch_places import Variant, shaped, variant_of
from nsightpy.analysis.tally import merge
from nsightpy.analysis.work_graph.replay import Edit, operations
from nsightpy.results import Field, Table, Value
from nsightpy.results.rooflines import Roof, RooflineLaunch, RooflineVariant

# Shares of the step: kernels with a lower ceiling gain nothing that matters.
WORTH_A_REPLAY = 0.001
FIELDS = (
    Field("name", "name", importance=1),
    Field("share", "share", 4, heading="of time %", importance=3),
    Field("nsys_med_ns", "time", 1, heading="nsys median", importance=5),
    Field("ncu_ns", "time", heading="ncu time", importance=7),
    Field("sol_compute_pct", "%", 1, heading="compute % of peak", importance=9),
    Field("sol_memory_pct", "%", 1, heading="memory % of peak", importance=10),
    Field("roof_fraction", "share", 4, heading="of roof %", importance=4),
    Field("classification", "text", importance=6),
    Field("ceiling_share", "share", 4, heading="gain at most %", importance=2),
    Field("gain_share", "share", 4, heading="gain %", importance=2),
    Field("duration_ratio", "ratio", 2, heading="ncu / nsys"),
    Field("matched_by", "text", own=True),
    Field("roof", "text", own=True),
    Field("grid", "text", own=True),
    Field("block", "text", own=True),
    Field("instances", heading="count", importance=8),
    Field("reason", "text", own=True),
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One variant: its part of the step, ns over all devices, and its measurement if any.

    `gain_share` is what a replay of the step with the kernel at its roof is shorter by.
    """

    variant: Variant
    covered_ns: int
    disjoint_ns: int
    instances: int
    median_ns: float
    match: Match | None
    reason: str = ""
    gain_share: float | None = None

    @property
    def typical(self) -> RooflineLaunch | None:
        """The measured launch that stands for all."""
        return None if self.match is None else self.match.measured.typical

    @property
    def roof(self) -> Roof | None:
        """The nearest one."""
        return None if self.typical is None else self.typical.nearest_roof

    @property
    def is_measured(self) -> bool:
        """Whether it has a roof, and from a launch of the same geometry."""
        return self.roof is not None and self.match is not None and self.match.way != LOOSE

    @property
    def gain_ns(self) -> float | None:
        """The ceiling: time of the step that reaching the roof would save."""
        return None if self.roof is None else self.covered_ns * self.roof.distance


@dataclass(frozen=True, repr=False)
class Headroom(Table):
    """The table of `nsightpy headroom`, and behind it kernels, step and what matched nothing.

    `step_ns` sums the windows of all devices: `unit` is step, or window where not all reports have
    a steady state. `unmatched` are measurements of no kernel seen. `gain_share` is by one replay
    with all measured kernels at their roofs; `replay` says what that rests on.
    """

    kernels: tuple[Kernel, ...] = ()
    step_ns: int = 0
    unit: str = "step"
    unmatched: tuple[RooflineVariant, ...] = ()
    gain_share: float | None = None
    replay: Mapping[str, Any] = field(default_factory=dict)

    @property
    def measured(self) -> tuple[Kernel, ...]:
        """The kernels that have a roof of their own: not one matched loosely."""
        return tuple(kernel for kernel in self.kernels if kernel.is_measured)

    @property
    def ceiling_share(self) -> float | None:
        """The ceiling of all measured kernels together, as a share of the step; disjoint time."""
        if not self.step_ns:
            return None
        gains = (k.disjoint_ns * k.roof.distance for k in self.measured if k.roof is not None)
        return sum(gains) / self.step_ns

    def members(self) -> dict[str, Any]:
        """The step, the ceiling of all, and what matched nothing.

        step_ns sums the windows of all devices; ceiling_share is over disjoint time.
        """
        about = ("name", "grid", "block")
        alone = [
            {**{n: getattr(kernel.first, n) for n in about}, "launches": len(kernel.launches)}
            for kernel in self.unmatched
        ]
        return {
            "step_ns": self.step_ns,
            "ceiling_share": self.ceiling_share,
            "gain_share": self.gain_share,
            "unmatched": alone,
            "replay": dict(self.replay),
        }


def gains(
    parts: Sequence[StepParts], measured: Sequence[RooflineVariant], clock_hz: int
) -> list[Kernel]:
    """The variants of all reports with their measurements, largest gain first."""
    kernels = []
    statistics = merge([part.times for part in parts]).statistics()
    for *key, instances, median in statistics.rows("instances", "median"):
        variant = variant_of(tuple(key))
        covered = sum(part.variants.get(variant, 0) for part in parts)
        disjoint = sum(part.disjoint.get(variant, 0) for part in parts)
        matched = match(variant, measured)
        kernel = Kernel(variant, covered, disjoint, instances, median, matched)
        if kernel.typical is not None and matched is not None and matched.way != LOOSE:
            launch = kernel.typical
            clocks = launch.machine.sm_hz, clock_hz or None
            kernel = replace(kernel, reason=unlike(median, launch.duration_ns or 0, *clocks))
        kernels.append(kernel)

    return sorted(
        kernels, key=lambda k: (-(k.gain_ns or 0), k.match is None, -k.covered_ns, k.variant.order)
    )


def replayed_gains(
    kernels: Sequence[Kernel], step_ns: int, work: Replayable
) -> tuple[list[Kernel], float | None]:
    """The kernels with what each gains at its roof, never more than its ceiling, largest first.

    Then what all gain together of which a launch of the same geometry was measured.
    """
    every: list[Edit] = []
    gained = []
    for kernel in kernels:
        ceiling = (kernel.gain_ns or 0) / max(step_ns, 1)
        share = None
        if kernel.roof is not None and ceiling >= WORTH_A_REPLAY:
            rows = np.flatnonzero(work.graph.work.names.equals([kernel.variant.label]))
            edits = operations(rows, 1 - kernel.roof.distance)
            every += edits if kernel.is_measured else []
            gain = work.gain(edits)
            share = None if gain is None else min(gain[1], ceiling)
        gained.append(replace(kernel, gain_share=share))
    together = work.gain(every)
    gained.sort(key=lambda kernel: -(kernel.gain_share or 0))
    return gained, None if together is None else together[1]


def row_of(kernel: Kernel, step_ns: int) -> tuple[Value, ...]:
    """One row of the table."""
    typical, roof, gain = kernel.typical, kernel.roof, kernel.gain_ns
    speed = None if typical is None else typical.speed
    ncu_ns = None if typical is None else typical.duration_ns
    return (
        kernel.variant.any_name,
        kernel.covered_ns / step_ns if step_ns else None,
        kernel.median_ns,
        ncu_ns,
        None if speed is None else speed.compute_pct,
        None if speed is None else speed.memory_pct,
        None if roof is None else roof.fraction,
        None if speed is None else speed.classification,
        None if gain is None or not step_ns else gain / step_ns,
        kernel.gain_share,
        ncu_ns / kernel.median_ns if ncu_ns and kernel.median_ns else None,
        None if kernel.match is None else kernel.match.way,
        None if roof is None else roof.name,
        shaped(kernel.variant.grid),
        shaped(kernel.variant.block),
        kernel.instances,
        kernel.reason or None,
    )
