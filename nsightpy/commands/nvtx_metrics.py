"""nvtx-metrics: GPU metrics sampled while what each NVTX range launched was running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
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


@dataclass(frozen=True, slots=True)
class _RangeMetrics:
    """The projected time of a range in one report, and its metrics there."""

    key: Key
    projected_ns: int
    metrics: tuple[MetricSummary, ...]


@command_function
def nvtx_metrics(reports: Paths, *, top: int | None = None, **common: Unpack[Common]) -> Table:
    """GPU metrics over the projected intervals of each NVTX range, all its instances together.

    The `top` ranges (20) by projected time, after the whole capture. `samples` says how many
    samples a figure rests on; a range shorter than the sampling interval may have none.
    """
    request = Request.of(reports, **common)
    parts = request.map(partial(_metrics, top=top or RANGES, scope=request.scope)).values
    measured = [nvtx_range for part, _ in parts for nvtx_range in part]
    cut = any(more for _, more in parts)
    rows: dict[tuple[Key, str], list[MetricSummary]] = {}
    times: dict[Key, int] = {}
    for nvtx_range in measured:
        times[nvtx_range.key] = times.get(nvtx_range.key, 0) + nvtx_range.projected_ns
        for metric in nvtx_range.metrics:
            rows.setdefault((nvtx_range.key, metric.metric), []).append(metric)
    shown = sorted(times, key=lambda key: (key != WHOLE, -times[key], key))[: (top or RANGES) + 1]
    ordered = sorted(
        (pair for pair in rows if pair[0] in shown),
        key=lambda pair: (shown.index(pair[0]), pair[1]),
    )
    table = Table(
        "nvtx-metrics",
        FIELDS,
        tuple(_row(pair, rows[pair]) for pair in ordered),
        total_rows=UNKNOWN if cut else len(rows),
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


def _metrics(report: SystemReport, *, top: int, scope: Scope) -> tuple[list[_RangeMetrics], bool]:
    """The whole capture and the ranges with most projected time, and whether there are more."""
    samples = report.frame("gpu_metrics")
    if not samples.rows:
        return [], False
    gpus = gpus_of(report)
    frames = [scope.narrow(report, report.frame(name, OPERATION_COLUMNS)) for name in GPU_FRAMES]
    operations = Frame.concatenate(frames)
    ranges = scope.narrow(report, report.frame("nvtx_ranges", RANGE_COLUMNS))
    time = samples.ints("time_ns")
    start, end = scope.bounds(report)
    low = int(time.min()) if start is None else start
    high = int(time.max()) + 1 if end is None else end
    everything = Spans.of(low, high)
    seen = dict.fromkeys(np.unique(samples.ints("gpu_id")).tolist(), everything)
    measured = [_RangeMetrics(WHOLE, 0, tuple(summaries(samples, seen)))]
    every = _windows(report, ranges, operations, gpus)
    for key, windows in islice(every.items(), top):
        spent = sum(window.total for window in windows.values())
        measured.append(_RangeMetrics(key, spent, tuple(summaries(samples, windows))))
    return measured, len(every) > top


def _windows(
    report: SystemReport,
    ranges: Frame,
    operations: Frame,
    gpus: Mapping[tuple[int, int], int],
) -> dict[Key, dict[int, Spans]]:
    """Per range, and GPU of the host, the union of the projected intervals of its instances.

    The range with most projected time is first.
    """
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
    spent = {key: sum(w.total for w in windows.values()) for key, windows in by_range.items()}
    return {key: by_range[key] for key in sorted(by_range, key=lambda key: (-spent[key], key))}
