"""The picture of `nsightpy collectives --by pair`: heat maps of sender by receiver."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from nsightpy.errors import NsightpyError
from nsightpy.output.escape import printable
from nsightpy.render.plots.drawing import new_figure, nothing_to_draw, reports_name, styled
from nsightpy.render.plots.heat_map import draw_heat_map, every_nth
from nsightpy.results import Table, number
from nsightpy.units import format_bytes

PANEL, MOST_PANELS, MOST_TICKS = 4.6, 3, 16


@styled
def pairs_figure(table: Table) -> Figure:
    """Draw the table of `nsightpy.collectives(by="pair")`. Raises NsightpyError without rows."""
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "sizes of what ranks send to each other"))
    sides = table.column("source_rank"), table.column("target_rank")
    ranks = sorted({*sides[0], *sides[1]}, key=lambda rank: (isinstance(rank, str), rank))
    names = [printable(str(rank)) for rank in ranks]
    operations = list(dict.fromkeys(table.column("operation")))[:MOST_PANELS]
    heading = f"What ranks send: {reports_name(table.inputs, 22)}"
    figure = new_figure(heading, len(operations) * PANEL + 0.8, PANEL + 0.6)
    panels = figure.subplots(1, len(operations), squeeze=False)[0]
    for axes, operation in zip(panels, operations, strict=True):
        sizes = np.full((len(ranks), len(ranks)), np.nan)
        for record in table.records():
            if record["operation"] == operation:
                pair = ranks.index(record["source_rank"]), ranks.index(record["target_rank"])
                sizes[pair] = np.nan_to_num(sizes[pair]) + number(record["bytes"])
        scale, unit = (1e9, "GB") if np.nanmax(sizes) >= 1e9 else (1e6, "MB")
        draw_heat_map(axes, sizes / scale, names, (-0.5, len(ranks) - 0.5), unit)
        axes.set_xticks(*every_nth(names, MOST_TICKS))
        axes.set(xlabel="to rank; grey: nothing known", ylabel="from rank")
        axes.set_title(f"{printable(str(operation))}: {format_bytes(float(np.nansum(sizes)))}")
    return figure
