"""The picture of a comparison: from before to after part by part, and the spread of the runs.

Takes the result and returns a matplotlib Figure. Slower and faster differ by colour and by hatch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightpy.output import sentences
from nsightpy.output.cells import cause_words, cell
from nsightpy.render.plots.charts import draw_spread
from nsightpy.render.plots.drawing import FAINT, INK, QUIET, new_figure, nothing_to_draw, styled
from nsightpy.render.text.layout import distinct_names, shorten
from nsightpy.results import Field
from nsightpy.results.comparison import Comparison
from nsightpy.units import format_time, time_unit_for

WIDTH, ROW, LEAST_ROWS = 12.0, 0.28, 7
MOST_NAMED, NAME_WIDTH = 10, 40
LEAST_SHARE = 0.02  # of the limit or the largest change: what is less is no bar
BEFORE, AFTER = "#7f7f7f", "#0072b2"
SLOWER, FASTER = "#d55e00", "#009e73"
FASTER_HATCH = "////"
_CHANGE = Field("delta_ns", "time")


class Bar(NamedTuple):
    """A row of the waterfall, in ns."""

    name: str
    start: int
    end: int

    @property
    def delta(self) -> int:
        return self.end - self.start


@styled
def comparison_figure(result: Comparison) -> Figure:
    """Draw a result of `nsightpy.compare`. Raises NsightpyError where nothing was compared."""
    bars = waterfall(result)
    if not bars:
        raise nothing_to_draw(result, f"{result.unit}s of both sides")
    heading = shorten(sentences.answer(result), 110)
    height = max(len(bars), LEAST_ROWS) * ROW + 1.4
    gate = f"; gate {sentences.gate_line(result.gate)}" if result.gate else ""
    different = "; ".join(sentences.differences(result))
    sides = " against ".join(
        f"{sentences.side_name(side)} ({sentences.side_size(side, result.unit)})"
        for side in (result.before, result.after)
    )
    footer = (
        f"{sentences.confidence(result)}{gate}",
        f"{sides}; differs: {different}" if different else sides,
    )
    figure = new_figure(heading, WIDTH, height, "\n".join(shorten(line, 185) for line in footer))
    parts, spread = figure.subplots(1, 2, width_ratios=(3, 1))
    _waterfall(parts, result, bars)
    _spread(spread, result)
    return figure


def waterfall(result: Comparison) -> list[Bar]:
    """Before, each part that changed (without parts: what contributes most), and after."""
    step = result.step
    if not step.before_ns or not step.after_ns:
        return []
    rows = result.parts or sentences.contributors(result)[:MOST_NAMED]
    least = LEAST_SHARE * max([result.limit_ns, *(abs(row.delta_ns) for row in rows)])
    bars, reached = [Bar("before", 0, step.before_ns)], step.before_ns
    for row in rows:
        if abs(row.delta_ns) > least:
            bars.append(Bar(cause_words(row.name), reached, reached + row.delta_ns))
            reached += row.delta_ns
    if abs(step.after_ns - reached) > least:
        bars.append(Bar("all others", reached, step.after_ns))
    return [*bars, Bar("after", 0, step.after_ns)]


def _waterfall(axes: Axes, result: Comparison, bars: Sequence[Bar]) -> None:
    """Rows from the top down; the axis is cut where all bars leave it empty."""
    inner = bars[1:-1]
    unit, scale = time_unit_for([result.step.before_ns, result.step.after_ns])
    starts, ends = (np.asarray([bar[end] for bar in bars]) / scale for end in (1, 2))
    drawn = axes.barh(
        range(len(bars)),
        abs(ends - starts),
        0.66,
        np.minimum(starts, ends),
        color=[BEFORE, *(FASTER if bar.delta < 0 else SLOWER for bar in inner), AFTER],
        hatch=["", *(FASTER_HATCH if bar.delta < 0 else "" for bar in inner), ""],
        edgecolor="white",
        linewidth=0,
    )
    changes = [cell(_CHANGE, bar.delta) for bar in inner]
    sides = [format_time(bar.end) for bar in (bars[0], bars[-1])]
    axes.bar_label(drawn, [sides[0], *changes, sides[1]], padding=4)
    rows = np.arange(len(bars) - 1)
    axes.vlines(ends[:-1], rows, rows + 1, colors=QUIET, linewidth=0.6, zorder=0)
    least, most = min(starts[1:-1], default=0.0), ends.max()
    least = min(least, *ends)
    margin = 0.25 * max(most - least, result.limit_ns / scale)
    low = least - margin if inner and (most - least) * 3 < most else 0.0
    axes.set(xlim=(max(low, 0.0), most + margin), ylim=(max(len(bars), LEAST_ROWS) - 0.4, -0.6))
    names = distinct_names([bar.name for bar in bars], NAME_WIDTH)
    axes.set_yticks(range(len(bars)), names, color=INK)
    axes.tick_params(axis="y", length=0)
    cut = ", axis does not begin at 0" if low > 0 else ""
    axes.set_xlabel(f"{sentences.unit_name(result)} ({unit}){cut}")
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)


def _spread(axes: Axes, result: Comparison) -> None:
    """The runs (or their steps) of both sides, the medians, the interval, and the limits."""
    steps, step = result.spread == "steps", result.step
    unit, scale = time_unit_for([step.before_ns, step.after_ns])
    groups = [np.asarray(runs) / scale for runs in (step.before_runs, step.after_runs)]
    if steps:
        units = [
            [run.units[result.unit] for run in side.runs if result.unit in run.units]
            for side in (result.before, result.after)
        ]
        samples = [[unit.samples or ((unit.duration_ns,),) for unit in side] for side in units]
        groups = [np.asarray([s[0] for each in side for s in each]) / scale for side in samples]
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
