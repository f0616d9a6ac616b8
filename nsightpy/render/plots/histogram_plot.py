"""The picture of `nsightpy histogram`: durations on one logarithmic axis, coloured by mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    INK,
    SMALL,
    distinct_names,
    drawing,
    headed_figure,
    inch_axes,
    nothing_to_draw,
    plain_axes,
    reports_name,
)
from nsightpy.render.plots.panels import COLORS
from nsightpy.results.series import DurationModes, Histogram
from nsightpy.units import counted, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, LEFT, RIGHT, TOP, BOTTOM, SPACE, PANEL = 8.5, 0.7, 0.25, 0.7, 0.5, 0.5, 0.75
PANELS = 12
# Modes with figures in the heading of a panel.
FIGURES = 5
HEADROOM = 1.08

Row = tuple[int, int, int, int]


def histogram_figure(table: Histogram) -> Figure:
    """Draw the result of `nsightpy.histogram`. Raises NsightpyError when it has no rows."""
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "durations"))
    shown = table.modes[:PANELS]
    names = distinct_names([mode.name for mode in shown], 70)
    bins = {mode.name: _bins(table, mode.name) for mode in shown}
    low = min(rows[0][0] or rows[0][1] / 2 for rows in bins.values())
    high = max(rows[-1][1] for rows in bins.values())
    height = TOP + BOTTOM + len(shown) * PANEL + (len(shown) - 1) * SPACE
    with drawing():
        heading = f"Durations: {reports_name(table.inputs, 60)}"
        figure = headed_figure(WIDTH, height, LEFT, heading, 0.22)
        for number, (mode, name) in enumerate(zip(shown, names, strict=True)):
            bottom = height - TOP - PANEL - number * (PANEL + SPACE)
            axes = inch_axes(figure, LEFT, bottom, WIDTH - LEFT - RIGHT, PANEL)
            _panel(axes, mode, bins[mode.name])
            axes.set_xscale("log")
            axes.set_xlim(low / 1.06, high * 1.06)
            title = f"{name}, {counted(mode.instances, 'instance')}\n{_said(mode)}"
            axes.set_title(title, loc="left", fontsize=SMALL, color=INK, pad=3)
            _ticks(axes, labelled=number == len(shown) - 1)
    return figure


def _said(modes: DurationModes) -> str:
    """The modes with most instances, each with its median and share."""
    number = len(modes.medians_ns)
    if number == 1:
        return f"median {format_time(modes.medians_ns[0])}"
    pairs = sorted(zip(modes.counts, modes.medians_ns, strict=True), reverse=True)[:FIGURES]
    shown = sorted(
        (ns, f"{format_time(ns)} ({100 * n / modes.instances:.2g} %)") for n, ns in pairs
    )
    rest = f" and {number - len(shown)} more" if number > len(shown) else ""
    return f"{number} modes: {', '.join(text for _, text in shown)}{rest}"


def _bins(table: Histogram, name: str) -> list[Row]:
    """Low, high, count and mode of each bin of a name."""
    places = [table.columns.index(column) for column in ("low_ns", "high_ns", "count", "mode")]
    rows = (row for row in table.rows if row[0] == name)
    return [tuple(int(row[at] or 0) for at in places) for row in rows]  # type: ignore[misc]


def _panel(axes: Axes, modes: DurationModes, bins: list[Row]) -> None:
    """The bins as shares in per cent, coloured by mode; a line and its figures at each mode."""
    lows = [low or high / 2 for low, high, _, _ in bins]
    widths = [high - low for low, (_, high, _, _) in zip(lows, bins, strict=True)]
    heights = [100 * count / modes.instances for _, _, count, _ in bins]
    colours = [COLORS[(mode - 1) % len(COLORS)] for *_, mode in bins]
    axes.bar(lows, heights, widths, align="edge", color=colours, linewidth=0, alpha=0.8)
    top = max(heights)
    axes.set_ylim(0, HEADROOM * top)
    for median in modes.medians_ns:
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
