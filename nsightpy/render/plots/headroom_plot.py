"""The picture of `nsightpy headroom`: share of the step against fraction of the roof.

Lines of equal gain run up to the right: the higher a kernel stands above them, the more there is
to gain. Numbers name the kernels in a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    Look,
    draw_numbers,
    log_ticks,
    new_figure,
    styled,
)
from nsightpy.render.text.shortening import distinct_names
from nsightpy.results import Table

WIDTH, HEIGHT = 12.0, 6.2
MOST_NAMED = 22
NAME_WIDTH = 44
GAINS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
# What a class is drawn as, by a word of its name.
KINDS = {
    "memory": ("high memory throughput", "#0072b2", "o"),
    "compute": ("high compute throughput", "#d55e00", "s"),
    "high": ("high throughput", "#cc79a7", "P"),
    "": ("latency, small grid, balanced", "#009e73", "^"),
}
NO_CLASS = ("no class", "#666666", "D")


@dataclass(frozen=True, slots=True)
class Spot:
    """A kernel in the picture."""

    number: int
    name: str
    share: float
    fraction: float
    ceiling: float
    kind: tuple[str, str, str]
    doubtful: bool


def sample(kind: tuple[str, str, str], doubtful: bool, label: str) -> Line2D:
    """What the key shows of a kernel or of a class."""
    _, color, marker = kind
    fill = "none" if doubtful else color
    return Line2D([], [], linestyle="", marker=marker, color=color, mfc=fill, label=label)


@styled
def headroom_figure(table: Table, *, title: str | None = None) -> Figure:
    """Draw a result of `nsightpy.headroom`."""
    spots, together = spots_of(table), getattr(table, "ceiling_share", None)
    unit = getattr(table, "unit", "step")
    heading = title or f"Headroom: share of the {unit} against the nearest roof"
    figure = new_figure(heading, WIDTH, HEIGHT, _footer(spots, together, unit))
    axes = figure.subplots()
    _plane(axes, spots, unit)
    for gain in GAINS:  # share x (1 - fraction) = gain
        fractions = np.linspace(0, 0.9999, 400)
        shares = gain / (1 - fractions)
        axes.plot(fractions, shares, color=FAINT, linewidth=0.8, zorder=1, scaley=False)
    for spot in spots:
        _, color, marker = spot.kind
        fill = "none" if spot.doubtful else color
        look: Look = {"facecolors": fill, "edgecolors": color, "linewidths": 1.1, "zorder": 3}
        axes.scatter([spot.fraction], [spot.share], 46, marker=marker, **look)
    named = spots[:MOST_NAMED]
    draw_numbers(axes, [(spot.number, spot.fraction, spot.share, 3.0) for spot in named])
    if spots:
        _keys(axes, spots, named)
    return figure


def spots_of(table: Table) -> list[Spot]:
    """The rows that have a roof, as they are ordered."""
    spots: list[Spot] = []
    for row in table.records():
        share, fraction, ceiling = (
            row[name] for name in ("share", "roof_fraction", "ceiling_share")
        )
        if not isinstance(share, float) or not isinstance(fraction, int | float) or share <= 0:
            continue
        limit = str(row["classification"] or "").lower()
        kind = next(kind for word, kind in KINDS.items() if word in limit) if limit else NO_CLASS
        doubtful = row["matched_by"] == "loose"
        worth = float(ceiling or 0)
        spots.append(
            Spot(len(spots) + 1, str(row["name"]), share, float(fraction), worth, kind, doubtful)
        )
    return spots


def _footer(spots: Sequence[Spot], together: float | None, unit: str) -> str:
    if not spots:
        return "no kernel of the capture has a measurement with a roof"
    whole = "" if together is None else f"all of them: {100 * together:.1f} % of the {unit}"
    ceiling = "a ceiling is what reaching the roof would save at most"
    lines = "grey lines: equal gain, that of the share at which they begin"
    return "; ".join(filter(None, (ceiling, whole, lines)))


def _plane(axes: Axes, spots: Sequence[Spot], unit: str) -> None:
    shares = [spot.share for spot in spots] or [0.01, 1.0]
    low, high = min(shares), max(shares)
    axes.set(yscale="log", xlabel="achieved, of the nearest roof", ylabel=f"share of the {unit}")
    axes.set_ylim(max(low / 2, high / 3000), min(max(high * 2, low * 10), 1.3))
    axes.set_xlim(0, max(1.02, max((spot.fraction for spot in spots), default=0) * 1.03))
    log_ticks(axes.yaxis, lambda share: f"{100 * share:g} %", subs=(1.0, 2.0, 5.0))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.axvline(1.0, color=INK, linewidth=1.0)
    axes.grid(visible=False)


def _keys(axes: Axes, spots: Sequence[Spot], named: Sequence[Spot]) -> None:
    """Number, ceiling, share, fraction and name of each kernel; what the markers mean."""
    names = distinct_names([spot.name for spot in named], NAME_WIDTH)
    rows = [
        sample(
            spot.kind,
            spot.doubtful,
            f"{spot.number:>2} {100 * spot.ceiling:>6.1f} % {100 * spot.share:>5.1f} % "
            f"{100 * spot.fraction:>4.0f} %  {name}",
        )
        for spot, name in zip(named, names, strict=True)
    ]
    more = len(spots) - len(named)
    rows += [Line2D([], [], linestyle="", label=f"and {more} more")] if more else []
    kinds = dict.fromkeys((spot.kind, spot.doubtful) for spot in spots)
    rows += [Line2D([], [], linestyle="", label="")]
    rows += [sample(*kind, f"{kind[0][0]}{', matched loosely' * kind[1]}") for kind in kinds]
    heading = f"{'':5} {'ceiling':>8} {'share':>7} {'roof':>6}  kernel"
    written = {"family": "monospace", "size": 7}
    key = axes.legend(
        handles=rows, title=heading, loc="upper left", bbox_to_anchor=(1, 1), prop=written,
        title_fontproperties=written, alignment="left",
    )  # fmt: skip
    key.get_title().set_color(INK)
