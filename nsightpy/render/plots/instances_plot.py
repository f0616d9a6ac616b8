"""The picture of `nsightpy instances`: durations over time, by rank, and how they spread."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nsightpy.render.plots.charts import draw_spread, every_nth
from nsightpy.render.plots.drawing import (
    COLORS,
    FAINT,
    MEDIAN,
    MOST_VECTORS,
    Look,
    device_names,
    devices_of,
    floats,
    log_ticks,
    new_panels,
    nothing_to_draw,
    reports_name,
    styled,
)
from nsightpy.render.text.layout import distinct_names, short_name
from nsightpy.results import Table, Value
from nsightpy.results.series import Durations, Instances
from nsightpy.units import counted, format_time, time_unit_for

OVER_TIME, BY_RANK, HISTOGRAM = 3.2, 1.9, 0.75
FEW_RANKS = 2  # of more there is a panel by rank
PANELS = 12  # names with a histogram
MODES = 5  # with figures in the heading of a histogram
MARKERS = "osD^vPX*"
WIDE = 20.0

Values = NDArray[np.float64]
Devices = dict[tuple[Value, Value], list[int]]


@styled
def instances_figure(table: Instances) -> Figure:
    """Draw the table of `nsightpy.instances`: over time and by rank, unless it is of bins, and how
    durations spread. Raises NsightpyError when it has no rows."""
    if not table.rows:
        raise nothing_to_draw(table, "instances")
    durations = table.durations[:PANELS]
    first = short_name(durations[0].name, 60)
    more = f" and {counted(len(durations) - 1, 'more name')}" if len(durations) > 1 else ""
    about = f"{reports_name(table.inputs, 40)}: "
    about += counted(sum(one.instances for one in table.durations), "instance")
    devices: Devices = {}  # the rows of each rank and device
    heights = [HISTOGRAM] * len(durations)
    if "start_ns" in table.columns:
        lengths = floats(table, "duration_ns")
        for row, device in enumerate(devices_of(table)):
            devices.setdefault(device, []).append(row)
        heights = [OVER_TIME, *[BY_RANK] * (len(devices) > FEW_RANKS), *heights]
    heading = f"Instances of {first}{more}"
    figure, panels = new_panels(heading, heights, footer=about, shared=False)
    if devices:
        unit, scale = time_unit_for([float(np.median(lengths))])
        _over_time(panels[0], table, devices, lengths / scale)
        if len(devices) > FEW_RANKS:
            _by_rank(panels[1], lengths / scale, devices)
        for axes in panels[: -len(durations)]:
            axes.set_ylabel(f"duration ({unit})")
    _histograms(panels[-len(durations) :], durations)
    return figure


def _over_time(axes: Axes, table: Table, devices: Devices, lengths: Values) -> None:
    """A point for each instance; of many ranks the slowest is marked. The median of all, and where
    iterations begin on the first device."""
    starts = floats(table, "start_ns")
    time, wide = time_unit_for([float(starts.max() - starts.min()) or 1.0])
    drawn = dict(zip(device_names(list(devices)), devices.values(), strict=True))
    if len(devices) > len(COLORS):
        slowest = max(drawn, key=lambda name: float(np.median(lengths[drawn[name]])))
        everything = list(range(len(starts)))
        drawn = {f"all {len(devices)}": everything, f"slowest: {slowest}": drawn[slowest]}
    for (name, rows), marker, color in zip(drawn.items(), MARKERS, COLORS, strict=False):
        look: Look = {"ms": 3, "mew": 0, "alpha": 0.8, "rasterized": len(starts) > MOST_VECTORS}
        axes.plot(starts[rows] / wide, lengths[rows], marker, color=color, label=name, **look)
    axes.axhline(float(np.median(lengths)), **MEDIAN, label="median")
    _scale(axes, lengths)
    first = np.asarray(next(iter(devices.values())))
    begins = first[1:][np.diff(floats(table, "iteration")[first]) > 0]
    whole: Look = {"transform": axes.get_xaxis_transform(), "zorder": 0}
    axes.vlines(starts[begins] / wide, 0, 1, color=FAINT, linewidth=0.6, **whole)
    axes.set_xlabel(f"time ({time})")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1.03), ncols=9)


def _by_rank(axes: Axes, lengths: Values, devices: Devices) -> None:
    """How the durations of each rank spread."""
    points = draw_spread(axes, [lengths[rows] for rows in devices.values()])
    axes.axhline(float(np.median(lengths)), **MEDIAN)
    _scale(axes, lengths)
    axes.set_xticks(*every_nth(device_names(list(devices)), 12))
    axes.set_title(f"medians, and all as {points}")


def _scale(axes: Axes, lengths: Values) -> None:
    """From zero, or logarithmic where durations differ by much."""
    low, high = float(lengths.min()), float(lengths.max())
    if low > 0 and high > WIDE * low:
        axes.set_yscale("log")
        log_ticks(axes.yaxis, lambda value: f"{value:,.6g}")
        axes.set_ylim(low / 1.3, high * 1.6)
    else:
        axes.set_ylim(0, high * 1.15 or 1)


def _histograms(panels: Sequence[Axes], durations: Sequence[Durations]) -> None:
    """The durations of each name on one logarithmic axis: shares in per cent, coloured by mode."""
    low = min(one.bins[0].low_ns or one.bins[0].high_ns / 2 for one in durations)
    high = max(one.bins[-1].high_ns for one in durations)
    titles = distinct_names([one.name for one in durations], 70)
    for axes, one, name in zip(panels, durations, titles, strict=True):
        lows = [each.low_ns or each.high_ns / 2 for each in one.bins]
        widths = [each.high_ns - least for least, each in zip(lows, one.bins, strict=True)]
        shares = [100 * each.count / one.instances for each in one.bins]
        colors = [COLORS[each.mode % len(COLORS)] for each in one.bins]
        axes.bar(lows, shares, widths, align="edge", color=colors, linewidth=0, alpha=0.8)
        for median in one.medians_ns:
            axes.axvline(max(median, 0.5), **MEDIAN)
        axes.set(xscale="log", xlim=(low / 1.06, high * 1.06), ylabel="share (%)")
        modes = "median" if len(one.counts) == 1 else f"{len(one.counts)} modes:"
        about = f"{name}, {counted(one.instances, 'instance')}"
        axes.set_title(f"{about}\n{modes} {one.modes_text(MODES)}")
        log_ticks(axes.xaxis, format_time, subs=(1.0, 2.0, 5.0))
        axes.tick_params(axis="x", labelbottom=axes is panels[-1])
        axes.grid(axis="x", visible=False)
    panels[-1].set_xlabel("duration")
