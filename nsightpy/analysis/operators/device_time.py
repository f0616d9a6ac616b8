"""How long each operator took on the host, and what it launched took on the device.

The semantics are those of torch's `key_averages`: an operator's own host time is its duration
without those of the operators that it calls itself; its own device time is that of the kernels,
copies and sets launched under it and under no operator that it calls. Device totals add what runs
side by side on several streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, launch_rows
from nsightpy.analysis.nvtx.nesting import innermost
from nsightpy.frames import Frame, Ints

NONE = -1
OPERATOR_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "depth", "parent")
CALL_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "correlation_id", "event_class")
WORK_COLUMNS = ("start_ns", "end_ns", "pid", "correlation_id")


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
        mine, lasted = owner[call[launched]], lasted[launched]
        outside += int(lasted[mine == NONE].sum())
        np.add.at(device_self, mine[mine != NONE], lasted[mine != NONE])
    total = with_callees(device_self, parent, depth)
    return OperatorTimes(host, host_self, total, device_self, unlaunched, outside)


def with_callees(own: np.ndarray, parent: Ints, depth: Ints) -> np.ndarray:
    """For each operator the sum over itself and everything below it."""
    total = own.copy()
    for level in range(int(depth.max(initial=0)), 0, -1):
        rows = np.flatnonzero(depth == level)
        np.add.at(total, parent[rows], total[rows])
    return total
