"""Kernels under their roofs: shape and colour by precision, filling by level, area by time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from nsightpy.render.plots.drawing import FAINT, INK, QUIET, Look, draw_numbers, log_ticks
from nsightpy.results.rooflines import LEVELS, Ceiling, Point, RooflineVariant
from nsightpy.units import format_rate, prefix_for

# Shape and colour by precision: the shape alone distinguishes them.
MARKERS = {"fp64": ("s", "#0072b2"), "fp32": ("o", "#d55e00"), "fp16": ("D", "#009e73")}
TENSOR_MARKERS = (("^", "#cc79a7"), ("v", "#8c6d00"), ("P", "#56b4e9"), ("X", "#444444"))
# Filling of a point and width of the roof by level.
FILLS = {"dram": None, "l2": "white", "l1": "#d9d9d9", "": "white"}
WIDTHS = {"dram": 1.8, "l2": 1.2, "l1": 0.8}
LARGEST_AREA, LEAST_AREA = 520.0, 26.0


@dataclass(frozen=True)
class Roofs:
    """Peaks of one GPU: FLOP/s by precision, bytes/s by level; those with work are `used`."""

    work: dict[str, float]
    traffic: dict[str, float]
    used: frozenset[str]

    @property
    def ridges(self) -> list[tuple[str, str, float]]:
        """Level, precision and intensity of the ridge points of what was used."""
        pairs = product(self.traffic.items(), self.work.items())
        return [(level, of, peak / w) for (level, w), (of, peak) in pairs if of in self.used]

    def look(self, precision: str) -> tuple[str, str]:
        """Marker and colour of a precision; tensor types take theirs in their order."""
        if precision in MARKERS:
            return MARKERS[precision]
        tensors = sorted({*self.work, *self.used} - {*MARKERS})
        return TENSOR_MARKERS[tensors.index(precision) % len(TENSOR_MARKERS)]


@dataclass(frozen=True)
class DrawnPoint:
    """A point to draw: which kernel (its number in the key), where, how large, how spread."""

    number: int
    point: Point
    share: float
    spread: tuple[float, float] | None
    labelled: bool
    is_lower_bound: bool = False

    @property
    def area(self) -> float:
        return LEAST_AREA + LARGEST_AREA * self.share

    @property
    def x(self) -> float:
        return self.point.arithmetic_intensity or 0.0

    @property
    def y(self) -> float:
        return self.point.flops_per_s


def roofs_of(variants: Iterable[RooflineVariant]) -> Roofs:
    """The median peaks of one GPU's launches."""
    work: dict[str, list[float]] = {}
    traffic: dict[str, list[float]] = {}
    points = [p for variant in variants for launch in variant.launches for p in launch.points]
    for point in points:
        if point.peak_flops_per_s:
            work.setdefault(point.precision, []).append(point.peak_flops_per_s)
        if point.peak_bytes_per_s:
            traffic.setdefault(point.level, []).append(point.peak_bytes_per_s)
    return Roofs(
        {name: median(values) for name, values in work.items()},
        {name: median(traffic[name]) for name in LEVELS if name in traffic},
        frozenset(point.precision for point in points if point.flops_per_s > 0),
    )


def draw_plane(
    axes: Axes, roofs: Roofs, spots: Sequence[DrawnPoint], ceilings: Sequence[Ceiling]
) -> list[Line2D]:
    """Draw roofs, measured ceilings, ridges and points; what a legend shows of them."""
    xs = [spot.x for spot in spots if spot.x > 0] + [at for *_, at in roofs.ridges] + [0.1, 10.0]
    ys = [*(spot.y for spot in spots), *roofs.work.values()]
    ys += [ceiling.value for ceiling in ceilings if not ceiling.is_memory]
    low, high = min(ys, default=1e9), max(ys, default=1e12)
    axes.set(xscale="log", yscale="log", xlim=(min(xs) / 3, max(xs) * 3))
    axes.set(ylim=(min(low / 4, high / 1e3), high * 3), ylabel="performance (FLOP/s)")
    axes.set_xlabel("arithmetic intensity (FLOP/byte)")
    log_ticks(axes.xaxis, lambda value: f"{value:g}")
    log_ticks(axes.yaxis, _prefixed)
    style = "--" if ceilings else "-"
    handles = [
        _slope(axes, level, rate, roofs.work, style) for level, rate in roofs.traffic.items()
    ]
    fastest = max(roofs.traffic.values(), default=0.0)
    for name, peak in sorted(roofs.work.items(), key=lambda item: -item[1]):
        marker, color = roofs.look(name) if name in roofs.used else ("", FAINT)
        label = f"{name} {format_rate(peak, 'FLOP/s')}"
        handles.append(_level(axes, label, peak, fastest, linestyle=style, color=color))
        handles[-1].set_marker(marker)
    handles += _measured(axes, ceilings) + _ridges(axes, roofs)
    unroofed = sorted(roofs.used - {*roofs.work})
    handles += [_sample(name, *roofs.look(name)) for name in unroofed]
    _points(axes, roofs, spots)
    levels = [level for level in LEVELS if any(spot.point.level == level for spot in spots)]
    for level in levels if len(levels) > 1 else ():
        handles.append(_sample(f"{level.upper()} traffic", "o", INK))
        handles[-1].set_markerfacecolor(FILLS[level] or INK)
    return handles


def _prefixed(value: float) -> str:
    """A power of ten as 10 T."""
    prefix, size = prefix_for(value)
    return f"{value / size:g} {prefix}".rstrip()


def _sample(label: str, marker: str, color: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=color, label=label)


def _slope(
    axes: Axes, level: str, rate: float, work: dict[str, float], style: str, prefix: str = ""
) -> Line2D:
    """A memory roof: up to the highest peak."""
    top = max(work.values(), default=axes.get_ylim()[1])
    left, ends = axes.get_xlim()[0], (top / rate, top)
    color, width = INK if level == "dram" or prefix else QUIET, WIDTHS.get(level, 1.2)
    label = f"{prefix}{level.upper()} {format_rate(rate, 'B/s')}"
    (line,) = axes.plot(
        (min(left, ends[0]), ends[0]), (min(left * rate, ends[1]), ends[1]), style,
        color=color, linewidth=width, label=label, scalex=False, scaley=False,
    )  # fmt: skip
    return line


def _level(axes: Axes, label: str, peak: float, fastest: float, **look: Any) -> Line2D:
    """A peak of work: from the ridge of the fastest memory to the right."""
    left, right = axes.get_xlim()
    start = min(max(peak / fastest if fastest else left, left), right)
    axes.plot((start, right), (peak, peak), linewidth=1.4, zorder=2, **look)
    return Line2D([], [], linewidth=1.4, label=label, **look)


def _measured(axes: Axes, ceilings: Sequence[Ceiling]) -> list[Line2D]:
    """Measured ceilings, solid."""
    work = {ceiling.name: ceiling.value for ceiling in ceilings if not ceiling.is_memory}
    traffic = {ceiling.name: ceiling.value for ceiling in ceilings if ceiling.is_memory}
    fastest = max(traffic.values(), default=0.0)
    lines = [_slope(axes, name, rate, work, "-", "measured ") for name, rate in traffic.items()]
    for name, peak in work.items():
        label = f"measured {name} {format_rate(peak, 'FLOP/s')}"
        lines.append(_level(axes, label, peak, fastest, linestyle="-", color=INK))
    return lines


def _ridges(axes: Axes, roofs: Roofs) -> list[Line2D]:
    """Open diamonds where memory stops being the limit; of the first level the intensity, too."""
    lines = []
    first = next(iter(roofs.traffic), "")
    for level, precision, at in roofs.ridges:
        peak = roofs.work[precision]
        label = f"ridge {at:.3g} FLOP/B ({precision})"
        diamond: Look = {"marker": "d", "markersize": 5, "mfc": "white", "mec": INK, "zorder": 3}
        (line,) = axes.plot([at], [peak], linestyle="none", label=label, **diamond)
        if level == first:
            axes.plot([at, at], [axes.get_ylim()[0], peak], ":", color=FAINT, linewidth=0.9)
            lines.append(line)
    return lines


def _points(axes: Axes, roofs: Roofs, spots: Sequence[DrawnPoint]) -> None:
    """Draw the points, the larger ones first, join those of one kernel, and number them."""
    joined: dict[tuple[int, str], list[tuple[float, float]]] = {}
    order = ("l1", "l2", "dram", "")
    for spot in sorted(spots, key=lambda spot: (-spot.share, order.index(spot.point.level))):
        marker, color = roofs.look(spot.point.precision)
        look: Look = {
            "facecolors": FILLS[spot.point.level] or color,
            "edgecolors": INK,
            "zorder": 5,
        }
        axes.scatter(
            [spot.x], [spot.y], spot.area, marker=marker, linewidths=0.8, alpha=0.9, **look
        )
        joined.setdefault((spot.number, spot.point.precision), []).append((spot.x, spot.y))
        if spot.spread and spot.spread[1] > 1.02 * spot.spread[0]:
            axes.plot([spot.x, spot.x], spot.spread, color=INK, linewidth=0.8, zorder=4)
        if spot.is_lower_bound:  # more work was done than was counted
            above = (0, spot.area**0.5 / 2 + 7)
            centred: Look = {"ha": "center", "va": "center", "textcoords": "offset points"}
            axes.annotate("↑", (spot.x, spot.y), above, weight="bold", **centred)
    for ends in joined.values():
        axes.plot(*zip(*sorted(ends), strict=True), color=QUIET, linewidth=0.6, zorder=3)
    labelled = [spot for spot in spots if spot.labelled]
    draw_numbers(axes, [(s.number, s.x, s.y, s.area**0.5 / 3) for s in labelled])
