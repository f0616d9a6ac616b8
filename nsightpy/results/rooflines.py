"""What a roofline says, launch by launch: work against traffic, and speed of light.

Rates are FLOP/s (tensor integers: operations/s) and bytes/s, percentages are of the peak sustained
rate, times are ns. What was not measured is None, never 0.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nsightpy.results import Note, Table

LEVELS = ("dram", "l2", "l1")
SCALAR = ("fp64", "fp32", "fp16")
# Traffic below this share of the peak says more about the cache than about the memory.
ALMOST_NO_TRAFFIC = 0.01


@dataclass(frozen=True, slots=True)
class Point:
    """The work of one precision against the traffic of one memory level ("" if not known)."""

    precision: str
    level: str
    flops_per_s: float
    peak_flops_per_s: float | None = None
    bytes_per_s: float | None = None
    peak_bytes_per_s: float | None = None

    @property
    def arithmetic_intensity(self) -> float | None:
        """FLOP per byte; None without traffic."""
        if not self.bytes_per_s:
            return None
        intensity = self.flops_per_s / self.bytes_per_s
        return intensity if math.isfinite(intensity) else None

    @property
    def roof_flops_per_s(self) -> float | None:
        """min(peak work, intensity x peak traffic): what the machine allows at this intensity."""
        intensity, memory = self.arithmetic_intensity, self.peak_bytes_per_s
        if self.peak_flops_per_s is None or self.bytes_per_s is None:
            return None
        if intensity is None:  # work without traffic
            return self.peak_flops_per_s
        return None if memory is None else min(self.peak_flops_per_s, intensity * memory)

    @property
    def roof_fraction(self) -> float | None:
        """Achieved work / roof; None where the work is zero."""
        roof = self.roof_flops_per_s
        return self.flops_per_s / roof if roof else None

    @property
    def traffic_share(self) -> float | None:
        """Achieved / peak traffic of the level."""
        if self.bytes_per_s is None or not self.peak_bytes_per_s:
            return None
        return self.bytes_per_s / self.peak_bytes_per_s


@dataclass(frozen=True, slots=True)
class SpeedOfLight:
    """How close a launch came to the machine's throughputs, and what held it up; in %.

    `busiest` is the memory unit that memory_pct comes from, `busiest_pipe` what compute_pct is of.
    """

    compute_pct: float | None = None
    memory_pct: float | None = None
    waves: float | None = None
    theoretical_occupancy_pct: float | None = None
    achieved_occupancy_pct: float | None = None
    limiters: tuple[str, ...] = ()
    stalls: tuple[tuple[str, float], ...] = ()
    latency_cycles: float | None = None
    busiest: str = ""
    busiest_pipe: str = ""
    classification: str | None = None

    @property
    def leading_stall(self) -> tuple[str, float] | None:
        """The reason warps waited most for, and its share of the time between instructions."""
        if not self.stalls or not self.latency_cycles:
            return None
        return self.stalls[0][0], self.stalls[0][1] / self.latency_cycles


@dataclass(frozen=True, slots=True)
class RuleEstimate:
    """What one of ncu's rules says could be gained, in %; `scope` is global, local or ""."""

    rule: str
    title: str
    speedup_pct: float
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """The GPU that a launch ran on, with the clocks of its profile in Hz."""

    gpu: str = ""
    capability: tuple[int, int] = (0, 0)
    sm_hz: float | None = None
    clock_hz: float | None = None
    clock: str = "profiled"

    @property
    def name(self) -> str:
        """Product name, else the compute capability, else that it is not known."""
        major, minor = self.capability
        unnamed = f"GPU of compute capability {major}.{minor}" if major else "unknown GPU"
        return self.gpu or unnamed


@dataclass(frozen=True, slots=True)
class Roof:
    """The roof that a launch came nearest to: achieved / roof, and which one it is."""

    fraction: float
    name: str

    @property
    def distance(self) -> float:
        """What is left up to the roof, from 0 to 1."""
        return min(max(1.0 - self.fraction, 0.0), 1.0)


@dataclass(frozen=True)
class RooflineLaunch:
    """One launch: its points, its speed of light, and why points are missing."""

    launch: int
    name: str
    base_name: str
    mangled_name: str
    grid: str
    block: str
    device: int | None
    duration_ns: int | None
    machine: Machine
    speed: SpeedOfLight
    points: tuple[Point, ...] = ()
    missing: tuple[Note, ...] = ()
    remarks: tuple[str, ...] = ()
    tensor_pct: float | None = None
    rules: tuple[RuleEstimate, ...] = ()
    report: str = ""
    rank: int | None = None
    tool_version: str = ""

    def named(self, kind: str) -> str:
        """Its demangled, base or mangled name; the demangled one where there is no other."""
        return {"base": self.base_name, "mangled": self.mangled_name}.get(kind) or self.name

    @property
    def figures(self) -> int:
        """How many figures show what limits it: throughputs, work; 0 for none."""
        speed = self.speed
        return (speed.compute_pct is not None) + (speed.memory_pct is not None) + bool(self.points)

    @property
    def work(self) -> tuple[Point, ...]:
        """The points with work to show."""
        return tuple(point for point in self.points if point.flops_per_s > 0)

    @property
    def nearest_roof(self) -> Roof | None:
        """The roof nearest above what was achieved; None where unknown.

        Points are left out where tensor work was not counted: they are lower bounds.
        """
        roofs = [
            Roof(point.roof_fraction, f"{point.precision} {point.level}".strip())
            for point in (self.work if self.tensor_pct is None else ())
            if point.roof_fraction is not None
        ]
        throughputs = (("compute", self.speed.compute_pct), ("memory", self.speed.memory_pct))
        roofs += [Roof(p / 100, f"{w} speed of light") for w, p in throughputs if p is not None]
        return max(roofs, key=lambda roof: roof.fraction, default=None)

    @property
    def judged(self) -> Point | None:
        """The point that says most: of the busiest precision, the level nearest to its roof.

        Levels that were hardly used do not count.
        """
        points = [point for point in self.work if point.roof_fraction is not None]
        if not points or self.tensor_pct is not None:
            return None
        busiest = max(points, key=lambda p: p.flops_per_s / (p.peak_flops_per_s or 1)).precision
        busiest_points = [point for point in points if point.precision == busiest]
        used = [p for p in busiest_points if (p.traffic_share or 0) >= ALMOST_NO_TRAFFIC]
        return max(used or busiest_points, key=lambda point: point.roof_fraction or 0.0)


@dataclass(frozen=True)
class RooflineVariant:
    """Launches of one kernel with one shape on one kind of GPU; medians and spreads, no sums."""

    launches: tuple[RooflineLaunch, ...]
    verdict: str = ""

    @property
    def first(self) -> RooflineLaunch:
        return self.launches[0]

    @property
    def times(self) -> list[int]:
        """The durations that are known, in ns."""
        return [launch.duration_ns for launch in self.launches if launch.duration_ns is not None]

    @property
    def total_ns(self) -> int | None:
        """Time of all launches; None where no duration is known."""
        return sum(self.times) if self.times else None

    @property
    def typical(self) -> RooflineLaunch:
        """The launch of median duration, of those of which most was measured."""
        most = max(launch.figures for launch in self.launches)
        launches = (launch for launch in self.launches if launch.figures == most)
        ordered = sorted(launches, key=lambda launch: launch.duration_ns or 0)
        return ordered[(len(ordered) - 1) // 2]

    def spread(self, precision: str, level: str) -> tuple[float, float] | None:
        """Lowest and highest FLOP/s of that kind over the launches."""
        rates = [
            point.flops_per_s
            for launch in self.launches
            for point in launch.points
            if (point.precision, point.level) == (precision, level)
        ]
        return (min(rates), max(rates)) if rates else None


@dataclass(frozen=True, repr=False)
class Roofline(Table):
    """The table of `nsightpy roofline`, and behind it what people read and what is drawn.

    `launches` and `variants` are those that --top keeps of `all_launches`. `ceilings` are measured
    limits that the user gave: by precision (FLOP/s) or level (bytes/s).
    """

    launches: tuple[RooflineLaunch, ...] = ()
    variants: tuple[RooflineVariant, ...] = ()
    ceilings: Mapping[str, float] = field(default_factory=dict)
    naming: str = "demangled"
    by: str = ""
    all_launches: tuple[RooflineLaunch, ...] = ()

    def members(self) -> dict[str, Any]:
        """What is known of each kernel and shape beside its points, of its typical launch."""
        return {"kernels": [_record(variant, self.naming) for variant in self.variants]}


def _record(variant: RooflineVariant, naming: str) -> dict[str, Any]:
    launch = variant.typical
    return {
        "kernel": launch.named(naming),
        "grid": launch.grid or None,
        "block": launch.block or None,
        "launches": len(variant.launches),
        "id": launch.launch,
        "verdict": variant.verdict,
        "rules": [asdict(rule) for rule in launch.rules],
        "speed_of_light": asdict(launch.speed),
    }
