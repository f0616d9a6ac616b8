"""The pictures of `nsightpy collectives`: bus bandwidth over message size; bytes by pair of ranks.

Colour says which groups, the marker which operation, the area how much time. Lines of constant time
rise to the right: along one, a larger message costs nothing, which is to be bound by latency.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nsightpy.errors import NsightpyError
from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import (
    COLORS,
    FAINT,
    INK,
    QUIET,
    Look,
    log_ticks,
    new_figure,
    nothing_to_draw,
    reports_name,
    round_time,
    styled,
)
from nsightpy.render.plots.heat_map import draw_heat_map, every_nth
from nsightpy.render.text.shortening import shorten
from nsightpy.results import Table, Value, number
from nsightpy.units import format_bytes

WIDTH, HEIGHT = 10.0, 5.2
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
PANEL, MOST_PANELS, MOST_TICKS = 4.6, 3, 16  # of what ranks send each other
TIMES_NS = [10.0**power for power in range(3, 11)]


@dataclass(frozen=True)
class _Point:
    """One row: bus bandwidths in GB/s without and with waiting (None: not known)."""

    operation: str
    groups: str
    size: int
    busbw: float | None
    with_wait: float
    time_ns: float


@styled
def collectives_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.collectives`. Raises NsightpyError when no size is known."""
    if "source_rank" in table.columns:
        return pairs_figure(table)
    points = _points(table) if "group" in table.columns else []
    if not points:
        raise NsightpyError(nothing_to_draw(table, "collectives of known size"))
    unknown = table.column("bytes").count(None)
    footer = "filled: the transfer; open: with waiting for late ranks; grey lines: constant time"
    footer += f"; {unknown} rows without a known size are left out" if unknown else ""
    figure = new_figure(f"Collectives: {reports_name(table.inputs)}", WIDTH, HEIGHT, footer)
    axes = figure.subplots()
    families = list(dict.fromkeys(point.groups for point in points))
    colors = dict(zip(families, (*COLORS[:-1], *[OTHER_COLOR] * len(families)), strict=False))
    _draw(axes, points, colors)
    axes.set(xscale="log", yscale="log", xlabel="message size (bytes of the whole operation)")
    axes.set_ylabel("bus bandwidth (GB/s)")
    axes.set_xlim(_around([point.size for point in points]))
    axes.set_ylim(_around([rate for p in points for rate in (p.busbw, p.with_wait) if rate]))
    log_ticks(axes.xaxis, lambda size: "{0:g} {2}".format(*_number_of(size)))
    log_ticks(axes.yaxis, lambda rate: f"{rate:g}")
    axes.grid(visible=False)
    _constant_times(axes, [point.size / point.with_wait for point in points])
    _keys(axes, points, colors)
    return figure


@styled
def pairs_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.collectives(by="pair")`. Raises NsightpyError without rows."""
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "sizes of what ranks send to each other"))
    sides = table.column("source_rank"), table.column("target_rank")
    ranks = sorted({*sides[0], *sides[1]}, key=lambda rank: (isinstance(rank, str), rank))
    names = [printable(str(rank)) for rank in ranks]
    operations = list(dict.fromkeys(table.column("operation")))[:MOST_PANELS]
    heading = f"What ranks send: {reports_name(table.inputs, 22)}"
    figure = new_figure(heading, len(operations) * PANEL + 0.8, PANEL + 0.6)
    panels = figure.subplots(1, len(operations), squeeze=False)[0]
    for axes, operation in zip(panels, operations, strict=True):
        sizes = np.full((len(ranks), len(ranks)), np.nan)
        for record in table.records():
            if record["operation"] == operation:
                pair = ranks.index(record["source_rank"]), ranks.index(record["target_rank"])
                sizes[pair] = np.nan_to_num(sizes[pair]) + number(record["bytes"])
        scale, unit = (1e9, "GB") if np.nanmax(sizes) >= 1e9 else (1e6, "MB")
        draw_heat_map(axes, sizes / scale, names, (-0.5, len(ranks) - 0.5), unit)
        axes.set_xticks(*every_nth(names, MOST_TICKS))
        axes.set(xlabel="to rank; grey: nothing known", ylabel="from rank")
        axes.set_title(f"{printable(str(operation))}: {format_bytes(float(np.nansum(sizes)))}")
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
        time = number(record["duration_med_ns"]) * number(record["instances"])
        known = number(busbw) or None
        size = int(number(record["bytes"]))
        points.append(_Point(str(record["operation"]), whose, size, known, number(wait), time))
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


def _number_of(size: float) -> tuple[float, str, str]:
    value, space, unit = format_bytes(size).partition(" ")
    return float(value), space, unit


def _around(values: Sequence[float]) -> tuple[float, float]:
    """A stretch of a logarithmic axis with the values inside, two decades at least."""
    low, high = min(values), max(values)
    space = max(2.0, math.sqrt(100 * low / high))
    return low / space, high * space


def _constant_times(axes: Axes, times_ns: Sequence[float]) -> None:
    """Lines on which an operation takes the same time, named where they leave the axes."""
    (_, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    lines = [time for time in TIMES_NS if min(times_ns) / 30 < time < 10 * max(times_ns)]
    for time in lines:  # bytes / ns is GB/s
        ends = bottom * time, top * time
        axes.plot(ends, (bottom, top), color=FAINT, linewidth=0.7, zorder=0, scalex=False)
    edges = (
        (axes.secondary_xaxis("top").xaxis, {t: top * t for t in lines if top * t < right}),
        (axes.secondary_yaxis("right").yaxis, {t: right / t for t in lines if top * t > right}),
    )
    for axis, ticks in edges:
        axis.set_ticks(list(ticks.values()), [round_time(time) for time in ticks])
        axis.set_ticks([], minor=True)
        axis.set_tick_params(length=0)


def _draw(axes: Axes, points: Sequence[_Point], colors: dict[str, str]) -> None:
    longest = max(point.time_ns for point in points) or 1.0
    for point in sorted(points, key=lambda point: -point.time_ns):
        color = colors[point.groups]
        area = max(LARGEST * point.time_ns / longest, SMALLEST)
        marker = MARKERS.get(point.operation, OTHER_MARKER)
        if point.busbw is not None:
            filled: Look = {"c": color, "marker": marker, "alpha": 0.75, "linewidths": 0}
            axes.scatter([point.size], [point.busbw], area, **filled)
            axes.plot([point.size] * 2, [point.with_wait, point.busbw], color=color, linewidth=0.8)
        opened: Look = {
            "marker": marker,
            "facecolors": "none",
            "edgecolors": color,
            "linewidths": 1.0,
        }
        axes.scatter([point.size], [point.with_wait], area, **opened)


def _keys(axes: Axes, points: Sequence[_Point], colors: dict[str, str]) -> None:
    """Which colour and which marker is what, beside the axes."""
    families = {name: color for name, color in colors.items() if color != OTHER_COLOR}
    if len(families) < len(colors):
        families["other groups"] = OTHER_COLOR
    operations = dict.fromkeys(point.operation for point in points)
    samples = [(name, color, "o") for name, color in families.items()]
    samples += [(printable(n), INK, MARKERS.get(n, OTHER_MARKER)) for n in operations]
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="none", label=name)
        for name, color, marker in samples
    ]
    beside: Look = {"loc": "upper left", "bbox_to_anchor": (1.06, 1), "alignment": "left"}
    axes.legend(handles=handles, title="area: time", labelcolor=QUIET, **beside)
