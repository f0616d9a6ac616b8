"""The picture of `nsightpy roofline`: rooflines, a key that names the kernels, speed-of-light bars.

Returns a matplotlib Figure. Numbers stand for kernels, in the order of their time, everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.render import roofline_axes, speed_axes
from nsightpy.render.plots import (
    INK,
    LARGE,
    LINE,
    NORMAL,
    QUIET,
    SMALL,
    blank_axes,
    drawing,
    inch_axes,
    short_name,
)
from nsightpy.render.roofline_axes import FILLS, LEAST_AREA, Plane, Roofs, Spot, marker_of
from nsightpy.rooflines import (
    LEVELS,
    SCALAR,
    Machine,
    Point,
    Roofline,
    RooflineLaunch,
    RooflineVariant,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, PLOT_LEFT, PLOT_WIDTH, PLOT_HEIGHT = 13.2, 0.95, 7.3, 5.0
KEY_LEFT, GAP, TOP, BOTTOM = 8.65, 0.85, 0.55, 0.6
SUBTITLE = 0.35
MOST_NAMED, MOST_WITH_LEVELS, MOST_GPUS = 18, 12, 3
_NAME_WIDTH = 34


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
            title or _title(result),
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
            speed_axes.draw(area, [(numbers[id(v)], v) for v in bars], KEY_LEFT - PLOT_LEFT)
    return figure


def _groups(variants: Sequence[RooflineVariant]) -> list[list[RooflineVariant]]:
    """Variants by GPU, the GPU with the longest kernels first."""
    groups: dict[str, list[RooflineVariant]] = {}
    for variant in variants:
        groups.setdefault(variant.first.machine.name, []).append(variant)
    return list(groups.values())


def _has_work(group: Sequence[RooflineVariant]) -> bool:
    return any(point.arithmetic_intensity for variant in group for point in variant.typical.work)


def _title(result: Roofline) -> str:
    first = short_name(result.inputs[0].replace("\\", "/").rsplit("/", 1)[-1], 80)
    more = len(result.inputs) - 1
    return f"{first} and {more} more" if more else first


def _machines(result: Roofline) -> str:
    """The GPUs and the ncu, for a picture without a key."""
    names = dict.fromkeys(one.machine.name for one in result.launches)
    return ", ".join(filter(None, (*names, _version(result))))


def _no_roofline(result: Roofline) -> str:
    reasons = [text for one in result.launches for text in one.missing]
    return short_name(reasons[0], 150) if reasons else "No floating point work was counted."


def _panel(
    figure: Figure,
    bottom: float,
    group: Sequence[RooflineVariant],
    result: Roofline,
    numbers: dict[int, int],
) -> None:
    """One GPU: its roofline and its key."""
    roofs = roofline_axes.roofs_of(group)
    spots = _spots(group, numbers)
    x, y = roofline_axes.spans(spots, roofs, result.ceilings)
    axes = inch_axes(figure, PLOT_LEFT, bottom, PLOT_WIDTH, PLOT_HEIGHT)
    plane = Plane(axes, (PLOT_WIDTH, PLOT_HEIGHT), x, y)
    roofline_axes.draw(plane, roofs, spots, result.ceilings)
    key = blank_axes(figure, KEY_LEFT, bottom, WIDTH - KEY_LEFT - 0.1, PLOT_HEIGHT)
    _key(key, group, result, roofs, spots, numbers)


def _spots(group: Sequence[RooflineVariant], numbers: dict[int, int]) -> list[Spot]:
    """The points of the launches of median duration; few kernels show every level."""
    whole = sum(variant.total_ns or 0 for variant in group)
    found = []
    for place, variant in enumerate(group):
        launch = variant.typical
        share = (variant.total_ns or 0) / whole if whole else 0.0
        seen: set[str] = set()
        for point in _drawn(launch, crowded=len(group) > MOST_WITH_LEVELS):
            found.append(
                Spot(
                    numbers[id(variant)],
                    point,
                    share,
                    variant.spread(point.precision, point.level),
                    point.precision not in seen and place < MOST_NAMED,
                    launch.tensor_pct is not None,
                )
            )
            seen.add(point.precision)
    return found


def _drawn(launch: RooflineLaunch, *, crowded: bool) -> list[Point]:
    """The points of a launch, DRAM first; where it is crowded only that of its main precision."""
    found = [point for point in launch.work if point.arithmetic_intensity]
    found.sort(key=lambda point: LEVELS.index(point.level))
    if not crowded or not found:
        return found
    return [max(found, key=lambda point: point.flops_per_s / (point.peak_flops_per_s or 1e30))]


def _key(
    axes: Axes,
    group: Sequence[RooflineVariant],
    result: Roofline,
    roofs: Roofs,
    spots: Sequence[Spot],
    numbers: dict[int, int],
) -> None:
    """GPU, clock and ncu version; what the signs mean; which number is which kernel."""
    machine = group[0].first.machine
    axes.text(0, 0.1, machine.name, fontsize=NORMAL + 1, weight="bold")
    about = [_clock([one.first.machine for one in group]), _version(result)]
    axes.text(0, 0.1 + LINE * 1.2, ", ".join(filter(None, about)), fontsize=SMALL, color=QUIET)
    y = _signs(axes, 0.1 + LINE * 2.8, roofs, spots, bool(result.ceilings))
    _names(axes, y + LINE * 0.6, group, numbers)


def _clock(machines: Sequence[Machine]) -> str:
    clocks = [one.clock_hz / 1e6 for one in machines if one.clock_hz]
    if not clocks:
        return "SM clock not known"
    low, high = round(min(clocks)), round(max(clocks))
    shown = f"{low}" if low == high else f"{low} to {high}"
    return f"peaks at {shown} MHz ({machines[0].clock} SM clock)"


def _version(result: Roofline) -> str:
    versions = result.tool_versions
    return f"ncu {versions[0]}" + (" and others" if len(versions) > 1 else "") if versions else ""


def _signs(axes: Axes, y: float, roofs: Roofs, spots: Sequence[Spot], measured: bool) -> float:
    """The legend of markers and lines; returns where it ends."""
    precisions = sorted(roofs.used)
    shown = {spot.point.precision for spot in spots}
    x = 0.08
    for precision in sorted(shown, key=lambda p: (p not in SCALAR, p)):
        marker, colour = marker_of(precision, precisions)
        axes.scatter([x], [y - 0.04], s=LEAST_AREA, marker=marker, color=colour, edgecolors=INK)
        axes.text(x + 0.13, y, precision, fontsize=SMALL)
        x += 0.35 + 0.075 * len(precision)
    y += LINE
    x = 0.08
    for level in [name for name in LEVELS if any(s.point.level == name for s in spots)]:
        axes.scatter(
            [x], [y - 0.04], s=LEAST_AREA, facecolors=FILLS[level] or QUIET, edgecolors=INK
        )
        axes.text(x + 0.13, y, f"{level.upper()} traffic", fontsize=SMALL)
        x += 1.25
    y += LINE
    signs = ["area: share of time", "bar: lowest to highest", "◇ ridge"]
    if any(spot.is_lower_bound for spot in spots):
        signs[1] = "↑ tensor FLOPs not collected"
    if measured:
        signs += ["solid: measured, dashed: theoretical"]
    axes.text(0, y, ",  ".join(signs), fontsize=SMALL, color=QUIET)
    return y + LINE


def _names(axes: Axes, y: float, group: Sequence[RooflineVariant], numbers: dict[int, int]) -> None:
    whole = sum(variant.total_ns or 0 for variant in group)
    room = int((PLOT_HEIGHT - y) / LINE) - 3
    named = group[: min(MOST_NAMED, max(room, 1))]
    axes.text(3.55, y, "launches", fontsize=SMALL, color=QUIET, ha="right")
    axes.text(4.05, y, "time", fontsize=SMALL, color=QUIET, ha="right")
    y += LINE
    for variant in named:
        launch = variant.first
        share = f"{100 * (variant.total_ns or 0) / whole:.0f} %" if whole else ""
        axes.text(0.2, y, str(numbers[id(variant)]), fontsize=SMALL, weight="bold", ha="right")
        drawn = any(point.arithmetic_intensity for point in variant.typical.work)
        colour = INK if drawn else QUIET
        axes.text(0.3, y, short_name(launch.name, _NAME_WIDTH), fontsize=SMALL, color=colour)
        axes.text(3.55, y, str(len(variant.launches)), fontsize=SMALL, color=QUIET, ha="right")
        axes.text(4.05, y, share, fontsize=SMALL, ha="right")
        y += LINE
    if any(not variant.typical.work for variant in named):
        axes.text(0.3, y, "grey: no work was counted, no point", fontsize=SMALL, color=QUIET)
        y += LINE
    if len(group) > len(named):
        rest = f"and {len(group) - len(named)} more, drawn without a number"
        axes.text(0.3, y, rest, fontsize=SMALL, color=QUIET)
