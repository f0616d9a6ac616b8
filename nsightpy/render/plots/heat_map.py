"""A heat map of rows over time, or over numbers: one bitmap, its rows named, a scale beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

MOST_NAMES = 20


def draw_heat_map(
    axes: Axes,
    values: NDArray[np.float64],
    names: Sequence[str],
    across: tuple[float, float],
    unit: str,
    *,
    ends: tuple[float, float] | None = None,
    log: bool = False,
) -> None:
    """Draw rows of values (NaN, not known: grey) from left to right; `across` is the extent of x.

    `ends` are those of the scale; it runs from 0 to the highest value, with `log` from the lowest.
    """
    finite = values[np.isfinite(values)]
    low, high = ends or (finite.min(initial=np.inf) if log else 0.0, finite.max(initial=0.0))
    high = max(float(high), float(low) * 1.01, 1e-9)
    axes.set_facecolor("#d9d9d9")
    image = axes.imshow(
        np.ma.masked_invalid(values),
        aspect="auto",
        interpolation="none",
        cmap=colormaps["viridis"],
        norm=LogNorm(low, high) if log else Normalize(low, high),
        extent=(*across, len(names) - 0.5, -0.5),
    )
    axes.set_yticks(*every_nth(names, MOST_NAMES))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    ticks = LogLocator(subs=(1.0, 2.0, 5.0)) if log else MaxNLocator(4)
    figure: Any = axes.figure
    scale = figure.colorbar(image, ax=axes, label=unit, ticks=ticks, pad=0.01, aspect=12)
    scale.ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    scale.minorticks_off()


def every_nth(names: Sequence[str], most: int) -> tuple[range, Sequence[str]]:
    """Where ticks go and what they say, where there is space for so many names."""
    step = -(-len(names) // most) or 1
    return range(0, len(names), step), names[::step]
