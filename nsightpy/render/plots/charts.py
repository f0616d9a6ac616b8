"""The charts that pictures share: stacked bars of shares, heat maps, how values spread."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.container import BarContainer
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from nsightpy.render.plots.drawing import COLORS, INK, Kind, Look

MOST_BARS, MOST_NAMES, MOST_POINTS = 400, 20, 120
PALE_ALPHA = 0.45

COMPUTE = Kind("compute", "#0072b2")
COMMUNICATION = Kind("exposed communication", "#d55e00", "////")
COPIES = Kind("copies alone", "#009e73", "\\\\\\\\")
IDLE = Kind("idle", "#e4e4e4")


def draw_shares(
    axes: Axes,
    kinds: Sequence[Kind],
    values: NDArray[np.float64],
    at: NDArray[np.float64] | None = None,
    *,
    across: bool = False,
    pale: NDArray[np.bool_] | None = None,
) -> BarContainer | None:
    """Stack each row of values, a column a kind; returns the last bars, which end the rows.

    The bars stand at `at`, or lie `across`; those of `pale` rows are paler. Areas where there are
    too many for bars.
    """
    at = np.arange(len(values), dtype=np.float64) if at is None else at
    if not across and len(at) > MOST_BARS:
        axes.stackplot(at, values.T, colors=[kind.color for kind in kinds], linewidth=0)
        return None
    draw, thickness = (axes.barh, 0.8) if across else (axes.bar, 0.86)
    below, bars = np.zeros(len(values)), None
    for kind, lengths in zip(kinds, values.T, strict=True):
        bars = draw(at, lengths, thickness, below, **_look(kind))
        below = below + lengths
        for bar, is_pale in zip(bars, () if pale is None else pale, strict=False):
            bar.set_alpha(PALE_ALPHA if is_pale else 1.0)
    return bars


def _look(kind: Kind) -> Look:
    edge = "white" if kind.hatch else kind.color
    return {"facecolor": kind.color, "hatch": kind.hatch, "edgecolor": edge, "linewidth": 0}


def samples(kinds: Sequence[Kind]) -> list[Patch]:
    """What a legend shows of the kinds."""
    return [Patch(**_look(kind), label=kind.name) for kind in kinds]


def draw_heat_map(
    axes: Axes,
    values: NDArray[np.float64],
    names: Sequence[str],
    across: tuple[float, float],
    unit: str,
    ends: tuple[float, float],
) -> None:
    """Draw rows of values (NaN, not known: grey) from left to right; `across` is the extent of x,
    `ends` are those of the scale."""
    low, high = ends
    axes.set_facecolor("#d9d9d9")
    image = axes.imshow(
        np.ma.masked_invalid(values),
        aspect="auto",
        interpolation="none",
        cmap=colormaps["viridis"],
        norm=Normalize(low, max(high, low * 1.01, 1e-9)),
        extent=(*across, len(names) - 0.5, -0.5),
    )
    axes.set_yticks(*every_nth(names, MOST_NAMES))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    figure: Any = axes.figure
    scale = figure.colorbar(image, ax=axes, label=unit, ticks=MaxNLocator(4), pad=0.01, aspect=12)
    scale.ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    scale.minorticks_off()


def every_nth(names: Sequence[str], most: int) -> tuple[range, Sequence[str]]:
    """Where ticks go and what they say, where there is space for so many names."""
    step = -(-len(names) // most) or 1
    return range(0, len(names), step), names[::step]


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
