"""GPU metrics sampled while what each NVTX range launched was running."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.nvtx.projection import OPERATION_COLUMNS, RANGE_COLUMNS, project
from nsightpy.analysis.nvtx.ranges import BY, folded
from nsightpy.analysis.tally import Tally, merge, tally
from nsightpy.analysis.time_budget import places_of
from nsightpy.frames import GPU_FRAMES, Frame
from nsightpy.query import Parts, Question, Scope, SystemReport
from nsightpy.query.device_time import launching
from nsightpy.query.sampled_metrics import NO_SAMPLES, gpus_of
from nsightpy.results import UNKNOWN, Field, Row, Table

FIELDS = (
    Field("range", "name", importance=1),
    Field("domain", "text", importance=7),
    Field("metric", "text", importance=2),
    Field("samples", importance=6),
    Field("mean", "number", 2, importance=3),
    Field("minimum", "number", importance=4),
    Field("maximum", "number", importance=5),
)
WHOLE = ("(whole capture)", "", "")
RANGES = 20

Key = tuple[str, str, str]


def metrics_of_ranges(top: int | None) -> Question[Table]:
    """The metrics of the whole capture and of the `top` ranges by projected time."""

    def longest(parts: Parts[dict[Key, int]]) -> Table | Question[Table]:
        spent: dict[Key, int] = {}
        for part in parts.values:
            for key, projected_ns in part.items():
                spent[key] = spent.get(key, 0) + projected_ns
        if not spent:
            return Table("nvtx", FIELDS, (), notes=(NO_SAMPLES,))
        order = sorted(spent, key=lambda key: (key != WHOLE, -spent[key], key))
        shown = order if top == 0 else order[: (top or RANGES) + 1]
        return Question(partial(_metrics, keys=shown), partial(_table, keys=shown, of=len(order)))

    return Question(_projected, longest)


def _table(parts: Parts[dict[Key, Tally]], *, keys: Sequence[Key], of: int) -> Table:
    rows: list[Row] = []
    for key in keys:
        seen = merge([part[key] for part in parts.values if key in part]).statistics()
        figures = seen.rows("instances", "total", "minimum", "maximum")
        for metric, samples, total, *extremes in sorted(figures, key=lambda row: str(row[0])):
            rows.append((*key[:2], metric, samples, total / samples, *extremes))
    return Table("nvtx", FIELDS, tuple(rows), total_rows=UNKNOWN if of > len(keys) else len(rows))


def _projected(report: SystemReport, scope: Scope) -> dict[Key, int]:
    """The projected time of the whole capture (0) and each range, in ns; none without samples."""
    if not report.frame("gpu_metrics").rows:
        return {}
    every = _windows(report, scope)
    return {WHOLE: 0} | {
        key: sum(w.total for w in windows.values()) for key, windows in every.items()
    }


def _metrics(report: SystemReport, scope: Scope, *, keys: Sequence[Key]) -> dict[Key, Tally]:
    """The samples of each metric in the whole capture and in the ranges that are asked for."""
    samples = report.frame("gpu_metrics")
    if not samples.rows:
        return {}
    time, gpu_id, value = (samples.ints(name) for name in ("time_ns", "gpu_id", "value"))
    start, end = scope.bounds(report)
    low = int(time.min()) if start is None else start
    high = int(time.max()) + 1 if end is None else end
    seen = dict.fromkeys(np.unique(gpu_id).tolist(), Spans.of(low, high))
    windows = {WHOLE: seen, **_windows(report, scope)}
    metrics = samples.labels("metric").merged()
    tallies = {}
    for key in filter(windows.__contains__, keys):
        inside = np.zeros(samples.rows, dtype=np.bool_)
        for gpu, window in windows[key].items():
            inside |= (gpu_id == gpu) & window.holds(time)
        names = [(name,) for name in metrics.values]
        tallies[key] = tally(metrics.codes[inside], value[inside], names)
    return tallies


def _windows(report: SystemReport, scope: Scope) -> dict[Key, dict[int, Spans]]:
    """Per range, and GPU of the host, the union of the projected intervals of its instances."""
    gpus = gpus_of(report)
    frames = [scope.read(report, name, OPERATION_COLUMNS) for name in GPU_FRAMES]
    operations = Frame.concatenate(frames)
    ranges = scope.read(report, "nvtx_ranges", RANGE_COLUMNS)
    groups = group_by(Frame({**ranges, "name": folded(ranges.labels("name"))}), BY)
    by_range: dict[Key, dict[int, Spans]] = {}
    for pid, device in places_of(operations):
        launched_here = operations.at(pid=pid, device=device)
        recorded = launching(report, launched_here)
        if recorded is None:
            return {}
        projected = project(ranges, recorded[1])
        for code in np.unique(groups.codes[projected.found]).tolist():
            rows = projected.found & (groups.codes == code)
            window = union(projected.start[rows], projected.end[rows])
            name, domain, style = map(str, groups.keys[code])
            gpu = gpus.get((pid, device), device)
            windows = by_range.setdefault((name, domain, style), {})
            windows[gpu] = windows[gpu] | window if gpu in windows else window
    return by_range
