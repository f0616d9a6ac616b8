"""The causes of idle time by the ids of the findings, and the intervals that they divide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.idle.gpu_work import Rows
from nsightpy.frames import Ints

# Ids of findings where there is one (docs/findings.md). `imbalance` is the time in which the host,
# or a stream, waited for another device of the process.
CAUSES = (
    "launch-bound",
    "host-gap",
    "sync-drain",
    "first-launch",
    "allocation",
    "exposed-h2d",
    "exposed-d2h",
    "exposed-d2d",
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
    ALLOCATION,
    TO_DEVICE,
    TO_HOST,
    ON_DEVICE,
    QUEUED,
    UNKNOWN,
    IN_MPI,
    ELSEWHERE,
    FAULTS,
) = range(len(CAUSES))


@dataclass(frozen=True)
class IdleIntervals:
    """The idle intervals of one device in a window, in time order, and why it was idle; in ns.

    `before` and `after` are rows of the GpuWork (-1: none), `thread` the place in the chain's
    threads of the one that launched `after` (-1: not known). `times` has a row for each interval
    and a column for each of CAUSES; a row adds up to its interval exactly.
    """

    opened: Ints
    closed: Ints
    before: Rows
    after: Rows
    thread: Ints
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


class Division:
    """Intervals that are divided piece by piece; what is left of each goes to the next cause."""

    def __init__(self, length: Ints) -> None:
        self.left = length.copy()
        self.times = np.zeros((len(length), len(CAUSES)), dtype=np.int64)

    def give(self, cause: int, rows: Ints, time: Ints) -> None:
        """So much of the time of some intervals has this cause; never more than is left."""
        part = np.minimum(time, self.left[rows])
        self.times[rows, cause] += part
        self.left[rows] -= part

    def rest(self, cause: int, mask: NDArray[np.bool_]) -> None:
        """All that is left of some intervals has this cause."""
        rows = np.flatnonzero(mask)
        self.give(cause, rows, self.left[rows])
