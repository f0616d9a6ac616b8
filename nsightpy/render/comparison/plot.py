"""The picture of a comparison: from before to after part by part, and the spread of the runs.

Takes the result and returns a matplotlib Figure. Slower and faster differ by colour and by hatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from nsightpy.errors import NsightpyError
from nsightpy.output import sentences
from nsightpy.output.headings import cause_words
from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    LARGE,
    NORMAL,
    QUIET,
    SMALL,
    distinct_names,
    drawing,
    inch_axes,
    nothing_to_draw,
)
from nsightpy.render.text.shortening import shorten
from nsightpy.results.comparison import ComparedQuantity, ComparedSide, Comparison
from nsightpy.units import TIME_UNITS, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, LEFT, GAP, RIGHT = 12.6, 3.15, 0.95, 0.25
SPREAD_WIDTH, TOP, BOTTOM, ROW = 2.6, 1.18, 0.55, 0.3
LEAST_ROWS = 7
MOST_KERNELS = 5
POINTS_A_ROW = 5
# Bars of a picture in which nothing but the two sides is to be seen.
NO_CHANGE = 2
NAME_WIDTH = 40
# A kernel that has less of the largest change than this is not named.
LEAST_SHARE, LEAST_REST = 0.02, 0.08
ON_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
BEFORE, AFTER = "#7f7f7f", "#0072b2"
SLOWER, FASTER = "#d55e00", "#009e73"
FASTER_HATCH = "////"


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of the waterfall, in ns. kind: side, part, or inner (a cause inside the part above)."""

    name: str
    start: int
    end: int
    kind: str

    @property
    def delta(self) -> int:
        return self.end - self.start


def comparison_figure(result: Comparison, *, title: str | None = None) -> Figure:
    """Draw a result of `nsightpy.compare`. Raises NsightpyError where nothing was compared."""
    from matplotlib.figure import Figure

    bars = waterfall(result)
    if not bars:
        raise NsightpyError(nothing_to_draw(result, f"{result.unit}s of both sides"))
    rows = max(len(bars), LEAST_ROWS) * ROW
    height = TOP + rows + BOTTOM
    panel = WIDTH - LEFT - GAP - SPREAD_WIDTH - RIGHT
    with drawing():
        figure = Figure(figsize=(WIDTH, height))
        _titles(figure, result, title, height)
        _waterfall(inch_axes(figure, LEFT, BOTTOM, panel, rows), result, bars)
        left = LEFT + panel + GAP
        _spread(inch_axes(figure, left, BOTTOM, SPREAD_WIDTH, rows), result)
    return figure


def waterfall(result: Comparison) -> list[Bar]:
    """Before, each part that changed with what contributes most inside compute, and after."""
    step = result.step
    if not step.before_ns or not step.after_ns:
        return []
    bars = [Bar("before", 0, step.before_ns, "side")]
    reached = step.before_ns
    least = LEAST_SHARE * max(
        [sentences.limit_ns(result), *(abs(part.delta_ns) for part in result.parts)]
    )
    for part in result.parts:
        if abs(part.delta_ns) > least:
            bars += [
                Bar(cause_words(part.name), reached, reached + part.delta_ns, "part"),
                *_inside(result, part, reached),
            ]
            reached += part.delta_ns
    if result.parts and abs(step.after_ns - reached) > least:
        bars.append(Bar("other parts", reached, step.after_ns, "part"))
    if not result.parts:
        for quantity in _largest(sentences.contributors(result), 2 * MOST_KERNELS):
            bars.append(Bar(quantity.name, reached, reached + quantity.delta_ns, "part"))
            reached += quantity.delta_ns
        if reached != step.after_ns:
            bars.append(Bar("all others", reached, step.after_ns, "part"))
    return [*bars, Bar("after", 0, step.after_ns, "side")]


def _inside(result: Comparison, part: ComparedQuantity, start: int) -> list[Bar]:
    """The kernels or collectives that a part is made of, and what else adds up to it."""
    kernels = [
        contributor
        for contributor in sentences.contributors(result)
        if contributor.section == "kernel"
    ]
    rows = {"compute": kernels, "exposed communication": result.collectives}
    bars: list[Bar] = []
    reached = start
    for quantity in _largest(rows.get(part.name, ()), MOST_KERNELS):
        bars.append(Bar(quantity.name, reached, reached + quantity.delta_ns, "inner"))
        reached += quantity.delta_ns
    end = start + part.delta_ns
    longest = max((abs(bar.delta) for bar in bars), default=0)
    if bars and abs(end - reached) > LEAST_REST * longest:
        bars.append(Bar("others, and what overlaps", reached, end, "inner"))
    return bars


def _largest(rows: Sequence[ComparedQuantity], most: int) -> list[ComparedQuantity]:
    ordered = sorted(rows, key=lambda quantity: -abs(quantity.delta_ns))[:most]
    least = LEAST_SHARE * max((abs(quantity.delta_ns) for quantity in ordered), default=0)
    return [quantity for quantity in ordered if abs(quantity.delta_ns) > least]


def _titles(figure: Figure, result: Comparison, title: str | None, height: float) -> None:
    gate = sentences.gate_line(result)
    different = "; ".join(sentences.differences(result))
    sides = " against ".join(
        f"{sentences.side_name(side)} ({sentences.side_size(side, result.unit)})"
        for side in (result.before, result.after)
    )
    second = sentences.confidence(result) + (f"; gate {gate}" if gate else "")
    third = sides + (f"; differs: {different}" if different else "")
    left = 0.25 / WIDTH
    texts = (
        (title or sentences.answer(result), LARGE, INK),
        (second, SMALL, INK),
        (third, SMALL, QUIET),
    )
    for line, (text, size, color) in enumerate(texts):
        figure.text(
            left,
            1 - (0.3 + 0.21 * line) / height,
            shorten(text, 185 if line else 120),
            size=size,
            color=color,
            weight="bold" if line == 0 else "normal",
        )


def _waterfall(axes: Axes, result: Comparison, bars: Sequence[Bar]) -> None:
    """Rows from the top down; the axis is cut where all bars leave it empty."""
    unit, decimals = sentences.unit_of_parts(result)
    scale = TIME_UNITS[unit]
    low, high = _limits(bars, sentences.limit_ns(result))
    for y, bar in enumerate(bars):
        _bar(axes, y, bar, low / scale, scale)
        text = sentences.fixed(bar.delta, unit, decimals, sign=bar.kind != "side")
        if bar.kind == "side":
            text += f" {unit}"
        place = max(bar.start, bar.end) / scale
        axes.annotate(
            text,
            (place, y),
            (4, 0),
            textcoords="offset points",
            va="center",
            size=SMALL if bar.kind != "inner" else SMALL - 1,
            color=INK if bar.kind != "inner" else QUIET,
            bbox=ON_WHITE,
        )
    _connect(axes, bars, scale)
    if len(bars) == NO_CHANGE:
        least = format_time(LEAST_SHARE * sentences.limit_ns(result))
        text = f"no part changed by more than {least}"
        axes.text(0.02, NO_CHANGE, text, size=SMALL, color=QUIET, va="center")
    axes.set_xlim(low / scale, high / scale)
    axes.set_ylim(max(len(bars), LEAST_ROWS) - 0.4, -0.6)
    axes.set_yticks(range(len(bars)), distinct_names([bar.name for bar in bars], NAME_WIDTH))
    for bar, label in zip(bars, axes.get_yticklabels(), strict=True):
        label.set_fontsize(SMALL - 1 if bar.kind == "inner" else SMALL)
        label.set_color(QUIET if bar.kind == "inner" else INK)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.set_xlabel(
        f"{sentences.unit_name(result)} ({unit}){', axis does not begin at 0' if low else ''}"
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color=FAINT, linewidth=0.4)
    axes.set_axisbelow(True)


def _limits(bars: Sequence[Bar], narrowest: float) -> tuple[float, float]:
    """What of the axis to show: all of it, or where something changes; so many ns at least."""
    edges = [edge for bar in bars for edge in (bar.start, bar.end) if edge]
    least, most = min(edges), max(edges)
    margin = 0.16
    if (most - least) * 3 > most or len(bars) == NO_CHANGE:
        return 0.0, most * (1 + margin)
    width = max(most - least, narrowest, 1)
    return max(least - 0.25 * width, 0.0), most + 0.25 * width


def _bar(axes: Axes, y: int, bar: Bar, low: float, scale: int) -> None:
    if bar.kind == "side":
        color = BEFORE if y == 0 else AFTER
        axes.barh(y, bar.end / scale - low, 0.66, low, color=color, linewidth=0)
        if low:  # what is left out of the bar is marked in it
            for place in (0.014, 0.022):
                ends = [place, place + 0.006]
                line = axes.plot(ends, [y + 0.45, y - 0.45], color="white", linewidth=1.6)[0]
                line.set_transform(axes.get_yaxis_transform())
        return
    faster = bar.delta < 0
    axes.barh(
        y,
        abs(bar.delta) / scale,
        0.66 if bar.kind == "part" else 0.3,
        min(bar.start, bar.end) / scale,
        color=FASTER if faster else SLOWER,
        alpha=1.0 if bar.kind == "part" else 0.55,
        hatch=FASTER_HATCH if faster else "",
        edgecolor="white",
        linewidth=0,
    )


def _connect(axes: Axes, bars: Sequence[Bar], scale: int) -> None:
    """A thin line from the end of a part to where the next one begins."""
    outer = [(y, bar) for y, bar in enumerate(bars) if bar.kind != "inner"]
    for (y, bar), (below, _) in pairwise(outer):
        axes.plot([bar.end / scale] * 2, [y + 0.33, below - 0.33], color=QUIET, linewidth=0.6)


def _spread(axes: Axes, result: Comparison) -> None:
    """The runs (or their steps) of both sides as points, the medians, and the interval."""
    unit, _ = sentences.unit_of_parts(result)
    scale = TIME_UNITS[unit]
    steps = result.spread == "steps"
    step = result.step
    sides = (
        (result.before, step.before_runs, step.before_ns, BEFORE, "o"),
        (result.after, step.after_runs, step.after_ns, AFTER, "s"),
    )
    for x, (side, runs, middle, color, marker) in enumerate(sides):
        values = [value / scale for value in (_samples(side, result.unit) if steps else runs)]
        first = (min(len(values), POINTS_A_ROW) - 1) / 2
        places = [x + 0.07 * (place % POINTS_A_ROW - first) for place in range(len(values))]
        size = 11 if steps else 26
        axes.scatter(places, values, size, color=color, marker=marker, alpha=0.8, linewidths=0)
        axes.plot([x - 0.3, x + 0.3], [(middle or 0) / scale] * 2, color=INK, linewidth=1.6)
    _interval(axes, step, scale)
    before, limit = (step.before_ns or 0) / scale, sentences.limit_ns(result) / scale
    axes.axhspan(before - limit, before + limit, color=FAINT, alpha=0.4, linewidth=0, zorder=0)
    axes.set_xlim(-0.5, 2.1)
    axes.margins(y=0.12)
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")
    axes.set_xticks([0, 1], ["before", "after"], fontsize=NORMAL)
    axes.tick_params(axis="x", length=0)
    axes.tick_params(axis="y", labelsize=SMALL)
    each = f"every {result.unit}" if steps else f"{sentences.unit_name(result)} of each run"
    axes.set_ylabel(f"{each} ({unit})", fontsize=SMALL)
    points = f"{result.unit}s" if steps else "runs"
    key = f"points: {points}; lines: medians;\nband: limits" + (
        "" if step.ratio_low is None else "; bar: interval"
    )
    axes.set_title(key, loc="left", fontsize=SMALL - 0.5, color=QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.4)
    axes.set_axisbelow(True)


def _interval(axes: Axes, step: ComparedQuantity, scale: int) -> None:
    """The interval of the change as a bar beside the runs after it, with the change."""
    if step.ratio_low is None or step.ratio_high is None or not step.before_ns:
        return
    low, high = (step.before_ns * ratio / scale for ratio in (step.ratio_low, step.ratio_high))
    axes.plot([1.42, 1.42], [low, high], color=INK, linewidth=1.2, solid_capstyle="butt")
    for end in (low, high):
        axes.plot([1.37, 1.47], [end, end], color=INK, linewidth=1.2)
    text = sentences.percent_change(step.ratio)
    middle = (low + high) / 2
    axes.text(1.52, middle, text, size=SMALL, va="center", color=INK, bbox=ON_WHITE)


def _samples(side: ComparedSide, unit: str) -> list[int]:
    """The durations of the units of a side's runs, as far as they are kept."""
    units = (run.units[unit] for run in side.runs if unit in run.units)
    return [row[0] for summary in units for row in summary.samples or ((summary.duration_ns,),)]
