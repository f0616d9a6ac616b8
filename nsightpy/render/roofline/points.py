"""Kernels as points: shape by precision, filling by level, area by share of time, a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nsightpy.render.plots.drawing import INK, NORMAL, QUIET, Box, free_place, text_box
from nsightpy.render.plots.log_plane import Plane
from nsightpy.results.rooflines import Point

# Shape and colour by precision: the shape alone distinguishes them.
MARKERS = {"fp64": ("s", "#0072b2"), "fp32": ("o", "#d55e00"), "fp16": ("D", "#009e73")}
TENSOR_MARKERS = (("^", "#cc79a7"), ("v", "#8c6d00"), ("P", "#56b4e9"), ("X", "#444444"))
# Filling by level: full, empty, grey.
FILLS = {"dram": None, "l2": "white", "l1": "#d9d9d9", "": "white"}
LARGEST_AREA, LEAST_AREA = 520.0, 26.0
_AROUND = [(math.cos(a), math.sin(a)) for a in (math.pi * k / 4 for k in (1, 3, 7, 5, 0, 2, 4, 6))]


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
    def x(self) -> float:
        return self.point.arithmetic_intensity or 0.0

    @property
    def area(self) -> float:
        return LEAST_AREA + LARGEST_AREA * self.share


def marker_of(precision: str, precisions: Sequence[str]) -> tuple[str, str]:
    """Marker and colour of a precision; tensor types take theirs in the order of the legend."""
    if precision in MARKERS:
        return MARKERS[precision]
    tensors = [name for name in precisions if name not in MARKERS]
    return TENSOR_MARKERS[tensors.index(precision) % len(TENSOR_MARKERS)]


def disc(plane: Plane, spot: DrawnPoint) -> Box:
    """The space of a point."""
    x, y = plane.place(spot.x, spot.point.flops_per_s)
    radius = math.sqrt(spot.area) / 72 / 2
    return Box(x - radius, y - radius, 2 * radius, 2 * radius)


def draw_points(plane: Plane, spots: Sequence[DrawnPoint], precisions: Sequence[str]) -> None:
    """Draw the points, the larger ones first, and join those of one kernel."""
    lines: dict[tuple[int, str], list[tuple[float, float]]] = {}
    order = ("l1", "l2", "dram", "")
    for spot in sorted(spots, key=lambda spot: (-spot.area, order.index(spot.point.level))):
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


def _arrow(plane: Plane, spot: DrawnPoint) -> None:
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


def draw_numbers(plane: Plane, spots: Sequence[DrawnPoint]) -> None:
    """The kernel's number beside its point, where nothing else stands; else with a leader."""
    from matplotlib.patheffects import withStroke

    for spot in (spot for spot in spots if spot.labelled):
        x, y = plane.place(spot.x, spot.point.flops_per_s)
        size = text_box(str(spot.number), NORMAL)
        reach = math.sqrt(spot.area) / 72 / 2 + 0.09
        wanted = [
            (x + far * reach * dx, y + far * reach * dy)
            for far in (1.0, 1.4, 2.0, 2.8, 3.8, 5.0, 6.5)
            for dx, dy in _AROUND
        ]
        free = free_place(wanted, size, plane.taken, plane.size)
        if free is None:
            continue
        place, box = free
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
