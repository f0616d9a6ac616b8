"""Iterations as stacked bars: compute, exposed communication, copies, idle; a panel a device.

Of many devices: one panel of their means, and heat maps of device by iteration.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nsightpy.errors import UsageError
from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import (
    INK,
    MEDIAN,
    column_of,
    device_names,
    new_figure,
    styled,
)
from nsightpy.render.plots.heat_map import draw_heat_map
from nsightpy.render.plots.shares import (
    COMMUNICATION,
    COMPUTE,
    COPIES,
    IDLE,
    MOST_BARS,
    draw_shares,
    samples,
)
from nsightpy.results import Table, Value
from nsightpy.units import format_time, time_unit_for

KINDS = (COMPUTE, COMMUNICATION, COPIES, IDLE)
PANELS = 8
# Of more devices, heat maps of these.
MAPPED = ("duration", COMPUTE.name, COMMUNICATION.name)
WIDTH, PANEL, MAP = 8.0, 1.9, 2.1

Row = NDArray[np.float64]
Bars = Mapping[str, Row]
Devices = Mapping[tuple[Value, Value], Bars]


@styled
def iterations_figure(table: Table) -> Figure:
    """The picture of the table of `nsightpy iterations`: ms, us, ... on one common scale.

    Raises UsageError when the table has no rows.
    """
    if not table.rows:
        notes = "".join(f"\n  {note}" for note in table.notes)
        raise UsageError(f"there are no iterations to draw{notes}")
    devices = device_bars(table)
    many = len(devices) > PANELS
    heights = [PANEL, *[MAP] * len(MAPPED)] if many else [PANEL] * len(devices)
    heading = f"Iterations by {printable(str(table.column('source')[0]))}"
    if len({*table.column("phase")} | {"steady"}) > 1:
        heading += "; pale: warm-up, or cut off by the profiler"
    figure = new_figure(heading, WIDTH, sum(heights) + 1.0)
    panels = column_of(figure, heights)
    unit, scale = _unit(devices)
    if many:
        draw_means(panels[0], devices)
        for axes, name in zip(panels[1:], MAPPED, strict=True):
            _heat_map(axes, devices, name, unit, scale)
    else:
        for axes, name, bars in zip(
            panels, device_names(list(devices)), devices.values(), strict=True
        ):
            steady = bars["steady"] == 1
            _draw(axes, bars["iteration"], bars, steady, scale)
            if steady.any():
                axes.axhline(float(np.median(bars["duration"][steady])) / scale, **MEDIAN)
            axes.set_title(f"{name}: {_said(bars, steady)}")
            axes.set_ylabel(f"time ({unit})")
            if axes is not panels[0]:
                axes.sharey(panels[0])
    panels[-1].set_xlabel("iteration")
    occurring = [k for k in KINDS if any(bars[k.name].any() for bars in devices.values())]
    handles = [*samples(occurring), Line2D([], [], label="steady median", **MEDIAN)]
    figure.legend(handles=handles, loc="outside lower left", ncols=5)
    return figure


def draw_means(axes: Axes, devices: Devices) -> None:
    """The mean of all devices in each iteration, and a line from the shortest to the longest."""
    unit, scale = _unit(devices)
    duration = _matrix(devices, "duration") / scale
    at = _numbers(devices)
    steady = np.nanmean(_matrix(devices, "steady"), axis=0) > 0.5
    means = {kind.name: np.nanmean(_matrix(devices, kind.name), axis=0) for kind in KINDS}
    _draw(axes, at, means, steady, scale)
    title = "by iteration"
    if len(devices) > 1:
        title += f", mean of {len(devices)} devices; line: shortest to longest"
        if len(at) <= MOST_BARS:
            ends = np.nanmin(duration, axis=0), np.nanmax(duration, axis=0)
            axes.vlines(at, *ends, color=INK, linewidth=1.2)
    if steady.any():
        axes.axhline(float(np.nanmedian(duration[:, steady])), **MEDIAN)
        title += "; dashed: steady median"
    axes.set_title(title)
    axes.set_ylabel(f"time ({unit})")


def _draw(axes: Axes, at: Row, bars: Bars, steady: NDArray[np.bool_], scale: int) -> None:
    """The bars of one panel; what is not steady is paler."""
    values = np.column_stack([bars[kind.name] for kind in KINDS]) / scale
    draw_shares(axes, KINDS, values, at, pale=~steady)
    axes.grid(axis="x", visible=False)
    axes.set_xlim(at[0] - 0.5, at[-1] + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _heat_map(axes: Axes, devices: Devices, name: str, unit: str, scale: int) -> None:
    """One figure of every device and iteration; the scale holds what is not cut off."""
    values = _matrix(devices, name) / scale
    steady = values[_matrix(devices, "steady") == 1]
    drawn = steady if len(steady) else values[~np.isnan(values)]
    at = _numbers(devices)
    ends = (float(drawn.min()), float(drawn.max()))
    across = (at[0] - 0.5, at[-1] + 0.5)
    draw_heat_map(axes, values, device_names(list(devices)), across, unit, ends=ends)
    axes.set_title(f"{name} of each device")


def _unit(devices: Devices) -> tuple[str, int]:
    return time_unit_for([float(bars["duration"].max()) for bars in devices.values()])


def _numbers(devices: Devices) -> Row:
    """The iterations that any device has, without gaps."""
    every = np.concatenate([bars["iteration"] for bars in devices.values()])
    return np.arange(every.min(), every.max() + 1)


def _matrix(devices: Devices, name: str) -> Row:
    """A column as a matrix of device by iteration; NaN where a device has no such iteration."""
    at = _numbers(devices)
    matrix = np.full((len(devices), len(at)), np.nan)
    for row, bars in enumerate(devices.values()):
        matrix[row, (bars["iteration"] - at[0]).astype(np.int64)] = bars[name]
    return matrix


def device_bars(table: Table) -> Devices:
    """The columns of each rank and device, in the order of the table."""
    rows: dict[tuple[Value, Value], list[dict[str, Value]]] = {}
    for record in table.records():
        rows.setdefault((record["rank"], record["device"]), []).append(record)
    return {device: _bars(records) for device, records in rows.items()}


def _bars(records: list[dict[str, Value]]) -> Bars:
    def column(name: str) -> Row:
        return np.asarray([record[name] for record in records], dtype=np.float64)

    compute, exposed = column("compute_ns"), column("exposed_communication_ns")
    return {
        "iteration": column("iteration"),
        "duration": column("duration_ns"),
        COMPUTE.name: compute,
        COMMUNICATION.name: exposed,
        COPIES.name: column("busy_ns") - compute - exposed,
        IDLE.name: column("idle_ns"),
        "steady": np.asarray([record["phase"] == "steady" for record in records], dtype=np.float64),
    }


def _said(bars: Bars, steady: NDArray[np.bool_]) -> str:
    """The median of the steady iterations and its parts."""
    if not steady.any():
        return f"{len(steady)} iterations, none steady"
    whole = float(bars["duration"][steady].sum())
    shares = (100 * float(bars[kind.name][steady].sum()) / whole for kind in KINDS)
    parts = ", ".join(
        f"{kind.name} {share:.0f} %" for kind, share in zip(KINDS, shares, strict=True)
    )
    median = format_time(float(np.median(bars["duration"][steady])))
    return f"{int(steady.sum())} steady of {len(steady)}, median {median}: {parts}"
