"""The pictures of `nsightpy breakdown`: a budget bar per device, why it was idle, iterations;

with --bins heat maps of device over time.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nsightpy.render.plots.charts import (
    COMMUNICATION,
    COMPUTE,
    COPIES,
    IDLE,
    draw_heat_map,
    draw_shares,
    samples,
)
from nsightpy.render.plots.drawing import (
    INK,
    QUIET,
    SMALL,
    Kind,
    device_names,
    devices_of,
    floats,
    new_figure,
    new_panels,
    nothing_to_draw,
    reports_name,
    styled,
)
from nsightpy.render.plots.iterations_plot import draw_iterations, iterations_of
from nsightpy.results import Table
from nsightpy.results.series import stretches_of
from nsightpy.units import format_time, share_text, time_unit_for

MOST = 128
BAR, TALLEST, LEAST_BAR, ITERATIONS = 0.24, 9.0, 0.11, 2.0
BUDGET = (
    COMPUTE,
    COMMUNICATION,
    COPIES,
    Kind("communication beside copies", "#f0b48a", "xxxx"),
    IDLE,
)
# Idle time by cause: the commonest have colours of their own, the others share the last.
CAUSES = (
    Kind("launch-bound", "#e69f00"),
    Kind("host-gap", "#cc79a7", "////"),
    Kind("sync-drain", "#8e7cc3", "\\\\\\\\"),
    Kind("first-launch", "#56b4e9"),
    Kind("allocation", "#f0e442", "xxxx"),
    Kind("unified-memory", "#009e73", "////"),
    Kind("queued", "#bbbbbb"),
    Kind("other", "#e4e4e4"),
)


# What is drawn over time, where there is any, and what it is called.
TITLES = {
    "busy_share": "busy",
    "compute_share": "compute",
    "communication_share": "communication",
    "memory_share": "copies and memory sets",
    "sm_active_share": "SM active",
    "tensor_active_share": "tensor active",
    "dram_share": "DRAM bandwidth, of peak",
    "nvlink_rx_share": "NVLink received, of peak",
    "nvlink_tx_share": "NVLink sent, of peak",
}


@styled
def breakdown_figure(table: Table, iterations: Table | None = None) -> Figure:
    """Draw the table of `nsightpy.breakdown`, and below it that of `nsightpy.iterations`, if given.

    Shares over time are drawn as heat maps. Raises NsightpyError when there are no devices.
    """
    if "busy_share" in table.columns:
        return utilization_figure(table)
    if not table.rows:
        raise nothing_to_draw(table, "devices")
    time = {name: floats(table, name) for name in table.columns if name.endswith("_ns")}
    devices = devices_of(table)
    most_idle = np.argsort(-time["idle_ns"] / np.maximum(time["window_ns"], 1), kind="stable")
    kept = np.sort(most_idle[:MOST])
    left_out = len(table) - len(kept)
    rest = f"; the {MOST} most idle devices, {left_out} left out" if left_out else ""
    bar = min(BAR, max(TALLEST / len(kept), LEAST_BAR))
    size = min(SMALL, 65 * bar)
    heights: list[float] = [max(len(kept), 2) * bar]
    rows: Any = [["budget", "causes"]]
    if iterations is not None and iterations.rows:
        heights, rows = [*heights, ITERATIONS], [*rows, ["iterations", "iterations"]]
    figure = new_figure(f"{reports_name(table.inputs)}{rest}", 10.0, sum(heights) + 1.5)
    panels = figure.subplot_mosaic(rows, height_ratios=heights)
    used = [time[f"{name}_ns"] for name in ("compute", "exposed_communication", "copy_only")]
    budget = np.column_stack([*used, time["busy_ns"] - sum(used), time["idle_ns"]])[kept]
    _panel(panels["budget"], "where the time went", budget, BUDGET, size)
    named = [time[f"{kind.name.replace('-', '_')}_ns"] for kind in CAUSES[:-1]]
    causes = np.column_stack([*named, time["idle_ns"] - sum(named)])[kept]
    _panel(panels["causes"], "idle time by cause", causes, CAUSES, size)
    names = device_names([devices[row] for row in kept])
    panels["budget"].set_yticks(range(len(kept)), names, fontsize=size, color=INK)
    if iterations is not None and "iterations" in panels:
        every = iterations_of(iterations)
        draw_iterations(panels["iterations"], every, range(len(every.devices)))
        panels["iterations"].set_xlabel("iteration")
    return figure


def _panel(
    axes: Axes, title: str, times: NDArray[np.float64], kinds: Sequence[Kind], size: float
) -> None:
    """Horizontal bars on one scale of time, what matters of each beside it, a legend above."""
    times = np.nan_to_num(times)
    unit, scale = time_unit_for(times.sum(axis=1).tolist())
    occurring = np.flatnonzero(times.any(axis=0)).tolist()
    shown = [kinds[column] for column in occurring]
    bars = draw_shares(axes, shown, times[:, occurring] / scale, across=True)
    if bars is None:
        axes.text(0, 0, "none, or causes are not known: the notes say why", color=QUIET)
        axes.set_axis_off()
        return
    axes.bar_label(
        bars, [_text(row, kinds) for row in times], padding=4, fontsize=size, color=QUIET
    )
    axes.set_ylim(max(len(times), 2) - 0.4, -0.6)
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"{title} ({unit})")
    axes.legend(handles=samples(shown), loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _text(row: NDArray[np.float64], kinds: Sequence[Kind]) -> str:
    """What stands beside a bar: all of it, and the largest part."""
    whole, largest = row.sum(), int(row.argmax())
    if not whole:
        return "none"
    return f"{format_time(whole)}, {share_text(row[largest], whole)} {kinds[largest].name}"


@styled
def utilization_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.utilization`. Raises NsightpyError when it has no GPU work."""
    count = stretches_of(table)
    devices = devices_of(table)[::count]
    names = device_names(devices)
    shape = (len(devices), count)
    maps = {name: floats(table, name).reshape(shape) for name in TITLES}
    drawn = [name for name, each in maps.items() if np.nanmax(each, initial=0.0) > 0]
    if not drawn:
        raise nothing_to_draw(table, "GPU work")
    starts, lengths = (table.column(name)[:count] for name in ("start_ns", "duration_ns"))
    low, high = int(starts[0] or 0), int(starts[-1] or 0) + int(lengths[-1] or 0)
    unit, scale = time_unit_for([float(high - low)])
    heights = [min(max(0.2 * len(names), 0.42), 2.6)] * len(drawn)
    heading = f"Share of time in use: {reports_name(table.inputs)}"
    figure, panels = new_panels(heading, heights, shared=True)
    for axes, name in zip(panels, drawn, strict=True):
        across = (low / scale, high / scale)
        draw_heat_map(axes, 100 * maps[name], names, across, "%", (0.0, 100.0))
        axes.set_title(TITLES[name])
    panels[-1].set_xlabel(f"time ({unit}); grey: not known")
    return figure
