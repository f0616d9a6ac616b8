"""Iterations as stacked bars: compute, exposed communication, copies, idle; a panel a device.

Of many devices: one panel of their means, and heat maps of device by iteration.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from nsightpy.output.escape import printable
from nsightpy.render.plots.charts import (
    COMMUNICATION,
    COMPUTE,
    COPIES,
    IDLE,
    MOST_BARS,
    draw_heat_map,
    draw_shares,
    samples,
)
from nsightpy.render.plots.drawing import (
    INK,
    MEDIAN,
    device_names,
    devices_of,
    floats,
    new_panels,
    nothing_to_draw,
    styled,
)
from nsightpy.results import Table, Value
from nsightpy.units import significant, time_unit_for

KINDS = (COMPUTE, COMMUNICATION, COPIES, IDLE)
PANELS = 8
# Of more devices, heat maps of these.
MAPPED = ("duration", COMPUTE.name, COMMUNICATION.name)
PANEL, MAP = 1.9, 2.1

Matrix = NDArray[np.float64]


class Iterations(NamedTuple):
    """Times in `unit`: matrices of device by iteration, NaN where there is no such iteration."""

    devices: list[tuple[Value, Value]]
    numbers: Matrix
    times: Mapping[str, Matrix]
    steady: Matrix
    unit: str


@styled
def iterations_figure(table: Table) -> Figure:
    """The picture of the table of `nsightpy iterations`: ms, us, ... on one common scale.

    Raises NsightpyError when the table has no rows.
    """
    if not table.rows:
        raise nothing_to_draw(table, "iterations")
    iterations = iterations_of(table)
    names = device_names(iterations.devices)
    many = len(names) > PANELS
    heights = [PANEL, *[MAP] * len(MAPPED)] if many else [PANEL] * len(names)
    heading = f"Iterations by {printable(str(table.column('source')[0]))}"
    if len({*table.column("phase")} | {"steady"}) > 1:
        heading += "; pale: warm-up, or cut off by the profiler"
    figure, panels = new_panels(heading, heights, 8.0, shared=True)
    if many:
        draw_iterations(panels[0], iterations, range(len(names)))
        for axes, kind in zip(panels[1:], MAPPED, strict=True):
            values = iterations.times[kind]
            steady = values[iterations.steady == 1]  # the scale holds what is not cut off
            scale = steady if len(steady) else values[~np.isnan(values)]
            across = (iterations.numbers[0] - 0.5, iterations.numbers[-1] + 0.5)
            ends = (float(scale.min()), float(scale.max()))
            draw_heat_map(axes, values, names, across, iterations.unit, ends)
            axes.set_title(f"{kind} of each device")
    else:
        for row, (axes, name) in enumerate(zip(panels, names, strict=True)):
            draw_iterations(axes, iterations, [row], name)
            if row:
                axes.sharey(panels[0])
    panels[-1].set_xlabel("iteration")
    occurring = [kind for kind in KINDS if np.nansum(iterations.times[kind.name])]
    handles = [*samples(occurring), Line2D([], [], label="steady median", **MEDIAN)]
    figure.legend(handles=handles, loc="outside lower left", ncols=5)
    return figure


def iterations_of(table: Table) -> Iterations:
    """The rows of the table as matrices."""
    devices = devices_of(table)
    rows = list(dict.fromkeys(devices))
    iterations = np.asarray(table.column("iteration"), dtype=np.int64)
    first = int(iterations.min())
    shape = (len(rows), int(iterations.max()) - first + 1)
    cells = ([rows.index(device) for device in devices], iterations - first)

    def matrix(values: object) -> Matrix:
        empty = np.full(shape, np.nan)
        empty[cells] = values
        return empty

    names = ("duration", "compute", "exposed_communication", "idle", "busy")
    duration, compute, communication, idle, busy = (floats(table, f"{n}_ns") for n in names)
    unit, scale = time_unit_for([float(duration.max())])
    times = {
        "duration": duration,
        COMPUTE.name: compute,
        COMMUNICATION.name: communication,
        COPIES.name: busy - compute - communication,
        IDLE.name: idle,
    }
    numbers = np.arange(first, first + shape[1], dtype=np.float64)
    steady = matrix([phase == "steady" for phase in table.column("phase")])
    filled = {name: matrix(each / scale) for name, each in times.items()}
    return Iterations(rows, numbers, filled, steady, unit)


def draw_iterations(
    axes: Axes, iterations: Iterations, devices: range | list[int], name: str = ""
) -> None:
    """A bar for each iteration: the mean of these devices, from the shortest to the longest."""
    held = ~np.isnan(iterations.times["duration"][devices]).all(axis=0)
    times = {kind: each[devices][:, held] for kind, each in iterations.times.items()}
    steady = np.nanmean(iterations.steady[devices][:, held], axis=0) > 0.5
    means = np.column_stack([np.nanmean(times[kind.name], axis=0) for kind in KINDS])
    numbers, duration = iterations.numbers[held], times["duration"]
    draw_shares(axes, KINDS, means, numbers, pale=~steady)
    title = name or f"mean of {len(devices)} devices; line: shortest to longest"
    title += f"; {steady.sum()} of {len(steady)} iterations are steady"
    if steady.any():
        median = float(np.nanmedian(duration[:, steady]))
        axes.axhline(median, **MEDIAN)
        title += f", median {significant(median)} {iterations.unit}"
    if len(devices) > 1 and len(numbers) <= MOST_BARS:
        ends = np.nanmin(duration, axis=0), np.nanmax(duration, axis=0)
        axes.vlines(numbers, *ends, color=INK, linewidth=1.2)
    axes.set(xlim=(numbers[0] - 0.5, numbers[-1] + 0.5), ylabel=f"time ({iterations.unit})")
    axes.set_title(title)
    axes.grid(axis="x", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
