"""Iterations as stacked bars: compute, exposed communication, copies, idle; a panel a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nsightpy.errors import UsageError
from nsightpy.render.escape import printable
from nsightpy.render.plots.drawing import FAINT, INK, QUIET, SMALL, drawing, inch_axes
from nsightpy.render.timeline.plot import COLORS
from nsightpy.results import Table
from nsightpy.units import format_time, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by hatch as well as by colour.
PARTS = (
    ("compute", COLORS["compute"], ""),
    ("exposed communication", COLORS["communication"], "////"),
    ("copies", COLORS["copy"], "...."),
    ("idle", "#e4e4e4", ""),
)
PANELS = 16
BARS = 400
WIDTH, PANEL, LEFT, RIGHT, TOP, BOTTOM, SPACE = 8.0, 1.9, 0.75, 0.25, 0.95, 0.45, 0.5

Bars = dict[str, NDArray[np.float64]]


def iterations_figure(table: Table) -> Figure:
    """The picture of the table of `nsightpy iterations`: ms, us, ... on one common scale.

    Raises UsageError when the table has no rows.
    """
    if not table.rows:
        raise UsageError(
            "there are no iterations to draw" + "".join(f"\n  {n}" for n in table.notes)
        )
    from matplotlib.figure import Figure

    panels = _panels(table)
    shown = dict(list(panels.items())[:PANELS])
    unit, scale = time_unit_for([float(max(rows["duration"].max() for rows in shown.values()))])
    highest = max(float(rows["duration"].max()) for rows in shown.values()) / scale
    height = TOP + BOTTOM + len(shown) * PANEL + (len(shown) - 1) * SPACE
    with drawing():
        figure = Figure(figsize=(WIDTH, height))
        for number, ((rank, device), rows) in enumerate(shown.items()):
            bottom = BOTTOM + (len(shown) - 1 - number) * (PANEL + SPACE)
            axes = inch_axes(figure, LEFT, bottom, WIDTH - LEFT - RIGHT, PANEL)
            _draw(axes, rows, scale, highest)
            who = f"device {device}" if rank is None else f"rank {rank}, device {device}"
            axes.set_title(f"{who}: {_said(rows)}", loc="left", fontsize=SMALL, color=INK)
            axes.set_ylabel(unit, fontsize=SMALL)
            if number == len(shown) - 1:
                axes.set_xlabel("iteration", fontsize=SMALL)
        _heading(figure, table, len(panels), len(shown), height)
    return figure


def _panels(table: Table) -> dict[tuple[object, object], Bars]:
    """The columns of each rank and device, in the order of the table."""
    places = [table.columns.index(name) for name in ("rank", "device")]
    rows: dict[tuple[object, object], list[tuple[object, ...]]] = {}
    for row in table.rows:
        rows.setdefault((row[places[0]], row[places[1]]), []).append(row)
    return {key: _bars(table, own) for key, own in rows.items()}


def _bars(table: Table, rows: list[tuple[object, ...]]) -> Bars:
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
    below = np.zeros(len(places))
    if len(places) <= BARS:
        for steady, alpha in ((1.0, 1.0), (0.0, 0.45)):
            mine = rows["steady"] == steady
            base = below[mine]
            for name, color, hatch in PARTS:
                height = rows[name][mine] / scale
                axes.bar(
                    places[mine],
                    height,
                    0.86,
                    bottom=base,
                    color=color,
                    hatch=hatch,
                    edgecolor="white" if hatch else color,
                    linewidth=0,
                    alpha=alpha,
                )
                base = base + height
    else:
        stacked = [rows[name] / scale for name, _, _ in PARTS]
        axes.stackplot(places, stacked, colors=[color for _, color, _ in PARTS], linewidth=0)
    steady = rows["duration"][rows["steady"] == 1]
    if len(steady):
        axes.axhline(
            float(np.median(steady)) / scale, color=INK, linewidth=0.8, linestyle=(0, (5, 3))
        )
    axes.set_xlim(places[0] - 0.6, places[-1] + 0.6)
    axes.set_ylim(0, highest * 1.06)
    axes.locator_params(axis="x", integer=True)
    axes.tick_params(labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
    axes.set_axisbelow(True)


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


def _heading(figure: Figure, table: Table, panels: int, shown: int, height: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    source = table.column("source")[0]
    text = f"Iterations by {source}"
    if panels > shown:
        text += f" (the first {shown} of {panels} devices)"
    if "steady" in table.column("phase") and set(table.column("phase")) != {"steady"}:
        text += "; pale: warm-up, or cut off by the profiler"
    figure.text(LEFT / WIDTH, 1 - 0.2 / height, printable(text), color=INK, va="center")
    handles: list[Patch | Line2D] = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white" if hatch else QUIET, label=name)
        for name, color, hatch in PARTS
    ]
    handles.append(
        Line2D([], [], color=INK, linewidth=0.8, linestyle=(0, (5, 3)), label="steady median")
    )
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(LEFT / WIDTH, 1 - 0.33 / height),
        borderpad=0,
        borderaxespad=0,
        ncols=5,
        fontsize=SMALL,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.0,
    )
