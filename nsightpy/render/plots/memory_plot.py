"""The picture of `nsightpy memory-usage`: live bytes over time.

A panel per kind of memory with a line per device; where it is known who allocated what, a panel
per device with a layer per place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    INK,
    QUIET,
    SMALL,
    drawing,
    nothing_to_draw,
    reports_name,
    short_name,
)
from nsightpy.render.plots.memory_layers import draw_layers
from nsightpy.render.plots.panels import (
    COLORS,
    RIGHT,
    STYLES,
    device_text,
    finish_panel,
    panel_figure,
)
from nsightpy.results.series import MemorySeries, MemoryUsage
from nsightpy.units import counted, format_bytes, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL, PANELS, LINES, KEY = 2.0, 6, 8, 3.7


def memory_figure(table: MemoryUsage) -> Figure:
    """Draw the result of `nsightpy.memory_usage`. Raises NsightpyError when there is nothing."""
    if not table.series:
        raise NsightpyError(nothing_to_draw(table, "memory"))
    panels = _panels(table.series)
    shown = panels[:PANELS]
    key = KEY if any(memory_series.layers for memory_series in table.series) else RIGHT
    end = max(
        (
            memory_series.times_ns[-1]
            for memory_series in table.series
            if len(memory_series.times_ns)
        ),
        default=0,
    )
    clock = all(memory_series.clock for memory_series in table.series)
    unit, scale = time_unit_for([end]) if clock else ("events", 1)
    left_out = len(panels) - len(shown)
    more = f"{counted(left_out, 'more device')} left out" if left_out else ""
    with drawing():
        figure, places = panel_figure(
            reports_name(table.inputs, 70), len(shown), PANEL, key=key, footer=more
        )
        for axes, (kind, series) in zip(places, shown, strict=True):
            _panel(axes, kind, series, end, scale)
        places[-1].set_xlabel(f"time ({unit})" if clock else unit, fontsize=SMALL)
    return figure


def _panels(series: Sequence[MemorySeries]) -> list[tuple[str, list[MemorySeries]]]:
    """What each panel shows: all devices of a kind of memory, or one device in layers."""
    kinds: dict[tuple[object, ...], list[MemorySeries]] = {}
    for memory_series in series:
        alone = (memory_series.rank, memory_series.device) if memory_series.layers else ()
        kinds.setdefault((memory_series.memory, *alone), []).append(memory_series)
    return [(panel[0].memory, panel) for panel in kinds.values()]


def _panel(axes: Axes, kind: str, series: Sequence[MemorySeries], end: int, scale: int) -> None:
    """One kind of memory: a line per device, those with the highest peaks, the peak marked."""
    drawn = sorted(series, key=lambda memory_series: -peak_bytes(memory_series))[:LINES]
    highest = max(
        max(peak_bytes(memory_series), max(memory_series.reserved, default=0))
        for memory_series in drawn
    )
    size, unit = _size(highest)
    for number, memory_series in enumerate(drawn):
        if memory_series.layers:
            draw_layers(axes, memory_series, scale, size)
            continue
        times = [
            time / scale for time in (*memory_series.times_ns[:1], *memory_series.times_ns, end)
        ]
        live = [value / size for value in (0, *memory_series.live, *memory_series.live[-1:])]
        axes.step(
            times,
            live,
            where="post",
            color=COLORS[number % len(COLORS)],
            linestyle=STYLES[number % len(STYLES)],
            linewidth=1.1,
            label=device_text(memory_series.rank, memory_series.device),
        )
        if memory_series.reserved:
            held = [
                value / size
                for value in (
                    *memory_series.reserved[:1],
                    *memory_series.reserved,
                    memory_series.reserved[-1],
                )
            ]
            axes.step(times, held, where="post", color=QUIET, linewidth=0.8, label="reserved")
    top = drawn[0]
    peak = peak_bytes(top)
    if len(top.live):
        at = top.times_ns[list(top.live).index(max(top.live))] / scale
        axes.plot([at], [peak / size], marker="v", color=INK, markersize=5)
    left_out = (
        f", {counted(len(series) - len(drawn), 'device')} left out" if len(series) > LINES else ""
    )
    by = f" by {short_name(top.peak_by, 50)}" if top.peak_by and not top.layers else ""
    place = device_text(top.rank, top.device)
    title = f"{short_name(kind, 30)} memory: peak {format_bytes(peak)} on {place}{by}"
    axes.set_ylim(0, 1.12 * highest / size if highest else 1)
    axes.set_xlim(0, end / scale if end else 1)
    reserved = any(memory_series.reserved and not memory_series.layers for memory_series in drawn)
    unit = f"memory ({unit})"
    finish_panel(axes, f"{title}{left_out}", unit, legend=reserved or len(drawn) > 1)


def peak_bytes(series: MemorySeries) -> int:
    """The highest live bytes of a series."""
    return max(series.live, default=0)


def _size(most: int) -> tuple[int, str]:
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if most >= size:
            return size, unit
    return 1, "B"
