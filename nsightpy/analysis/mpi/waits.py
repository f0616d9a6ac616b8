"""Wait states of MPI: for how long a rank was in a call before another one let it go on.

The states are those of Scalasca (Wolf and Mohr, "Automatic performance analysis of hybrid
MPI/OpenMP applications", 2003), all measured until the last of those came that were waited for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nsightpy.analysis.grouping import group_by
from nsightpy.analysis.intervals import Spans, measure_before
from nsightpy.analysis.mpi import functions
from nsightpy.analysis.mpi.functions import Mask, is_one_of
from nsightpy.analysis.mpi.matching import MESSAGE, Matched
from nsightpy.analysis.tally import tally
from nsightpy.frames import Frame, Ints, Labels

# The states of the kinds of operations (matching.py), and that of who sends.
STATES = (
    *("wait at barrier", "wait at n-to-n", "late broadcast", "early reduce"),
    *("late sender", "late receiver"),
)
LATE_RECEIVER = STATES.index("late receiver")


@dataclass(frozen=True)
class Waits:
    """Waits one by one: which state, the row of the call that waited, whose call was waited for,
    and for how long (ns) from the call's start on."""

    state: Ints
    row: Ints
    cause: Ints
    lasted: Ints


def waits_of(matched: Matched, starts: Ints, ends: Ints, names: Labels, shown: Mask) -> Waits:
    """The waits of the calls shown in matched operations; times by row of the calls, on one clock.

    A rank waits until the last of those has entered whom it has to wait for, and a blocking send
    until the receive has begun.
    """
    instance, kind = matched.instance, matched.kind[matched.instance]
    entered = np.flatnonzero(matched.enters)
    order = entered[np.lexsort((starts[matched.row[entered]], instance[entered]))]
    last, posted = np.full((2, matched.count), -1, dtype=np.int64)
    last[instance[order]] = matched.row[order]
    posted[instance[matched.exits]] = matched.posted[matched.exits]
    waiting = np.flatnonzero(matched.exits & (last[instance] >= 0))
    blocking = is_one_of(names, functions.BLOCKING_SENDS)[matched.row]
    sends = np.flatnonzero(matched.enters & (kind == MESSAGE) & blocking)
    row = matched.row[np.append(waiting, sends)]
    cause = np.append(last[instance[waiting]], posted[instance[sends]])
    state = np.append(kind[waiting], np.full(len(sends), LATE_RECEIVER))
    # who leaves earlier did not wait for the last one: that may be so where ranks pass nothing
    lasted = np.minimum(starts[cause], ends[row]) - starts[row]
    held = shown[row] & (lasted > 0) & ((state != LATE_RECEIVER) | (ends[row] > starts[cause]))
    return Waits(state[held], row[held], cause[held], lasted[held])


# The waits of a clock in one state, function and range: clock, state, function, range, how many,
# time and longest (ns), the clock that it waited for longest, and for how long its devices did
# nothing then (ns; None: no device).
WaitRow: TypeAlias = tuple[int, str, str, str, int, int, int, int, int | None]


def wait_rows(
    waits: Waits, clock: Ints, calls: Frame, idle: Sequence[Spans | None]
) -> list[WaitRow]:
    """The waits summed up, most time first.

    `calls` have name, range and start by row; `idle` is the idle time of each clock's devices, as
    the starts are in each report's own time.
    """
    waiter, starts = clock[waits.row], calls.ints("start_ns")[waits.row]
    keyed = Frame(
        {
            "clock": waiter,
            "state": Labels(waits.state.astype(np.int32), STATES),
            **calls.select(("name", "range")).take(waits.row),
        }
    )
    groups = group_by(keyed, tuple(keyed))
    idled = np.bincount(groups.codes, _idle_during(waits, waiter, starts, idle))
    clocks = len(idle)
    of_clocks = groups.codes.astype(np.int64) * clocks + clock[waits.cause]
    pairs, places = np.unique(of_clocks, return_inverse=True)
    # the last of each group counts: that with most, of equals the first clock
    pairs = pairs[np.lexsort((-pairs, np.bincount(places, waits.lasted)))]
    cause = dict(zip((pairs // clocks).tolist(), (pairs % clocks).tolist(), strict=True))
    statistics = tally(groups.codes, waits.lasted, groups.keys).statistics()
    of_key = {key: group for group, key in enumerate(groups.keys)}
    rows: list[WaitRow] = []
    for row in statistics.rows("instances", "total", "maximum"):
        group = of_key[row[:4]]
        idle_ns = None if idle[row[0]] is None else int(idled[group])
        rows.append((*row, cause[group], idle_ns))
    return rows


def _idle_during(waits: Waits, clock: Ints, starts: Ints, idle: Sequence[Spans | None]) -> Ints:
    """Of each wait the time in which the clock's devices did nothing."""
    idle_ns = np.zeros(len(starts), dtype=np.int64)
    for place in np.unique(clock).tolist():
        spans = idle[place]
        if spans is not None:
            waiting = clock == place
            low, high = starts[waiting], starts[waiting] + waits.lasted[waiting]
            idle_ns[waiting] = measure_before(spans, high) - measure_before(spans, low)
    return idle_ns
