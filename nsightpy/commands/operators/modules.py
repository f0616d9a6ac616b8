"""Device time of nested modules, with the backward pass that belongs to each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nsightpy.analysis.grouping import group_sums
from nsightpy.analysis.launches import LAUNCH_CLASSES, NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.membership import NO_THREAD, as_launched_by, inside, waiting_threads
from nsightpy.analysis.nvtx.nesting import SEPARATOR, depth_first, nest
from nsightpy.analysis.nvtx.projection import CALL_COLUMNS, RANGE_COLUMNS
from nsightpy.analysis.operators.device_time import (
    FUNCTION_COLUMNS,
    OPERATOR_COLUMNS,
    WORK_COLUMNS,
    OperatorTimes,
    backward_times,
    module_calls,
    operator_times,
    range_calls,
    with_callees,
)
from nsightpy.analysis.ranking import durations
from nsightpy.analysis.tally import Key, summed
from nsightpy.frames import GPU_FRAMES, Floats, Frame, Ints, constant
from nsightpy.query import Parts, Question, Scope, SystemReport
from nsightpy.query.capture_advice import MODULES
from nsightpy.query.device_time import NO_CALLS, launching
from nsightpy.query.request import without_launch_call
from nsightpy.results import Field, Row, Said, Table, View
from nsightpy.units import format_time

FIELDS = (
    Field("module", "name", importance=1),
    Field("calls", importance=3),
    Field("host_total_ns", "time", heading="host total", importance=7),
    Field("host_self_ns", "time", heading="host self", importance=8),
    Field("device_total_ns", "time", heading="GPU total", importance=2),
    Field("device_self_ns", "time", heading="GPU self", importance=5),
    Field("attributed_ns", "time", heading="other threads", importance=6),
    Field("share_of_device_time", "share", 4, heading="of GPU time %", importance=4),
    Field("domain", "text"),
)
_SUMS = ("calls", "host_total", "host_self", "device_total", "device_self", "attributed")
_BACKWARD = ("sequence", "direction")


@dataclass(frozen=True)
class DeviceSums:
    """The sums of one report by key, and the device time that there was, in ns.

    `recorded`: whether it has any of what rows are of; `launched`: whether its device time shows
    what launched it; `steps`: FLOP by shapes, of operators.
    """

    rows: dict[Key, list[float]]
    recorded: bool
    launched: bool
    device_ns: int
    outside_ns: int
    unlaunched_ns: int
    steps: Floats | None = None


def time_of_modules() -> Question[Table]:
    """Modules as a tree."""

    def ordered(parts: Parts[DeviceSums]) -> Table:
        rows = tuple(_rows(parts.values))
        notes = notes_on(parts.values, "modules", "in no module")
        if not (rows or parts.scope.is_narrowed):
            notes = [MODULES]
        return Table("operators", FIELDS, rows, notes=tuple(notes), view=View(tree="module"))

    return Question(_sums, ordered)


def _sums(report: SystemReport, scope: Scope) -> DeviceSums:
    narrowed = Scope(devices=scope.devices)
    work = [narrowed.read(report, name, (*WORK_COLUMNS, "device")) for name in GPU_FRAMES]
    modules, times, attributed = (_of_trace if report.kind == "torch" else _of_ranges)(report, work)
    below = with_callees(attributed, modules.ints("parent"), modules.ints("depth"))
    calls = {"calls": np.ones(modules.rows, dtype=np.int64), "attributed": below}
    figures = {name: getattr(times, name) for name in _SUMS[1:5]}
    shown = scope.narrow(report, Frame({**modules, **calls, **figures}))
    sums = group_sums(shown, ("path", "domain"), _SUMS)
    device_ns = sum(int(durations(frame).sum()) for frame in work)
    launched = report.calls.recorded or not device_ns
    lost = (times.outside_ns, times.unlaunched_ns)
    return DeviceSums(sums, bool(sums), launched, device_ns, *lost)


def _of_trace(report: SystemReport, work: Sequence[Frame]) -> tuple[Frame, OperatorTimes, Ints]:
    """The module calls of a trace, their times, and what autograd's thread launched for each."""
    tree = module_calls(report.frame("python_functions", FUNCTION_COLUMNS))
    operators = report.frame("operators", (*OPERATOR_COLUMNS, *_BACKWARD))
    calls = report.frame("api_calls", CALL_COLUMNS)
    times = operator_times(tree, calls, work)
    device_self = operator_times(operators, calls, work).device_self
    attributed = backward_times(tree, operators, device_self)
    outside = times.outside_ns - int(attributed.sum())
    return tree, replace(times, outside_ns=outside), attributed


def _of_ranges(report: SystemReport, work: Sequence[Frame]) -> tuple[Frame, OperatorTimes, Ints]:
    """The same of the NVTX ranges of a report."""
    ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
    tree = range_calls(ranges)
    operations = Frame.concatenate(work)
    recorded = launching(report, operations)
    calls = NO_CALLS if recorded is None else recorded[0]
    if "event_class" not in calls:  # then all of them may launch
        calls = Frame({**calls, "event_class": constant(LAUNCH_CLASSES[0], calls.rows)})
    waiting = waiting_threads(calls, ranges)
    times = operator_times(tree, calls, ())
    own, attributed = (
        _device_self(tree, each, work) for each in (calls, as_launched_by(calls, waiting))
    )
    total = with_callees(own, tree.ints("parent"), tree.ints("depth"))
    outside = calls.take((waiting == NO_THREAD) & ~inside(calls, tree))
    beyond = operations.take(launch_rows(operations, outside) != NO_LAUNCH)
    unlaunched = operations.take(launch_rows(operations, calls) == NO_LAUNCH)
    outside_ns, unlaunched_ns = (int(durations(rows).sum()) for rows in (beyond, unlaunched))
    whole = OperatorTimes(times.host_total, times.host_self, total, own, unlaunched_ns, outside_ns)
    return tree, whole, attributed


def _device_self(tree: Frame, calls: Frame, work: Sequence[Frame]) -> Ints:
    """The own device times of ranges; those of one domain do not take from those of another."""
    device_self = np.zeros(tree.rows, dtype=np.int64)
    domains = tree.labels("domain").merged()
    for code in range(len(domains.values)):
        rows = np.flatnonzero(domains.codes == code)
        part = tree.take(rows)
        part = Frame({**part, "parent": nest(part).parent})
        device_self[rows] = operator_times(part, calls, work).device_self
    return device_self


def _rows(parts: Sequence[DeviceSums]) -> list[Row]:
    """Of those inside one parent the one with most device time first, then host time.

    None where it is not known what was launched.
    """
    sums = summed(part.rows for part in parts)
    whole_ns = sum(part.device_ns for part in parts)
    known = any(part.launched for part in parts)

    def place(key: Key) -> tuple[object, ...]:
        figures = sums[key]
        return (-figures[3] - figures[5], -figures[1], *map(str, key))

    rows: list[Row] = []
    for path, domain in depth_first(sums, place):
        figures = sums[path, domain]
        share = (figures[3] + figures[5]) / whole_ns if whole_ns else None
        device = (*figures[3:], share) if known else (None,) * 4
        rows.append((str(path).replace(SEPARATOR, "/"), *figures[:3], *device, domain))
    return rows


def notes_on(parts: Sequence[DeviceSums], what: str, outside: str) -> list[Said]:
    """Reports without any of what rows are of, and the device work that is in no row."""
    silent = sum(not part.recorded for part in parts)
    if silent == len(parts):
        return []
    notes: list[Said] = [f"{silent} of {len(parts)} reports hold no {what}."] if silent else []
    outside_ns, device_ns = sum(p.outside_ns for p in parts), sum(p.device_ns for p in parts)
    if outside_ns:
        notes.append(
            f"{format_time(outside_ns)} of {format_time(device_ns)} of device work "
            f"({100 * outside_ns / device_ns:.3g} %) were launched {outside} and are in no row."
        )
    if unlaunched_ns := sum(part.unlaunched_ns for part in parts):
        lost = f"{format_time(unlaunched_ns)} of device work"
        notes.append(without_launch_call(lost, "in no row"))
    return notes
