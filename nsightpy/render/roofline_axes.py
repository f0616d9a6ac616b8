"""The roofline itself: one log-log axes per GPU, roofs with their names, kernels as points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from nsightpy.render.plots import (
    FAINT,
    INK,
    NORMAL,
    QUIET,
    SMALL,
    Box,
    free_place,
    log_ticks,
    rate,
    text_box,
)
from nsightpy.rooflines import LEVELS, Ceiling, Point, RooflineVariant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Shape and colour by precision: the shape alone tells them apart.
MARKERS = {"fp64": ("s", "#0072b2"), "fp32": ("o", "#d55e00"), "fp16": ("D", "#009e73")}
TENSOR_MARKERS = (("^", "#cc79a7"), ("v", "#8c6d00"), ("P", "#56b4e9"), ("X", "#444444"))
# Filling by level: full, empty, grey.
FILLS = {"dram": None, "l2": "white", "l1": "#d9d9d9", "": "white"}
WIDTHS = {"dram": 1.8, "l2": 1.2, "l1": 0.8}
LARGEST_AREA, LEAST_AREA = 520.0, 26.0
_AROUND = [(math.cos(a), math.sin(a)) for a in (math.pi * k / 4 for k in (1, 3, 7, 5, 0, 2, 4, 6))]


@dataclass(frozen=True)
class Spot:
    """A point to draw: which kernel (its number in the key), where, how large, how spread."""

    number: int
    point: Point
    share: float
    spread: tuple[float, float] | None
    labelled: bool
    is_lower_bound: bool = False

    @property
    def x(self) -> float:
        return self.point.arithmetic_intensity or 0.0

    @property
    def area(self) -> float:
        return LEAST_AREA + LARGEST_AREA * self.share


@dataclass(frozen=True)
class Roofs:
    """Peaks of one GPU: FLOP/s by precision, bytes/s by level; those with work are `used`."""

    work: dict[str, float]
    traffic: dict[str, float]
    used: frozenset[str]

    @property
    def ridges(self) -> list[tuple[str, str, float]]:
        """Level, precision and intensity of the ridge points of what was used."""
        return [
            (level, precision, peak / width)
            for level, width in self.traffic.items()
            for precision, peak in self.work.items()
            if precision in self.used
        ]


class Plane:
    """The log-log plane of one axes, and what is taken on it; lengths are inches."""

    def __init__(self, axes: Axes, size: tuple[float, float], x: Span, y: Span) -> None:
        self.axes, self.size, self.x, self.y = axes, size, x, y
        self.taken: list[Box] = []
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(x.low, x.high)
        axes.set_ylim(y.low, y.high)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a value lies, in inches."""
        return self.x.share(x) * self.size[0], self.y.share(y) * self.size[1]

    def value(self, x: float, y: float) -> tuple[float, float]:
        """What lies at a place in inches."""
        return self.x.at(x / self.size[0]), self.y.at(y / self.size[1])

    @property
    def slope_degrees(self) -> float:
        """How steep a memory roof is drawn."""
        width, height = self.size[0] / self.x.decades, self.size[1] / self.y.decades
        return math.degrees(math.atan2(height, width))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a logarithmic axis."""

    low: float
    high: float

    @property
    def decades(self) -> float:
        return math.log10(self.high / self.low)

    def share(self, value: float) -> float:
        return math.log10(value / self.low) / self.decades

    def at(self, share: float) -> float:
        return self.low * 10 ** (share * self.decades)


def marker_of(precision: str, precisions: Sequence[str]) -> tuple[str, str]:
    """Marker and colour of a precision; tensor types take theirs in the order of the legend."""
    if precision in MARKERS:
        return MARKERS[precision]
    tensors = [name for name in precisions if name not in MARKERS]
    return TENSOR_MARKERS[tensors.index(precision) % len(TENSOR_MARKERS)]


def roofs_of(variants: Iterable[RooflineVariant]) -> Roofs:
    """The median peaks of one GPU's launches."""
    work: dict[str, list[float]] = {}
    traffic: dict[str, list[float]] = {}
    used = set()
    for variant in variants:
        for launch in variant.launches:
            for point in launch.points:
                if point.peak_flops_per_s:
                    work.setdefault(point.precision, []).append(point.peak_flops_per_s)
                if point.peak_bytes_per_s:
                    traffic.setdefault(point.level, []).append(point.peak_bytes_per_s)
                if point.flops_per_s > 0:
                    used.add(point.precision)
    return Roofs(
        {name: median(values) for name, values in work.items()},
        {name: median(traffic[name]) for name in LEVELS if name in traffic},
        frozenset(used),
    )


def spans(spots: Sequence[Spot], roofs: Roofs, ceilings: Sequence[Ceiling]) -> tuple[Span, Span]:
    """What the axes must show: every point, every ridge, and some air."""
    xs = [spot.x for spot in spots if spot.x > 0] + [at for _, _, at in roofs.ridges] + [0.1, 10.0]
    ys = [spot.point.flops_per_s for spot in spots] + list(roofs.work.values())
    ys += [one.value for one in ceilings if not one.is_memory]
    ys = ys or [1e9, 1e12]
    low, high = min(ys), max(ys)
    return Span(min(xs) / 3, max(xs) * 8), Span(min(low / 4, high / 1e3), high * 3)


def draw(plane: Plane, roofs: Roofs, spots: Sequence[Spot], ceilings: Sequence[Ceiling]) -> None:
    """Draw roofs, measured ceilings, ridges and points, and label what matters."""
    _frame(plane)
    plane.taken += [_disc(plane, spot) for spot in spots]
    style = "--" if ceilings else "-"
    _memory_roofs(plane, roofs.traffic, max(roofs.work.values(), default=plane.y.high), style)
    _compute_roofs(plane, roofs, style)
    _measured(plane, ceilings)
    _ridges(plane, roofs)
    _points(plane, spots, sorted(roofs.used))
    _numbers(plane, spots)


def _frame(plane: Plane) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axes = plane.axes
    for axis, span, most in ((axes.xaxis, plane.x, 9), (axes.yaxis, plane.y, 9)):
        axis.set_major_locator(FixedLocator(log_ticks(span.low, span.high, most)))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.set_xlabel("arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("work (FLOP/s)")
    axes.grid(True, color="#ececec", linewidth=0.6)
    axes.set_axisbelow(True)


def _tick(value: float) -> str:
    """A power of ten as 10 T."""
    for prefix, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if value >= size:
            return f"{value / size:g} {prefix}"
    return f"{value:g}"


def _memory_roofs(
    plane: Plane, traffic: dict[str, float], top: float, style: str, *, prefix: str = ""
) -> None:
    for order, (level, width) in enumerate(traffic.items()):
        low = max(plane.x.low, plane.y.low / width)
        high = min(plane.x.high, top / width)
        if low >= high:
            continue
        colour = INK if level == "dram" or prefix else QUIET
        plane.axes.plot(
            [low, high],
            [low * width, high * width],
            style,
            color=colour,
            linewidth=WIDTHS[level],
            zorder=2,
        )
        label = f"{prefix}{level.upper()} {rate(width, 'B/s')}"
        _label_slope(plane, label, width, (low, high), 0.16 + 0.3 * order)


def _label_slope(
    plane: Plane, label: str, width: float, ends: tuple[float, float], share: float
) -> None:
    """A label on a memory roof, turned as the roof is."""
    span = Span(*ends)
    shares = sorted((0.1 + 0.05 * step for step in range(16)), key=lambda s: abs(s - share))
    ways = [
        (x := span.at(each), _beads(plane, plane.place(x, x * width), label)) for each in shares
    ]
    free = (way for way in ways if not any(a.overlaps(b) for a in way[1] for b in plane.taken))
    x, beads = next(free, ways[0])
    plane.taken += beads
    plane.axes.text(
        x,
        x * width,
        label,
        fontsize=SMALL,
        rotation=plane.slope_degrees,
        rotation_mode="anchor",
        ha="center",
        va="center",
        zorder=3,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
    )


def _beads(plane: Plane, centre: tuple[float, float], label: str) -> list[Box]:
    """The room of a turned label, as a row of squares."""
    width, height = text_box(label, SMALL)
    angle = math.radians(plane.slope_degrees)
    steps = [(step / 8 - 0.5) * width for step in range(9)]
    return [
        Box(
            centre[0] + step * math.cos(angle) - height / 2,
            centre[1] + step * math.sin(angle) - height / 2,
            height,
            height,
        )
        for step in steps
    ]


def _disc(plane: Plane, spot: Spot) -> Box:
    """The room of a point."""
    x, y = plane.place(spot.x, spot.point.flops_per_s)
    radius = math.sqrt(spot.area) / 72 / 2
    return Box(x - radius, y - radius, 2 * radius, 2 * radius)


def _compute_roofs(plane: Plane, roofs: Roofs, style: str) -> None:
    """Each peak from the ridge of the fastest memory to the right; equal ones share a line."""
    fastest = max(roofs.traffic.values(), default=0.0)
    for peak, names in _merged(roofs.work):
        colour = INK if set(names) & roofs.used else FAINT
        start = max(peak / fastest, plane.x.low) if fastest else plane.x.low
        plane.axes.plot(
            [min(start, plane.x.high), plane.x.high],
            [peak, peak],
            style,
            color=colour,
            linewidth=1.4,
            zorder=2,
        )
        _label_level(plane, f"{', '.join(names)} {rate(peak, 'FLOP/s')}", start, peak)


def _merged(work: dict[str, float]) -> list[tuple[float, list[str]]]:
    """Precisions whose peaks cannot be told apart, together; the highest first."""
    groups: list[tuple[float, list[str]]] = []
    for name, peak in sorted(work.items(), key=lambda item: (-item[1], item[0])):
        if groups and groups[-1][0] / peak < 1.01:
            groups[-1][1].append(name)
        else:
            groups.append((peak, [name]))
    return groups


def _label_level(plane: Plane, label: str, start: float, peak: float) -> None:
    """A label beside a horizontal line, as far right as there is room."""
    width, height = text_box(label, SMALL)
    left, y = plane.place(start, peak)
    right = plane.size[0] - width / 2 - 0.05
    steps = [right - step * 0.3 for step in range(20) if right - step * 0.3 - width / 2 > left]
    wanted = [(x, y + side * 0.085) for x in steps for side in (1, -1)]
    found = free_place(wanted, (width, height), plane.taken, plane.size)
    box = found[1] if found else Box(right - width / 2, y, width, height)
    plane.taken.append(box)
    at = plane.value(box.left + box.width / 2, box.bottom + box.height / 2)
    plane.axes.text(*at, label, fontsize=SMALL, ha="center", va="center", zorder=3)


def _measured(plane: Plane, ceilings: Sequence[Ceiling]) -> None:
    """Measured ceilings, solid."""
    work = [one for one in ceilings if not one.is_memory]
    top = max((one.value for one in work), default=plane.y.high)
    traffic = {one.name: one.value for one in ceilings if one.is_memory}
    _memory_roofs(plane, traffic, top, "-", prefix="measured ")
    for one in work:
        fastest = max(traffic.values(), default=0.0)
        start = max(one.value / fastest, plane.x.low) if fastest else plane.x.low
        ends = [min(start, plane.x.high), plane.x.high]
        plane.axes.plot(ends, [one.value] * 2, "-", color=INK, linewidth=1.8, zorder=2)
        _label_level(plane, f"measured {one.name} {rate(one.value, 'FLOP/s')}", start, one.value)


def _ridges(plane: Plane, roofs: Roofs) -> None:
    """Open diamonds where memory stops being the limit; of the first level the intensity, too."""
    first = next(iter(roofs.traffic), "")
    for level, precision, at in roofs.ridges:
        peak = roofs.work[precision]
        plane.axes.plot(
            [at], [peak], "d", markersize=5, markerfacecolor="white", markeredgecolor=INK, zorder=3
        )
        if level != first:
            continue
        plane.axes.plot([at, at], [plane.y.low, peak], ":", color=FAINT, linewidth=0.9, zorder=1)
        label = f"ridge {at:.3g}"
        width, height = text_box(label, SMALL)
        x, _ = plane.place(at, plane.y.low)
        wanted = [(x + width / 2 + 0.04, 0.1 + step * 0.15) for step in range(8)]
        found = free_place(wanted, (width, height), plane.taken, plane.size)
        if found:
            plane.taken.append(found[1])
            value = plane.value(found[1].left, found[1].bottom + height / 2)
            white = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
            plane.axes.text(*value, label, fontsize=SMALL, color=QUIET, va="center", bbox=white)


def _points(plane: Plane, spots: Sequence[Spot], precisions: Sequence[str]) -> None:
    lines: dict[tuple[int, str], list[tuple[float, float]]] = {}
    order = ("l1", "l2", "dram", "")
    for spot in sorted(spots, key=lambda one: (-one.area, order.index(one.point.level))):
        marker, colour = marker_of(spot.point.precision, precisions)
        fill = FILLS[spot.point.level] or colour
        x, y = spot.x, spot.point.flops_per_s
        lines.setdefault((spot.number, spot.point.precision), []).append((x, y))
        if spot.spread and spot.spread[1] > 1.02 * spot.spread[0]:
            plane.axes.plot([x, x], spot.spread, "-", color=INK, linewidth=0.8, zorder=4)
        plane.axes.scatter(
            [x],
            [y],
            s=spot.area,
            marker=marker,
            facecolors=fill,
            edgecolors=INK,
            linewidths=0.8,
            alpha=0.9,
            zorder=5,
        )
        if spot.is_lower_bound:
            _arrow(plane, spot)
    for places in lines.values():
        if len(places) > 1:
            xs, ys = zip(*sorted(places), strict=True)
            plane.axes.plot(xs, ys, "-", color=QUIET, linewidth=0.6, zorder=3)


def _arrow(plane: Plane, spot: Spot) -> None:
    """More work was done than was counted: up."""
    x, y = plane.place(spot.x, spot.point.flops_per_s)
    start = y + math.sqrt(spot.area) / 72 / 2
    ends = [plane.value(x, start), plane.value(x, start + 0.3)]
    plane.taken.append(Box(x - 0.06, start, 0.12, 0.34))
    plane.axes.annotate(
        "",
        xytext=ends[0],
        xy=ends[1],
        arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.0},
        zorder=6,
    )


def _numbers(plane: Plane, spots: Sequence[Spot]) -> None:
    """The kernel's number beside its point, where nothing else stands; else with a leader."""
    from matplotlib.patheffects import withStroke

    for spot in (one for one in spots if one.labelled):
        x, y = plane.place(spot.x, spot.point.flops_per_s)
        size = text_box(str(spot.number), NORMAL)
        reach = math.sqrt(spot.area) / 72 / 2 + 0.09
        wanted = [
            (x + far * reach * dx, y + far * reach * dy)
            for far in (1.0, 1.4, 2.0, 2.8, 3.8, 5.0, 6.5)
            for dx, dy in _AROUND
        ]
        found = free_place(wanted, size, plane.taken, plane.size)
        if found is None:
            continue
        place, box = found
        plane.taken.append(box)
        at = plane.value(box.left + box.width / 2, box.bottom + box.height / 2)
        if place >= len(_AROUND):
            plane.axes.plot(
                [spot.x, at[0]],
                [spot.point.flops_per_s, at[1]],
                "-",
                color=QUIET,
                linewidth=0.5,
                zorder=4,
            )
        text = plane.axes.text(
            *at,
            str(spot.number),
            fontsize=NORMAL,
            weight="bold",
            ha="center",
            va="center",
            zorder=6,
        )
        text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])
