"""The picture of `nsightpy memory-usage`: live bytes over time.

A panel per kind of memory with a line per device; where it is known who allocated what, a panel
per device with a layer per place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    LARGE,
    QUIET,
    SMALL,
    drawing,
    inch_axes,
    nothing_to_draw,
    reports_name,
    short_name,
)
from nsightpy.render.plots.memory_layers import draw_layers
from nsightpy.results import MemorySeries, MemoryUsage
from nsightpy.units import format_bytes, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM, SPACE = 9.0, 2.0, 0.85, 0.3, 0.65, 0.5, 0.55
PANELS, LINES, KEY = 6, 8, 3.7
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8e7cc3", "#1a1a1a")
STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def memory_figure(table: MemoryUsage) -> Figure:
    """Draw the result of `nsightpy.memory_usage`. Raises NsightpyError when there is nothing."""
    if not table.series:
        raise NsightpyError(nothing_to_draw(table, "memory"))
    from matplotlib.figure import Figure

    panels = _panels(table.series)
    shown = panels[:PANELS]
    key = KEY if any(one.layers for one in table.series) else RIGHT
    width = WIDTH + key - RIGHT
    height = TOP + BOTTOM + len(shown) * PANEL + (len(shown) - 1) * SPACE
    end = max((one.times_ns[-1] for one in table.series if len(one.times_ns)), default=0)
    clock = all(one.clock for one in table.series)
    unit, scale = time_unit_for([end]) if clock else ("events", 1)
    with drawing():
        figure = Figure(figsize=(width, height))
        figure.text(
            LEFT / width,
            1 - 0.26 / height,
            reports_name(table.inputs, 70),
            fontsize=LARGE,
            weight="bold",
        )
        for number, (kind, series) in enumerate(shown):
            bottom = BOTTOM + (len(shown) - 1 - number) * (PANEL + SPACE)
            axes = inch_axes(figure, LEFT, bottom, width - LEFT - key, PANEL)
            _panel(axes, kind, series, end, scale)
            if number == len(shown) - 1:
                axes.set_xlabel(f"time ({unit})" if clock else unit, fontsize=SMALL)
        if len(panels) > len(shown):
            more = f"{len(panels) - len(shown)} more devices are left out"
            figure.text(LEFT / width, 0.08 / height, more, fontsize=SMALL, color=QUIET)
    return figure


def _panels(series: Sequence[MemorySeries]) -> list[tuple[str, list[MemorySeries]]]:
    """What each panel shows: all devices of a kind of memory, or one device in layers."""
    kinds: dict[tuple[object, ...], list[MemorySeries]] = {}
    for one in series:
        alone = (one.rank, one.device) if one.layers else ()
        kinds.setdefault((one.memory, *alone), []).append(one)
    return [(found[0].memory, found) for found in kinds.values()]


def _panel(axes: Axes, kind: str, series: Sequence[MemorySeries], end: int, scale: int) -> None:
    """One kind of memory: a line per device, those with the highest peaks, the peak marked."""
    drawn = sorted(series, key=lambda one: -peak_bytes(one))[:LINES]
    highest = max(max(peak_bytes(one), max(one.reserved, default=0)) for one in drawn)
    size, unit = _size(highest)
    for place, one in enumerate(drawn):
        if one.layers:
            draw_layers(axes, one, scale, size)
            continue
        times = [time / scale for time in (*one.times_ns[:1], *one.times_ns, end)]
        live = [value / size for value in (0, *one.live, *one.live[-1:])]
        axes.step(
            times,
            live,
            where="post",
            color=COLORS[place % len(COLORS)],
            linestyle=STYLES[place % len(STYLES)],
            linewidth=1.1,
            label=_place(one),
        )
    top = drawn[0]
    peak = peak_bytes(top)
    at = top.times_ns[list(top.live).index(peak)] / scale
    axes.plot([at], [peak / size], marker="v", color=INK, markersize=5)
    left_out = f", {len(series) - len(drawn)} devices left out" if len(series) > LINES else ""
    by = f" by {short_name(top.peak_by, 50)}" if top.peak_by and not top.layers else ""
    title = f"{short_name(kind, 30)} memory: peak {format_bytes(peak)} on {_place(top)}{by}"
    axes.set_title(f"{title}{left_out}", loc="left", fontsize=SMALL, color=INK)
    axes.set_ylabel(unit, fontsize=SMALL)
    axes.set_ylim(0, 1.12 * highest / size if highest else 1)
    axes.set_xlim(0, end / scale if end else 1)
    axes.tick_params(labelsize=SMALL, colors=QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=FAINT, linewidth=0.4)
    axes.set_axisbelow(True)
    if len(drawn) > 1:
        axes.legend(fontsize=SMALL, frameon=False, ncols=4, loc="upper left")


def peak_bytes(one: MemorySeries) -> int:
    """The highest live bytes of a series."""
    return max(one.live, default=0)


def _place(one: MemorySeries) -> str:
    return f"device {one.device}" if one.rank is None else f"rank {one.rank}, device {one.device}"


def _size(most: int) -> tuple[int, str]:
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if most >= size:
            return size, unit
    return 1, "B"
