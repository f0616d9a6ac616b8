"""modules: device time of nested modules, with the backward pass that belongs to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np

from nsightpy.analysis.launches import LAUNCH_CLASSES, NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.attribution import NO_THREAD, as_launched_by, waiting_threads
from nsightpy.analysis.nvtx.membership import inside
from nsightpy.analysis.nvtx.nesting import SEPARATOR, depth_first
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, RANGE_COLUMNS
from nsightpy.analysis.operators.device_time import (
    NONE,
    OPERATOR_COLUMNS,
    WORK_COLUMNS,
    OperatorTimes,
    operator_times,
    with_callees,
)
from nsightpy.analysis.operators.modules import (
    SUMS,
    backward_times,
    module_calls,
    module_sums,
    range_calls,
)
from nsightpy.analysis.tally import Key, summed
from nsightpy.commands.nvtx import NO_CALLS, launching_calls
from nsightpy.frames import GPU_FRAMES, Frame, Ints
from nsightpy.frames.frame import constant
from nsightpy.query.request import Common, Request, without_launch_call
from nsightpy.query.scope import Scope
from nsightpy.query.signature import command_function
from nsightpy.report_sets.rank_opening import Paths
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field, Row, Table, fields_in
from nsightpy.units import format_time

FIELDS = (
    Field("module", "text"),
    Field("calls"),
    *fields_in(
        "ns", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "attributed_ns"
    ),
    Field("share_of_device_time", "ratio", 4),
    Field("domain", "text"),
)
_FUNCTION = ("start_ns", "end_ns", "pid", "tid", "name")
_BACKWARD = ("sequence", "direction")


@dataclass(frozen=True)
class _Part:
    """The sums of one report by path and domain, and the device time that there was, in ns.

    `launched`: whether that time shows what launched it.
    """

    rows: dict[Key, list[int]]
    launched: bool
    device_ns: int
    outside_ns: int
    unlaunched_ns: int


@command_function
def modules(
    reports: Paths, *, depth: int | None = None, top: int | None = None, **common: Unpack[Common]
) -> Table:
    """Device time of modules that contain one another: nn.Module calls, or NVTX ranges.

    A module is its path a/b/c; the tree comes depth first, those inside one parent by device time.
    Device totals add what ran on several streams: of kernels, copies and sets launched under the
    module on its own thread (device_self: and under no module in it). attributed: what autograd's
    thread launched for it; by sequence number in traces, by time in Nsight Systems reports (as
    `nvtx`). `depth`: only so many levels.
    """
    request = Request.of(reports, **common)
    parts = request.map(partial(_sums, scope=request.scope)).values
    whole = sum(part.device_ns for part in parts)
    known = any(part.launched for part in parts)
    rows = _rows(summed(part.rows for part in parts), whole, depth, known=known)
    return request.finish(Table("modules", FIELDS, tuple(rows)).first(top), *_notes(parts))


@dataclass(frozen=True)
class _Tree:
    """The modules of one report and the times of each call; device time of what is in none."""

    calls: Frame
    times: OperatorTimes
    attributed: Ints
    outside_ns: int
    unlaunched_ns: int


def _sums(report: SystemReport, *, scope: Scope) -> _Part:
    narrowed = Scope(devices=scope.devices)
    columns = (*WORK_COLUMNS, "device")
    work = [narrowed.narrow(report, report.frame(name, columns)) for name in GPU_FRAMES]
    tree = (_of_trace if report.kind == "torch" else _of_ranges)(report, work)
    times = {name: getattr(tree.times, name) for name in SUMS[1:5]}
    below = with_callees(tree.attributed, tree.calls.ints("parent"), tree.calls.ints("depth"))
    figures = Frame({**tree.calls, **times, "attributed": below})
    sums = module_sums(scope.narrow(report, figures))
    device_ns = sum(map(_lasted, work))
    launched = report.calls.recorded or not device_ns
    return _Part(sums, launched, device_ns, tree.outside_ns, tree.unlaunched_ns)


def _lasted(work: Frame) -> int:
    return int((work.ints("end_ns") - work.ints("start_ns")).sum())


def _of_trace(report: SystemReport, work: Sequence[Frame]) -> _Tree:
    tree = module_calls(report.frame("python_functions", _FUNCTION))
    operators = report.frame("operators", (*OPERATOR_COLUMNS, *_BACKWARD))
    calls = report.frame("api_calls", CALL_COLUMNS)
    times = operator_times(tree, calls, work)
    device_self = operator_times(operators, calls, work).device_self
    attributed = backward_times(tree, operators, device_self)
    outside = times.outside_ns - int(attributed.sum())
    return _Tree(tree, times, attributed, outside, times.unlaunched_ns)


def _of_ranges(report: SystemReport, work: Sequence[Frame]) -> _Tree:
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    tree = range_calls(ranges)
    operations = Frame.concatenate(work)
    known = launching_calls(report, operations)
    calls = NO_CALLS if known is None else known
    if "event_class" not in calls:  # then all of them may launch
        calls = Frame({**calls, "event_class": constant(LAUNCH_CLASSES[0], calls.rows)})
    waiting = waiting_threads(calls, ranges)
    times = _by_domain(tree, calls, work)
    attributed = _by_domain(tree, as_launched_by(calls, waiting), work).device_self
    outside = calls.take((waiting == NO_THREAD) & ~inside(calls, tree))
    beyond = operations.take(launch_rows(operations, outside) != NO_LAUNCH)
    unlaunched = operations.take(launch_rows(operations, calls) == NO_LAUNCH)
    return _Tree(tree, times, attributed, _lasted(beyond), _lasted(unlaunched))


def _by_domain(tree: Frame, calls: Frame, work: Sequence[Frame]) -> OperatorTimes:
    """The times of ranges; those of one domain do not take from those of another."""
    host = tree.ints("end_ns") - tree.ints("start_ns")
    host_self, total, device_self = (np.zeros(tree.rows, dtype=np.int64) for _ in range(3))
    domains = tree.labels("domain").merged()
    for code in range(len(domains.values)):
        rows = np.flatnonzero(domains.codes == code)
        place = np.full(tree.rows, NONE, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        parent = tree.ints("parent")[rows]
        moved = np.where(parent == NONE, NONE, place[np.maximum(parent, 0)])
        times = operator_times(Frame({**tree.take(rows), "parent": moved}), calls, work)
        host_self[rows], total[rows] = times.host_self, times.device_total
        device_self[rows] = times.device_self
    return OperatorTimes(host, host_self, total, device_self)


def _rows(
    sums: dict[Key, list[int]], whole_ns: int, depth: int | None, *, known: bool
) -> list[Row]:
    """Of those inside one parent the one with most device time first, then host time.

    None where it is not `known` what was launched.
    """
    absent = [0] * len(SUMS)

    def place(key: Key) -> tuple[object, ...]:
        figures = sums.get(key, absent)
        return (-figures[3] - figures[5], -figures[1], *map(str, key))

    rows: list[Row] = []
    for path, domain in depth_first(sums, place):
        figures = sums[path, domain]
        if depth is None or str(path).count(SEPARATOR) < depth:
            share = (figures[3] + figures[5]) / whole_ns if whole_ns else None
            device = (*figures[3:], share) if known else (None,) * 4
            rows.append((str(path).replace(SEPARATOR, "/"), *figures[:3], *device, domain))
    return rows


def _notes(parts: Sequence[_Part]) -> list[str]:
    notes: list[str] = []
    silent = sum(not part.rows for part in parts)
    if silent == len(parts):
        return notes
    if silent:
        notes.append(f"{silent} of {len(parts)} reports hold no modules.")
    outside, device = sum(p.outside_ns for p in parts), sum(p.device_ns for p in parts)
    if outside:
        notes.append(
            f"{format_time(outside)} of {format_time(device)} of device work "
            f"({100 * outside / device:.3g} %) were launched in no module and are in no row."
        )
    unlaunched = sum(part.unlaunched_ns for part in parts)
    if unlaunched:
        notes.append(without_launch_call(f"{format_time(unlaunched)} of device work", "in no row"))
    return notes
