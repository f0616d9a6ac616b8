"""The picture of `nsightpy launch-queues`: how many operations waited over time, by stream."""

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
)
from nsightpy.results import QueueLengths, QueueSeries
from nsightpy.units import format_count, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM, SPACE = 9.0, 1.5, 0.75, 0.3, 0.65, 0.5, 0.5
PANELS, LINES = 8, 4
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def queue_figure(table: QueueLengths) -> Figure:
    """Draw the result of `nsightpy.launch_queues`. Raises NsightpyError when there is nothing."""
    if not table.series:
        raise NsightpyError(nothing_to_draw(table, "queues"))
    from matplotlib.figure import Figure

    devices: dict[tuple[int | None, int], list[QueueSeries]] = {}
    for one in table.series:
        devices.setdefault((one.rank, one.device), []).append(one)
    shown = list(devices.items())[:PANELS]
    height = TOP + BOTTOM + len(shown) * PANEL + (len(shown) - 1) * SPACE
    unit, scale = time_unit_for([one.times_ns[-1] for one in table.series])
    with drawing():
        figure = Figure(figsize=(WIDTH, height))
        text = _heading(table, len(devices) - len(shown))
        figure.text(LEFT / WIDTH, 1 - 0.26 / height, text, fontsize=LARGE, weight="bold")
        for number, (place, series) in enumerate(shown):
            bottom = BOTTOM + (len(shown) - 1 - number) * (PANEL + SPACE)
            axes = inch_axes(figure, LEFT, bottom, WIDTH - LEFT - RIGHT, PANEL)
            _panel(axes, place, series, scale)
            if number == len(shown) - 1:
                axes.set_xlabel(f"time ({unit})", fontsize=SMALL)
    return figure


def _heading(table: QueueLengths, left_out: int) -> str:
    without = f", {left_out} devices left out" if left_out else ""
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
    rank, device = place
    who = f"device {device}" if rank is None else f"rank {rank}, device {device}"
    more = f", {len(series) - len(drawn)} streams left out" if len(series) > LINES else ""
    axes.set_title(f"{who}{more}", loc="left", fontsize=SMALL, color=INK)
    axes.set_ylabel("operations", fontsize=SMALL)
    axes.set_ylim(0, 1.25 * max(max(one.longest) for one in drawn) or 1)
    axes.set_xlim(drawn[0].times_ns[0] / scale, drawn[0].times_ns[-1] / scale)
    axes.tick_params(labelsize=SMALL, colors=QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=FAINT, linewidth=0.4)
    axes.set_axisbelow(True)
    axes.legend(fontsize=SMALL, frameon=False, ncols=4, loc="upper left")
