"""nvtx: code ranges by host time and by the GPU time of what they launched; metrics meanwhile."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, TypeAlias

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import NOTHING, Spans, union
from nsightpy.analysis.nvtx.membership import NO_THREAD, as_launched_by, inside, waiting_threads
from nsightpy.analysis.nvtx.nesting import SEPARATOR, depth_first
from nsightpy.analysis.nvtx.projection import (
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
    projections,
)
from nsightpy.analysis.nvtx.ranges import BY, RangeTallies, folded, merged, range_tallies
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.tally import Key, Tally, merge, tally
from nsightpy.frames import GPU_FRAMES, Frame, is_constant
from nsightpy.query import Option, Parts, Question, Scope, SystemReport
from nsightpy.query.capture_advice import not_recorded
from nsightpy.query.command import command
from nsightpy.query.device_time import NO_CALLS, launching
from nsightpy.query.sampled_metrics import NO_SAMPLES, gpus_of
from nsightpy.results import UNKNOWN, Field, Row, Said, Table, Value, View
from nsightpy.results.keys import RANGE, row_keys
from nsightpy.units import format_time

FIELDS = (
    Field("range", "name", importance=1),
    Field("domain", "text", importance=9),
    Field("style", "text", own=True, importance=10),
    Field("instances", heading="count", importance=2),
    Field("total_range_ns", "time", heading="host time", importance=5),
    Field("total_projected_ns", "time", heading="GPU span", importance=3),
    Field("projected_med_ns", "time", 1, heading="median span", importance=7),
    Field("gpu_ops", heading="GPU ops", importance=8),
    Field("share_of_busy", "share", 4, heading="of GPU %", importance=4),
    Field("attributed_ns", "time", heading="other threads", importance=6),
    Field("attributed_ops", heading="their ops"),
)
METRIC_FIELDS = (
    Field("range", "name", importance=1),
    Field("domain", "text", importance=7),
    Field("metric", "text", importance=2),
    Field("samples", importance=6),
    Field("mean", "number", 2, importance=3),
    Field("minimum", "number", importance=4),
    Field("maximum", "number", importance=5),
)
NOT_RECORDED = not_recorded("No CUDA API calls were recorded: what a range launched is not known.")

WHOLE = ("(whole capture)", "", "")
RANGES = 20  # that --metrics shows
FOLDED = "A row with * is of ranges that differ in numbers only: --unfold lists them."
# The figures of FIELDS by (range, domain, style).
Rows: TypeAlias = dict[Key, tuple[Value, ...]]
RangeKey: TypeAlias = tuple[str, str, str]


@command(
    layouts=(FIELDS, METRIC_FIELDS),
    keys=row_keys(RANGE, "range", "domain"),
    for_people={"fold": True},
)
def nvtx(
    *,
    tree: Annotated[bool, Option("Ranges inside ranges, outer ones first.")] = False,
    fold: Annotated[
        bool | None,
        Option(
            "Ranges that differ in numbers only as one row: layer *.  [for people]",
            typed="--fold/--unfold",
        ),
    ] = None,
    metrics: Annotated[
        bool, Option("GPU metrics that nsys sampled while what ranges launched was running.")
    ] = False,
    top: Annotated[
        int | None,
        Option("First N rows; of --metrics N ranges (20); 0 is all of them.", "N", least=0),
    ] = None,
) -> Question[Table]:
    """Most projected GPU time first. An operation belongs to a range when its launch call lies
    inside it on the same thread; an instance's projected interval is [first start, last end] of its
    operations, as in `nsys stats` nvtx_gpu_proj_sum. share_of_busy: for how long any operation of
    the range ran, its own or attributed, of the time in which any operation ran. Instances that
    frameworks number (`, op_id = 12`, `, seq = 7`, sizes) are counted together.

    attributed: what other threads launched while the range's own thread waited, a framework's
    backward pass for instance, and for how long any of it ran; of the other columns it is in
    share_of_busy alone. With --metrics the whole capture comes first, then the ranges with most
    projected time; samples says on how many a figure rests.
    """
    if metrics:
        return Question(_projected, partial(_longest, top=top))

    def ranked(parts: Parts[RangeTallies]) -> Table:
        tallied = merged(parts.values)
        rows = _rows(tallied)

        def order(key: Key) -> tuple[Value, ...]:
            _, host, gpu, *_, other, _ = (int(value or 0) for value in rows[key])
            return (0 if tree else -gpu - other, -host, *key)

        # in a tree those inside one parent by host time
        ordered = depth_first(rows, order) if tree else sorted(rows, key=order)
        shown = tuple(
            (str(name).replace(SEPARATOR, "/"), *key, *rows[name, *key]) for name, *key in ordered
        )
        view = View(tree="range") if tree else None
        notes = _notes(tallied) if rows else ()
        if fold and any("*" in str(row[0]) for row in shown):
            notes = (*notes, FOLDED)
        return Table("nvtx", FIELDS, shown, notes=notes, view=view).first(top)

    return Question(partial(_tallies, tree=tree, fold=bool(fold)), ranked)


def _tallies(report: SystemReport, scope: Scope, *, tree: bool, fold: bool) -> RangeTallies:
    """The ranges of a report, by the calls in them, and by those that their threads waited for."""
    frames = [scope.read(report, name, OPERATION_COLUMNS) for name in GPU_FRAMES]
    operations = Frame.concatenate([frame for frame in frames if frame.rows] or frames[:1])
    whole = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = scope.narrow(report, whole)
    recorded = launching(report, operations)
    calls, launches = recorded or (NO_CALLS, launched(operations, NO_CALLS))
    waiting = waiting_threads(calls, whole)
    attributed = None
    if not is_constant(waiting) and (waited := as_launched_by(calls, waiting)).rows:
        theirs = launched(operations, waited)
        attributed = theirs, project(ranges, theirs)
    projection = project(ranges, launches)
    tallies = range_tallies(
        ranges, operations, launches, projection, attributed, tree=tree, fold=fold
    )
    within = (waiting != NO_THREAD) | inside(calls, ranges)
    rows = launches.rows[np.repeat(within[launches.call], np.diff(launches.first))]
    length = durations(operations)
    work_ns = int(length.sum())
    return replace(
        tallies,
        known=recorded is not None or not operations.rows,
        outside_ns=work_ns - int(length[rows].sum()),
        work_ns=work_ns,
    )


def _rows(tallied: RangeTallies) -> Rows:
    """The figures by (range, domain, style); None where no calls show what a range launched."""
    projected = tallied.projected.statistics().rows("total", "median")
    times = {tuple(key): (total, median) for *key, total, median in projected}
    rows: Rows = {}
    for *key, instances, host_ns in tallied.ranges.statistics().rows("instances", "total"):
        operations, attributed, attributed_ns, busy_ns = tallied.work[tuple(key)]
        share = busy_ns / tallied.whole_busy_ns if tallied.whole_busy_ns else None
        gpu = (*times.get(tuple(key), (0, None)), operations, share, attributed_ns, attributed)
        known = gpu if tallied.known else (None,) * len(gpu)
        rows[tuple(key)] = (instances, host_ns, *known)
    return rows


def _notes(tallied: RangeTallies) -> tuple[Said, ...]:
    if not tallied.known:
        return (NOT_RECORDED,)
    if not tallied.outside_ns:
        return ()
    outside, work = format_time(tallied.outside_ns), format_time(tallied.work_ns)
    share = f"{100 * tallied.outside_ns / tallied.work_ns:.3g} %"
    return (f"{outside} of {work} of GPU work ({share}) was launched inside no range.",)


def _longest(parts: Parts[dict[RangeKey, int]], *, top: int | None) -> Table | Question[Table]:
    """What is asked of the metrics: of the whole capture and the `top` ranges by projected time."""
    spent: Counter[RangeKey] = Counter()
    for part in parts.values:
        spent.update(part)
    if not spent:
        return Table("nvtx", METRIC_FIELDS, (), notes=(NO_SAMPLES,))
    keys = sorted(spent, key=lambda key: (key != WHOLE, -spent[key], key))
    keys = keys if top == 0 else keys[: (top or RANGES) + 1]

    def table(parts: Parts[dict[RangeKey, Tally]]) -> Table:
        rows: list[Row] = []
        for key in keys:
            seen = merge([part[key] for part in parts.values if key in part]).statistics()
            figures = seen.rows("instances", "total", "minimum", "maximum")
            for metric, samples, total, *extremes in sorted(figures, key=lambda row: str(row[0])):
                rows.append((*key[:2], metric, samples, total / samples, *extremes))
        total_rows = UNKNOWN if len(spent) > len(keys) else len(rows)
        return Table("nvtx", METRIC_FIELDS, tuple(rows), total_rows=total_rows)

    return Question(partial(_metrics, keys=keys), table)


def _projected(report: SystemReport, scope: Scope) -> dict[RangeKey, int]:
    """The projected time of the whole capture (0) and each range, in ns; none without samples."""
    if not report.frame("gpu_metrics").rows:
        return {}
    windows = _windows(report, scope)
    spent = {key: sum(spans.total for spans in each.values()) for key, each in windows.items()}
    return {WHOLE: 0, **spent}


def _metrics(
    report: SystemReport, scope: Scope, *, keys: Sequence[RangeKey]
) -> dict[RangeKey, Tally]:
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


def _windows(report: SystemReport, scope: Scope) -> dict[RangeKey, dict[int, Spans]]:
    """Per range, and GPU of the host, the union of the projected intervals of its instances."""
    gpus = gpus_of(report)
    frames = [scope.read(report, name, OPERATION_COLUMNS) for name in GPU_FRAMES]
    operations = Frame.concatenate(frames)
    ranges = scope.read(report, "nvtx_ranges", RANGE_COLUMNS)
    groups = group_by(Frame({**ranges, "name": folded(ranges.labels("name"))}), BY)
    calls, _ = launching(report, operations) or (NO_CALLS, None)
    by_range: dict[RangeKey, dict[int, Spans]] = {}
    for (pid, device), projected in projections(ranges, operations, calls):
        gpu = gpus.get((pid, device), device)
        for code in np.unique(groups.codes[projected.found]).tolist():
            rows = projected.found & (groups.codes == code)
            name, domain, style = map(str, groups.keys[code])
            spans = by_range.setdefault((name, domain, style), {})
            window = union(projected.start[rows], projected.end[rows])
            spans[gpu] = spans.get(gpu, NOTHING) | window
    return by_range
