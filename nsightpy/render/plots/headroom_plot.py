"""The picture of `nsightpy headroom`: share of the step against fraction of the roof.

Lines of equal gain run up to the right: the higher a kernel stands above them, the more there is
to gain. Numbers name the kernels in a key. Takes the table and returns a matplotlib Figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    LINE,
    NORMAL,
    QUIET,
    SMALL,
    Box,
    blank_axes,
    distinct_names,
    drawing,
    free_place,
    headed_figure,
    inch_axes,
    text_box,
)
from nsightpy.results import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 13.2, 6.7
LEFT, BOTTOM, PLOT_WIDTH, PLOT_HEIGHT = 0.9, 1.0, 6.6, 4.8
KEY_LEFT = 7.9
MOST_NAMED = 22
NAME_WIDTH = 44
GAINS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
COLOURS = {
    "memory": "#0072b2",
    "compute": "#d55e00",
    "high": "#cc79a7",
    "latency": "#009e73",
    "": "#666666",
}
MARKERS = {"memory": "o", "compute": "s", "high": "P", "latency": "^", "": "D"}
ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
QUIETLY: dict[str, Any] = {"size": SMALL, "color": QUIET, "zorder": 2}
_LABELS = {
    "memory": "high memory throughput",
    "compute": "high compute throughput",
    "high": "high throughput",
    "latency": "latency, small grid, balanced",
    "": "no class",
}


@dataclass(frozen=True, slots=True)
class Spot:
    """A kernel in the picture."""

    number: int
    name: str
    share: float
    fraction: float
    ceiling: float
    kind: str
    doubtful: bool


def headroom_figure(made: Table, *, title: str | None = None) -> Figure:
    """Draw a result of `nsightpy.headroom`."""
    spots, together = spots_of(made), getattr(made, "ceiling_share", None)
    unit = getattr(made, "unit", "step")
    with drawing():
        head = title or f"Headroom: share of the {unit} against the nearest roof"
        figure = headed_figure(WIDTH, HEIGHT, LEFT, head, 0.35)
        figure.text(
            *(LEFT / WIDTH, 1 - 0.6 / HEIGHT, _subtitle(spots, together, unit)),
            size=SMALL,
            color=QUIET,
        )
        axes = inch_axes(figure, LEFT, BOTTOM, PLOT_WIDTH, PLOT_HEIGHT)
        _plane(axes, spots, unit)
        _lines(axes)
        _spots(axes, spots)
        _key(blank_axes(figure, KEY_LEFT, BOTTOM, WIDTH - KEY_LEFT - 0.2, PLOT_HEIGHT + 0.2), spots)
    return figure


def spots_of(made: Table) -> list[Spot]:
    """The rows that have a roof, as they are ordered."""
    spots: list[Spot] = []
    for row in made.records():
        share, fraction, ceiling = (
            row[name] for name in ("share", "roof_fraction", "ceiling_share")
        )
        if not isinstance(share, float) or not isinstance(fraction, int | float) or share <= 0:
            continue
        spots.append(
            Spot(
                len(spots) + 1,
                str(row["name"]),
                share,
                float(fraction),
                float(ceiling or 0),
                _kind(str(row["classification"] or "")),
                row["matched_by"] == "loose",
            )
        )
    return spots


def _kind(classification: str) -> str:
    text = classification.lower()
    for kind in ("memory", "compute", "high"):
        if kind in text:
            return kind
    return "latency" if text else ""


def _subtitle(spots: Sequence[Spot], together: float | None, unit: str) -> str:
    if not spots:
        return "no kernel of the capture has a measurement with a roof"
    ceiling = "a ceiling is what reaching the roof would save at most"
    whole = "" if together is None else f"all of them: {100 * together:.1f} % of the {unit}"
    loose = "open markers: matched loosely" if any(spot.doubtful for spot in spots) else ""
    return "; ".join(filter(None, (ceiling, whole, loose)))


def _plane(axes: Axes, spots: Sequence[Spot], unit: str) -> None:
    shares = [spot.share for spot in spots] or [0.01, 1.0]
    low, high = min(shares), max(shares)
    axes.set_yscale("log")
    axes.set_ylim(max(low / 2, high / 3000), min(max(high * 2, low * 10), 1.3))
    axes.set_xlim(0, max(1.02, max((spot.fraction for spot in spots), default=0) * 1.03))
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.set_xlabel("achieved, of the nearest roof")
    axes.set_ylabel(f"share of the {unit}")
    axes.axvline(1.0, color=INK, linewidth=1.0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _lines(axes: Axes) -> None:
    """share x (1 - fraction) = gain, for round gains."""
    low, high = axes.get_ylim()
    for gain in GAINS:
        if gain >= high:
            continue
        fractions = [place / 400 for place in range(400)]
        shares = [gain / (1 - fraction) for fraction in fractions]
        axes.plot(fractions, shares, color=FAINT, linewidth=0.8, zorder=1)
        if gain > low * 1.05:
            axes.text(0.008, gain * 1.01, f"gain {100 * gain:g} %", bbox=ON_WHITE, **QUIETLY)
        elif high > low * 1.2 and (place := 1 - gain / (low * 1.06)) > 0:
            axes.text(place, low * 1.06, f"{100 * gain:g} %", bbox=ON_WHITE, **QUIETLY)


def _spots(axes: Axes, spots: Sequence[Spot]) -> None:
    taken: list[Box] = []
    seen: set[str] = set()
    for spot in spots:
        colour = COLOURS[spot.kind]
        axes.scatter(
            [spot.fraction],
            [spot.share],
            s=46,
            marker=MARKERS[spot.kind],
            facecolors="none" if spot.doubtful else colour,
            edgecolors=colour,
            linewidths=1.1,
            zorder=3,
            label=None if spot.kind in seen else _LABELS[spot.kind],
        )
        seen.add(spot.kind)
        x, y = _inches(axes, spot)
        taken.append(Box(x - 0.06, y - 0.06, 0.12, 0.12))
    for spot in spots[:MOST_NAMED]:
        _number(axes, spot, taken)
    if seen:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(-0.02, -0.1),
            ncols=len(seen),
            fontsize=SMALL,
            frameon=False,
            handletextpad=0.2,
            columnspacing=1.2,
        )


def _number(axes: Axes, spot: Spot, taken: list[Box]) -> None:
    x, y = _inches(axes, spot)
    text = str(spot.number)
    near = [(x + dx, y + dy) for dx, dy in ((0.17, 0.0), (0, 0.17), (-0.17, 0), (0, -0.17))]
    near += [(x + 0.2, y + 0.2), (x - 0.2, y - 0.2), (x + 0.34, y)]
    free = free_place(near, text_box(text, NORMAL), taken, (PLOT_WIDTH, PLOT_HEIGHT))
    if free is None:
        return
    place, box = free
    taken.append(box)
    axes.annotate(
        text,
        (spot.fraction, spot.share),
        xytext=((near[place][0] - x) * 72, (near[place][1] - y) * 72),
        textcoords="offset points",
        ha="center",
        va="center",
        size=NORMAL,
        zorder=4,
    )


def _inches(axes: Axes, spot: Spot) -> tuple[float, float]:
    """Where a kernel stands, in inches from the plot's lower left corner."""
    import math

    low, high = axes.get_ylim()
    left, right = axes.get_xlim()
    share = max(spot.share, low)
    y = math.log(share / low) / math.log(high / low)
    return (spot.fraction - left) / (right - left) * PLOT_WIDTH, y * PLOT_HEIGHT


def _key(axes: Axes, spots: Sequence[Spot]) -> None:
    """Number, ceiling, share, fraction and name of each kernel."""
    if not spots:
        return
    axes.text(0.0, 0.1, "ceiling", size=SMALL, color=QUIET, ha="left")
    axes.text(0.55, 0.1, "share", size=SMALL, color=QUIET)
    axes.text(1.05, 0.1, "roof", size=SMALL, color=QUIET)
    axes.text(1.5, 0.1, "kernel", size=SMALL, color=QUIET)
    named = spots[:MOST_NAMED]
    names = distinct_names([spot.name for spot in named], NAME_WIDTH)
    for line, (spot, name) in enumerate(zip(named, names, strict=True), start=1):
        y = 0.12 + line * LINE * 1.25
        axes.text(0.0, y, f"{100 * spot.ceiling:.1f} %", size=SMALL, weight="bold")
        axes.text(0.55, y, f"{100 * spot.share:.1f} %", size=SMALL)
        axes.text(1.05, y, f"{100 * spot.fraction:.0f} %", size=SMALL)
        axes.text(1.5, y, f"{spot.number}  {name}", size=SMALL)
    if len(spots) > MOST_NAMED:
        y = 0.12 + (MOST_NAMED + 1) * LINE * 1.25
        axes.text(1.5, y, f"and {len(spots) - MOST_NAMED} more", size=SMALL, color=QUIET)
