"""The picture of `nsightpy collectives --by pair`: heat maps of sender by receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsightpy.errors import NsightpyError
from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import (
    SMALL,
    drawing,
    headed_figure,
    inch_axes,
    nothing_to_draw,
    reports_name,
)
from nsightpy.render.plots.heat_map import draw_heat_map
from nsightpy.results import Table, Value
from nsightpy.units import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, RIGHT, TOP, BOTTOM, SPACE = 0.7, 1.1, 0.75, 0.6, 0.75
PANEL, MOST_PANELS = 4.2, 3
MOST_TICKS = 16


def pairs_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.collectives(by="pair")`. Raises NsightpyError without rows."""
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "sizes of what ranks send to each other"))
    columns = [table.column(name) for name in ("source_rank", "target_rank", "operation", "bytes")]
    operations = list(dict.fromkeys(columns[2]))
    ranks = sorted({*columns[0], *columns[1]}, key=lambda name: (isinstance(name, str), name))
    shown = operations[:MOST_PANELS]
    width = LEFT + len(shown) * (PANEL + RIGHT) + (len(shown) - 1) * SPACE
    height = TOP + PANEL + BOTTOM
    with drawing():
        heading = f"What ranks send: {reports_name(table.inputs, 22)}"
        figure = headed_figure(width, height, LEFT, heading, 0.26)
        for place, operation in enumerate(shown):
            left = LEFT + place * (PANEL + RIGHT + SPACE)
            axes = inch_axes(figure, left, BOTTOM, PANEL, PANEL)
            mine = [row for row in zip(*columns, strict=True) if row[2] == operation]
            _panel(axes, mine, ranks)
    return figure


def _panel(axes: Axes, rows: list[tuple[Value, ...]], ranks: list[Value]) -> None:
    places = {name: place for place, name in enumerate(ranks)}
    sizes = np.full((len(ranks), len(ranks)), np.nan)
    for source, target, _, size in rows:
        old = sizes[places[source], places[target]]
        sizes[places[source], places[target]] = (0 if np.isnan(old) else old) + float(size or 0)
    whole = float(np.nansum(sizes))
    names = [printable(str(name)) for name in ranks]
    largest = float(np.nanmax(sizes))
    scale, unit = (1e9, "GB") if largest >= 1e9 else (1e6, "MB")
    draw_heat_map(axes, sizes / scale, names, (-0.5, len(ranks) - 0.5), unit)
    step = -(-len(ranks) // MOST_TICKS)
    axes.set_xticks(range(0, len(ranks), step), names[::step], fontsize=SMALL)
    axes.set_xlabel("to rank; grey: nothing known", fontsize=SMALL)
    axes.set_ylabel("from rank", fontsize=SMALL)
    title = f"{printable(str(rows[0][2]))}: {format_bytes(whole)}"
    axes.set_title(title, loc="left", fontsize=SMALL)
