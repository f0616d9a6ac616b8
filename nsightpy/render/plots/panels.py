"""Panels below each other on one axis of time: what the pictures of memory and queues share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.render.plots.drawing import INK, QUIET, SMALL, headed_figure, inch_axes, plain_axes
from nsightpy.results import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, LEFT, RIGHT, TOP, BOTTOM, SPACE = 9.0, 0.85, 0.3, 0.65, 0.5, 0.55
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8e7cc3", "#1a1a1a")
STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def panel_figure(
    heading: str, panels: int, height: float, *, key: float = RIGHT, footer: str = ""
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of that height; `key` inches beside them. From the top down."""
    width = WIDTH - RIGHT + key
    whole = TOP + BOTTOM + panels * height + (panels - 1) * SPACE
    figure = headed_figure(width, whole, LEFT, heading, 0.26)
    if footer:
        figure.text(LEFT / width, 0.08 / whole, footer, fontsize=SMALL, color=QUIET)
    bottoms = (BOTTOM + below * (height + SPACE) for below in reversed(range(panels)))
    return figure, [
        inch_axes(figure, LEFT, bottom, WIDTH - LEFT - RIGHT, height) for bottom in bottoms
    ]


def finish_panel(axes: Axes, title: str, unit: str, *, legend: bool) -> None:
    """The title, the unit of the y axis, the grid, and a legend of the lines."""
    axes.set_title(title, loc="left", fontsize=SMALL, color=INK)
    axes.set_ylabel(unit, fontsize=SMALL)
    plain_axes(axes, "both")
    if legend:
        axes.legend(fontsize=SMALL, frameon=False, ncols=4, loc="upper left")


def device_names(places: Sequence[tuple[Value, Value]]) -> list[str]:
    """What devices (rank, device) are called in a picture: by rank where that distinguishes."""
    ranks = [rank for rank, _ in places]
    if all(rank is not None for rank in ranks) and len(set(ranks)) == len(ranks):
        return [f"rank {rank}" for rank in ranks]
    return [f"dev {dev}" if rank is None else f"{rank}, dev {dev}" for rank, dev in places]


def device_text(rank: Value, device: Value) -> str:
    """A device and, where it is known, its rank."""
    return f"device {device}" if rank is None else f"rank {rank}, device {device}"
