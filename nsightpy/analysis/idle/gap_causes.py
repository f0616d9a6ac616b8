"""The causes of idle intervals, out of what the launching thread did in them.

Inside allocations and loading the cause is those. Long launching calls are `first-launch` where the
kernel was launched for the first time, `exposed-h2d` or `exposed-d2h` where they copy to or from
the device (those, too, that do not last long but stage pageable memory), else `host-gap`.
Stretches outside of CUDA of 1 ms or more are `host-gap`, and those of 100 us or more in OS calls
for files and the like, but for the time that compiles (`first-launch`); time in MPI calls is
`exposed-communication` in any; that of waiting for another device of the process is `imbalance`;
shorter stretches before a page migrates are `unified-memory`. What had been launched for 1 ms or
more and not begun is `queued`. The rest is `sync-drain` where the thread was held by a blocking
call when the device ran dry, else `queued` where everything had been launched before, else
`launch-bound`. The causes add up to the idle time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import Rows
from nsightpy.frames import Ints

# A launching call takes some microseconds; what takes this long does something else in it.
LONG_CALL_NS = 100_000
# Eager frameworks issue a kernel every 10 to 300 us; who needs longer does something else.
HOST_GAP_NS = 1_000_000
# Ids of findings where there is one (docs/findings.md); the last three only where it is known what
# the host did outside of CUDA, and what other devices did.
ALL_CAUSES = (
    "launch-bound",
    "host-gap",
    "sync-drain",
    "first-launch",
    "allocation",
    "exposed-h2d",
    "exposed-d2h",
    "queued",
    "unknown",
    "exposed-communication",
    "imbalance",
    "unified-memory",
)
(
    LAUNCH_BOUND,
    HOST_GAP,
    SYNC_DRAIN,
    FIRST_LAUNCH,
    ALLOCATING,
    TO_DEVICE,
    TO_HOST,
    QUEUED,
    UNKNOWN,
    IN_MPI,
    ELSEWHERE,
    FAULTS,
) = range(len(ALL_CAUSES))


@dataclass(frozen=True)
class IdleGaps:
    """The idle intervals of one device inside a window, in time order; times in ns.

    `before` and `after` are rows of the GpuWork (-1: none), `thread` that of the next launch (-1:
    not known). The parts are disjoint and add up to the interval: `in_call` in the launching
    call, `queued` after it, `waiting`, `allocating` and `loading` in calls before it, `outside`
    in none of them. `drained` marks those that opened while the thread was held by a blocking
    call, `held` for how long that was. `elsewhere` is the part of `waiting`, `queued` and `outside`
    in which the thread waited for other devices of the process: they are less by it. `mpi` is the
    part of `outside` in MPI calls, `compiling` another that compiles, `in_out` in OS calls
    for files and the like; 0 where that was not looked at.
    """

    opened: Ints
    closed: Ints
    before: Rows
    after: Rows
    thread: Ints
    in_call: Ints
    queued: Ints
    waiting: Ints
    allocating: Ints
    loading: Ints
    outside: Ints
    held: Ints
    stages: NDArray[np.int8]
    staged: NDArray[np.bool_]
    first: NDArray[np.bool_]
    migrates: NDArray[np.bool_]
    mpi: Ints | int = 0
    compiling: Ints | int = 0
    in_out: Ints | int = 0
    elsewhere: Ints | int = 0

    def __len__(self) -> int:
        return len(self.opened)

    @property
    def length(self) -> Ints:
        return self.closed - self.opened

    @property
    def drained(self) -> NDArray[np.bool_]:
        return self.held > 0

    @cached_property
    def causes(self) -> NDArray[np.signedinteger]:
        """Each interval's time by cause, one column each in the order of ALL_CAUSES; exact."""
        rest = self.length
        # by column: each is mostly read as a whole, and one that stays empty costs no memory
        causes = np.zeros((len(self), len(ALL_CAUSES)), dtype=rest.dtype, order="F")

        def count(cause: int, rows: NDArray[np.bool_], time: NDArray[np.signedinteger]) -> None:
            places = np.flatnonzero(rows)
            causes[places, cause] += time[places]
            rest[places] -= time[places]

        known = self.thread >= 0
        elsewhere = np.broadcast_to(self.elsewhere, len(self))
        count(ELSEWHERE, elsewhere > 0, elsewhere)
        count(UNKNOWN, ~known, rest)
        count(ALLOCATING, self.allocating > 0, self.allocating)
        count(FIRST_LAUNCH, self.loading > 0, self.loading)
        host_gap = self.outside >= HOST_GAP_NS
        mpi, compiling, in_out = (
            np.broadcast_to(part, len(self)) for part in (self.mpi, self.compiling, self.in_out)
        )
        count(IN_MPI, mpi > 0, mpi)
        count(FIRST_LAUNCH, host_gap & (compiling > 0), compiling)
        count(HOST_GAP, host_gap, self.outside - mpi - compiling)
        count(HOST_GAP, ~host_gap & (in_out >= LONG_CALL_NS), in_out)
        long = known & (self.in_call >= LONG_CALL_NS)
        count(FIRST_LAUNCH, long & self.first, self.in_call)
        # the driver copies from pageable memory inside the call, however long it takes
        for cause in (TO_DEVICE, TO_HOST):
            count(cause, (long | self.staged) & (self.stages == cause), self.in_call)
        count(HOST_GAP, long & ~self.first & (self.stages < 0), self.in_call)
        # what was launched this long ago does not wait for the host
        early = self.queued + elsewhere == self.length
        count(QUEUED, known & (self.queued >= HOST_GAP_NS), self.queued)
        count(FAULTS, self.migrates, rest)
        count(SYNC_DRAIN, known & self.drained, rest)
        count(QUEUED, known & early, rest)
        causes[:, LAUNCH_BOUND] = rest
        return causes

    @cached_property
    def totals(self) -> dict[str, int]:
        """The idle time by cause, in ns."""
        return dict(zip(ALL_CAUSES, self.causes.sum(axis=0).tolist(), strict=True))

    @property
    def run_ahead_lost_ns(self) -> int:
        """Launch-bound idle time that blocking calls brought about, in ns; a bound.

        A call that returns when nothing is queued costs the host its lead. Without it the host
        would have been ahead by as long as it was held, less what the device was idle right after
        the call; so of the launch-bound time up to the next such call at most that much.
        """
        if not self.drained.any():
            return 0
        rows = np.flatnonzero(self.drained)
        bound = np.add.reduceat(self.causes[:, LAUNCH_BOUND], rows, dtype=np.int64)
        lead = np.maximum(self.held[rows] - self.causes[rows, SYNC_DRAIN], 0)
        return int(np.minimum(bound, lead).sum())
