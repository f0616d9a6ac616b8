"""The picture of `nsightpy collectives`: bus bandwidth over message size.

Colour says which groups, the marker which operation, the area how much time.
"""

import math
from collections.abc import Sequence
from itertools import cycle

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import (
    COLORS,
    INK,
    Look,
    key_beside,
    log_ticks,
    new_figure,
    nothing_to_draw,
    reports_name,
    styled,
)
from nsightpy.results import Record, Table, number
from nsightpy.units import format_bytes

WIDTH, HEIGHT = 10.0, 5.2
MARKERS = "osD^vXP"
LARGEST, SMALLEST = 260.0, 14.0  # areas of points, in square points


@styled
def collectives_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.collectives`. Raises NsightpyError when no size is known."""
    wait = "busbw_with_wait_gb_per_s"
    rows = [row for row in table.records() if row["bytes"] and row.get(wait)]
    if not rows:
        raise nothing_to_draw(table, "collectives of known size")
    unknown = table.column("bytes").count(None)
    footer = "filled: the transfer; open: with waiting for late ranks"
    footer += f"; {unknown} rows without a known size are left out" if unknown else ""
    figure = new_figure(f"Collectives: {reports_name(table.inputs)}", WIDTH, HEIGHT, footer)
    axes = figure.subplots()
    families = list(map(_family, rows))
    colors = dict(zip(dict.fromkeys(families), cycle(COLORS), strict=False))
    markers = dict(zip(dict.fromkeys(map(_operation, rows)), cycle(MARKERS), strict=False))
    times = [number(row["duration_med_ns"]) * number(row["instances"]) for row in rows]
    for at in sorted(range(len(rows)), key=lambda at: -times[at]):  # the longest first
        row, color = rows[at], colors[families[at]]
        size, busbw, with_wait = (
            number(row[name]) for name in ("bytes", "busbw_gb_per_s", "busbw_with_wait_gb_per_s")
        )
        area = max(LARGEST * times[at] / (max(times) or 1.0), SMALLEST)
        look: Look = {"s": area, "marker": markers[_operation(row)]}
        if busbw:
            axes.scatter([size], [busbw], c=color, alpha=0.75, linewidths=0, **look)
            axes.plot([size] * 2, [with_wait, busbw], color=color, linewidth=0.8)
        axes.scatter([size], [with_wait], facecolors="none", edgecolors=color, **look)
    axes.set(xscale="log", yscale="log", xlabel="message size (bytes of the whole operation)")
    axes.set_ylabel("bus bandwidth (GB/s)")
    axes.set_xlim(_around([number(row["bytes"]) for row in rows]))
    rates = [number(row[name]) for row in rows for name in ("busbw_gb_per_s", wait)]
    axes.set_ylim(_around([rate for rate in rates if rate]))
    log_ticks(axes.xaxis, lambda size: format_bytes(size).replace(".00", "").replace("0.0", "0"))
    log_ticks(axes.yaxis, lambda rate: f"{rate:g}")
    signs = [(name, color, "o") for name, color in colors.items()]
    signs += [(name, INK, marker) for name, marker in markers.items()]
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="none", label=name)
        for name, color, marker in signs
    ]
    key_beside(axes, handles=handles, title="area: time")
    return figure


def _operation(row: Record) -> str:
    return printable(str(row["operation"]))


def _family(row: Record) -> str:
    """What groups of one size are called, those of neighbours apart from others."""
    return f"{row['ranks']} ranks" + ", not in a row" * ("," in str(row["group"]))


def _around(values: Sequence[float]) -> tuple[float, float]:
    """A stretch of a logarithmic axis with the values inside, two decades at least."""
    low, high = min(values), max(values)
    space = max(2.0, math.sqrt(100 * low / high))
    return low / space, high * space
