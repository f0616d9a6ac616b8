"""The picture of `nsightpy breakdown --bins`: heat maps of device over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    INK,
    SMALL,
    drawing,
    headed_figure,
    inch_axes,
    nothing_to_draw,
    reports_name,
)
from nsightpy.render.plots.heat_map import draw_heat_map, figure_text
from nsightpy.render.plots.panels import device_names
from nsightpy.results import Table
from nsightpy.results.series import stretches_of
from nsightpy.units import time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, LEFT, RIGHT, TOP, BOTTOM, SPACE = 10.0, 0.75, 1.0, 0.6, 0.5, 0.42
ROW, LOWEST, HIGHEST = 0.2, 0.42, 2.6
# Always drawn, and drawn where there is any: column, what it is called, its unit.
ALWAYS = ("busy_share", "compute_share")
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
    "nic_received_gb_per_s": "network received by the host",
    "nic_sent_gb_per_s": "network sent by the host",
}
# What fills less of every stretch is not worth a panel.
LEAST = {"communication_share": 1e-6, "memory_share": 0.05}

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class _Maps:
    """The figures by column, a row a device, and when each stretch begins and ends, in ns."""

    names: list[str]
    edges: NDArray[np.float64]
    panels: dict[str, Matrix]


def utilization_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.utilization`. Raises NsightpyError when it has no rows."""
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "GPU work"))
    maps = _maps(table)
    unit, scale = time_unit_for([float(maps.edges[-1] - maps.edges[0])])
    panel = min(max(ROW * len(maps.names), LOWEST), HIGHEST)
    height = TOP + BOTTOM + len(maps.panels) * panel + (len(maps.panels) - 1) * SPACE
    with drawing():
        heading = f"Share of time in use: {reports_name(table.inputs, 60)}"
        figure = headed_figure(WIDTH, height, LEFT, heading)
        for number, (column, values) in enumerate(maps.panels.items()):
            bottom = height - TOP - panel - number * (panel + SPACE)
            axes = inch_axes(figure, LEFT, bottom, WIDTH - LEFT - RIGHT, panel)
            _heat_map(axes, column, values, maps, scale)
            if number < len(maps.panels) - 1:
                axes.tick_params(axis="x", labelbottom=False)
            else:
                axes.set_xlabel(f"time ({unit}); grey: not known", fontsize=SMALL)
    return figure


def _maps(table: Table) -> _Maps:
    """The table's columns as matrices of device by stretch."""
    count = stretches_of(table)
    every = zip(table.column("rank"), table.column("device"), strict=True)
    places = list(every)[::count]
    panels = {}
    for name in TITLES:
        values = np.asarray(table.column(name), dtype=np.float64).reshape(len(places), count)
        known = values[~np.isnan(values)]
        least = LEAST.get(name, 0.0)
        if name in ALWAYS or (len(known) and float(known.max()) >= least):
            panels[name] = values
    starts, lengths = (table.column(name)[:count] for name in ("start_ns", "duration_ns"))
    edges = np.asarray([*starts, int(starts[-1] or 0) + int(lengths[-1] or 0)], dtype=np.float64)
    return _Maps(device_names(places), edges, panels)


def _heat_map(axes: Axes, column: str, values: Matrix, maps: _Maps, scale: int) -> None:
    share = column.endswith("_share")
    shown, unit = (100 * values, "%") if share else (values, "GB/s")
    across = maps.edges[0] / scale, maps.edges[-1] / scale
    draw_heat_map(axes, shown, maps.names, across, unit, ends=(0.0, 100.0) if share else None)
    title = f"{TITLES[column]}: {_said(shown, maps.names, unit)}"
    axes.set_title(title, loc="left", fontsize=SMALL, color=INK, pad=3)


def _said(shown: Matrix, names: Sequence[str], unit: str) -> str:
    """The mean of all, and of the devices with least and most."""
    means = [
        float(np.mean(numbers)) if len(numbers := row[~np.isnan(row)]) else float("nan")
        for row in shown
    ]
    known = [(mean, place) for place, mean in enumerate(means) if not np.isnan(mean)]
    if not known:
        return "not known"
    every = sum(mean for mean, _ in known) / len(known)
    text = f"mean {figure_text(every)} {unit}"
    (low, least), (high, most) = min(known), max(known)
    if figure_text(low) == figure_text(high):
        return text
    ends = f"{names[least]} least ({figure_text(low)}), {names[most]} most ({figure_text(high)})"
    return f"{text}, {ends}"
