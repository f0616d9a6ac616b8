"""NVTX ranges: nvtx_sum and its kin, by kernel, and projected onto the GPU; sums and traces."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import named_by
from nsightpy.analysis.intervals import consecutive
from nsightpy.analysis.nvtx.nesting import MOST_LISTED, PUSH_POP, ROOT, nest
from nsightpy.analysis.nvtx.projection import (
    CALL_COLUMNS,
    OPERATION_COLUMNS,
    RANGE_COLUMNS,
    launched,
    project,
)
from nsightpy.analysis.ranking import Made, durations, spread
from nsightpy.commands.stats.operations import kernel_names, named
from nsightpy.commands.stats.reports import BATCH_ROWS, Listing, Reports, Sum, by_time, sum_of
from nsightpy.errors import TooMuchError
from nsightpy.frames import Frame, Ints, Labels
from nsightpy.query import Scope, SystemReport
from nsightpy.query.capture_advice import CUDA_NVTX
from nsightpy.results.keys import KERNEL, row_keys

START_END = "StartEnd"
_OPERATIONS = ("kernels", "memory_operations")


def _ranges(report: SystemReport, scope: Scope, _: str = "", *, style: str = "") -> Frame:
    """Ranges in scope under the names that nsys gives them: domain:name."""
    ranges = scope.read(report, "nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(ranges.labels("style").equals([style])) if style else ranges
    return _with_domains(ranges)


def _with_domains(ranges: Frame) -> Frame:
    return Frame({**ranges, "name": named_by(ranges, ("domain", "name"), "{}:{}".format)})


def _by_kernel(report: SystemReport, scope: Scope, label: str) -> Frame:
    """Kernels, once for each of the ranges that launched them, inner and outer.

    `first` is 0 in the first row of an instance of a range and a kernel's name.
    """
    ranges = _ranges(report, scope)
    kernels = named(
        scope.read(report, "kernels", (*OPERATION_COLUMNS, *kernel_names(label))), label
    )
    work = launched(kernels, report.frame("api_calls", CALL_COLUMNS))
    projected = project(ranges, work)
    low, high = work.first[projected.low], work.first[projected.high]
    instance = np.repeat(np.arange(ranges.rows), high - low)
    ran = kernels.take(work.rows[consecutive(low, high - low)])
    names = ran.labels("name").merged()
    pairs = instance * len(names.values) + names.codes
    first = np.full(len(pairs), -1, dtype=np.int64)
    first[np.unique(pairs, return_index=True)[1]] = 0
    inside = ranges.take(instance).select(("style", "pid", "tid"))
    times = ran.select(("start_ns", "end_ns"))
    name = ranges.labels("name").take(instance)
    return Frame({**times, **inside, "range": name, "kernel": names, "first": first})


def _nested(ranges: Frame, children: Ints | NDArray[np.bool_]) -> Frame:
    """Ranges with the number of each (from 1 on), of that around it (0: none), level and children.

    For nsys the innermost range around another is its parent, whatever their domains and styles.
    `children`: the rows that count as such.
    """
    whole = Labels.constant("", ranges.rows), Labels.constant(PUSH_POP, ranges.rows)
    nesting = nest(Frame({**ranges, "domain": whole[0], "style": whole[1]}))
    parent = nesting.parent - ROOT
    columns = {
        "id": np.arange(1, ranges.rows + 1, dtype=np.int64),
        "parent": parent,
        "level": nesting.level,
        "children": np.bincount(parent[children], minlength=ranges.rows + 1)[1:],
    }
    return Frame({**_with_domains(ranges), **columns})


def _projections(report: SystemReport, scope: Scope) -> tuple[Frame, Ints]:
    """The ranges in scope that end on their thread and launched something in it; all parents."""
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(ranges.ints("tid") == ranges.ints("end_tid"))
    parts = [scope.read(report, name, OPERATION_COLUMNS) for name in _OPERATIONS]
    operations = launched(Frame.concatenate(parts), report.frame("api_calls", CALL_COLUMNS))
    projected = project(ranges, operations)
    figures = {
        "projected_ns": projected.start,
        "projected": projected.length,
        "operations": projected.operations,
    }
    every = Frame({**_nested(ranges, projected.found), **figures})
    return scope.narrow(report, every.take(projected.found)), every.ints("parent")


def _projected(report: SystemReport, scope: Scope, _: str) -> Frame:
    return _projections(report, scope)[0]


def _in_projected_order(report: SystemReport, scope: Scope, _: str) -> Iterator[Frame]:
    ranges, parents = _projections(report, scope)
    order = np.lexsort((-ranges.ints("projected"), ranges.ints("projected_ns")))
    return _with_stacks(ranges.take(order), parents)


def _on_host(report: SystemReport, scope: Scope, _: str) -> Iterator[Frame]:
    """Push/pop ranges by start, with the time of those inside them."""
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    ranges = ranges.take(ranges.labels("style").equals([PUSH_POP])).ordered()
    every = _nested(ranges, np.arange(ranges.rows))
    lengths, parents = durations(ranges), every.ints("parent")
    inside = np.zeros(ranges.rows + 1, dtype=np.int64)
    np.add.at(inside, parents, lengths)
    tree = named_by(every, ("level", "name"), lambda level, name: f"{'--' * level}{name}")
    times = {"inside": inside[1:], "own": lengths - inside[1:]}
    return _with_stacks(scope.narrow(report, Frame({**every, **times, "tree": tree})), parents)


def _with_stacks(ranges: Frame, parents: Ints) -> Iterator[Frame]:
    """Ranges, some at a time, with the ids of those around each and its own: :1:2."""
    if ranges.ints("level").max(initial=0) >= MOST_LISTED:
        raise TooMuchError(f"nests ranges more than {MOST_LISTED:,} deep: too many to list")

    def stack(number: int) -> str:
        around = ""
        while number:
            around, number = f":{number}{around}", int(parents[number - 1])
        return around

    for batch in ranges.in_parts(BATCH_ROWS):
        stacks = tuple(map(stack, batch.ints("id").tolist()))
        yield Frame({**batch, "stack": Labels(np.arange(batch.rows, dtype=np.int32), stacks)})


def _mean(of: str) -> Made:
    """The means of a number, ties to even."""
    return lambda ranking: [round(float(v or 0), 1) for v in ranking.values(f"mean of {of}")]


def _by_time(records: str = CUDA_NVTX, style: str = "") -> Sum:
    keys = {"name": "Range"} if style else {"style": "Style", "name": "Range"}
    return by_time(partial(_ranges, style=style), keys=keys, records=records, on_host=True)


_NESTED = "Lvl=level, NumChild=children, RangeId=id, ParentId=parent>0, RangeStack=stack"
REPORTS: Reports = {
    "nvtx_sum": _by_time(),
    "nvtx_pushpop_sum": _by_time(style=PUSH_POP),
    # record_function makes none that end on another thread
    "nvtx_startend_sum": _by_time("-t nvtx", START_END),
    "nvtx_kern_sum": sum_of(
        _by_kernel,
        ("range", "style", "pid", "tid", "kernel"),
        "NVTX Range=range, Style=style, PID=pid, TID=tid, NVTX Inst=instances of first, "
        f"Kern Inst=instances, Total Time (ns)=total, {spread()}, Kernel Name=kernel",
        records=CUDA_NVTX,
        measures=("duration", "first"),
        identity=row_keys(KERNEL, "Kernel Name"),
    ),
    "nvtx_gpu_proj_sum": sum_of(
        _projected,
        ("name", "style"),
        "Range=name, Style=style, Total Proj Time (ns)=total of projected, "
        "Total Range Time (ns)=total, Range Instances=instances, "
        f"{spread('Proj ', of='projected')}, Total GPU Ops=total of operations, "
        "Avg GPU Ops, Avg Range Lvl, Avg Num Child",
        {
            "Avg GPU Ops": _mean("operations"),
            "Avg Range Lvl": _mean("level"),
            "Avg Num Child": _mean("children"),
        },
        records=CUDA_NVTX,
        measures=("projected", "duration", "operations", "level", "children"),
    ),
    "nvtx_gpu_proj_trace": Listing(
        _in_projected_order,
        "Name=name, Projected Start (ns)=projected_ns, Projected Duration (ns)=projected, "
        "Orig Start (ns)=start_ns, Orig Duration (ns)=duration, Style=style, PID=pid, TID=tid, "
        f"NumGPUOps=operations, {_NESTED}",
        records=CUDA_NVTX,
    ),
    "nvtx_pushpop_trace": Listing(
        _on_host,
        "Start (ns)=start_ns, End (ns)=end_ns, Duration (ns)=duration, DurChild (ns)=inside, "
        f"DurNonChild (ns)=own, Name=name, PID=pid, TID=tid, {_NESTED}, NameTree=tree",
        records=CUDA_NVTX,
    ),
}
