"""The picture of `nsightpy roofline`: rooflines, a key that names the kernels, speed-of-light bars.

Numbers stand for kernels, in the order of their time, everywhere. In a plane shape and colour say
the precision, filling the level, area the time.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, product
from statistics import median
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    QUIET,
    Look,
    draw_numbers,
    key_beside,
    log_ticks,
    new_panels,
    reports_name,
    styled,
)
from nsightpy.render.roofline.text import machine_lines
from nsightpy.render.text.layout import distinct_names, short_name
from nsightpy.results.rooflines import LEVELS, Point, Roofline, RooflineVariant
from nsightpy.units import format_rate, prefix_for

WIDTH, PLANE, BAR = 12.0, 5.0, 0.3
MOST_GPUS, MOST_NAMED, NAME_WIDTH = 3, 18, 34
MOST_BARS, BAR_NAME_WIDTH = 20, 30
# Below the first a launch waits for latencies, from the second on it is near a limit.
THRESHOLDS = {60: "60 %: busy", 80: "80 %: near the limit"}
SIGNS = "area of a point: share of time; line through it: lowest to highest"
# Shape and colour by precision: the shape alone distinguishes them.
MARKERS = {"fp64": ("s", "#0072b2"), "fp32": ("o", "#d55e00"), "fp16": ("D", "#009e73")}
TENSOR_MARKERS = (("^", "#cc79a7"), ("v", "#8c6d00"), ("P", "#56b4e9"), ("X", "#444444"))
# Filling of a point and width of the roof by level.
FILLS = {"dram": None, "l2": "white", "l1": "#d9d9d9", "": "white"}
WIDTHS = {"dram": 1.8, "l2": 1.2, "l1": 0.8}
LARGEST_AREA, LEAST_AREA = 520.0, 26.0
MOST_WITH_LEVELS = 12  # kernels; of more one point each
Looks = Mapping[str, tuple[str, str]]


@styled
def roofline_figure(result: Roofline) -> Figure:
    """Draw a result of `nsightpy.roofline`."""
    numbers = {id(variant): number for number, variant in enumerate(result.variants, start=1)}
    bars = [v for v in result.variants if v.typical.speed.compute_pct is not None]
    gpus: dict[str, list[RooflineVariant]] = {}
    for variant in result.variants:
        gpus.setdefault(variant.first.machine.name, []).append(variant)
    planes = [variants for variants in gpus.values() if spots_of(variants, numbers)][:MOST_GPUS]
    heights = [PLANE] * len(planes)
    heights += [BAR * min(len(bars), MOST_BARS) + 0.3] if bars else []
    heading, footer = reports_name(result.inputs, 80), SIGNS
    if not planes:
        notes = [str(note) for one in result.launches for note in one.missing]
        why = short_name(notes[0], 150) if notes else "No floating point work was counted."
        footer = "\n".join((*machine_lines(result.launches), why))
    figure, panels = new_panels(heading, heights or [BAR], WIDTH, footer, shared=False)
    if not heights:
        panels[0].set_axis_off()
    for axes, variants in zip(panels, planes, strict=False):
        spots = spots_of(variants, numbers)
        signs = draw_plane(axes, variants, spots, result.ceilings)
        _key(axes, variants, numbers, signs)
    if bars:
        _draw_speed(panels[-1], [(numbers[id(variant)], variant) for variant in bars])
    return figure


def _key(
    axes: Axes,
    variants: Sequence[RooflineVariant],
    numbers: Mapping[int, int],
    signs: Sequence[Line2D],
) -> None:
    """GPU, clock and ncu version, what the signs mean, which number is which kernel."""
    (about,) = machine_lines([each for variant in variants for each in variant.launches])
    whole = sum(variant.total_ns or 0 for variant in variants) or 1
    named = variants[:MOST_NAMED]
    names = distinct_names([variant.first.name for variant in named], NAME_WIDTH)
    texts = ["", "    launches  time  kernel"]
    for variant, name in zip(named, names, strict=True):
        share = 100 * (variant.total_ns or 0) / whole
        drawn = "" if variant.typical.work else " (no point)"
        about_one = f"{numbers[id(variant)]:>3} {len(variant.launches):>8} {share:>3.0f} %"
        texts.append(f"{about_one}  {name}{drawn}")
    if more := len(variants) - len(named):
        texts.append(f"and {more} more, drawn without a number")
    title = about.replace(", ", "\n", 1)
    rows = [*signs, *(Line2D([], [], linestyle="none", label=text) for text in texts)]
    key_beside(axes, written=True, handles=rows, title=title)


def _draw_speed(axes: Axes, kernels: Sequence[tuple[int, RooflineVariant]]) -> None:
    """Draw two bars for each kernel, its number and name to the left, its class to the right."""
    shown = kernels[:MOST_BARS]
    speeds = [variant.typical.speed for _, variant in shown]
    rows = np.arange(len(shown))
    compute = [speed.compute_pct or 0.0 for speed in speeds]
    memory = [speed.memory_pct or 0.0 for speed in speeds]
    edge: Look = {"edgecolor": INK, "linewidth": 0.5, "height": 0.34}
    axes.barh(rows - 0.18, compute, color="#4d4d4d", label="compute (SM)", **edge)
    axes.barh(rows + 0.18, memory, color="white", hatch="////", label="memory", **edge)
    axes.set(xlim=(0, max(100.0, *compute, *memory)), ylim=(len(shown) - 0.45, -0.55))
    names = distinct_names([variant.first.name for _, variant in shown], BAR_NAME_WIDTH)
    labels = [f"{name}  {number}" for name, (number, _) in zip(names, shown, strict=True)]
    classes = [speed.classification or "" for speed in speeds]
    right = axes.secondary_yaxis("right")
    for side, texts in ((axes, labels), (right, classes)):
        side.set_yticks(rows, texts)
        side.tick_params(axis="y", length=0, labelcolor=INK)
    top = axes.secondary_xaxis("top")
    top.set_xticks(list(THRESHOLDS), list(THRESHOLDS.values()))
    top.tick_params(length=0)
    for spine in (*right.spines.values(), *top.spines.values(), axes.spines["left"]):
        spine.set_visible(False)
    for at in THRESHOLDS:
        axes.axvline(at, color=QUIET, linewidth=0.9, linestyle=":")
    axes.grid(visible=False)
    more = f"; {len(kernels) - len(shown)} more kernels not shown" * (len(kernels) > len(shown))
    axes.set_xlabel(f"% of peak sustained throughput{more}")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


class Spot(NamedTuple):
    """A point to draw: which kernel (its number in the key), where, and its area by its time."""

    number: int
    variant: RooflineVariant
    point: Point
    x: float
    y: float
    area: float


def spots_of(variants: Sequence[RooflineVariant], numbers: Mapping[int, int]) -> list[Spot]:
    """The points of the launches of median duration, DRAM first; few kernels show every level."""
    whole = sum(variant.total_ns or 0 for variant in variants) or 1
    spots = []
    for variant in variants:
        points = [point for point in variant.typical.work if point.arithmetic_intensity]
        points.sort(key=lambda point: LEVELS.index(point.level))
        if len(variants) > MOST_WITH_LEVELS and points:
            points = [max(points, key=lambda p: p.flops_per_s / (p.peak_flops_per_s or 1e30))]
        area = LEAST_AREA + LARGEST_AREA * (variant.total_ns or 0) / whole
        spots += [
            Spot(numbers[id(variant)], variant, p, p.arithmetic_intensity or 0, p.flops_per_s, area)
            for p in points
        ]
    return spots


def draw_plane(
    axes: Axes,
    variants: Sequence[RooflineVariant],
    spots: Sequence[Spot],
    ceilings: Mapping[str, float],
) -> list[Line2D]:
    """Draw roofs, measured ceilings, ridges and points; what a legend shows of them."""
    points = [p for variant in variants for launch in variant.launches for p in launch.points]
    work = _medians((point.precision, point.peak_flops_per_s) for point in points)
    rates = _medians((point.level, point.peak_bytes_per_s) for point in points)
    traffic = {level: rates[level] for level in LEVELS if level in rates}
    used = {point.precision for point in points if point.flops_per_s > 0}
    tensors = sorted({*work, *used} - {*MARKERS})  # they take their markers in this order
    every = MARKERS | dict(zip(tensors, cycle(TENSOR_MARKERS), strict=False))
    looks = {precision: every[precision] for precision in sorted(used)}
    pairs = product(traffic.items(), work.items())
    ridges = [(level, name, peak / rate) for (level, rate), (name, peak) in pairs if name in looks]
    measured = [
        {n: value for n, value in ceilings.items() if (n in LEVELS) is m} for m in (False, True)
    ]
    xs = [*(spot.x for spot in spots), *(at for *_, at in ridges), 0.1, 10.0]
    ys = [*(spot.y for spot in spots), *work.values(), *measured[0].values()] or [1e9, 1e12]
    axes.set(xscale="log", yscale="log", xlim=(min(xs) / 3, max(xs) * 3))
    axes.set(ylim=(min(min(ys) / 4, max(ys) / 1e3), max(ys) * 3), ylabel="performance (FLOP/s)")
    axes.set_xlabel("arithmetic intensity (FLOP/byte)")
    log_ticks(axes.xaxis, lambda value: f"{value:g}")
    log_ticks(axes.yaxis, _prefixed)
    handles = _roofs(axes, work, traffic, looks, "--" if ceilings else "-")
    inks = dict.fromkeys(measured[0], ("", INK))
    handles += _roofs(axes, measured[0], measured[1], inks, "-", "measured ")
    for level, precision, at in ridges:
        look: Look = {"marker": "d", "markersize": 5, "mfc": "white", "mec": INK, "zorder": 3}
        label = f"ridge {at:.3g} FLOP/B ({precision})"
        ridge = axes.plot([at], [work[precision]], linestyle="none", label=label, **look)
        handles += ridge if level == next(iter(traffic)) else []
    handles += [_sample(name, *look) for name, look in looks.items() if name not in work]
    _draw_spots(axes, spots, looks)
    levels = [level for level in LEVELS if any(spot.point.level == level for spot in spots)]
    for level in levels if len(levels) > 1 else ():
        handles.append(_sample(f"{level.upper()} traffic", "o", INK))
        handles[-1].set_markerfacecolor(FILLS[level] or INK)
    if any(spot.variant.typical.tensor_pct is not None for spot in spots):
        handles.append(_sample("↑ tensor FLOPs not collected", "", INK))
    return handles


def _medians(peaks: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """The median of the known peaks of each precision or level."""
    by_name: dict[str, list[float]] = {}
    for name, peak in peaks:
        by_name.setdefault(name, []).extend([peak] if peak else [])
    return {name: median(values) for name, values in by_name.items() if values}


def _roofs(
    axes: Axes,
    work: Mapping[str, float],
    traffic: Mapping[str, float],
    looks: Looks,
    style: str,
    prefix: str = "",
) -> list[Line2D]:
    """Slopes of memories up to the highest peak, peaks from the ridge of the fastest memory."""
    (left, right), top = axes.get_xlim(), max(work.values(), default=axes.get_ylim()[1])
    fastest, handles = max(traffic.values(), default=0.0), []
    fixed: Look = {"scalex": False, "scaley": False}
    for level, rate in traffic.items():
        color = INK if level == "dram" or prefix else QUIET
        look: Look = {"color": color, "linewidth": WIDTHS.get(level, 1.2), **fixed}
        label = f"{prefix}{level.upper()} {format_rate(rate, 'B/s')}"
        start = min(left, top / rate)
        handles += axes.plot((start, top / rate), (start * rate, top), style, label=label, **look)
    for name, peak in sorted(work.items(), key=lambda item: -item[1]):
        marker, color = looks.get(name, ("", FAINT))
        start = min(max(peak / fastest if fastest else left, left), right)
        look = {"linestyle": style, "color": color, "linewidth": 1.4}
        axes.plot((start, right), (peak, peak), zorder=2, **look)
        label = f"{prefix}{name} {format_rate(peak, 'FLOP/s')}"
        handles.append(Line2D([], [], marker=marker, label=label, **look))
    return handles


def _prefixed(value: float) -> str:
    """A power of ten as 10 T."""
    prefix, size = prefix_for(value)
    return f"{value / size:g} {prefix}".rstrip()


def _sample(label: str, marker: str, color: str) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, color=color, label=label)


def _draw_spots(axes: Axes, spots: Sequence[Spot], looks: Looks) -> None:
    """Draw the points, the larger ones first, join those of one kernel, and number them."""
    joined: dict[tuple[int, str], list[Spot]] = {}
    order = ("l1", "l2", "dram", "")
    above: Look = {"ha": "center", "va": "center", "textcoords": "offset points", "weight": "bold"}
    for spot in sorted(spots, key=lambda spot: (-spot.area, order.index(spot.point.level))):
        precision, level = spot.point.precision, spot.point.level
        marker, color = looks[precision]
        look: Look = {"edgecolors": INK, "linewidths": 0.8, "alpha": 0.9, "zorder": 5}
        fill = FILLS[level] or color
        axes.scatter([spot.x], [spot.y], spot.area, marker=marker, facecolors=fill, **look)
        joined.setdefault((spot.number, precision), []).append(spot)
        low, high = spot.variant.spread(precision, level) or (spot.y, spot.y)
        if high > 1.02 * low:
            axes.plot([spot.x, spot.x], (low, high), color=INK, linewidth=0.8, zorder=4)
        if spot.variant.typical.tensor_pct is not None:  # more work was done than was counted
            axes.annotate("↑", (spot.x, spot.y), (0, spot.area**0.5 / 2 + 7), **above)
    for each in joined.values():
        ends = sorted((spot.x, spot.y) for spot in each)
        axes.plot(*zip(*ends, strict=True), color=QUIET, linewidth=0.6, zorder=3)
    firsts = {(spot.number, spot.point.precision): spot for spot in reversed(spots)}.values()
    named = list(dict.fromkeys(spot.number for spot in spots))[:MOST_NAMED]
    places = [(s.number, s.x, s.y, s.area**0.5 / 3) for s in firsts if s.number in named]
    draw_numbers(axes, places)
