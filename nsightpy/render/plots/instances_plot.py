"""The picture of `nsightpy instances`: durations over time, by rank, and how they spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    QUIET,
    SMALL,
    drawing,
    headed_figure,
    inch_axes,
    nothing_to_draw,
    plain_axes,
    reports_name,
    short_name,
)
from nsightpy.render.plots.histogram_plot import draw_histograms, histograms_height
from nsightpy.render.plots.panels import COLORS
from nsightpy.results import Table, Value
from nsightpy.results.series import Instances
from nsightpy.units import counted, format_time, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, LEFT, RIGHT, TOP, BOTTOM, SPACE = 9.0, 0.85, 0.3, 0.95, 0.9, 0.65
OVER_TIME, BY_RANK = 3.2, 1.9
# Names with a histogram.
PANELS = 12
MARKERS = "osD^vPX*"
# Of more ranks, the slowest is marked and the others are alike.
FEW = len(COLORS)
# Points beyond so many are one bitmap in svg and pdf.
MOST_VECTORS = 1_500
MOST_ITERATIONS = 40
WIDE = 20.0

Values = NDArray[np.float64]
Place = tuple[Value, Value]


def instances_figure(table: Instances) -> Figure:
    """Draw the table of `nsightpy.instances`: over time and by rank, unless it is of bins, and how
    durations spread. Raises NsightpyError when it has no rows."""
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "instances"))
    durations, paced = table.durations[:PANELS], "start_ns" in table.columns
    below = histograms_height(len(durations))
    places = _places(table) if paced else {}
    several = len(places) > 2
    over_time = OVER_TIME + BOTTOM if paced else 0
    height = TOP + over_time + (SPACE + BY_RANK if several else 0) + below
    width = WIDTH - LEFT - RIGHT
    with drawing():
        first = short_name(durations[0].name, 60)
        more = f" and {counted(len(durations) - 1, 'more name')}" if len(durations) > 1 else ""
        figure = headed_figure(WIDTH, height, LEFT, f"Instances of {first}{more}")
        figure.text(LEFT / WIDTH, 1 - 0.47 / height, _about(table), fontsize=SMALL, color=QUIET)
        draw_histograms(figure, durations, LEFT, width)
        if paced:
            unit, scale = time_unit_for([float(np.median(_column(table, "duration_ns")))])
            axes = inch_axes(figure, LEFT, height - TOP - OVER_TIME, width, OVER_TIME)
            _over_time(axes, table, places, unit, scale)
        if several:
            axes = inch_axes(figure, LEFT, below + BOTTOM, width, BY_RANK)
            _by_rank(axes, _column(table, "duration_ns") / scale, places, unit)
    return figure


def _about(table: Instances) -> str:
    """The reports, how many instances they have, and how long these take."""
    count = sum(one.instances for one in table.durations)
    about = f"{reports_name(table.inputs, 40)}: {counted(count, 'instance')}"
    if "start_ns" not in table.columns:
        return about
    lengths = _column(table, "duration_ns")
    middle, longest = float(np.median(lengths)), float(lengths.max())
    return f"{about}, median {format_time(middle)}, longest {format_time(longest)}"


def _column(table: Table, name: str) -> Values:
    return np.asarray(table.column(name), dtype=np.float64)  # None becomes NaN


def _places(table: Table) -> dict[Place, NDArray[np.int64]]:
    """The rows of each rank and device."""
    rows_by_place: dict[Place, list[int]] = {}
    pairs = zip(table.column("rank"), table.column("device"), strict=True)
    for row, place in enumerate(pairs):
        rows_by_place.setdefault(place, []).append(row)
    return {place: np.asarray(rows, dtype=np.int64) for place, rows in rows_by_place.items()}


def _over_time(
    axes: Axes, table: Table, places: dict[Place, NDArray[np.int64]], unit: str, scale: int
) -> None:
    """A point for each instance, and the median of all."""
    starts, lengths = _column(table, "start_ns"), _column(table, "duration_ns") / scale
    time, wide = time_unit_for([float(starts.max() - starts.min()) or 1.0])
    medians = {place: float(np.median(lengths[rows])) for place, rows in places.items()}
    slowest = max(medians, key=lambda place: medians[place])
    drawn = sorted(places, key=lambda place: place == slowest) if len(places) > FEW else places
    for number, place in enumerate(drawn):
        rows = places[place]
        marked = len(places) <= FEW or place == slowest
        axes.plot(
            starts[rows] / wide,
            lengths[rows],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)] if len(places) <= FEW else "o",
            markersize=3.2 if marked else 2.0,
            markeredgewidth=0,
            color=_color(number, place == slowest, len(places)),
            alpha=0.85 if marked else 0.4,
            rasterized=len(starts) > MOST_VECTORS,
            label=_label(place, places) if marked else None,
        )
    middle = float(np.median(lengths))
    axes.axhline(middle, color=INK, linewidth=0.9, linestyle=(0, (5, 3)), label="median")
    _scale(axes, lengths)
    _iterations(axes, table, places, starts / wide)
    axes.set_ylabel(f"duration ({unit})", fontsize=SMALL)
    axes.set_xlabel(f"time ({time})", fontsize=SMALL)
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    plain_axes(axes)
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1.0 + 0.2 / OVER_TIME),
        ncols=9,
        fontsize=SMALL,
        frameon=False,
        handletextpad=0.5,
        columnspacing=0.9,
        borderaxespad=0,
    )


def _color(number: int, slowest: bool, places: int) -> str:
    if places <= FEW:
        return COLORS[number]
    return COLORS[1] if slowest else COLORS[0]


def _label(place: Place, places: dict[Place, NDArray[np.int64]]) -> str:
    rank, device = place
    ranks = [other for other, _ in places]
    text = f"device {device}" if rank is None else f"rank {rank}"
    if rank is None and device is None:
        text = "host"
    if rank is not None and ranks.count(rank) > 1:
        text = f"{text}, device {device}"
    return f"{text} (slowest of {len(places)})" if len(places) > FEW else text


def _iterations(
    axes: Axes, table: Table, places: dict[Place, NDArray[np.int64]], times: Values
) -> None:
    """Where each iteration has its first instance, numbered at the top, of the first place."""
    rows = next(iter(places.values()))
    numbers = [table.column("iteration")[row] for row in rows.tolist()]
    first: dict[Value, float] = {}
    for number, row in zip(numbers, rows.tolist(), strict=True):
        if number is not None:
            first.setdefault(number, float(times[row]))
    step = -(-len(first) // MOST_ITERATIONS)
    for place, (number, time) in enumerate(first.items()):
        if place % step == 0:
            axes.axvline(time, color=FAINT, linewidth=0.6, zorder=0)
            axes.annotate(
                f"iteration {number}" if place == 0 else f"{number}",
                (time, 1),
                (2, -3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="top",
                fontsize=SMALL - 1.5,
                color=QUIET,
            )


def _by_rank(
    axes: Axes, lengths: Values, places: dict[Place, NDArray[np.int64]], unit: str
) -> None:
    """For each rank the median, and from the 5th to the 95th percentile."""
    at = np.arange(len(places))
    spread = [np.percentile(lengths[rows], (5, 50, 95)) for rows in places.values()]
    low, middle, high = np.asarray(spread).T
    axes.vlines(at, low, high, color=COLORS[0], linewidth=min(4.0, 160 / len(places)), alpha=0.35)
    axes.plot(at, middle, "o", markersize=3.2, color=COLORS[0])
    axes.axhline(float(np.median(lengths)), color=INK, linewidth=0.9, linestyle=(0, (5, 3)))
    _scale(axes, lengths)
    step = -(-len(places) // 16)
    axes.set_xticks(at[::step], [_tick(place) for place in list(places)[::step]])
    axes.set_xlim(-0.7, len(places) - 0.3)
    axes.set_title(
        "by rank: median, and from the 5th to the 95th percentile", loc="left", fontsize=SMALL
    )
    ranked = all(rank is not None for rank, _ in places)
    axes.set_xlabel("rank" if ranked else "device", fontsize=SMALL)
    axes.set_ylabel(f"duration ({unit})", fontsize=SMALL)
    plain_axes(axes)


def _tick(place: Place) -> str:
    rank, device = place
    return str(device if rank is None else rank)


def _scale(axes: Axes, lengths: Values) -> None:
    """From zero, or logarithmic where durations differ by much."""
    low, high = float(lengths.min()), float(lengths.max())
    if low > 0 and high > WIDE * low:
        axes.set_yscale("log")
        _plain_numbers(axes)
        axes.set_ylim(low / 1.3, high * 1.6)
    else:
        axes.set_ylim(0, high * 1.15 or 1)


def _plain_numbers(axes: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
