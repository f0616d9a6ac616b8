"""A picture of a timeline for papers and chat, as a matplotlib Figure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nsightpy.names import function_name
from nsightpy.output.escape import printable
from nsightpy.results.tracks import Band, Boxes, Picture, Row, Timeline
from nsightpy.units import format_count, format_time, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, DPI = 12.0, 150
LEFT, RIGHT, TOP, BOTTOM = 1.15, 0.95, 0.42, 0.56
FLOOR = 0.15  # least height, as a share of the band, where anything happened at all
COLORS = {
    "compute": "#0072b2",
    "graph": "#56b4e9",
    "communication": "#d55e00",
    "copy": "#009e73",
    "idle": "#b8b8b8",
    "nvtx": "#8e7cc3",
}
WORDS = {
    "compute": "compute",
    "graph": "CUDA graphs traced whole",
    "communication": "communication",
    "copy": "copies",
    "idle": "idle",
    "nvtx": "code ranges",
}
HEIGHTS = {
    "nvtx": 0.17,
    "compute": 0.30,
    "graph": 0.20,
    "communication": 0.30,
    "copy": 0.17,
    "idle": 0.09,
}
_TEXT: dict[str, Any] = {"parse_math": False, "family": "DejaVu Sans"}
_CHARACTER = 0.062  # inches of a character of 6.5 points
# A name cut to fewer letters tells nothing.
LEAST_LETTERS = 9
_CAPTION = 0.14  # inches of a line
_MANY_POINTS = 5_000


def columns_of(width: float = WIDTH) -> int:
    """The columns that a picture of that width (inches) has space for: one a pixel."""
    return max(round((width - LEFT - RIGHT) * DPI), 100)


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a band goes: inches from the top of the axes."""

    row: Row
    band: Band
    top: float
    height: float


def timeline_figure(timeline: Timeline) -> Figure:
    """The figure of a timeline."""
    assert timeline.picture is not None
    return draw(timeline.picture(columns_of()))


def draw(picture: Picture, *, width: float = WIDTH) -> Figure:
    """The figure of a picture; width in inches."""
    from matplotlib.figure import Figure

    slots, inner = _layout(picture)
    bottom = BOTTOM + _CAPTION * len(caption(picture))
    height = inner + TOP + bottom
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
    box = (LEFT / width, bottom / height, (width - LEFT - RIGHT) / width, inner / height)
    axes = figure.add_axes(box)
    unit, scale = time_unit_for([picture.end_ns - picture.start_ns])
    axes.set_xlim(picture.start_ns / scale, picture.end_ns / scale)
    axes.set_ylim(inner, 0)
    _draw_bands(axes, picture, slots, scale)
    _draw_joins(axes, picture, slots, scale)
    _draw_path(axes, picture, slots, scale)
    _draw_labels(axes, picture, slots)
    axes.set_yticks([])
    axes.set_xlabel(f"time ({unit.replace('us', 'µs')})", fontsize=8, labelpad=2)
    axes.tick_params(labelsize=7.5, length=3, pad=2)
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    _draw_title(figure, picture, height)
    _draw_caption(figure, picture, height)
    return figure


def _layout(picture: Picture) -> tuple[list[_Slot], float]:
    """The slots of all bands, and the height of the axes; stacked bands share a slot.

    What no row has gets no space, but for compute.
    """
    shown = {band.kind for row in picture.rows for band in row.bands if band.events}
    shown |= {"compute", "idle"}
    slots: list[_Slot] = []
    top = 0.04
    stack = 0.19 if len(picture.rows) <= 64 else max(0.19 * 64 / len(picture.rows), 0.05)
    for row in picture.rows:
        if picture.stacked:
            slots += [_Slot(row, band, top, stack) for band in row.bands]
            top += stack * 1.15
            continue
        for band in row.bands:
            if band.kind not in shown:
                continue
            height = HEIGHTS[band.kind]
            if band.boxes is not None and band.kind != "nvtx":
                height = max(height, 0.15 * band.boxes.depth)
            slots.append(_Slot(row, band, top, height))
            top += height + 0.025
        top += 0.13
    return slots, max(top, 0.8)


def _draw_bands(axes: Axes, picture: Picture, slots: list[_Slot], scale: int) -> None:
    from matplotlib.collections import PolyCollection

    shapes: dict[str, list[NDArray[np.float64]]] = {}
    floors: dict[int, NDArray[np.float64]] = {}
    for slot in slots:
        below = floors.get(id(slot.row)) if picture.stacked else None
        outline = _steps(picture, slot, below, scale)
        shapes.setdefault(slot.band.kind, []).extend(outline)
        if picture.stacked:
            base = np.zeros(picture.columns) if below is None else below
            floors[id(slot.row)] = base + _heights(slot.band, base)
        if slot.band.boxes is not None:
            _draw_boxes(axes, slot, slot.band.boxes, scale)
    points = sum(len(shape) for outlines in shapes.values() for shape in outlines)
    for kind, outlines in shapes.items():
        axes.add_collection(
            PolyCollection(
                outlines,
                facecolors=COLORS[kind],
                linewidths=0,
                antialiaseds=False,
                rasterized=points > _MANY_POINTS,
            ),
            autolim=False,
        )


def _heights(band: Band, base: NDArray[np.float64]) -> NDArray[np.float64]:
    """The shares as drawn: visible wherever there is anything, and never beyond the slot."""
    drawn = np.where(band.shares > 0, np.maximum(band.shares, FLOOR), 0.0)
    if band.kind == "idle":
        drawn = band.shares
    return np.minimum(drawn, 1.0 - base)


def _steps(
    picture: Picture, slot: _Slot, below: NDArray[np.float64] | None, scale: int
) -> list[NDArray[np.float64]]:
    """Outlines of a band's filled steps, one for each run of columns with anything in them."""
    base = np.zeros(picture.columns) if below is None else below
    heights = _heights(slot.band, base)
    filled = np.concatenate([[0], heights > 0, [0]]).astype(np.int8)
    begins, ends = np.flatnonzero(np.diff(filled) == 1), np.flatnonzero(np.diff(filled) == -1)
    edges = np.linspace(picture.start_ns / scale, picture.end_ns / scale, picture.columns + 1)
    bottom = slot.top + slot.height
    outlines = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        low = bottom - base[begin:end] * slot.height
        high = low - heights[begin:end] * slot.height
        changes = np.flatnonzero((np.diff(low) != 0) | (np.diff(high) != 0)) + 1
        first = np.concatenate([[0], changes])
        x = np.repeat(edges[begin + np.concatenate([first, [end - begin]])], 2)[1:-1]
        up = np.column_stack([x, np.repeat(high[first], 2)])
        down = np.column_stack([x, np.repeat(low[first], 2)])
        outlines.append(np.concatenate([up, down[::-1]]))
    return outlines


def _draw_boxes(axes: Axes, slot: _Slot, boxes: Boxes, scale: int) -> None:
    """Single events as rectangles, at least a hair wide, with their names where these fit."""
    from matplotlib.collections import PolyCollection

    low, high = axes.get_xlim()
    per_inch = (high - low) / (_width(axes.get_figure()) - LEFT - RIGHT)
    left, right = boxes.starts / scale, boxes.ends / scale
    step = slot.height / boxes.depth
    top = slot.top + boxes.levels * step
    seam = per_inch / DPI
    corners = np.stack(
        [
            np.column_stack([x, y])
            for x, y in (
                (left, top),
                (right - seam, top),
                (right - seam, top + step * 0.96),
                (left, top + step * 0.96),
            )
        ],
        axis=1,
    )
    axes.add_collection(
        PolyCollection(list(corners), facecolors=COLORS[slot.band.kind], linewidths=0),
        autolim=False,
    )
    space = ((right - left) / per_inch / _CHARACTER).astype(np.int64)
    for row in np.flatnonzero(space >= 3).tolist():
        axes.text(
            (left[row] + right[row]) / 2,
            top[row] + step * 0.5,
            _fitted(boxes.names[row], int(space[row])),
            fontsize=6.5,
            color="white",
            ha="center",
            va="center_baseline",
            clip_on=True,
            **_TEXT,
        )


def _draw_joins(axes: Axes, picture: Picture, slots: list[_Slot], scale: int) -> None:
    """Lines from each collective's end on one rank to its end on the next."""
    from matplotlib.collections import LineCollection

    place = {id(slot.row): slot for slot in slots if slot.band.kind == "communication"}
    lines = []
    for join in picture.joins:
        for (upper, _, end), (lower, _, later) in zip(join.parts, join.parts[1:], strict=False):
            first, second = place[id(picture.rows[upper])], place[id(picture.rows[lower])]
            lines.append([(end / scale, first.top + first.height), (later / scale, second.top)])
    if lines:
        axes.add_collection(
            LineCollection(lines, colors="#333333", linewidths=0.5, alpha=0.45, zorder=0.5),
            autolim=False,
        )


def _draw_path(axes: Axes, picture: Picture, slots: list[_Slot], scale: int) -> None:
    """The critical path as a line below the rows over whose work it runs."""
    from matplotlib.collections import LineCollection

    below = {slot.row.place: slot.top + slot.height + 0.03 for slot in slots}
    lines = [
        [(start / scale, below[mark.place]), (end / scale, below[mark.place])]
        for mark in picture.path
        if mark.place in below
        and (start := max(mark.start_ns or 0, picture.start_ns))
        < (end := min(mark.end_ns or 0, picture.end_ns))
    ]
    axes.add_collection(LineCollection(lines, colors="black", linewidths=1.6), autolim=False)


def _draw_labels(axes: Axes, picture: Picture, slots: list[_Slot]) -> None:
    """Whose row it is on the left, how busy it was on the right."""
    share = axes.get_yaxis_transform()
    size = 8.0 if not picture.stacked else 6.5
    tops = [slots[0].top, *(slot.top for slot in slots if slot.row is picture.rows[-1])]
    pitch = (tops[1] - tops[0]) / max(len(picture.rows) - 1, 1) or 1.0
    for row in picture.rows[:: math.ceil(0.1 / pitch)]:
        row_slots = [slot for slot in slots if slot.row is row]
        middle = (row_slots[0].top + row_slots[-1].top + row_slots[-1].height) / 2
        busy = f"{100 * row.busy_share:.0f} %"
        if not picture.stacked:
            busy = f"{busy} busy\n{100 * row.exposed_share:.0f} % exposed"
        name = row.place.label if picture.stacked else row.place.label.replace(" · ", "\n")
        axes.text(-0.008, middle, name, fontsize=size, ha="right", va="center",
                  transform=share, **_TEXT)  # fmt: skip
        axes.text(1.006, middle, busy, fontsize=size - 1, ha="left", va="center", color="#444444",
                  transform=share, **_TEXT)  # fmt: skip
    if picture.stacked:
        axes.text(1.006, -0.02, "busy", fontsize=size - 1, ha="left", va="bottom",
                  color="#444444", transform=share, **_TEXT)  # fmt: skip


def _draw_title(figure: Figure, picture: Picture, height: float) -> None:
    from matplotlib.patches import Patch

    names = [Path(name).name for name in picture.inputs]
    title = names[0] if len(names) == 1 else f"{len(names)} reports, {names[0]} to {names[-1]}"
    figure.text(LEFT / _width(figure), 1 - 0.16 / height, _known(printable(title)), fontsize=9.5,
                weight="bold", ha="left", va="center", **_TEXT)  # fmt: skip
    kinds = [
        kind for kind in COLORS
        if any(band.kind == kind and (band.events or band.shares.any() or band.boxes is not None)
               for row in picture.rows for band in row.bands)
    ]  # fmt: skip
    words = {**WORDS, "communication": "communication not hidden", "copy": "copies alone"}
    shown = words if picture.stacked else WORDS
    figure.legend(
        handles=[Patch(color=COLORS[kind], label=shown[kind]) for kind in kinds],
        loc="upper right",
        bbox_to_anchor=(1 - RIGHT / _width(figure), 1 - 0.02 / height),
        ncols=len(kinds),
        frameon=False,
        fontsize=7.5,
        handlelength=1.0,
        columnspacing=1.2,
        borderpad=0.2,
    )


def _draw_caption(figure: Figure, picture: Picture, height: float) -> None:
    lines = caption(picture)
    top = 0.08 + _CAPTION * len(lines)
    figure.text(LEFT / _width(figure), top / height, "\n".join(map(_known, lines)), fontsize=7,
                color="#444444", ha="left", va="top", linespacing=1.35, **_TEXT)  # fmt: skip


def caption(picture: Picture) -> list[str]:
    """What a reader must know: the window, what a column holds, how the clocks were joined."""
    window = picture.end_ns - picture.start_ns
    bands = [band for row in picture.rows for band in row.bands]
    events = format_count(sum(band.events for band in bands))
    peak = format_count(max((band.peak for band in bands), default=0))
    many = any(band.shares.any() for band in bands if band.kind != "idle")
    text = f"Window {format_time(window)}, {events} events; clock: {picture.clock}."
    if many:
        text += (
            f"\nA column is {format_time(window / picture.columns)} and holds up to {peak} events"
            " of one band; its height is the share of that time in which any of them ran"
            f" (at least {100 * FLOOR:.0f} % where one did)."
        )
    if picture.joins:
        few = len(picture.joins) < picture.collectives
        which = f"the {len(picture.joins)} longest of {picture.collectives:,}" if few else "all"
        text += f"\nLines join the ends of each collective of several ranks ({which})."
    if picture.path:
        text += f"\nThe black line is the critical path: {picture.path[0].text}."
    if picture.ranges_left_out:
        text += f"\n{picture.ranges_left_out:,} code ranges are not drawn for lack of space."
    return text.splitlines()


def _fitted(name: str, space: int) -> str:
    """The name in that many characters; nothing where so little would be left that it says none."""
    if name.startswith("[CUDA "):
        name = name.removeprefix("[CUDA ").removeprefix("memcpy ").removesuffix("]")
    text = printable(function_name(name)) if len(name) > space else printable(name)
    text = text.rpartition("::")[2] or text if len(text) > space else text
    if len(text) <= space:
        return _known(text)
    return _known(f"{text[: space - 1]}…") if space >= LEAST_LETTERS else ""


def _width(figure: Any) -> float:
    """Inches."""
    return float(figure.get_size_inches()[0])


def _known(text: str) -> str:
    """The text with every character that the font lacks as a box, so that nothing is warned of."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont("DejaVu Sans"))
    return "".join(c if c == "\n" or font.get_char_index(ord(c)) else "□" for c in text)
