"""A picture of a timeline for papers and chat, as a matplotlib Figure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from numpy.typing import NDArray

from nsightpy.names import function_name
from nsightpy.render.plots.charts import samples
from nsightpy.render.plots.drawing import (
    INK,
    SMALL,
    Kind,
    Look,
    new_figure,
    reports_name,
    styled,
)
from nsightpy.render.text.layout import short_name
from nsightpy.results.tracks import Band, Boxes, Picture, Row, Timeline
from nsightpy.units import format_count, format_time, time_unit_for

WIDTH, COLUMNS = 12.0, 1500  # inches, and about as many pixels
FLOOR = 0.15  # least height, as a share of the band, where anything happened at all
# In inches: bands by kind, of one event, of stacked rows and their least; what is between.
HEIGHTS = {"nvtx": 0.17, "compute": 0.30, "graph": 0.20, "communication": 0.30}
HEIGHTS |= {"copy": 0.17, "idle": 0.09}
EVENT, STACK, LEAST_STACK, SPACE, BETWEEN = 0.15, 0.19, 0.05, 0.025, 0.13
MOST_STACKS = 64  # rows of their whole height
KINDS = {
    "compute": Kind("compute", "#0072b2"),
    "graph": Kind("CUDA graphs traced whole", "#56b4e9"),
    "communication": Kind("communication", "#d55e00"),
    "copy": Kind("copies", "#009e73"),
    "idle": Kind("idle", "#b8b8b8"),
    "nvtx": Kind("code ranges", "#8e7cc3"),
}
# In stacked rows nothing is drawn twice.
STACKED = {
    **KINDS,
    "communication": Kind("communication not hidden", "#d55e00"),
    "copy": Kind("copies alone", "#009e73"),
}
PATH: Look = {"color": INK, "linewidth": 1.6}
LETTERS = 160  # that fit side by side into the picture
LEAST_LETTERS = 9  # a name cut to fewer tells nothing
MANY_BANDS = 4  # more are one bitmap in svg and pdf


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a band goes: inches from the top of the axes."""

    row: Row
    band: Band
    top: float
    height: float

    @property
    def bottom(self) -> float:
        return self.top + self.height


def timeline_figure(timeline: Timeline) -> Figure:
    """The figure of a timeline."""
    assert timeline.picture is not None
    return draw(timeline.picture(COLUMNS))


@styled
def draw(picture: Picture) -> Figure:
    """The figure of a picture."""
    slots, inner = _layout(picture)
    lines = caption(picture)
    height = inner + 0.8 + 0.14 * len(lines)
    figure = new_figure(reports_name(picture.inputs), WIDTH, height, "\n".join(lines))
    axes = figure.subplots()
    unit, scale = time_unit_for([picture.end_ns - picture.start_ns])
    axes.set(xlim=(picture.start_ns / scale, picture.end_ns / scale), ylim=(inner, 0))
    axes.set_xlabel(f"time ({unit})")
    _draw_bands(axes, picture, slots, scale)
    communication = {id(slot.row): slot for slot in slots if slot.band.kind == "communication"}
    joins = []  # from each collective's end on one rank to its end on the next
    for (upper, _, end), (lower, _, later) in chain.from_iterable(map(pairwise, picture.joins)):
        first, second = (communication[id(picture.rows[row])] for row in (upper, lower))
        joins.append([(end / scale, first.bottom), (later / scale, second.top)])
    faint = LineCollection(joins, colors=INK, linewidths=0.5, alpha=0.45, zorder=0.5)
    axes.add_collection(faint, autolim=False)
    below = {slot.row.owner: slot.bottom + 0.03 for slot in slots}
    for mark in picture.path:
        start = max(mark.start_ns or 0, picture.start_ns)
        end = min(mark.end_ns or 0, picture.end_ns)
        if mark.owner in below and start < end:
            axes.hlines(below[mark.owner], start / scale, end / scale, **PATH)
    _draw_labels(axes, picture, slots, inner)
    drawn = {slot.band.kind for slot in slots}
    kinds = STACKED if picture.stacked else KINDS
    handles: list[Artist] = [*samples([kind for name, kind in kinds.items() if name in drawn])]
    if picture.path:
        handles.append(Line2D([], [], **PATH, label="critical path"))
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=7)
    return figure


def _layout(picture: Picture) -> tuple[list[_Slot], float]:
    """The slots of all bands, and the height of the axes; stacked bands share a slot.

    What no row has gets no space, but for compute.
    """
    shown = {band.kind for row in picture.rows for band in row.bands if band.events}
    shown |= {"compute", "idle"}
    stack = max(STACK * min(1.0, MOST_STACKS / max(len(picture.rows), 1)), LEAST_STACK)
    slots: list[_Slot] = []
    top = 0.04
    for row in picture.rows:
        if picture.stacked:
            slots += [_Slot(row, band, top, stack) for band in row.bands]
            top += stack * 1.15
            continue
        for band in row.bands:
            if band.kind in shown:
                depth = band.boxes.depth if band.boxes and band.kind != "nvtx" else 0
                slots.append(_Slot(row, band, top, max(HEIGHTS[band.kind], EVENT * depth)))
                top = slots[-1].bottom + SPACE
        top += BETWEEN
    return slots, max(top, 0.8)


def _draw_bands(axes: Axes, picture: Picture, slots: Sequence[_Slot], scale: int) -> None:
    """The share of each column as a height; stacked bands one on the other."""
    edges = np.linspace(picture.start_ns, picture.end_ns, picture.columns + 1) / scale
    below: dict[int, NDArray[np.float64]] = {}
    for slot in slots:
        base = below.get(id(slot.row)) if picture.stacked else None
        base = np.zeros(picture.columns) if base is None else base
        heights = slot.band.shares
        if slot.band.kind != "idle":  # visible wherever there is anything
            heights = np.where(heights > 0, np.maximum(heights, FLOOR), 0.0)
        below[id(slot.row)] = np.minimum(base + heights, 1.0)
        low, high = (slot.bottom - part * slot.height for part in (base, below[id(slot.row)]))
        area = StepPatch(
            high,
            edges,
            baseline=low,  # type: ignore[arg-type]
            fill=True,
            color=KINDS[slot.band.kind].color,
            linewidth=0,
            antialiased=False,
            rasterized=len(slots) > MANY_BANDS,
        )
        area.set_in_layout(False)
        axes.add_artist(area)  # add_patch would look at each step
        if slot.band.boxes is not None:
            _draw_boxes(axes, picture, slot, slot.band.boxes, scale)


def _draw_boxes(axes: Axes, picture: Picture, slot: _Slot, boxes: Boxes, scale: int) -> None:
    """Single events as rectangles with their names where these fit."""
    window, step = picture.end_ns - picture.start_ns, slot.height / boxes.depth
    lengths = boxes.ends - boxes.starts
    shown = np.column_stack([boxes.starts, lengths - window / COLUMNS]) / scale
    color = KINDS[slot.band.kind].color
    for level in range(boxes.depth):
        rows = boxes.levels == level
        axes.broken_barh(shown[rows], (slot.top + level * step, 0.96 * step), color=color, lw=0)
    letters = (LETTERS * lengths / window).astype(np.int64)
    for row in np.flatnonzero(letters >= 3).tolist():
        middle = (boxes.starts[row] + lengths[row] / 2) / scale
        axes.text(
            middle,
            slot.top + (boxes.levels[row] + 0.5) * step,
            _fitted(boxes.names[row], int(letters[row])),
            fontsize=SMALL - 1,
            color="white",
            ha="center",
            va="center_baseline",
            clip_on=True,
        )


def _draw_labels(axes: Axes, picture: Picture, slots: Sequence[_Slot], inner: float) -> None:
    """Whose row it is."""
    middles, names = [], []
    for row in picture.rows[:: math.ceil(0.1 * len(picture.rows) / inner)]:
        own = [slot for slot in slots if slot.row is row]
        middles.append((own[0].top + own[-1].bottom) / 2)
        names.append(row.owner.label if picture.stacked else row.owner.label.replace(" · ", "\n"))
    size = SMALL - 1 if picture.stacked else SMALL
    axes.set_yticks(middles, names, fontsize=size, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=False)


def caption(picture: Picture) -> list[str]:
    """What a reader must know: the window, what a column holds, how the clocks were joined."""
    window = picture.end_ns - picture.start_ns
    bands = [band for row in picture.rows for band in row.bands]
    events = format_count(sum(band.events for band in bands))
    lines = [f"Window {format_time(window)}, {events} events; clock: {picture.clock}."]
    if any(band.shares.any() for band in bands if band.kind != "idle"):
        lines.append(
            f"A column is {format_time(window / picture.columns)}; its height is the share of that"
            f" time in which anything ran (at least {100 * FLOOR:.0f} % where it did)."
        )
    if picture.joins:
        lines.append(f"Lines join the ends of the {len(picture.joins)} longest collectives.")
    return lines


def _fitted(name: str, space: int) -> str:
    """The name in that many characters; nothing where so little would be left that it says none."""
    text = short_name(function_name(name) if len(name) > space else name, space)
    return text if "…" not in text or space >= LEAST_LETTERS else ""
