"""One panel of live memory stacked by who allocated it, with what the allocator had reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import FAINT, INK, QUIET, SMALL
from nsightpy.render.text.shortening import shorten
from nsightpy.results.series import MemorySeries
from nsightpy.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# What is not a place of the program is grey; the colours are Okabe and Ito's and four darker ones.
GREYS = ("#8a8a8a", "#b4b4b4", "#d9d9d9")
COLORS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8e7cc3",
    "#7a5c00",
)
NAME = 44
MOST_ITERATIONS = 60


def draw_layers(axes: Axes, series: MemorySeries, scale: int, size: int) -> None:
    """Stack the layers of a series, the reserved bytes above, its iterations and failures.

    scale: ns (or events) in a unit of the axis. size: bytes in a unit of the axis.
    """
    times = [time / scale for time in series.times_ns]
    peak = max(range(len(series.live)), key=lambda place: series.live[place])
    low = [0.0] * len(times)
    handles: list[Artist] = []
    greys, colours = iter(GREYS), iter(COLORS)
    for name, live in series.layers:
        high = [below + value / size for below, value in zip(low, live, strict=True)]
        color = next(greys, GREYS[-1]) if name.startswith("(") else next(colours, COLORS[-1])
        label = f"{format_bytes(live[peak]):>8}  {shorten(printable(name), NAME)}"
        handles.append(
            axes.fill_between(times, low, high, step="post", color=color, linewidth=0, label=label)
        )
        low = high
    axes.step(times, low, where="post", color=INK, linewidth=0.7)
    if len(series.reserved):
        reserved = [value / size for value in series.reserved]
        label = f"{format_bytes(series.reserved[peak]):>8}  reserved"
        handles += axes.step(
            times, reserved, where="post", color=INK, linewidth=1, linestyle="--", label=label
        )
    handles += _moments(axes, series, scale)
    axes.legend(
        handles=handles[::-1],
        title="at the peak",
        alignment="left",
        loc="upper left",
        bbox_to_anchor=(1.01, 1.04),
        fontsize=SMALL,
        title_fontsize=SMALL,
        frameon=False,
        borderaxespad=0,
        prop={"family": "monospace", "size": SMALL - 1},
    )


def _moments(axes: Axes, series: MemorySeries, scale: int) -> list[Artist]:
    """Where iterations begin and end, if they are few enough to be distinguished, and failures."""
    lines: list[Artist] = []
    if len(series.iterations_ns) <= MOST_ITERATIONS:
        label = f"{'':>8}  iterations"
        lines = [
            axes.axvline(time / scale, color=QUIET, linewidth=0.6, linestyle=":", label=label)
            for time in series.iterations_ns
        ]
    for time in series.failures_ns:
        axes.axvline(time / scale, color="#b00020", linewidth=1)
    if series.failures_ns:
        axes.annotate(
            "out of memory",
            (series.failures_ns[0] / scale, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            fontsize=SMALL,
            color="#b00020",
        )
    axes.grid(color=FAINT, linewidth=0.4)
    return lines[:1]
