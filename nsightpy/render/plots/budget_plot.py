"""The picture of `nsightpy breakdown`: a budget bar per device, why it was idle, iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    INK,
    QUIET,
    SMALL,
    Kind,
    device_names,
    new_figure,
    nothing_to_draw,
    reports_name,
    styled,
)
from nsightpy.render.plots.iterations_plot import device_bars, draw_means
from nsightpy.render.plots.shares import COMMUNICATION, COMPUTE, COPIES, IDLE, draw_shares, samples
from nsightpy.render.plots.utilization_plot import utilization_figure
from nsightpy.results import Table, Value, ns_of
from nsightpy.units import format_time, time_unit_for

Record: TypeAlias = dict[str, Value]

MOST = 128
WIDTH, BAR, TALLEST, LEAST_BAR, ITERATIONS = 10.0, 0.24, 9.0, 0.11, 2.0
BUDGET = (
    COMPUTE,
    COMMUNICATION,
    COPIES,
    Kind("communication beside copies", "#f0b48a", "xxxx"),
    IDLE,
)
# Idle time by cause: the commonest have colours of their own, the others share the last.
CAUSES = (
    Kind("launch-bound", "#e69f00"),
    Kind("host-gap", "#cc79a7", "////"),
    Kind("sync-drain", "#8e7cc3", "\\\\\\\\"),
    Kind("first-launch", "#56b4e9"),
    Kind("allocation", "#f0e442", "xxxx"),
    Kind("unified-memory", "#009e73", "////"),
    Kind("queued", "#bbbbbb"),
    Kind("other", "#e4e4e4"),
)


@styled
def breakdown_figure(table: Table, iterations: Table | None = None) -> Figure:
    """Draw the table of `nsightpy.breakdown`, and below it that of `nsightpy.iterations`, if given.

    Shares over time are drawn as heat maps. Raises NsightpyError when there are no devices.
    """
    if "busy_share" in table.columns:
        return utilization_figure(table)
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "devices"))
    records = _most_idle(table.records())
    left_out = len(table) - len(records)
    rest = f"; the {MOST} most idle devices, {left_out} left out" if left_out else ""
    bar = min(BAR, max(TALLEST / len(records), LEAST_BAR))
    heights: list[float] = [max(len(records), 2) * bar]
    rows: Any = [["budget", "causes"]]
    if iterations is not None and iterations.rows:
        heights, rows = [*heights, ITERATIONS], [*rows, ["iterations", "iterations"]]
    figure = new_figure(f"{reports_name(table.inputs)}{rest}", WIDTH, sum(heights) + 1.5)
    panels = figure.subplot_mosaic(rows, height_ratios=heights)
    size = min(SMALL, 65 * bar)
    _panel(panels["budget"], records, [_budget(r) for r in records], BUDGET, size)
    _panel(panels["causes"], records, [_causes(r) for r in records], CAUSES, size)
    names = device_names([(record["rank"], record["device"]) for record in records])
    panels["budget"].set_yticks(range(len(records)), names, fontsize=size, color=INK)
    if iterations is not None and iterations.rows:
        draw_means(panels["iterations"], device_bars(iterations))
        panels["iterations"].set_xlabel("iteration")
    return figure


def _most_idle(records: list[Record]) -> list[Record]:
    """All devices, or those with the largest idle share when there are many."""
    shares = [ns_of(record, "idle_ns") / max(ns_of(record, "window_ns"), 1) for record in records]
    kept = sorted(sorted(range(len(records)), key=lambda row: -shares[row])[:MOST])
    return [records[row] for row in kept]


def _budget(record: Record) -> list[int]:
    alone = ns_of(record, "exposed_communication_ns")
    parts = [ns_of(record, "compute_ns"), alone, ns_of(record, "copy_only_ns")]
    return [*parts, ns_of(record, "busy_ns") - sum(parts), ns_of(record, "idle_ns")]


def _causes(record: Record) -> list[int] | None:
    """Idle time by cause; None where no cause is known."""
    named = [f"{kind.name.replace('-', '_')}_ns" for kind in CAUSES[:-1]]
    if record[named[0]] is None:
        return None
    parts = [ns_of(record, name) for name in named]
    return [*parts, ns_of(record, "idle_ns") - sum(parts)]


def _panel(
    axes: Axes,
    records: Sequence[Record],
    values: Sequence[list[int] | None],
    kinds: Sequence[Kind],
    size: float,
) -> None:
    """Horizontal bars on one scale of time, what matters of each beside it, a legend above."""
    times = np.asarray([row or [0] * len(kinds) for row in values], dtype=np.float64)
    unit, scale = time_unit_for(times.sum(axis=1).tolist())
    occurring = np.flatnonzero(times.any(axis=0)).tolist()
    shown = [kinds[column] for column in occurring]
    bars = draw_shares(axes, shown, times[:, occurring] / scale, across=True)
    texts = [_said(*pair, kinds) for pair in zip(records, values, strict=True)]
    if bars is None:
        axes.text(0, 0, texts[0], va="center", color=QUIET)
        axes.set_axis_off()
        return
    axes.bar_label(bars, texts, padding=4, fontsize=size, color=QUIET)
    axes.set_ylim(max(len(records), 2) - 0.4, -0.6)
    axes.set_yticks([])
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    title = "where the time went" if kinds is BUDGET else "idle time by cause"
    axes.set_xlabel(f"{title} ({unit})")
    axes.legend(handles=samples(shown), loc="lower left", bbox_to_anchor=(0, 1), ncols=3)


def _said(record: Record, row: list[int] | None, kinds: Sequence[Kind]) -> str:
    """What stands beside a bar."""
    if row is None:
        return "causes are not known: the notes say why"
    if kinds is BUDGET:
        window = ns_of(record, "window_ns")
        return f"{_percent(row[0], window)} compute, {_percent(row[-1], window)} idle"
    largest = max(row)
    if not largest:
        return "none"
    name = kinds[row.index(largest)].name
    return f"{format_time(sum(row))}, {_percent(largest, sum(row))} {name}"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 9.5 or not share else f"{share:.1f} %"
