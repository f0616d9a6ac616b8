"""The picture of `nsightpy breakdown --bins`: heat maps of device over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    column_of,
    device_names,
    new_figure,
    nothing_to_draw,
    reports_name,
    styled,
)
from nsightpy.render.plots.heat_map import draw_heat_map
from nsightpy.results import Table
from nsightpy.results.series import stretches_of
from nsightpy.units import significant, time_unit_for

WIDTH, ROW, LOWEST, HIGHEST = 9.0, 0.2, 0.42, 2.6
# Always drawn, and drawn where there is any: column, what it is called.
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


@styled
def utilization_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.utilization`. Raises NsightpyError when it has no rows."""
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "GPU work"))
    count = stretches_of(table)
    devices = list(zip(table.column("rank"), table.column("device"), strict=True))[::count]
    names = device_names(devices)
    every = {
        column: np.asarray(table.column(column), dtype=np.float64).reshape(len(devices), count)
        for column in TITLES
    }
    maps = {
        column: values
        for column, values in every.items()
        if column in ALWAYS
        or (np.isfinite(values).any() and np.nanmax(values) >= LEAST.get(column, 0.0))
    }
    starts, lengths = (table.column(name)[:count] for name in ("start_ns", "duration_ns"))
    low, high = int(starts[0] or 0), int(starts[-1] or 0) + int(lengths[-1] or 0)
    unit, scale = time_unit_for([float(high - low)])
    heights = [min(max(ROW * len(names), LOWEST), HIGHEST)] * len(maps)
    heading = f"Share of time in use: {reports_name(table.inputs)}"
    figure = new_figure(heading, WIDTH, sum(heights) + 0.3 * len(maps) + 0.8)
    panels = column_of(figure, heights)
    for axes, (column, values) in zip(panels, maps.items(), strict=True):
        share = column.endswith("_share")
        shown, of = (100 * values, "%") if share else (values, "GB/s")
        ends = (0.0, 100.0) if share else None
        draw_heat_map(axes, shown, names, (low / scale, high / scale), of, ends=ends)
        axes.set_title(f"{TITLES[column]}: {_said(shown, names, of)}")
    panels[-1].set_xlabel(f"time ({unit}); grey: not known")
    return figure


def _said(shown: Matrix, names: Sequence[str], unit: str) -> str:
    """The mean of all, and of the devices with least and most."""
    known = [
        (float(row[np.isfinite(row)].mean()), name)
        for row, name in zip(shown, names, strict=True)
        if np.isfinite(row).any()
    ]
    if not known:
        return "not known"
    text = f"mean {_figure(sum(mean for mean, _ in known) / len(known))} {unit}"
    low, high = (end(known, key=lambda pair: pair[0]) for end in (min, max))
    if _figure(low[0]) == _figure(high[0]):
        return text
    return f"{text}, {low[1]} least ({_figure(low[0])}), {high[1]} most ({_figure(high[0])})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 or not value else significant(value, 2)
