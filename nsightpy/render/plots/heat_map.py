"""A heat map of rows over time, or over numbers: one bitmap, its rows named, a scale beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.render.plots.drawing import QUIET, SMALL
from nsightpy.units import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes

UNKNOWN, COLOURS = "#d9d9d9", "viridis"
MOST_LABELS = 20
# The scale beside it, in inches: the space before it, and its width.
BESIDE, BAR = 0.12, 0.12


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
    """Draw rows of values (NaN: not known) from left to right; `across` is the extent of x.

    `ends` are those of the scale; it runs from 0 to the highest value, with `log` from the lowest.
    There must be an inch beside the axes for the scale.
    """
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.ticker import LogLocator, NullLocator

    known = values[~np.isnan(values)]
    high = float(known.max(initial=0.0))
    low = max(float(known.min(initial=high)), 1e-9) if log else 0.0
    low, high = (low, high) if ends is None else ends
    high = max(high, low * 1.01, 1e-9)
    axes.set_facecolor(UNKNOWN)
    image = axes.imshow(
        np.ma.masked_invalid(values),
        aspect="auto",
        interpolation="nearest",
        cmap=colormaps[COLOURS],
        norm=LogNorm(low, high) if log else Normalize(low, high),
        extent=(*across, len(names) - 0.5, -0.5),
    )
    figure: Any = axes.figure
    width, height = figure.get_size_inches()
    box = axes.get_position()
    step = -(-len(names) // MOST_LABELS)
    places = range(0, len(names), step)
    size = min(SMALL, 72 * height * box.height * step / len(names))
    axes.set_yticks(places, [names[place] for place in places], fontsize=size)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SMALL, colors=QUIET)
    axes.grid(visible=False)
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    side = figure.add_axes((box.x1 + BESIDE / width, box.y0, BAR / width, box.height))
    key = figure.colorbar(image, cax=side)
    key.set_label(unit, fontsize=SMALL)
    digits = 2
    if log:
        key.ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        key.ax.yaxis.set_minor_locator(NullLocator())
    else:
        ticks = [low, (low + high) / 2, high]
        key.set_ticks(ticks)
        digits = next((n for n in range(2, 6) if len({figure_text(t, n) for t in ticks}) == 3), 6)
    key.ax.tick_params(labelsize=SMALL, colors=QUIET)
    key.ax.yaxis.set_major_formatter(lambda value, _: figure_text(value, digits))


def figure_text(value: float, digits: int = 2) -> str:
    """A value for people: two digits if not more are asked for, and no zeros behind a point."""
    whole = digits == 2 and value >= 9.95
    return f"{value:,.0f}" if whole or value == int(value) else significant(value, digits)
