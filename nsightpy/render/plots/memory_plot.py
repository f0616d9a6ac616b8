"""The picture of `nsightpy memory-usage`: live bytes over time.

A panel per kind of memory with a line per device; where it is known who allocated what, a panel
per device with a layer per place of the program.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import (
    COLORS,
    INK,
    LINES,
    MOST_VECTORS,
    QUIET,
    Look,
    device_names,
    key_beside,
    new_panels,
    nothing_to_draw,
    reports_name,
    styled,
)
from nsightpy.render.text.layout import short_name, shorten
from nsightpy.results.series import MemorySeries, MemoryUsage
from nsightpy.units import format_bytes, time_unit_for

WIDTH, PANEL, PANELS, MOST_LINES = 11.0, 2.0, 6, 8
# What is not a place of the program is grey.
GREYS = ("#8a8a8a", "#b4b4b4", "#d9d9d9")
NAME = 44
FAILED = "#b00020"
MOMENT: Look = {"color": QUIET, "linewidth": 0.6, "linestyle": ":"}


@styled
def memory_figure(table: MemoryUsage) -> Figure:
    """Draw the result of `nsightpy.memory_usage`. Raises NsightpyError when there is nothing."""
    if not table.series:
        raise nothing_to_draw(table, "memory")
    kinds: dict[tuple[object, ...], list[MemorySeries]] = {}
    for one in table.series:
        alone = (one.rank, one.device) if one.layers else ()
        kinds.setdefault((one.memory, *alone), []).append(one)
    shown = list(kinds.values())[:PANELS]
    end = max(int(one.times_ns[-1]) if len(one.times_ns) else 0 for one in table.series)
    clock = all(one.clock for one in table.series)
    unit, scale = time_unit_for([end]) if clock else ("events", 1)
    heading = reports_name(table.inputs, 70)
    if len(kinds) > len(shown):
        heading += f": {len(shown)} of {len(kinds)} devices"
    figure, panels = new_panels(heading, [PANEL] * len(shown), WIDTH, shared=True)
    for axes, series in zip(panels, shown, strict=True):
        _panel(axes, series, end, scale)
    panels[-1].set_xlim(0, end / scale or 1)
    panels[-1].set_xlabel(f"time ({unit})" if clock else unit)
    return figure


def _panel(axes: Axes, series: Sequence[MemorySeries], end: int, scale: int) -> None:
    """One kind of memory: a line per device, those with the highest peaks, the peak marked."""
    drawn = sorted(series, key=lambda one: -max(one.live, default=0))[:MOST_LINES]
    highest = max(max([*one.live, *one.reserved], default=0) for one in drawn)
    names = device_names([(one.rank, one.device) for one in drawn])
    for one, name, color, line in zip(drawn, names, COLORS, cycle(LINES), strict=False):
        if one.layers:
            _layers(axes, one, scale)
            continue
        edges = np.asarray([*one.times_ns, max([end, *one.times_ns])]) / scale
        axes.stairs(np.asarray(one.live), edges, color=color, linestyle=line, label=name)
        if len(one.reserved):
            held = np.asarray(one.reserved)
            axes.stairs(held, edges, color=QUIET, linewidth=0.8, label="reserved")
    top = drawn[0]
    peak = max(top.live, default=0)
    if len(top.live):
        at = top.times_ns[int(np.argmax(top.live))] / scale
        axes.plot([at], [peak], marker="v", color=INK, markersize=5)
    title = f"{short_name(top.memory, 30)} memory: peak {format_bytes(peak)} on {names[0]}"
    more = f"; the highest {len(drawn)} of {len(series)} devices"
    axes.set_title(title + more * (len(series) > len(drawn)))
    axes.set_ylim(0, 1.12 * highest or 1)
    axes.set_ylabel("memory")
    axes.yaxis.set_major_formatter(lambda size, _: format_bytes(size))
    if len(axes.get_legend_handles_labels()[1]) > 1 and not axes.get_legend():
        key_beside(axes)


def _layers(axes: Axes, series: MemorySeries, scale: int) -> None:
    """Live memory stacked by who allocated it, what the allocator held above, and iterations."""
    times = np.asarray(series.times_ns) / scale
    peak = int(np.argmax(series.live))
    greys, colors = iter(GREYS), cycle(COLORS)
    shades = [
        next(greys, GREYS[-1]) if n.startswith("(") else next(colors) for n, _ in series.layers
    ]
    labels = [
        f"{format_bytes(live[peak]):>8}  {shorten(printable(name), NAME)}"
        for name, live in series.layers
    ]
    values = np.asarray([live for _, live in series.layers], dtype=np.float64)
    many = values.size > MOST_VECTORS
    handles: list[Any] = axes.stackplot(
        times, values, colors=shades, labels=labels, step="post", rasterized=many
    )
    if len(series.reserved):
        held = np.asarray(series.reserved)
        label = f"{format_bytes(series.reserved[peak]):>8}  reserved"
        handles += axes.plot(times, held, "--", color=INK, drawstyle="steps-post", label=label)
    for name, moments_ns, look in (
        ("iterations", series.iterations_ns, MOMENT),
        ("out of memory", series.failures_ns, {"color": FAILED}),
    ):
        label = f"{'':>8}  {name}"
        handles += [axes.axvline(time / scale, label=label, **look) for time in moments_ns][:1]
    key_beside(axes, written=True, handles=handles[::-1], title="at the peak")
