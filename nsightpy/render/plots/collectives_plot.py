"""The picture of `nsightpy collectives`: bus bandwidth over message size, by group and operation.

Colour says which groups, the marker which operation, the area how much time. Lines of constant time
rise to the right: along one, a larger message costs nothing, which is to be bound by latency.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from nsightpy.errors import NsightpyError
from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    NORMAL,
    QUIET,
    SMALL,
    Box,
    drawing,
    headed_figure,
    inch_axes,
    nothing_to_draw,
    reports_name,
)
from nsightpy.render.plots.log_plane import MOST_TICKS, Plane, Span
from nsightpy.render.plots.pairs_plot import pairs_figure
from nsightpy.render.plots.panels import COLORS
from nsightpy.render.text.shortening import shorten
from nsightpy.results import Table, Value
from nsightpy.units import format_bytes, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 10.0, 5.2
LEFT, BOTTOM, PLANE_WIDTH, PLANE_HEIGHT = 0.85, 0.6, 6.3, 3.85
MARKERS = {
    "AllReduce": "o",
    "AllGather": "s",
    "AllGatherV": "s",
    "ReduceScatter": "D",
    "Broadcast": "^",
    "Reduce": "v",
    "AllToAll": "X",
}
OTHER_MARKER, OTHER_COLOR = "P", "#777777"
LARGEST, SMALLEST = 260.0, 14.0  # areas of points, in square points
RADIUS = 0.13  # of the largest, in inches
# Lines of constant time, from 1 us to 10 s.
TIMES_NS = tuple(10.0**power for power in range(3, 11))
# A line whose sizes differ by a smaller factor is too short for a name.
LEAST_NAMED = 4.0


@dataclass(frozen=True)
class _Point:
    """One row: bus bandwidths in GB/s without and with waiting (None: not known)."""

    operation: str
    groups: str
    size: int
    busbw: float | None
    with_wait: float
    time_ns: float

    @property
    def drawn(self) -> float:
        return self.with_wait if self.busbw is None else self.busbw


def collectives_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.collectives`. Raises NsightpyError when no size is known."""
    if any(field.name == "source_rank" for field in table.fields):
        return pairs_figure(table)
    points = _points(table) if any(field.name == "group" for field in table.fields) else []
    if not points:
        raise NsightpyError(nothing_to_draw(table, "collectives of known size"))
    families = list(dict.fromkeys(point.groups for point in points))
    colors = {name: COLORS[place] for place, name in enumerate(families[: len(COLORS) - 1])}
    with drawing():
        heading = f"Collectives: {reports_name(table.inputs, 60)}"
        figure = headed_figure(WIDTH, HEIGHT, LEFT, heading, 0.25)
        axes = inch_axes(figure, LEFT, BOTTOM, PLANE_WIDTH, PLANE_HEIGHT)
        plane = _plane(axes, points)
        plane.taken += [_taken(plane, point) for point in points]
        _constant_times(plane, [point.size / point.with_wait for point in points])
        _draw(axes, points, colors)
        _keys(axes, points, colors)
        unknown = sum(size is None for size in table.column("bytes"))
        said = "filled: the transfer; open: with waiting for late ranks; grey lines: constant time"
        more = f"; {unknown} rows without a known size are left out" if unknown else ""
        where = (LEFT / WIDTH, 1 - 0.47 / HEIGHT)
        figure.text(*where, said + more, fontsize=SMALL, color=QUIET)
    return figure


def _points(table: Table) -> list[_Point]:
    records = [
        record
        for record in table.records()
        if record["bytes"] and record["busbw_with_wait_gb_per_s"]
    ]
    named = [_family(record["group"], record["ranks"]) for record in records]
    groups: dict[str, set[Value]] = {}
    for name, record in zip(named, records, strict=True):
        groups.setdefault(name, set()).add(record["group"])
    points = []
    for name, record in zip(named, records, strict=True):
        several = len(groups[name])
        ranks = f"ranks {shorten(printable(str(record['group'])), 24)} ({name})"
        whose = f"{name} ({several} groups)" if several > 1 else ranks
        busbw, wait = (record[f"busbw{part}_gb_per_s"] for part in ("", "_with_wait"))
        time = float(record["duration_med_ns"] or 0) * int(record["instances"] or 0)
        known = None if not busbw else float(busbw)
        size = int(record["bytes"] or 0)
        points.append(_Point(str(record["operation"]), whose, size, known, float(wait or 0), time))
    return points


def _family(group: Value, ranks: Value) -> str:
    """What groups of one kind are called: their size, and how far their ranks are apart."""
    numbers: list[int] = []
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", str(group)):
        numbers += range(int(low), int(high or low) + 1)
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) != ranks or len(steps) != 1 or ranks == 2:
        return f"{ranks} ranks"
    (step,) = steps
    return f"{ranks} ranks in a row" if step == 1 else f"{ranks} ranks, {step} apart"


def _plane(axes: Axes, points: list[_Point]) -> Plane:
    """Logarithmic axes around the points, at least two decades each."""
    sizes = [float(point.size) for point in points]
    rates = [rate for point in points for rate in (point.drawn, point.with_wait)]
    x, y = _around(sizes), _around(rates)
    plane = Plane(axes, (PLANE_WIDTH, PLANE_HEIGHT), x, y)
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    step = 10 if x.decades <= MOST_TICKS else 100
    powers = range(math.ceil(math.log(x.low, step)), math.floor(math.log(x.high, step)) + 1)
    axes.xaxis.set_major_locator(FixedLocator([float(step**power) for power in powers]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: _size_text(size)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("message size (bytes of the whole operation)", fontsize=NORMAL)
    axes.set_ylabel("bus bandwidth (GB/s)", fontsize=NORMAL)
    axes.tick_params(labelsize=SMALL, colors=QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    return plane


def _taken(plane: Plane, point: _Point) -> Box:
    """The space of a point, from without to with waiting."""
    x, low = plane.place(point.size, point.with_wait)
    _, high = plane.place(point.size, point.drawn)
    return Box(x - RADIUS, min(low, high) - RADIUS, 2 * RADIUS, abs(high - low) + 2 * RADIUS)


def _size_text(size: float) -> str:
    number, _, unit = format_bytes(size).partition(" ")
    return f"{float(number):g} {unit}"


def _around(values: list[float]) -> Span:
    low, high = min(values), max(values)
    space = max(2.0, math.sqrt(100 * low / high) if high < 100 * low else 2.0)
    return Span(low / space, high * space)


def _constant_times(plane: Plane, taken_ns: list[float]) -> None:
    """Lines on which an operation takes the same time, whatever its size, with their names."""
    for time in TIMES_NS:
        if not min(taken_ns) / 30 < time < 10 * max(taken_ns):
            continue
        # bytes / ns is GB/s
        ends = max(plane.x.low, plane.y.low * time), min(plane.x.high, plane.y.high * time)
        if ends[0] >= ends[1]:
            continue
        rates = [size / time for size in ends]
        plane.axes.plot(ends, rates, color=FAINT, linewidth=0.7, zorder=0)
        if ends[1] > ends[0] * LEAST_NAMED:
            name = format_time(time).replace(".00", "").replace(".0", "")
            plane.label_slope(name, 1 / time, ends, 0.92, QUIET)


def _draw(axes: Axes, points: list[_Point], colors: dict[str, str]) -> None:
    longest = max(point.time_ns for point in points) or 1.0
    for point in sorted(points, key=lambda point: -point.time_ns):
        color = colors.get(point.groups, OTHER_COLOR)
        area = max(LARGEST * point.time_ns / longest, SMALLEST)
        marker = MARKERS.get(point.operation, OTHER_MARKER)
        if point.busbw is not None:
            axes.scatter(
                [point.size], [point.busbw], s=area, c=color, marker=marker, alpha=0.75,
                linewidths=0,
            )  # fmt: skip
            ends = ([point.size] * 2, [point.with_wait, point.busbw])
            axes.plot(*ends, color=color, linewidth=0.8, alpha=0.8)
        axes.scatter(
            [point.size], [point.with_wait], s=area, marker=marker, facecolors="none",
            edgecolors=color, linewidths=1.0,
        )  # fmt: skip


def _keys(axes: Axes, points: list[_Point], colors: dict[str, str]) -> None:
    """Which colour and which marker is what, beside the axes."""
    from matplotlib.lines import Line2D

    def sample(color: str, marker: str, label: str) -> Line2D:
        shape = {"color": color, "marker": marker, "linestyle": "none", "markersize": 6}
        return Line2D([], [], label=label, **shape)  # type: ignore[arg-type]

    handles = [sample(color, "o", name) for name, color in colors.items()]
    if len(colors) < len({point.groups for point in points}):
        handles.append(sample(OTHER_COLOR, "o", "other groups"))
    operations = dict.fromkeys(point.operation for point in points)
    handles += [
        sample(INK, MARKERS.get(name, OTHER_MARKER), printable(name)) for name in operations
    ]
    axes.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.02, 1),
        borderaxespad=0,
        fontsize=SMALL,
        frameon=False,
        title="area: time",
        title_fontsize=SMALL,
        alignment="left",
    )
