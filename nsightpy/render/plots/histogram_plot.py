"""Durations of names on one logarithmic axis, coloured by mode; a panel a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.render.plots.drawing import INK, SMALL, distinct_names, inch_axes, plain_axes
from nsightpy.render.plots.panels import COLORS
from nsightpy.results.series import Durations
from nsightpy.units import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL, SPACE, BOTTOM = 0.75, 0.5, 0.5
# Modes with figures in the heading of a panel.
FIGURES = 5
HEADROOM = 1.08


def histograms_height(names: int) -> float:
    """How many inches the panels of so many names take."""
    return BOTTOM + names * PANEL + (names - 1) * SPACE


def draw_histograms(
    figure: Figure, durations: Sequence[Durations], left: float, width: float
) -> None:
    """The panels from the lower edge of a figure upwards, in inches."""
    titles = distinct_names([one.name for one in durations], 70)
    low = min(one.bins[0].low_ns or one.bins[0].high_ns / 2 for one in durations)
    high = max(one.bins[-1].high_ns for one in durations)
    for below, (one, name) in enumerate(zip(reversed(durations), reversed(titles), strict=True)):
        axes = inch_axes(figure, left, BOTTOM + below * (PANEL + SPACE), width, PANEL)
        _panel(axes, one)
        axes.set_xscale("log")
        axes.set_xlim(low / 1.06, high * 1.06)
        modes = "median" if len(one.counts) == 1 else f"{len(one.counts)} modes:"
        text = f"{modes} {one.modes_text(FIGURES)}"
        title = f"{name}, {counted(one.instances, 'instance')}\n{text}"
        axes.set_title(title, loc="left", fontsize=SMALL, color=INK, pad=3)
        _ticks(axes, labelled=below == 0)


def _panel(axes: Axes, one: Durations) -> None:
    """The bins as shares in per cent, coloured by mode; a line and its figures at each mode."""
    lows = [each.low_ns or each.high_ns / 2 for each in one.bins]
    widths = [each.high_ns - low for low, each in zip(lows, one.bins, strict=True)]
    heights = [100 * each.count / one.instances for each in one.bins]
    colours = [COLORS[each.mode % len(COLORS)] for each in one.bins]
    axes.bar(lows, heights, widths, align="edge", color=colours, linewidth=0, alpha=0.8)
    axes.set_ylim(0, HEADROOM * max(heights))
    for median in one.medians_ns:
        axes.axvline(max(median, 0.5), color=INK, linewidth=0.8, linestyle=(0, (3, 2)))
    axes.set_ylabel("share (%)", fontsize=SMALL)
    plain_axes(axes)


def _ticks(axes: Axes, *, labelled: bool) -> None:
    """Powers of ten in words: 1 us, 10 us, 100 us."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=14))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: _short(ns)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if labelled:
        axes.set_xlabel("duration", fontsize=SMALL)
    else:
        axes.tick_params(axis="x", labelbottom=False)


def _short(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size * 0.999:
            return f"{ns / size:,.3g} {unit}"
    return f"{ns:.3g} ns"
