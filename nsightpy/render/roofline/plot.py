"""The picture of `nsightpy roofline`: rooflines, a key that names the kernels, speed-of-light bars.

Numbers stand for kernels, in the order of their time, everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nsightpy.render.plots.drawing import (
    INK,
    QUIET,
    Look,
    key_beside,
    new_panels,
    reports_name,
    styled,
)
from nsightpy.render.roofline.plane import draw_plane, spots_of
from nsightpy.render.roofline.text import machine_lines
from nsightpy.render.text.shortening import distinct_names, short_name
from nsightpy.results.rooflines import Roofline, RooflineVariant

WIDTH, PLANE, BAR = 12.0, 5.0, 0.3
MOST_GPUS, MOST_NAMED, NAME_WIDTH = 3, 18, 34
MOST_BARS, BAR_NAME_WIDTH = 20, 30
# Below the first a launch waits for latencies, from the second on it is near a limit.
THRESHOLDS = {60: "60 %: busy", 80: "80 %: near the limit"}
SIGNS = "area of a point: share of time; line through it: lowest to highest"


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
        counted = any(launch.points for launch in result.launches)
        notes = [str(note) for one in result.launches for note in one.missing if not counted]
        why = short_name(notes[0], 150) if notes else "No floating point work was counted."
        footer = "\n".join((*machine_lines(result.launches), why))
    elif result.ceilings:
        footer += "; solid: measured, dashed: theoretical"
    figure, panels = new_panels(heading, heights or [BAR], WIDTH, footer, shared=False)
    if not heights:
        panels[0].set_axis_off()
    for axes, variants in zip(panels, planes, strict=False):
        spots = spots_of(variants, numbers)
        signs = draw_plane(axes, variants, spots, result.ceilings, MOST_NAMED)
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
    texts = [("    launches  time  kernel", QUIET)]
    for variant, name in zip(named, names, strict=True):
        share = 100 * (variant.total_ns or 0) / whole
        drawn = any(point.arithmetic_intensity for point in variant.typical.work)
        text = f"{numbers[id(variant)]:>3} {len(variant.launches):>8} {share:>3.0f} %  {name}"
        texts.append((text, INK if drawn else QUIET))
    if any(not variant.typical.work for variant in named):
        texts.append(("grey: no work was counted, no point", QUIET))
    if more := len(variants) - len(named):
        texts.append((f"and {more} more, drawn without a number", QUIET))
    title = about.replace(", ", "\n", 1)
    rows = [*signs, *(Line2D([], [], linestyle="none", label=t) for t, _ in [("", INK), *texts])]
    colors = [*[INK] * (len(signs) + 1), *(color for _, color in texts)]
    key_beside(axes, written=True, handles=rows, title=title, labelcolor=colors)


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
