"""The picture of `nsightpy breakdown`: a budget bar per device, why it was idle, iterations.

Returns a matplotlib Figure. Parts differ by hatch as well as by colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from nsightpy.errors import NsightpyError
from nsightpy.render.plots.drawing import (
    QUIET,
    SMALL,
    drawing,
    headed_figure,
    inch_axes,
    nothing_to_draw,
    plain_axes,
    reports_name,
)
from nsightpy.render.plots.iterations_plot import device_bars, mean_panel
from nsightpy.render.plots.utilization_plot import utilization_figure
from nsightpy.render.timeline.plot import COLORS
from nsightpy.results import Table, Value, ns_of
from nsightpy.units import format_time, time_unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record: TypeAlias = dict[str, Value]
Part: TypeAlias = tuple[str, str, str]

MOST = 128
WIDTH, LEFT, GAP, RIGHT = 12.0, 0.95, 0.35, 0.2
BAR, TOP, BOTTOM = 0.27, 1.0, 0.55
# All bars together are no higher than this unless they would be thinner than the least.
TALLEST, LEAST_BAR = 9.0, 0.11
ITERATIONS, SPACE = 2.2, 0.85
# Space for the words beside a bar, as a multiple of the longest one.
WIDEST = 1.45
VISIBLE = 0.003
BUDGET: tuple[Part, ...] = (
    ("compute", COLORS["compute"], ""),
    ("communication alone", COLORS["communication"], "////"),
    ("copies alone", COLORS["copy"], "\\\\\\\\"),
    ("communication beside copies", "#f0b48a", "xxxx"),
    ("idle", "#e4e4e4", ""),
)
# Idle time by cause: the commonest have colours of their own, the others share the last.
CAUSES: tuple[Part, ...] = (
    ("launch-bound", "#e69f00", ""),
    ("host-gap", "#cc79a7", "////"),
    ("sync-drain", "#8e7cc3", "\\\\\\\\"),
    ("first-launch", "#56b4e9", ""),
    ("allocation", "#f0e442", "xxxx"),
    ("unified-memory", "#009e73", "////"),
    ("queued", "#bbbbbb", ""),
    ("other", "#e4e4e4", ""),
)


def breakdown_figure(table: Table, iterations: Table | None = None) -> Figure:
    """Draw the table of `nsightpy.breakdown`, and below it that of `nsightpy.iterations`, if given.

    Shares over time are drawn as heat maps. Raises NsightpyError when there are no devices.
    """
    if "busy_share" in table.columns:
        return utilization_figure(table)
    if not table.rows:
        raise NsightpyError(nothing_to_draw(table, "devices"))
    records, left_out = _shown(table.records())
    bars = max(len(records), 2) * _bar(len(records))
    below = SPACE + ITERATIONS if iterations is not None and iterations.rows else 0.0
    height = TOP + BOTTOM + bars + below
    panel = (WIDTH - LEFT - GAP - RIGHT) / 2
    with drawing():
        figure = headed_figure(WIDTH, height, LEFT, _title(table, left_out))
        budget = inch_axes(figure, LEFT, BOTTOM + below, panel, bars)
        _panel(
            budget, records, [_budget(record) for record in records], BUDGET, "where the time went"
        )
        size = min(SMALL, 72 * _bar(len(records)) * 0.9)
        budget.set_yticks(
            range(len(records)), [_place(record) for record in records], fontsize=size
        )
        causes = inch_axes(figure, LEFT + panel + GAP, BOTTOM + below, panel, bars)
        _panel(
            causes, records, [_causes(record) for record in records], CAUSES, "idle time by cause"
        )
        causes.set_yticks([])
        if iterations is not None and iterations.rows:
            axes = inch_axes(figure, LEFT, BOTTOM, WIDTH - LEFT - RIGHT, ITERATIONS)
            devices = device_bars(iterations)
            unit, scale = time_unit_for([float(max(r["duration"].max() for r in devices.values()))])
            mean_panel(axes, devices, unit, scale)
            axes.set_xlabel("iteration", fontsize=SMALL)
    return figure


def _bar(devices: int) -> float:
    """The height of a device's bar in inches: thinner where there are many."""
    return min(BAR, max(TALLEST / devices, LEAST_BAR))


def _shown(records: list[Record]) -> tuple[list[Record], int]:
    """All devices, or those with the largest idle share when there are many."""
    if len(records) <= MOST:
        return records, 0
    ranked = sorted(
        records, key=lambda record: -ns_of(record, "idle_ns") / max(ns_of(record, "window_ns"), 1)
    )
    kept = [id(record) for record in ranked[:MOST]]
    return [record for record in records if id(record) in kept], len(records) - MOST


def _budget(record: Record) -> list[int] | None:
    alone = ns_of(record, "exposed_communication_ns")
    parts = [ns_of(record, "compute_ns"), alone, ns_of(record, "copy_only_ns")]
    return [*parts, ns_of(record, "busy_ns") - sum(parts), ns_of(record, "idle_ns")]


def _causes(record: Record) -> list[int] | None:
    """Idle time by cause; None where no cause is known."""
    named = [f"{name.replace('-', '_')}_ns" for name, *_ in CAUSES[:-1]]
    if record[named[0]] is None:
        return None
    parts = [ns_of(record, name) for name in named]
    return [*parts, ns_of(record, "idle_ns") - sum(parts)]


def _panel(
    axes: Axes,
    records: Sequence[Record],
    values: Sequence[list[int] | None],
    parts: Sequence[Part],
    title: str,
) -> None:
    """Stacked horizontal bars on one scale of time, a legend of the parts that occur above."""
    longest = max((sum(row) for row in values if row is not None), default=0)
    unit, scale = time_unit_for([longest])
    occurring = [
        place
        for place in range(len(parts))
        if any(row is not None and row[place] for row in values)
    ]
    for y, row in enumerate(values):
        start = 0.0
        for place in occurring if row is not None else ():
            width = (row or [])[place] / scale
            _, color, hatch = parts[place]
            edge = "white" if hatch else color
            axes.barh(y, width, 0.78, start, color=color, hatch=hatch, edgecolor=edge, linewidth=0)
            start += width
        said = _said(records[y], row, parts)
        size = min(SMALL, 72 * _bar(len(records)) * 0.9)
        axes.text(start + 0.012 * longest / scale, y, said, va="center", fontsize=size, color=QUIET)
    axes.set_ylim(max(len(records), 2) - 0.4, -0.6)
    axes.set_xlim(0, WIDEST * longest / scale if longest else 1)
    if not longest:
        axes.set_axis_off()
    axes.set_xlabel(f"{title} ({unit})", fontsize=SMALL)
    axes.tick_params(axis="y", length=0)
    plain_axes(axes, "x")
    visible = [
        parts[place]
        for place in occurring
        if any(row is not None and row[place] >= VISIBLE * longest for row in values)
    ]
    _legend(axes, visible, max(len(records), 2) * _bar(len(records)))


def _legend(axes: Axes, parts: Sequence[Part], inches: float) -> None:
    """A legend of the parts above an axes of that height."""
    from matplotlib.patches import Patch

    if not parts:
        return
    handles = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white" if hatch else QUIET, label=label)
        for label, color, hatch in parts
    ]
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1 + 0.06 / inches),
        borderaxespad=0,
        ncols=3,
        fontsize=SMALL,
        frameon=False,
        handlelength=1.4,
        columnspacing=1.0,
    )


def _said(record: Record, row: list[int] | None, parts: Sequence[Part]) -> str:
    """What stands beside a bar."""
    if row is None:
        return "causes are not known: the notes say why"
    window = ns_of(record, "window_ns")
    if parts is BUDGET:
        return f"{_percent(row[0], window)} compute, {_percent(row[-1], window)} idle"
    largest = max(range(len(row)), key=lambda place: row[place])
    if not row[largest]:
        return "none"
    return f"{format_time(sum(row))}, {_percent(row[largest], sum(row))} {parts[largest][0]}"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 9.5 or not share else f"{share:.1f} %"


def _place(record: Record) -> str:
    rank, device = record["rank"], record["device"]
    return f"device {device}" if rank is None else f"rank {rank}, dev {device}"


def _title(table: Table, left_out: int) -> str:
    rest = f"; the {MOST} most idle devices, {left_out} left out" if left_out else ""
    return f"{reports_name(table.inputs, 60) or 'breakdown'}{rest}"
