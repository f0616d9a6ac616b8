"""The picture of `nsightpy roofline`: rooflines, a key that names the kernels, speed-of-light bars.

Returns a matplotlib Figure. Numbers stand for kernels, in the order of their time, everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.render.plots.drawing import (
    LARGE,
    QUIET,
    Box,
    blank_axes,
    drawing,
    inch_axes,
    reports_name,
    short_name,
)
from nsightpy.render.plots.log_plane import Plane, Span, frame
from nsightpy.render.roofline import speed_axes
from nsightpy.render.roofline.key import MOST_NAMED, draw_key, version
from nsightpy.render.roofline.points import DrawnPoint, disc, draw_numbers, draw_points
from nsightpy.render.roofline.roofs import Roofs, draw_roofs, roofs_of
from nsightpy.results.rooflines import (
    LEVELS,
    Ceiling,
    Point,
    Roofline,
    RooflineLaunch,
    RooflineVariant,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, PLOT_LEFT, PLOT_WIDTH, PLOT_HEIGHT = 13.2, 0.95, 7.3, 5.0
KEY_LEFT, GAP, TOP, BOTTOM = 8.65, 0.85, 0.55, 0.6
SUBTITLE = 0.35
MOST_WITH_LEVELS, MOST_GPUS = 12, 3
NAMES_SHARE = 0.17


def roofline_figure(result: Roofline, *, title: str | None = None) -> Figure:
    """Draw a result of `nsightpy.roofline`; `title` replaces the names of the reports."""
    from matplotlib.figure import Figure

    groups = _groups(result.variants)
    numbers = {id(variant): place for place, variant in enumerate(result.variants, start=1)}
    bars = [v for v in result.variants if v.typical.speed.compute_pct is not None]
    bars_height = speed_axes.height(len(bars)) if bars else 0.0
    plots = [group for group in groups if _has_work(group)][:MOST_GPUS]
    height = TOP + BOTTOM + len(plots) * (PLOT_HEIGHT + GAP) + bars_height
    if not plots:
        height += SUBTITLE
    with drawing():
        figure = Figure(figsize=(WIDTH, max(height, 2.0)))
        figure.text(
            PLOT_LEFT / WIDTH,
            1 - 0.32 / height,
            title or reports_name(result.inputs, 80),
            fontsize=LARGE,
            weight="bold",
        )
        bottom = height - TOP
        for group in plots:
            bottom -= PLOT_HEIGHT
            _panel(figure, bottom, group, result, numbers)
            bottom -= GAP
        if not plots:
            about = [(_machines(result), 0.58), (_no_roofline(result), 0.8)]
            for text, down in about:
                figure.text(PLOT_LEFT / WIDTH, 1 - down / height, text, color=QUIET)
        if bars:
            area = inch_axes(figure, PLOT_LEFT + 1.6, BOTTOM, PLOT_WIDTH - 1.6, bars_height - 0.35)
            speed_axes.draw(area, [(numbers[id(v)], v) for v in bars])
    return figure


def _groups(variants: Sequence[RooflineVariant]) -> list[list[RooflineVariant]]:
    """Variants by GPU, the GPU with the longest kernels first."""
    groups: dict[str, list[RooflineVariant]] = {}
    for variant in variants:
        groups.setdefault(variant.first.machine.name, []).append(variant)
    return list(groups.values())


def _has_work(group: Sequence[RooflineVariant]) -> bool:
    return any(point.arithmetic_intensity for variant in group for point in variant.typical.work)


def _machines(result: Roofline) -> str:
    """The GPUs and the ncu, for a picture without a key."""
    names = dict.fromkeys(launch.machine.name for launch in result.launches)
    return ", ".join(filter(None, (*names, version(result.launches))))


def _no_roofline(result: Roofline) -> str:
    counted = any(launch.points for launch in result.launches)
    reasons = (
        [] if counted else [str(note) for launch in result.launches for note in launch.missing]
    )
    return short_name(reasons[0], 150) if reasons else "No floating point work was counted."


def _panel(
    figure: Figure,
    bottom: float,
    group: Sequence[RooflineVariant],
    result: Roofline,
    numbers: dict[int, int],
) -> None:
    """One GPU: its roofline and its key."""
    roofs = roofs_of(group)
    spots = _spots(group, numbers)
    x, y = _spans(spots, roofs, result.ceilings)
    axes = inch_axes(figure, PLOT_LEFT, bottom, PLOT_WIDTH, PLOT_HEIGHT)
    plane = Plane(axes, (PLOT_WIDTH, PLOT_HEIGHT), x, y)
    _draw(plane, roofs, spots, result.ceilings)
    key = blank_axes(figure, KEY_LEFT, bottom, WIDTH - KEY_LEFT - 0.1, PLOT_HEIGHT)
    draw_key(key, group, result, roofs, spots, numbers)


def _spots(group: Sequence[RooflineVariant], numbers: dict[int, int]) -> list[DrawnPoint]:
    """The points of the launches of median duration; few kernels show every level."""
    whole = sum(variant.total_ns or 0 for variant in group)
    spots = []
    for place, variant in enumerate(group):
        launch = variant.typical
        share = (variant.total_ns or 0) / whole if whole else 0.0
        seen: set[str] = set()
        for point in _drawn(launch, crowded=len(group) > MOST_WITH_LEVELS):
            spots.append(
                DrawnPoint(
                    numbers[id(variant)],
                    point,
                    share,
                    variant.spread(point.precision, point.level),
                    point.precision not in seen and place < MOST_NAMED,
                    launch.tensor_pct is not None,
                )
            )
            seen.add(point.precision)
    return spots


def _drawn(launch: RooflineLaunch, *, crowded: bool) -> list[Point]:
    """The points of a launch, DRAM first; where it is crowded only that of its main precision."""
    points = [point for point in launch.work if point.arithmetic_intensity]
    points.sort(key=lambda point: LEVELS.index(point.level))
    if not crowded or not points:
        return points
    return [max(points, key=lambda point: point.flops_per_s / (point.peak_flops_per_s or 1e30))]


def _spans(
    spots: Sequence[DrawnPoint], roofs: Roofs, ceilings: Sequence[Ceiling]
) -> tuple[Span, Span]:
    """What the axes must show: every point, every ridge, and some air."""
    xs = [spot.x for spot in spots if spot.x > 0] + [at for _, _, at in roofs.ridges] + [0.1, 10.0]
    ys = [spot.point.flops_per_s for spot in spots] + list(roofs.work.values())
    ys += [ceiling.value for ceiling in ceilings if not ceiling.is_memory]
    ys = ys or [1e9, 1e12]
    low, high = min(ys), max(ys)
    left, right = min(xs) / 3, max(xs) * 3
    # space at the right for the names of the roofs, beside the points
    right = left * (right / left) ** (1 / (1 - NAMES_SHARE))
    return Span(left, right), Span(min(low / 4, high / 1e3), high * 3)


def _draw(
    plane: Plane, roofs: Roofs, spots: Sequence[DrawnPoint], ceilings: Sequence[Ceiling]
) -> None:
    """Draw roofs, measured ceilings, ridges and points, and label what matters."""
    frame(plane, "arithmetic intensity (FLOP/byte)", "performance (FLOP/s)")
    plane.taken += [disc(plane, spot) for spot in spots]
    for _, precision, at in roofs.ridges:
        x, y = plane.place(at, roofs.work[precision])
        plane.taken.append(Box(x - 0.05, y - 0.05, 0.1, 0.1))
    draw_roofs(plane, roofs, ceilings)
    draw_points(plane, spots, sorted(roofs.used))
    draw_numbers(plane, spots)
