"""Summaries of NVTX ranges: nvtx_sum and its kin, nvtx_kern_sum, nvtx_gpu_proj_sum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from nsightpy.analysis import ranking
from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import consecutive
from nsightpy.analysis.nvtx.nesting import PUSH_POP
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
)
from nsightpy.analysis.ranking import spread
from nsightpy.analysis.tally import Statistics, tally
from nsightpy.commands.kernels import named as kernel_names, wanted as kernel_columns
from nsightpy.commands.stats.summary import (
    Shown,
    Summary,
    Tallies,
    spread_fields,
    times,
)
from nsightpy.commands.trace.projections import projected_ranges
from nsightpy.frames import Frame, Labels
from nsightpy.query.capture_advice import CUDA_NVTX
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, fields_in

START_END = "StartEnd"


def _ranges(report: SystemReport, scope: Scope) -> Frame:
    return named(scope.narrow(report, report.frame("nvtx_ranges", RANGE_COLUMNS)))


def named(ranges: Frame) -> Frame:
    """Ranges with the column `range`: domain:name, as nsys writes it."""
    groups = group_by(ranges, ("domain", "name"))
    texts = tuple(f"{domain}:{name}" for domain, name in groups.keys)
    return Frame({**ranges, "range": Labels(groups.codes, texts)})


def _durations(report: SystemReport, scope: Scope, _: str, *, style: str = "") -> Tallies:
    ranges = _ranges(report, scope)
    if not style:
        return (ranking.tally_durations(ranges, ("style", "range")),)
    mine = ranges.take(ranges.labels("style").equals([style]))
    return (ranking.tally_durations(mine, ("range",)),)


def _by_kernel(report: SystemReport, scope: Scope, label: str) -> Tallies:
    """Durations of kernels by the ranges that launched them, inner and outer; instances of both.

    An instance of a range counts for a kernel when it launched that kernel.
    """
    ranges = _ranges(report, scope)
    columns = kernel_columns(scope, OPERATION_COLUMNS, label)
    kernels = scope.narrow(report, report.frame("kernels", columns))
    names = kernel_names(kernels, label)
    done = launched(kernels, report.frame("api_calls", CALL_COLUMNS))
    projected = project(ranges, done)
    low, high = done.first[projected.low], done.first[projected.high]
    count = high - low
    instance = np.repeat(np.arange(ranges.rows), count)
    kernel = done.rows[consecutive(low, count)]
    inside, ran = ranges.take(instance), kernels.take(kernel)
    keys = Frame(
        {
            **{name: inside[name] for name in ("range", "style", "pid", "tid")},
            "kernel": Labels(names.codes[kernel], names.values),
        }
    )
    groups = group_by(keys, tuple(keys))
    # each pair of an instance and a kernel's name once
    pairs = np.unique(groups.codes.astype(np.int64) * max(ranges.rows, 1) + instance)
    once = (pairs // max(ranges.rows, 1)).astype(np.int32)
    return (
        tally(groups.codes, ranking.durations(ran), groups.keys),
        tally(once, np.ones(len(once), dtype=np.int64), groups.keys),
    )


def _kernels_shown(parts: Sequence[Statistics]) -> Shown:
    durations, instances = parts
    made = dict(zip(instances.keys, instances.instances.tolist(), strict=True))
    order = durations.by_total()
    rows: list[Row] = []
    for group in order:
        name, style, pid, tid, kernel = durations.keys[group]
        counts = (made[durations.keys[group]], int(durations.instances[group]))
        total = int(durations.total[group])
        rows.append((name, style, pid, tid, *counts, total, *spread(durations, group), kernel))
    fields = (
        Field("NVTX Range", "text"),
        Field("Style", "text"),
        Field("PID", "id"),
        Field("TID", "id"),
        Field("NVTX Inst"),
        Field("Kern Inst"),
        Field("Total Time (ns)", "ns"),
        *spread_fields(),
        Field("Kernel Name", "text"),
    )
    return fields, rows


def _projected(report: SystemReport, scope: Scope, _: str) -> Tallies:
    """Of ranges that launched something: projected and host time, operations, level, children."""
    whole, projected, nesting, children = projected_ranges(report, scope)
    some = np.flatnonzero(projected.found)
    figures = {
        "projected": projected.length[some],
        "operations": projected.operations[some],
        "level": nesting.level[some],
        "children": children[some],
    }
    mine = scope.narrow(report, Frame({**named(whole.take(some)), **figures}))
    groups = group_by(mine, ("range", "style"))
    lasted = ranking.durations(mine)
    return tuple(
        tally(groups.codes, values, groups.keys)
        for values in (mine.ints("projected"), lasted, *(mine.ints(n) for n in list(figures)[1:]))
    )


def _projected_shown(parts: Sequence[Statistics]) -> Shown:
    projected, lasted, operations, level, children = parts
    order = projected.by_total()
    rows: list[Row] = [
        (
            *projected.keys[g],
            int(projected.total[g]),
            int(lasted.total[g]),
            int(projected.instances[g]),
            *spread(projected, g),
            int(operations.total[g]),
            *(round(float(part.mean[g]), 1) for part in (operations, level, children)),
        )
        for g in order
    ]
    fields = (
        Field("Range", "text"),
        Field("Style", "text"),
        Field("Total Proj Time (ns)", "ns"),
        Field("Total Range Time (ns)", "ns"),
        Field("Range Instances"),
        *spread_fields("Proj "),
        Field("Total GPU Ops"),
        *fields_in("count", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child", decimals=1),
    )
    return fields, rows


def _sum(help_: str, style: str = "") -> Summary:
    labels = ("Range",) if style else ("Style", "Range")
    # record_function makes none that end on another thread
    records = "-t nvtx" if style == START_END else CUDA_NVTX
    return Summary(help_, partial(_durations, style=style), times(*labels), records)


SUMMARIES = {
    "nvtx_sum": _sum("NVTX ranges by host time."),
    "nvtx_pushpop_sum": _sum("Push/pop ranges by host time.", PUSH_POP),
    "nvtx_startend_sum": _sum("Start/end ranges by host time.", START_END),
    "nvtx_kern_sum": Summary(
        "Kernels by the NVTX ranges that launched them, inner and outer.",
        _by_kernel,
        _kernels_shown,
        CUDA_NVTX,
        tallies=2,
    ),
    "nvtx_gpu_proj_sum": Summary(
        "NVTX ranges projected onto the GPU.",
        _projected,
        _projected_shown,
        CUDA_NVTX,
        tallies=5,
    ),
}
