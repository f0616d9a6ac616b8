"""The picture of a comparison: from before to after part by part, and the spread of the runs.

Takes the result and returns a matplotlib Figure. Slower and faster differ by colour and by hatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightpy.errors import NsightpyError
from nsightpy.output import sentences
from nsightpy.output.headings import cause_words
from nsightpy.render.plots.drawing import (
    FAINT,
    INK,
    QUIET,
    SMALL,
    Look,
    new_figure,
    nothing_to_draw,
    styled,
)
from nsightpy.render.plots.spread import draw_spread
from nsightpy.render.text.shortening import distinct_names, shorten
from nsightpy.results.comparison import ComparedQuantity, ComparedSide, Comparison
from nsightpy.units import TIME_UNITS, format_time

WIDTH, ROW, LEAST_ROWS = 12.0, 0.28, 7
MOST_KERNELS = 5
# Bars of a picture in which nothing but the two sides is to be seen.
NO_CHANGE = 2
NAME_WIDTH = 40
# A kernel that has less of the largest change than this is not named.
LEAST_SHARE, LEAST_REST = 0.02, 0.08
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


@styled
def comparison_figure(result: Comparison, *, title: str | None = None) -> Figure:
    """Draw a result of `nsightpy.compare`. Raises NsightpyError where nothing was compared."""
    bars = waterfall(result)
    if not bars:
        raise NsightpyError(nothing_to_draw(result, f"{result.unit}s of both sides"))
    heading = shorten(title or sentences.answer(result), 110)
    height = max(len(bars), LEAST_ROWS) * ROW + 1.4
    figure = new_figure(heading, WIDTH, height, _footer(result))
    parts, spread = figure.subplots(1, 2, width_ratios=(3, 1))
    _waterfall(parts, result, bars)
    _spread(spread, result)
    return figure


def waterfall(result: Comparison) -> list[Bar]:
    """Before, each part that changed with what contributes most inside compute, and after."""
    step = result.step
    if not step.before_ns or not step.after_ns:
        return []
    bars = [Bar("before", 0, step.before_ns, "side")]
    reached = step.before_ns
    least = LEAST_SHARE * max([result.limit_ns, *(abs(part.delta_ns) for part in result.parts)])
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


def _footer(result: Comparison) -> str:
    """How sure the answer is, the gate, what was compared, and what differs."""
    gate = f"; gate {sentences.gate_line(result.gate)}" if result.gate else ""
    different = "; ".join(sentences.differences(result))
    sides = " against ".join(
        f"{sentences.side_name(side)} ({sentences.side_size(side, result.unit)})"
        for side in (result.before, result.after)
    )
    first = sentences.confidence(result) + gate
    second = sides + (f"; differs: {different}" if different else "")
    return f"{shorten(first, 185)}\n{shorten(second, 185)}"


def _waterfall(axes: Axes, result: Comparison, bars: Sequence[Bar]) -> None:
    """Rows from the top down; the axis is cut where all bars leave it empty."""
    unit, decimals = sentences.unit_of_parts(result)
    scale = TIME_UNITS[unit]
    low, high = _limits(bars, result.limit_ns)
    for y, bar in enumerate(bars):
        text = sentences.fixed(bar.delta, unit, decimals, sign=bar.kind != "side")
        text += f" {unit}" if bar.kind == "side" else ""
        axes.barh(y, (bar.end - bar.start) / scale, left=bar.start / scale, **_look(y, bar))
        inner = bar.kind == "inner"
        axes.annotate(
            text,
            (max(bar.start, bar.end) / scale, y),
            (4, 0),
            textcoords="offset points",
            va="center",
            size=SMALL - inner,
            color=QUIET if inner else INK,
        )
    outer = [(y, bar) for y, bar in enumerate(bars) if bar.kind != "inner"]
    for (y, bar), (below, _) in pairwise(outer):
        axes.plot([bar.end / scale] * 2, [y + 0.33, below - 0.33], color=QUIET, linewidth=0.6)
    if len(bars) == NO_CHANGE:
        least = format_time(LEAST_SHARE * result.limit_ns)
        text = f"no part changed by more than {least}"
        axes.text(0.02, NO_CHANGE, text, color=QUIET, va="center")
    axes.set(xlim=(low / scale, high / scale), ylim=(max(len(bars), LEAST_ROWS) - 0.4, -0.6))
    axes.set_yticks(range(len(bars)), distinct_names([bar.name for bar in bars], NAME_WIDTH))
    for bar, label in zip(bars, axes.get_yticklabels(), strict=True):
        label.set_color(QUIET if bar.kind == "inner" else INK)
        label.set_fontsize(SMALL - (bar.kind == "inner"))
    axes.tick_params(axis="y", length=0)
    cut = ", axis does not begin at 0" if low else ""
    axes.set_xlabel(f"{sentences.unit_name(result)} ({unit}){cut}")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)


def _limits(bars: Sequence[Bar], narrowest: float) -> tuple[float, float]:
    """What of the axis to show: all of it, or where something changes; so many ns at least."""
    edges = [edge for bar in bars for edge in (bar.start, bar.end) if edge]
    least, most = min(edges), max(edges)
    margin = 0.16
    if (most - least) * 3 > most or len(bars) == NO_CHANGE:
        return 0.0, most * (1 + margin)
    width = max(most - least, narrowest, 1)
    return max(least - 0.25 * width, 0.0), most + 0.25 * width


def _look(y: int, bar: Bar) -> Look:
    """How a bar is drawn: sides by side, parts and what is in them by direction."""
    if bar.kind == "side":
        return {"height": 0.66, "color": AFTER if y else BEFORE, "linewidth": 0}
    faster, part = bar.delta < 0, bar.kind == "part"
    return {
        "height": 0.66 if part else 0.3,
        "color": FASTER if faster else SLOWER,
        "alpha": 1.0 if part else 0.55,
        "hatch": FASTER_HATCH if faster else "",
        "edgecolor": "white",
        "linewidth": 0,
    }


def _spread(axes: Axes, result: Comparison) -> None:
    """The runs (or their steps) of both sides, the medians, the interval, and the limits."""
    unit, _ = sentences.unit_of_parts(result)
    scale = TIME_UNITS[unit]
    steps, step = result.spread == "steps", result.step
    groups = [
        np.asarray(_samples(side, result.unit) if steps else runs, dtype=np.float64) / scale
        for side, runs in ((result.before, step.before_runs), (result.after, step.after_runs))
    ]
    middles = [(middle or 0) / scale for middle in (step.before_ns, step.after_ns)]
    drawn = draw_spread(axes, groups, (BEFORE, AFTER), middles)
    before, limit = middles[0], result.limit_ns / scale
    axes.axhspan(before - limit, before + limit, color=FAINT, alpha=0.4, linewidth=0, zorder=0)
    ticks = ["before", "after"]
    if step.ratio_low is not None and step.ratio_high is not None and step.before_ns:
        ends = np.asarray([step.ratio_low, step.ratio_high]) * before
        axes.errorbar([2], ends.mean(), np.ptp(ends) / 2, color=INK, linewidth=1.2, capsize=4)
        ticks.append(f"interval\n{sentences.percent_change(step.ratio)}")
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlim(-0.6, len(ticks) - 0.4)
    axes.tick_params(axis="x", length=0)
    each = f"every {result.unit}" if steps else f"{sentences.unit_name(result)} of each run"
    axes.set_ylabel(f"{each} ({unit})")
    points = f"{result.unit}s" if steps else "runs"
    axes.set_title(f"{points} as {drawn};\nlines: medians; band: limits", color=QUIET)


def _samples(side: ComparedSide, unit: str) -> list[int]:
    """The durations of the units of a side's runs, as far as they are kept."""
    units = (run.units[unit] for run in side.runs if unit in run.units)
    return [row[0] for summary in units for row in summary.samples or ((summary.duration_ns,),)]
