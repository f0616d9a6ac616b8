"""Launch phases of kernels: the API call, the wait in the queue, the kernel (cuda_kern_exec_sum).

API = call end - call start; queue = kernel start - call end where positive; total = the later of
both ends - call start. A kernel and a call belong together when process and correlation id agree.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Frame, Ints, distinct

LAUNCH_CLASSES = (0, 1)
CALL_CLASSES = (*LAUNCH_CLASSES, 13)
NO_LAUNCH = -1
GRAPH_LAUNCH = "GraphLaunch"
NO_TIME = -(2**63)
_TABLE_SLACK = 8
Number = TypeVar("Number", np.int32, np.int64)


def launch_rows(work: Frame, calls: Frame) -> NDArray[np.int32]:
    """The row of the call that launched each operation; NO_LAUNCH where none was recorded.

    One call may own many kernels (CUDA graphs). Of two rows for one launch the first runtime or
    driver row counts; without event_class all rows are. Both frames need pid and correlation_id.
    """
    launching = np.arange(calls.rows, dtype=np.int32)
    if "event_class" in calls:
        launching = launching[np.isin(calls.ints("event_class"), LAUNCH_CLASSES)]
    keys = (calls.ints("pid")[launching], calls.ints("correlation_id")[launching])
    wanted = (work.ints("pid"), work.ints("correlation_id"))
    return matched(keys, launching, wanted, NO_LAUNCH)


def api_calls(calls: Frame) -> Frame:
    """The rows that are calls, by start: others repeat one, to carry its backtrace."""
    is_call = np.isin(calls.ints("event_class"), CALL_CLASSES)
    return (calls if is_call.all() else calls.take(is_call)).ordered()


def of_calls(values: NDArray[Number], rows: NDArray[np.int32], missing: int) -> NDArray[Number]:
    """A column of calls for each operation, from `launch_rows`; `missing` without one."""
    # the last is that of no call (-1)
    return np.append(values, values.dtype.type(missing))[rows]


def launch_starts(work: Frame, calls: Frame) -> Ints:
    """When the call that launched each operation began, ns; NO_TIME where none was recorded."""
    return of_calls(calls.ints("start_ns"), launch_rows(work, calls), NO_TIME)


def matched(
    keys: tuple[Ints, Ints], values: NDArray[Number], wanted: tuple[Ints, Ints], missing: int
) -> NDArray[Number]:
    """The first value under each wanted pair of a process and a positive id in it."""
    matching = np.full(len(wanted[0]), missing, dtype=values.dtype)
    for pid in distinct(wanted[0])[0].tolist():
        rows, known = (np.flatnonzero(pids == pid) for pids in (wanted[0], keys[0]))
        matching[rows] = _matched(keys[1][known], values[known], wanted[1][rows], missing)
    return matching


def _matched(keys: Ints, values: NDArray[Number], wanted: Ints, missing: int) -> NDArray[Number]:
    """The first value under each wanted positive key; `missing` where there is none."""
    high = int(keys.max(initial=0))
    if high < _TABLE_SLACK * len(keys) + 1_000_000 and int(keys.min(initial=0)) >= 0:
        # the first and the last place are empty: all that is out of range ends there
        table = np.full(high + 2, missing, dtype=values.dtype)
        table[keys[::-1]] = values[::-1]
        table[0] = missing
        return table[np.clip(wanted, 0, high + 1)]
    order = np.argsort(keys, kind="stable")
    row = order[np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)]
    return np.where((keys[row] == wanted) & (wanted > 0), values[row], values.dtype.type(missing))


def launch_phases(kernels: Frame, calls: Frame) -> Frame:
    """Kernels with the calls that launched them, by the start of the call; others are left out.

    `total`, `api`, `queue`: how long all of it, the call and the wait for the GPU took, ns; the
    queue is below 0 where the kernel began before the call returned, `queued` is -1 then.
    """
    rows = launch_rows(kernels, calls)
    launched = np.flatnonzero(rows != NO_LAUNCH)
    launched = launched[np.argsort(calls.ints("start_ns")[rows[launched]], kind="stable")]
    kernels, calls = kernels.take(launched), calls.take(rows[launched])
    begin, back = calls.ints("start_ns"), calls.ints("end_ns")
    queue = kernels.ints("start_ns") - back
    phases = {
        "function": calls["name"],
        "call_start_ns": begin,
        "total": np.maximum(back, kernels.ints("end_ns")) - begin,
        "api": back - begin,
        "queue": queue,
        "queued": np.where(queue > 0, queue, -1),
    }
    return Frame({**kernels, "tid": calls["tid"], **phases})
