"""Speed-of-light bars: compute and memory throughput of each kernel, with NVIDIA's thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from nsightpy.render.plots.drawing import INK, QUIET, Look
from nsightpy.render.text.shortening import distinct_names
from nsightpy.results.rooflines import RooflineVariant

MOST_BARS = 20
# Below the first a launch waits for latencies, from the second on it is near a limit.
THRESHOLDS = {60: "60 %: busy", 80: "80 %: near the limit"}
NAME_WIDTH = 30


def draw_speed(axes: Axes, kernels: Sequence[tuple[int, RooflineVariant]]) -> None:
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
    names = distinct_names([variant.first.name for _, variant in shown], NAME_WIDTH)
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
