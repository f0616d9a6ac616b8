"""The picture of `nsightpy launch-queues`: how many operations waited over time, by stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import SMALL, drawing, nothing_to_draw, reports_name
from nsightpy.render.plots.panels import COLORS, STYLES, device_text, finish_panel, panel_figure
from nsightpy.results import QueueLengths, QueueSeries
from nsightpy.units import counted, format_count, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL, PANELS, LINES = 1.5, 8, 4


def queue_figure(table: QueueLengths) -> Figure:
    """Draw the result of `nsightpy.launch_queues`. Raises NsightpyError when there is nothing."""
    if not table.series:
        raise NsightpyError(nothing_to_draw(table, "queues"))
    devices: dict[tuple[int | None, int], list[QueueSeries]] = {}
    for one in table.series:
        devices.setdefault((one.rank, one.device), []).append(one)
    shown = list(devices.items())[:PANELS]
    unit, scale = time_unit_for([one.times_ns[-1] for one in table.series])
    with drawing():
        heading = _heading(table, len(devices) - len(shown))
        figure, places = panel_figure(heading, len(shown), PANEL)
        for axes, (place, series) in zip(places, shown, strict=True):
            _panel(axes, place, series, scale)
        places[-1].set_xlabel(f"time ({unit})", fontsize=SMALL)
    return figure


def _heading(table: QueueLengths, left_out: int) -> str:
    without = f", {counted(left_out, 'device')} left out" if left_out else ""
    return f"Launched, not begun: {reports_name(table.inputs, 60)}{without}"


def _panel(
    axes: Axes, place: tuple[int | None, int], series: Sequence[QueueSeries], scale: int
) -> None:
    """One device: a line for each of its busiest streams, the longest queue of each moment."""
    drawn = list(series)[:LINES]
    for number, one in enumerate(drawn):
        axes.step(
            [time / scale for time in one.times_ns],
            [*one.longest, *one.longest[-1:]],
            where="post",
            color=COLORS[number],
            linestyle=STYLES[number],
            linewidth=0.9,
            label=f"stream {one.stream} ({format_count(one.operations)} operations)",
        )
    more = (
        f", {counted(len(series) - len(drawn), 'stream')} left out" if len(series) > LINES else ""
    )
    axes.set_ylim(0, 1.25 * max(max(one.longest) for one in drawn) or 1)
    axes.set_xlim(drawn[0].times_ns[0] / scale, drawn[0].times_ns[-1] / scale)
    finish_panel(axes, f"{device_text(*place)}{more}", "operations", legend=True)
