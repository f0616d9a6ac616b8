"""Iterations as stacked bars: compute, exposed communication, copies, idle; a panel a device.

Of many devices: one panel of their means, and heat maps of device by iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import UsageError
from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import INK, QUIET, SMALL, drawing, inch_axes, plain_axes
from nsightpy.render.plots.heat_map import draw_heat_map
from nsightpy.render.plots.panels import device_names, device_text
from nsightpy.render.timeline.plot import COLORS
from nsightpy.results import Table, Value
from nsightpy.units import format_time, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Part = tuple[str, str, str]
# Told apart by hatch as well as by colour.
PARTS = (
    ("compute", COLORS["compute"], ""),
    ("exposed communication", COLORS["communication"], "////"),
    ("copies", COLORS["copy"], "\\\\\\\\"),
    ("idle", "#e4e4e4", ""),
)
PANELS = 8
BARS = 400
PALE = 0.45  # what is not steady
# Of more devices, heat maps of these; the scale stands beside them.
MAPPED, MAPPED_HEIGHT, KEY = ("duration", "compute", "exposed communication"), 2.1, 0.7
WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM, SPACE = 8.0, 1.9, 0.75, 0.25, 0.95, 0.45, 0.5

Row = NDArray[np.float64]
Bars = dict[str, Row]
Device = tuple[Value, Value]


def iterations_figure(table: Table) -> Figure:
    """The picture of the table of `nsightpy iterations`: ms, us, ... on one common scale.

    Raises UsageError when the table has no rows.
    """
    if not table.rows:
        raise UsageError(
            "there are no iterations to draw" + "".join(f"\n  {n}" for n in table.notes)
        )
    from matplotlib.figure import Figure

    panels = device_bars(table)
    several = len(panels) > PANELS
    longest = max(float(rows["duration"].max()) for rows in panels.values())
    unit, scale = time_unit_for([longest])
    count, height = (1 + len(MAPPED), MAPPED_HEIGHT) if several else (len(panels), PANEL)
    whole = TOP + BOTTOM + count * height + (count - 1) * SPACE
    width = WIDTH + (KEY if several else 0)
    with drawing():
        figure = Figure(figsize=(width, whole))
        bottoms = [BOTTOM + below * (height + SPACE) for below in reversed(range(count))]
        places = [
            inch_axes(figure, LEFT, bottom, WIDTH - LEFT - RIGHT, height) for bottom in bottoms
        ]
        if several:
            mean_panel(places[0], panels, unit, scale)
            for axes, name in zip(places[1:], MAPPED, strict=True):
                _heat_map(axes, panels, name, unit, scale)
        else:
            for axes, ((rank, device), rows) in zip(places, panels.items(), strict=True):
                _draw(axes, rows, scale, longest / scale)
                title = f"{device_text(rank, device)}: {_said(rows)}"
                axes.set_title(title, loc="left", fontsize=SMALL, color=INK)
                axes.set_ylabel(f"time ({unit})", fontsize=SMALL)
        places[-1].set_xlabel("iteration", fontsize=SMALL)
        occurring = [p for p in PARTS if any(rows[p[0]].any() for rows in panels.values())]
        _heading(figure, table, occurring, width, whole)
    return figure


def mean_panel(axes: Axes, panels: dict[Device, Bars], unit: str, scale: int) -> None:
    """The mean of all devices in each iteration, and a line from the shortest to the longest."""
    every = {name: _matrix(panels, name) for name in (*(part for part, _, _ in PARTS), "duration")}
    numbers = np.asarray(_numbers(panels), dtype=np.float64)
    steady = np.nanmean(_matrix(panels, "steady"), axis=0) > 0.5
    heights = {name: np.nanmean(every[name], axis=0) / scale for name, _, _ in PARTS}
    _stacked(axes, numbers, heights, steady)
    if steady.any():
        _median_line(axes, float(np.nanmedian(every["duration"][:, steady])) / scale)
    low, high = (f(every["duration"], axis=0) / scale for f in (np.nanmin, np.nanmax))
    if len(panels) > 1 and len(numbers) <= BARS:
        axes.vlines(numbers, low, high, color=INK, linewidth=1.2)
    axes.set_xlim(numbers[0] - 0.6, numbers[-1] + 0.6)
    axes.set_ylim(0, float(high.max()) * 1.06)
    several = f", mean of {len(panels)} devices; line: shortest to longest"
    dashed = "; dashed: steady median" if steady.any() else ""
    text = f"by iteration{several if len(panels) > 1 else ''}{dashed}"
    axes.set_title(text, loc="left", fontsize=SMALL, color=INK)
    axes.set_ylabel(f"time ({unit})", fontsize=SMALL)
    _plain(axes)


def _heat_map(axes: Axes, panels: dict[Device, Bars], name: str, unit: str, scale: int) -> None:
    """One figure of every device and iteration; the scale holds what is not cut off."""
    values = _matrix(panels, name) / scale
    steady = values[_matrix(panels, "steady") == 1]
    known = steady if len(steady) else values[~np.isnan(values)]
    numbers = _numbers(panels)
    across = (numbers[0] - 0.5, numbers[-1] + 0.5)
    ends = (float(known.min()), float(known.max()))
    draw_heat_map(axes, values, device_names(list(panels)), across, unit, ends=ends)
    axes.set_title(f"{name} of each device", loc="left", fontsize=SMALL, color=INK)
    axes.locator_params(axis="x", integer=True)


def _numbers(panels: dict[Device, Bars]) -> list[int]:
    """The iterations that any device has, without gaps."""
    every = np.concatenate([rows["iteration"] for rows in panels.values()])
    return list(range(int(every.min()), int(every.max()) + 1))


def _matrix(panels: dict[Device, Bars], name: str) -> NDArray[np.float64]:
    """A column as a matrix of device by iteration; NaN where a device has no such iteration."""
    numbers = _numbers(panels)
    matrix = np.full((len(panels), len(numbers)), np.nan)
    for row, bars in enumerate(panels.values()):
        matrix[row, bars["iteration"].astype(np.int64) - numbers[0]] = bars[name]
    return matrix


def device_bars(table: Table) -> dict[Device, Bars]:
    """The columns of each rank and device, in the order of the table."""
    places = [table.columns.index(name) for name in ("rank", "device")]
    rows: dict[Device, list[tuple[Value, ...]]] = {}
    for row in table.rows:
        rows.setdefault((row[places[0]], row[places[1]]), []).append(row)
    return {key: _bars(table, device_rows) for key, device_rows in rows.items()}


def _bars(table: Table, rows: list[tuple[Value, ...]]) -> Bars:
    def column(name: str) -> NDArray[np.float64]:
        place = table.columns.index(name)
        return np.asarray([row[place] for row in rows], dtype=np.float64)

    phase = table.columns.index("phase")
    busy, compute = column("busy_ns"), column("compute_ns")
    exposed = column("exposed_communication_ns")
    return {
        "iteration": column("iteration"),
        "duration": column("duration_ns"),
        "compute": compute,
        "exposed communication": exposed,
        "copies": busy - compute - exposed,
        "idle": column("idle_ns"),
        "steady": np.asarray([row[phase] == "steady" for row in rows], dtype=np.float64),
    }


def _draw(axes: Axes, rows: Bars, scale: int, highest: float) -> None:
    """The bars of one panel; what is not steady is paler, the steady median is a line."""
    places = rows["iteration"]
    heights = {name: rows[name] / scale for name, _, _ in PARTS}
    _stacked(axes, places, heights, rows["steady"] == 1)
    steady = rows["duration"][rows["steady"] == 1]
    if len(steady):
        _median_line(axes, float(np.median(steady)) / scale)
    axes.set_xlim(places[0] - 0.6, places[-1] + 0.6)
    axes.set_ylim(0, highest * 1.06)
    _plain(axes)


def _stacked(axes: Axes, places: Row, heights: Bars, steady: NDArray[np.bool_]) -> None:
    """The parts of each iteration above each other, areas where they are too many for bars."""
    below = np.zeros(len(places))
    for name, color, hatch in PARTS:
        if len(places) > BARS:
            axes.fill_between(places, below, below + heights[name], color=color, linewidth=0)
        else:
            edge = "white" if hatch else color
            for mine, alpha in ((steady, 1.0), (~steady, PALE)):
                axes.bar(places[mine], heights[name][mine], 0.86, bottom=below[mine], color=color,
                         hatch=hatch, edgecolor=edge, linewidth=0, alpha=alpha)  # fmt: skip
        below = below + heights[name]


def _median_line(axes: Axes, place: float) -> None:
    axes.axhline(place, color=INK, linewidth=0.8, linestyle=(0, (5, 3)))


def _plain(axes: Axes) -> None:
    axes.locator_params(axis="x", integer=True)
    plain_axes(axes)


def _said(rows: Bars) -> str:
    """The median of the steady iterations and its parts."""
    steady = rows["steady"] == 1
    if not steady.any():
        return f"{len(steady)} iterations, none steady"
    median = float(np.median(rows["duration"][steady]))
    whole = float(rows["duration"][steady].sum())
    parts = ", ".join(
        f"{name} {100 * float(rows[name][steady].sum()) / whole:.0f} %" for name, _, _ in PARTS
    )
    return f"{int(steady.sum())} steady of {len(steady)}, median {format_time(median)}: {parts}"


def _heading(
    figure: Figure, table: Table, parts: Sequence[Part], width: float, height: float
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    source = table.column("source")[0]
    text = f"Iterations by {source}"
    if "steady" in table.column("phase") and set(table.column("phase")) != {"steady"}:
        text += "; pale: warm-up, or cut off by the profiler"
    figure.text(LEFT / width, 1 - 0.2 / height, printable(text), color=INK, va="center")
    handles: list[Patch | Line2D] = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white" if hatch else QUIET, label=name)
        for name, color, hatch in parts
    ]
    handles.append(
        Line2D([], [], color=INK, linewidth=0.8, linestyle=(0, (5, 3)), label="steady median")
    )
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(LEFT / width, 1 - 0.33 / height),
        borderpad=0,
        borderaxespad=0,
        ncols=5,
        fontsize=SMALL,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.0,
    )
