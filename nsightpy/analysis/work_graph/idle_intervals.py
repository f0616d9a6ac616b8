"""When devices and streams did nothing, and the causes that divide that time."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.work_graph.host_chain import Rows
from nsightpy.analysis.work_graph.launched_work import LaunchedWork
from nsightpy.frames import Ints

NO_ROW = -1
# Before every time there is; its negative is after it.
NEVER = -(2**62)
KERNEL_WAIT_NS = 30_000


class Cause(IntEnum):
    """Why a device was idle: by ids of findings where there is one (docs/findings.md).

    `EXPOSED_COMMUNICATION` is time in MPI, `IMBALANCE` that in which the host, or a stream, waited
    for another device of the process.
    """

    LAUNCH_BOUND = 0
    HOST_GAP = 1
    SYNC_DRAIN = 2
    FIRST_LAUNCH = 3
    ALLOCATION = 4
    EXPOSED_H2D = 5
    EXPOSED_D2H = 6
    QUEUED = 7
    UNKNOWN = 8
    EXPOSED_COMMUNICATION = 9
    IMBALANCE = 10
    UNIFIED_MEMORY = 11


CAUSES = tuple(cause.name.lower().replace("_", "-") for cause in Cause)


@dataclass(frozen=True)
class IdleIntervals:
    """The idle intervals of one device in a window, in time order, and why it was idle; in ns.

    `before` and `after` are rows of the work (-1: none), `thread` the place in the chain's
    threads of the one that launched `after` (-1: not known), `begun` when it came to that launch.
    `held` is how long the blocking call took in which the interval
    opened (0: none), `compiling` the time outside of CUDA that compiled. `times` has a row for each
    interval and a column for each of CAUSES; a row adds up to its interval exactly.
    """

    opened: Ints
    closed: Ints
    before: Rows
    after: Rows
    thread: Rows
    begun: Ints
    held: Ints
    compiling: Ints
    times: Ints

    def __len__(self) -> int:
        return len(self.opened)

    @property
    def length(self) -> Ints:
        """How long each interval is, in ns."""
        return self.closed - self.opened

    @cached_property
    def totals(self) -> dict[str, int]:
        """The idle time by cause, in ns."""
        return dict(zip(CAUSES, self.times.sum(axis=0).tolist(), strict=True))

    @cached_property
    def run_ahead_lost(self) -> tuple[Ints, Ints]:
        """The intervals that opened in blocking calls, and the launch-bound time that these brought
        about, in ns; a bound.

        A call that returns when nothing is queued costs the host its lead. Without it the host
        would have been ahead by as long as it was held, less what the device was idle right after
        the call; so of the launch-bound time up to the next such call at most that much.
        """
        rows = np.flatnonzero(self.held)
        if not len(rows):
            return rows, rows
        bound = np.add.reduceat(self.times[:, Cause.LAUNCH_BOUND], rows)
        lead = np.maximum(self.held[rows] - self.times[rows, Cause.SYNC_DRAIN], 0)
        return rows, np.minimum(bound, lead)


def idle_time(work: LaunchedWork, place: int) -> tuple[Spans, Rows, Rows]:
    """When a place was idle, from before its first operation until after its last one.

    And the rows of the work before and after each interval, -1 for none.
    """
    rows = np.flatnonzero(work.place == place)
    order = rows[np.argsort(work.start[rows], kind="stable")].astype(np.int32)
    start, end = work.start[order], work.end[order]
    # what takes no time ends no interval
    solid = end > start
    reach = np.maximum.accumulate(np.where(solid, end, NEVER))
    past = np.concatenate([[NEVER], reach[:-1]])
    # the operations that ended last so far; of several at once the first row
    longest = np.flatnonzero(reach > past)
    last = order[longest]
    heads = np.flatnonzero(start[longest] > past[longest])
    first = longest[heads]
    idle = Spans(np.append(past[first], reach[-1]), np.append(start[first], -NEVER))
    after = np.append(order[np.searchsorted(start, start[first])], np.int32(NO_ROW))
    before = np.append(np.int32(NO_ROW), last)[np.append(heads, len(last))]
    return idle, before, after


def stream_waits(work: LaunchedWork, windows: Mapping[int, Spans]) -> dict[int, tuple[int, ...]]:
    """Idle time of the streams of each place (number -> window), HTA's way: host, kernel, other
    wait in ns, added over the streams.

    A gap on a stream (but with the running maximum of previous ends) is host wait when the launch
    call began after the previous end, else kernel wait when it is shorter than 30 us, else other.
    Sums over a device's streams can exceed its window.
    https://hta.readthedocs.io/en/latest/source/features/idle_time_breakdown.html
    """
    order = work.by_stream
    start, launch = work.start[order][1:], work.launch[order][1:]
    previous = work.reached(work.end[order])[:-1]
    host, short = launch > previous, start - previous < KERNEL_WAIT_NS
    classes = host, short & ~host, ~short & ~host
    # from one stream to the next there is no gap
    within = np.ones(len(start), dtype=np.bool_)
    within[work.bounds[1:-1] - 1] = False
    place, until = work.place[order][1:], np.maximum(previous, start)
    waits: dict[int, tuple[int, ...]] = {}
    for number, window in windows.items():
        rows = np.flatnonzero(within & (place == number))
        lost = measure_before(window, until[rows]) - measure_before(window, previous[rows])
        waits[number] = tuple(int(lost[each[rows]].sum()) for each in classes)
    return waits
