"""nvtx-metrics: GPU metrics sampled while what each NVTX range launched was running."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.metric_samples import MetricSummary, summaries
from nsightpy.analysis.nvtx.projection import (
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
)
from nsightpy.analysis.nvtx.ranges import BY, folded
from nsightpy.analysis.time_budget import places_of
from nsightpy.commands.nvtx import launching_calls
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.request import Common, Request
from nsightpy.query.sampled_metrics import gpus_of
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import UNKNOWN, Field, Table, fields_in

FIELDS = (
    *fields_in("text", "range", "domain", "metric"),
    Field("samples"),
    Field("mean", "number", 2),
    Field("minimum", "number"),
    Field("maximum", "number"),
)
WHOLE = ("(whole capture)", "", "")
RANGES = 20
NO_SAMPLES = not_recorded(
    "The capture holds no GPU metrics.", "--gpu-metrics-devices=all", "samples them"
)

Key = tuple[str, str, str]


@command_function
def nvtx_metrics(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Table:
    """GPU metrics over the projected intervals of each NVTX range, all its instances together.

    The `top` ranges (20) by projected time, after the whole capture. `samples` says how many
    samples a figure rests on; a range shorter than the sampling interval may have none.
    """
    request = Request.of(reports, **common)
    spent: dict[Key, int] = {}
    for part in request.map(partial(_projected, scope=request.scope)).values:
        for key, projected_ns in part.items():
            spent[key] = spent.get(key, 0) + projected_ns
    longest = sorted(spent, key=lambda key: (key != WHOLE, -spent[key], key))
    shown = longest[: (top or RANGES) + 1]
    rows: dict[tuple[Key, str], list[MetricSummary]] = {}
    # which ranges are shown is known of all reports only
    work = partial(_metrics, keys=shown, scope=request.scope)
    for measured in request.map(work).values if shown else ():
        for key, metric in measured:
            rows.setdefault((key, metric.metric), []).append(metric)
    ordered = sorted(rows, key=lambda pair: (shown.index(pair[0]), pair[1]))
    table = Table(
        "nvtx-metrics",
        FIELDS,
        tuple(_row(pair, rows[pair]) for pair in ordered),
        total_rows=UNKNOWN if len(longest) > len(shown) else len(rows),
    )
    return request.finish(table, *([] if rows else [NO_SAMPLES]))


def _row(pair: tuple[Key, str], parts: list[MetricSummary]) -> tuple[str | int | float | None, ...]:
    (name, domain, _), metric = pair
    samples = sum(part.samples for part in parts)
    return (
        name,
        domain,
        metric,
        samples,
        sum(part.total for part in parts) / samples if samples else None,
        min(part.minimum for part in parts),
        max(part.maximum for part in parts),
    )


def _projected(report: SystemReport, *, scope: Scope) -> dict[Key, int]:
    """The projected time of the whole capture (0) and each range, in ns; none without samples."""
    if not report.frame("gpu_metrics").rows:
        return {}
    every = _windows(report, scope)
    return {WHOLE: 0} | {
        key: sum(w.total for w in windows.values()) for key, windows in every.items()
    }


def _metrics(
    report: SystemReport, *, keys: Sequence[Key], scope: Scope
) -> list[tuple[Key, MetricSummary]]:
    """The metrics of the whole capture and of the ranges that are asked for."""
    samples = report.frame("gpu_metrics")
    if not samples.rows:
        return []
    time = samples.ints("time_ns")
    start, end = scope.bounds(report)
    low = int(time.min()) if start is None else start
    high = int(time.max()) + 1 if end is None else end
    seen = dict.fromkeys(np.unique(samples.ints("gpu_id")).tolist(), Spans.of(low, high))
    windows = {WHOLE: seen, **_windows(report, scope)}
    return [
        (key, metric)
        for key in keys
        if key in windows
        for metric in summaries(samples, windows[key])
    ]


def _windows(report: SystemReport, scope: Scope) -> dict[Key, dict[int, Spans]]:
    """Per range, and GPU of the host, the union of the projected intervals of its instances."""
    gpus = gpus_of(report)
    frames = [scope.narrow(report, report.frame(name, OPERATION_COLUMNS)) for name in GPU_FRAMES]
    operations = Frame.concatenate(frames)
    ranges = scope.narrow(report, report.frame("nvtx_ranges", RANGE_COLUMNS))
    groups = group_by(Frame({**ranges, "name": folded(ranges.labels("name"))}), BY)
    by_range: dict[Key, dict[int, Spans]] = {}
    for pid, device in places_of(operations):
        launched_here = operations.at(pid=pid, device=device)
        calls = launching_calls(report, launched_here)
        if calls is None:
            return {}
        projected = project(ranges, launched(launched_here, calls))
        for code in np.unique(groups.codes[projected.found]).tolist():
            rows = projected.found & (groups.codes == code)
            window = union(projected.start[rows], projected.end[rows])
            name, domain, style = map(str, groups.keys[code])
            gpu = gpus.get((pid, device), device)
            windows = by_range.setdefault((name, domain, style), {})
            windows[gpu] = windows[gpu] | window if gpu in windows else window
    return by_range
