"""How values of several groups spread: points where they are few, else percentiles; medians."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from nsightpy.render.plots.drawing import COLORS, INK

MOST_POINTS = 120


def draw_spread(
    axes: Axes,
    groups: Sequence[NDArray[np.float64]],
    colors: Sequence[str] = COLORS[:1],
    middles: Sequence[float] | None = None,
) -> str:
    """Draw each group of values at 0, 1, ... of x, with a line at `middles`, else at its median.

    Returns what values are drawn as.
    """
    many = sum(map(len, groups)) > MOST_POINTS
    for at, values in enumerate(groups):
        color = colors[at % len(colors)]
        if many:
            low, high = np.percentile(values, (5, 95))
            axes.bar(at, high - low, 0.5, low, color=color, alpha=0.4)
        else:
            beside = at + np.linspace(-0.2, 0.2, len(values) + 2)[1:-1]
            axes.plot(beside, values, "os"[at % len(colors)], color=color, markersize=3, alpha=0.8)
        middle = float(np.median(values)) if middles is None else middles[at]
        axes.hlines(middle, at - 0.35, at + 0.35, color=INK, linewidth=1.2)
    axes.set_xlim(-0.7, len(groups) - 0.3)
    axes.grid(axis="x", visible=False)
    return "5th to 95th percentile" if many else "points"
