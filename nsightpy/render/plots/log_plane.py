"""A log-log plane: where values lie in inches, and what is taken already."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsightpy.render.plots.drawing import INK, SMALL, Box, log_ticks, text_box
from nsightpy.units import prefix_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 9


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a logarithmic axis."""

    low: float
    high: float

    @property
    def decades(self) -> float:
        return math.log10(self.high / self.low)

    def share(self, value: float) -> float:
        return math.log10(value / self.low) / self.decades

    def at(self, share: float) -> float:
        return self.low * 10 ** (share * self.decades)


class Plane:
    """The log-log plane of one axes, and what is taken on it; lengths are inches."""

    def __init__(self, axes: Axes, size: tuple[float, float], x: Span, y: Span) -> None:
        self.axes, self.size, self.x, self.y = axes, size, x, y
        self.taken: list[Box] = []
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(x.low, x.high)
        axes.set_ylim(y.low, y.high)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a value lies, in inches."""
        return self.x.share(x) * self.size[0], self.y.share(y) * self.size[1]

    def value(self, x: float, y: float) -> tuple[float, float]:
        """What lies at a place in inches."""
        return self.x.at(x / self.size[0]), self.y.at(y / self.size[1])

    @property
    def slope_degrees(self) -> float:
        """How steep a line y = c x is drawn."""
        width, height = self.size[0] / self.x.decades, self.size[1] / self.y.decades
        return math.degrees(math.atan2(height, width))

    def label_slope(
        self, label: str, slope: float, ends: tuple[float, float], share: float, color: str = INK
    ) -> None:
        """Write on the line y = slope x between two x, turned as it is, where nothing is taken.

        `share` says where between them, if there is space.
        """
        span = Span(*ends)
        shares = sorted((0.1 + 0.05 * step for step in range(18)), key=lambda s: abs(s - share))
        ways = [
            (x := span.at(each), self._beads(self.place(x, x * slope), label)) for each in shares
        ]
        free = (way for way in ways if not any(a.overlaps(b) for a in way[1] for b in self.taken))
        x, beads = next(free, ways[0])
        self.taken += beads
        self.axes.text(
            x,
            x * slope,
            label,
            fontsize=SMALL,
            color=color,
            rotation=self.slope_degrees,
            rotation_mode="anchor",
            ha="center",
            va="center",
            zorder=3,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )

    def _beads(self, centre: tuple[float, float], label: str) -> list[Box]:
        """The space of a rotated label, as a row of squares."""
        width, height = text_box(label, SMALL)
        angle = math.radians(self.slope_degrees)
        steps = [(step / 8 - 0.5) * width for step in range(9)]
        return [
            Box(
                centre[0] + step * math.cos(angle) - height / 2,
                centre[1] + step * math.sin(angle) - height / 2,
                height,
                height,
            )
            for step in steps
        ]


def frame(plane: Plane, x_label: str, y_label: str) -> None:
    """Ticks at powers of ten, labels and a faint grid."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axes = plane.axes
    for axis, span, most in ((axes.xaxis, plane.x, MOST_TICKS), (axes.yaxis, plane.y, MOST_TICKS)):
        axis.set_major_locator(FixedLocator(log_ticks(span.low, span.high, most)))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(True, color="#ececec", linewidth=0.6)
    axes.set_axisbelow(True)


def _tick(value: float) -> str:
    """A power of ten as 10 T."""
    prefix, size = prefix_for(value)
    return f"{value / size:g} {prefix}".rstrip()
