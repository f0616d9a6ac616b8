"""Stacked bars of how time divides: of devices side by side, of iterations one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.patches import Patch
from numpy.typing import NDArray

from nsightpy.render.plots.drawing import QUIET, Kind, Look

MOST_BARS = 400
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
    below, bars = np.zeros(len(values)), None
    for kind, lengths in zip(kinds, values.T, strict=True):
        shown: Look = {"color": kind.color, "hatch": kind.hatch, "linewidth": 0}
        shown["edgecolor"] = "white" if kind.hatch else kind.color
        bars = (
            axes.barh(at, lengths, 0.8, below, **shown)
            if across
            else axes.bar(at, lengths, 0.86, below, **shown)
        )
        below = below + lengths
        for bar, is_pale in zip(bars, () if pale is None else pale, strict=False):
            bar.set_alpha(PALE_ALPHA if is_pale else 1.0)
    return bars


def samples(kinds: Sequence[Kind]) -> list[Patch]:
    """What a legend shows of the kinds."""
    return [
        Patch(
            facecolor=kind.color,
            hatch=kind.hatch,
            edgecolor="white" if kind.hatch else QUIET,
            linewidth=0,
            label=kind.name,
        )
        for kind in kinds
    ]
