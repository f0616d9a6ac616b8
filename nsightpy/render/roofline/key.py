"""The key of a roofline: GPU, clock and ncu version, what the signs mean, which number is whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nsightpy.render.plots.drawing import INK, LINE, NORMAL, QUIET, SMALL, distinct_names
from nsightpy.render.roofline.points import FILLS, LEAST_AREA, DrawnPoint, marker_of
from nsightpy.render.roofline.roofs import Roofs
from nsightpy.results.rooflines import (
    LEVELS,
    SCALAR,
    Ceiling,
    Machine,
    Roofline,
    RooflineLaunch,
    RooflineVariant,
    tool_versions,
)
from nsightpy.units import format_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMED = 18
_NAME_WIDTH = 34


def draw_key(
    axes: Axes,
    group: Sequence[RooflineVariant],
    result: Roofline,
    roofs: Roofs,
    spots: Sequence[DrawnPoint],
    numbers: dict[int, int],
) -> None:
    """Write the key into an axes whose units are inches."""
    machine = group[0].first.machine
    axes.text(0, 0.1, machine.name, fontsize=NORMAL + 1, weight="bold")
    about = [
        _clock([roofline_variant.first.machine for roofline_variant in group]),
        version(launch for each in group for launch in each.launches),
    ]
    axes.text(0, 0.1 + LINE * 1.2, ", ".join(filter(None, about)), fontsize=SMALL, color=QUIET)
    y = _signs(axes, 0.1 + LINE * 2.8, roofs, spots, result.ceilings)
    _names(axes, y + LINE * 0.6, group, numbers)


def _clock(machines: Sequence[Machine]) -> str:
    clocks = [machine.clock_hz / 1e6 for machine in machines if machine.clock_hz]
    if not clocks:
        return "SM clock not known"
    low, high = round(min(clocks)), round(max(clocks))
    shown = f"{low}" if low == high else f"{low} to {high}"
    return f"peaks at {shown} MHz ({machines[0].clock} SM clock)"


def version(launches: Iterable[RooflineLaunch]) -> str:
    """Which ncu profiled these launches; "" where the files do not say."""
    versions = tool_versions(launches)
    return f"ncu {versions[0]}" + (" and others" if len(versions) > 1 else "") if versions else ""


def _signs(
    axes: Axes, y: float, roofs: Roofs, spots: Sequence[DrawnPoint], ceilings: Sequence[Ceiling]
) -> float:
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
    axes.text(0, y, ",  ".join(signs), fontsize=SMALL, color=QUIET)
    if ceilings:
        y += LINE
        axes.text(0, y, "solid: measured, dashed: theoretical", fontsize=SMALL, color=QUIET)
    for ceiling in ceilings:
        y += LINE
        name = ceiling.name.upper() if ceiling.is_memory else ceiling.name
        value = format_rate(ceiling.value, "B/s" if ceiling.is_memory else "FLOP/s")
        axes.text(0.3, y, f"measured {name} {value}", fontsize=SMALL)
    return y + LINE


def _names(axes: Axes, y: float, group: Sequence[RooflineVariant], numbers: dict[int, int]) -> None:
    whole = sum(variant.total_ns or 0 for variant in group)
    lines = int((axes.get_ylim()[0] - y) / LINE) - 3
    named = group[: min(MOST_NAMED, max(lines, 1))]
    axes.text(3.55, y, "launches", fontsize=SMALL, color=QUIET, ha="right")
    axes.text(4.05, y, "time", fontsize=SMALL, color=QUIET, ha="right")
    y += LINE
    names = distinct_names([variant.first.name for variant in named], _NAME_WIDTH)
    for variant, name in zip(named, names, strict=True):
        share = f"{100 * (variant.total_ns or 0) / whole:.0f} %" if whole else ""
        axes.text(0.2, y, str(numbers[id(variant)]), fontsize=SMALL, weight="bold", ha="right")
        drawn = any(point.arithmetic_intensity for point in variant.typical.work)
        colour = INK if drawn else QUIET
        axes.text(0.3, y, name, fontsize=SMALL, color=colour)
        axes.text(3.55, y, str(len(variant.launches)), fontsize=SMALL, color=QUIET, ha="right")
        axes.text(4.05, y, share, fontsize=SMALL, ha="right")
        y += LINE
    if any(not variant.typical.work for variant in named):
        axes.text(0.3, y, "grey: no work was counted, no point", fontsize=SMALL, color=QUIET)
        y += LINE
    if len(group) > len(named):
        rest = f"and {len(group) - len(named)} more, drawn without a number"
        axes.text(0.3, y, rest, fontsize=SMALL, color=QUIET)
