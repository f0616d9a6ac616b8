"""The picture of `nsightpy launches --by stream`: how many operations waited over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nsightpy.render.plots.charts import draw_heat_map
from nsightpy.render.plots.drawing import (
    COLORS,
    LINES,
    device_names,
    key_beside,
    new_panels,
    nothing_to_draw,
    reports_name,
    styled,
)
from nsightpy.results import Table
from nsightpy.results.series import QueueLengths, QueueSeries
from nsightpy.units import counted, format_count, time_unit_for

PANEL, PANELS, STREAMS = 1.5, 8, 4
# Stretches of time, and the height of a device in a heat map in inches.
CELLS, ROW = 400, 0.12
Edges: TypeAlias = NDArray[np.float64]


@styled
def queue_figure(table: Table) -> Figure:
    """Draw the result of `nsightpy.launches` by stream. Raises NsightpyError when there is nothing.

    A panel a device with a line a stream, all on one axis of time; of many devices a heat map of
    each one's longest queue.
    """
    if not isinstance(table, QueueLengths) or not table.series:
        raise nothing_to_draw(table, "queues (--by stream)")
    devices: dict[tuple[int | None, int], list[QueueSeries]] = {}
    for queue in table.series:
        devices.setdefault((queue.rank, queue.device), []).append(queue)
    low = min(queue.times_ns[0] for queue in table.series)
    high = max(queue.times_ns[-1] for queue in table.series)
    unit, scale = time_unit_for([float(high - low)])
    heading = f"Launched, not begun: {reports_name(table.inputs)}"
    names = device_names(list(devices))
    edges = np.linspace(low, high, CELLS + 1)
    if len(devices) > PANELS:
        height = min(max(ROW * len(devices), 1.5), 7.0)
        figure, (axes,) = new_panels(heading, [height], shared=True)
        rows = [
            np.max([_longest(queue, edges) for queue in queues], axis=0)
            for queues in devices.values()
        ]
        shown = np.where(np.asarray(rows) > 0, rows, np.nan)
        across = (low / scale, high / scale)
        draw_heat_map(axes, shown, names, across, "operations waiting", log=True)
        axes.set_title("longest queue of any stream")
        axes.set_xlabel(f"time ({unit}); grey: nothing waits")
        return figure
    figure, panels = new_panels(heading, [PANEL] * len(devices), shared=True)
    for axes, name, queues in zip(panels, names, devices.values(), strict=True):
        _panel(axes, name, queues, edges, scale)
    panels[-1].set_xlim(low / scale, high / scale)
    panels[-1].set_xlabel(f"time ({unit})")
    return figure


def _longest(queue: QueueSeries, edges: Edges) -> NDArray[np.float64]:
    """The longest queue of a stream in each stretch between edges; 0 outside its time."""
    times, longest = np.asarray(queue.times_ns, dtype=np.float64), np.asarray(queue.longest)
    first = np.searchsorted(times, edges[:-1], side="right") - 1
    after = np.searchsorted(times, edges[1:], side="left")
    known = (after > 0) & (first < len(longest))
    low = np.clip(first, 0, len(longest) - 1)
    pairs = np.column_stack([low, np.maximum(np.minimum(after, len(longest)), low + 1)]).ravel()
    within = np.maximum.reduceat(np.append(longest, 0), pairs)[::2]
    return np.where(known, within, 0).astype(np.float64)


def _panel(axes: Axes, name: str, queues: Sequence[QueueSeries], edges: Edges, scale: int) -> None:
    """One device: a line for each of its busiest streams, the longest queue of each moment."""
    for queue, color, line in zip(queues, COLORS, LINES, strict=False):
        axes.stairs(
            _longest(queue, edges),
            edges / scale,
            baseline=None,
            color=color,
            linestyle=line,
            linewidth=0.9,
            label=f"stream {queue.stream} ({format_count(queue.operations)} operations)",
        )
    left_out = len(queues) - STREAMS
    more = f", {counted(left_out, 'stream')} left out" if left_out > 0 else ""
    axes.set_title(f"{name}{more}")
    axes.set_ylabel("operations waiting")
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    key_beside(axes)
