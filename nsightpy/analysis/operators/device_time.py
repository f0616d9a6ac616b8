"""How long each operator took on the host, and what it and each module launched on the device.

The semantics are those of torch's `key_averages`: an operator's own host time is its duration
without those of the operators that it calls itself; its own device time is that of the kernels,
copies and sets launched under it and under no operator that it calls. Device totals add what runs
side by side on several streams.

Modules are calls that contain one another on a thread: nn.Module calls of a PyTorch trace, NVTX
ranges of an Nsight Systems report. The backward pass runs on a thread of autograd's, outside of all
modules; a backward operator has the sequence number of the forward operator that it belongs to, and
so the module in which that one was called.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.nesting import (
    PUSH_POP,
    SEPARATOR,
    in_one_domain,
    innermost,
    nest,
    paths,
)
from nsightpy.analysis.nvtx.ranges import folded
from nsightpy.frames import Frame, Ints, Labels, distinct_pairs, last_before

NONE = -1
OPERATOR_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "depth", "parent")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class")
WORK_COLUMNS = ("start_ns", "end_ns", "pid", "correlation_id")
FUNCTION_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name")


@dataclass(frozen=True, slots=True)
class OperatorTimes:
    """Times of each row of a frame of operators, in ns.

    `unlaunched_ns`: device work whose launch call was not recorded; `outside_ns`: that of calls
    under no operator.
    """

    host_total: Ints
    host_self: Ints
    device_total: Ints
    device_self: Ints
    unlaunched_ns: int = 0
    outside_ns: int = 0


def operator_times(operators: Frame, calls: Frame, work: Sequence[Frame]) -> OperatorTimes:
    """The times of all operators (OPERATOR_COLUMNS), from API calls and GPU work."""
    host = operators.ints("end_ns") - operators.ints("start_ns")
    parent, depth = operators.ints("parent"), operators.ints("depth")
    inner = parent != NONE
    host_self = host.copy()
    np.subtract.at(host_self, parent[inner], host[inner])
    owner = innermost(operators, calls)
    device_self = np.zeros(operators.rows, dtype=np.int64)
    unlaunched = outside = 0
    for frame in work:
        lasted = frame.ints("end_ns") - frame.ints("start_ns")
        call = launch_rows(frame, calls)
        launched = call != NO_LAUNCH
        unlaunched += int(lasted[~launched].sum())
        operator, lasted = owner[call[launched]], lasted[launched]
        outside += int(lasted[operator == NONE].sum())
        np.add.at(device_self, operator[operator != NONE], lasted[operator != NONE])
    total = with_callees(device_self, parent, depth)
    return OperatorTimes(host, host_self, total, device_self, unlaunched, outside)


def with_callees(own: np.ndarray, parent: Ints, depth: Ints) -> np.ndarray:
    """For each operator the sum over itself and everything below it."""
    total = own.copy()
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        np.add.at(total, parent[rows], total[rows])
    return total


MODULE = "nn.Module: "


def module_calls(functions: Frame) -> Frame:
    """The nn.Module calls among Python calls (start_ns, end_ns, pid, tid, name) as a tree.

    Traces have them that were recorded with_stack or with_modules. Adds domain, parent, depth and
    path, names from the outermost on joined by SEPARATOR.
    """
    calls = functions.take(functions.labels("name").where(lambda name: name.startswith(MODULE)))
    plain = calls.labels("name").renamed(lambda name: name.removeprefix(MODULE))
    return _tree(in_one_domain(calls), plain)


def range_calls(ranges: Frame) -> Frame:
    """NVTX ranges that open and close on one thread as the same tree, domains apart."""
    nested = ranges.labels("style").equals([PUSH_POP])
    calls = ranges.take(nested & (ranges.ints("tid") == ranges.ints("end_tid")))
    return _tree(calls, folded(calls.labels("name")))


def _tree(calls: Frame, names: Labels) -> Frame:
    nested = nest(calls)
    path = paths(names, nested)
    return Frame({**calls, "parent": nested.parent, "depth": nested.level, "path": path})


def path_around(tree: Frame, moments: Frame) -> Labels:
    """The path a/b/c of what is open on the thread at each start; empty outside of all.

    `moments` have start_ns, pid, tid; `tree` is one of modules or ranges.
    """
    path = tree.labels("path")
    shown = tuple(value.replace(SEPARATOR, "/") for value in path.values)
    codes = np.append(path.codes, NONE)[innermost(tree, moments)] + 1
    return Labels(codes.astype(np.int32), ("", *shown)).merged()


BACKWARD = "backward"


def backward_times(modules: Frame, operators: Frame, device_self: Ints) -> Ints:
    """For each module call, the device time of backward operators of what it called itself, ns.

    `operators` have start_ns, end_ns, pid, tid, parent, depth, sequence and direction, and own
    device times `device_self`. Of several forward operators with one number, the last counts that
    began before; what a backward operator calls belongs to where that one does.
    """
    times = np.zeros(modules.rows, dtype=np.int64)
    forward = forward_operators(operators)
    linked = np.flatnonzero(forward != NONE)
    if not len(linked) or not modules.rows:
        return times
    owner = np.full(operators.rows, NONE, dtype=np.int64)
    owner[linked] = innermost(modules, operators.take(forward[linked]))
    owner = inherited(owner, operators.ints("parent"), operators.ints("depth"))
    owned = owner != NONE
    np.add.at(times, owner[owned], device_self[owned])
    return times


def forward_operators(operators: Frame) -> Ints:
    """For each backward operator the row of the forward one that autograd ran it for; NONE: none.

    Numbers count up per process and begin anew in another thread, so the last one before counts.
    """
    rows = np.full(operators.rows, NONE, dtype=np.int64)
    sequence, start = operators.ints("sequence"), operators.ints("start_ns")
    numbered = sequence >= 0
    backward = operators.labels("direction").equals([BACKWARD])
    forward, wanted = np.flatnonzero(numbered & ~backward), np.flatnonzero(numbered & backward)
    _, number = distinct_pairs(operators.ints("pid"), sequence)
    forward = forward[np.lexsort((start[forward], number[forward]))]
    before = last_before((number[forward], start[forward]), (number[wanted], start[wanted]))
    rows[wanted] = np.append(forward, NONE)[before]
    return rows


def inherited(owner: Ints, parent: Ints, depth: Ints) -> Ints:
    """Owners of operators; one without takes that of the operator that called it."""
    for level in range(1, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero((depth == level) & (owner == NONE))
        owner[rows] = owner[parent[rows]]
    return owner
