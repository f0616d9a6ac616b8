"""The picture of `nsightpy launches --by stream`: how many operations waited over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import SMALL, drawing, nothing_to_draw, reports_name
from nsightpy.render.plots.heat_map import draw_heat_map
from nsightpy.render.plots.panels import (
    COLORS,
    STYLES,
    device_names,
    device_text,
    finish_panel,
    panel_figure,
)
from nsightpy.results import Table
from nsightpy.results.series import QueueLengths, QueueSeries
from nsightpy.units import counted, format_count, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL, PANELS, LINES = 1.5, 8, 4
# Of a heat map: stretches of time, and the height of a device in inches.
CELLS, ROW = 400, 0.12

Place = tuple[int | None, int]


def queue_figure(table: Table) -> Figure:
    """Draw the result of `nsightpy.launches` by stream. Raises NsightpyError when there is nothing.

    A panel a device with a line a stream, all on one axis of time; of many devices a heat map of
    each one's longest queue.
    """
    if not isinstance(table, QueueLengths) or not table.series:
        raise NsightpyError(nothing_to_draw(table, "queues (--by stream)"))
    devices: dict[Place, list[QueueSeries]] = {}
    for queue in table.series:
        devices.setdefault((queue.rank, queue.device), []).append(queue)
    low = min(queue.times_ns[0] for queue in table.series)
    high = max(queue.times_ns[-1] for queue in table.series)
    unit, scale = time_unit_for([float(high - low)])
    heading = f"Launched, not begun: {reports_name(table.inputs, 60)}"
    with drawing():
        if len(devices) > PANELS:
            return _heat_map(heading, devices, (low, high), unit, scale)
        figure, places = panel_figure(heading, len(devices), PANEL)
        for axes, (place, series) in zip(places, devices.items(), strict=True):
            _panel(axes, place, series, scale)
            axes.set_xlim(low / scale, high / scale)
            axes.ticklabel_format(axis="x", useOffset=False, style="plain")
        places[-1].set_xlabel(f"time ({unit})", fontsize=SMALL)
    return figure


def _heat_map(
    heading: str,
    devices: dict[Place, list[QueueSeries]],
    time: tuple[int, int],
    unit: str,
    scale: int,
) -> Figure:
    """The longest queue of any stream of each device over time, on one logarithmic scale."""
    edges = np.linspace(*time, CELLS + 1)
    rows = [
        np.max([_resampled(queue, edges) for queue in queues], axis=0)
        for queues in devices.values()
    ]
    shown = np.asarray(rows)
    height = min(max(ROW * len(devices), 1.5), 7.0)
    figure, (axes,) = panel_figure(heading, 1, height, key=0.8)
    draw_heat_map(
        axes,
        np.where(shown > 0, shown, np.nan),
        device_names(list(devices)),
        (time[0] / scale, time[1] / scale),
        "operations waiting on the fullest stream",
        log=True,
    )
    axes.set_title("longest queue of any stream", loc="left", fontsize=SMALL)
    axes.set_xlabel(f"time ({unit}); grey: nothing waits", fontsize=SMALL)
    return figure


def _resampled(queue: QueueSeries, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The longest queue of a stream in each stretch between edges; 0 outside its time."""
    times, longest = np.asarray(queue.times_ns, dtype=np.float64), np.asarray(queue.longest)
    first = np.searchsorted(times, edges[:-1], side="right") - 1
    after = np.searchsorted(times, edges[1:], side="left")
    known = (after > 0) & (first < len(longest))
    low = np.clip(first, 0, len(longest) - 1)
    pairs = np.column_stack([low, np.maximum(np.minimum(after, len(longest)), low + 1)]).ravel()
    within = np.maximum.reduceat(np.append(longest, 0), pairs)[::2]
    return np.where(known, within, 0).astype(np.float64)


def _panel(axes: Axes, place: Place, series: Sequence[QueueSeries], scale: int) -> None:
    """One device: a line for each of its busiest streams, the longest queue of each moment."""
    drawn = list(series)[:LINES]
    for number, queue in enumerate(drawn):
        axes.step(
            [time / scale for time in queue.times_ns],
            [*queue.longest, *queue.longest[-1:]],
            where="post",
            color=COLORS[number],
            linestyle=STYLES[number],
            linewidth=0.9,
            label=f"stream {queue.stream} ({format_count(queue.operations)} operations)",
        )
    more = (
        f", {counted(len(series) - len(drawn), 'stream')} left out" if len(series) > LINES else ""
    )
    axes.locator_params(axis="y", integer=True)
    axes.set_ylim(0, 1.25 * max(max(queue.longest) for queue in drawn) or 1)
    finish_panel(axes, f"{device_text(*place)}{more}", "operations waiting", legend=True)
