"""Moments of several reports on one clock: that of the report of the first rank.

What `--from` and `--to` say, and the times that commands print about several reports, are moments
on this clock. One report alone keeps its own, which is the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.clock_alignment.clocks import ClockFit
from nsightpy.frames import Ints
from nsightpy.query.rank_alignment import alignment_of
from nsightpy.report_sets.rank_frames import zero_of
from nsightpy.report_sets.rank_set import RankSet

# A drift is some parts per million: each round leaves a millionth of the error before.
ROUNDS = 3


@dataclass(frozen=True)
class CommonClock:
    """How each process's own time becomes that of the common clock, in ns; `fits` by (report, pid).

    A process that is not among the fits keeps its own time.
    """

    fits: Mapping[tuple[str, int], ClockFit] = field(default_factory=dict)
    zero_ns: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, alignment: Alignment) -> CommonClock:
        """The clock of the first of all ranks that an alignment holds."""
        fits = {(fit.report, fit.pid): fit for fit in alignment.fits}
        return cls(fits, zero_of(alignment.fits) if fits else 0, tuple(alignment.notes))

    def aligned(self, report: str, pid: int, times: Ints) -> Ints:
        """Times of a report on the common clock."""
        fit = self.fits.get((report, pid))
        return times if fit is None else fit.to_aligned(times) - self.zero_ns

    def moment(self, report: str, pid: int, time_ns: int) -> int:
        """One time of a report on the common clock."""
        return int(self.aligned(report, pid, np.asarray([time_ns], dtype=np.int64))[0])

    def own(self, report: str, time_ns: int) -> int:
        """A moment of the common clock in a report's own time: that of its first process."""
        pid = next((pid for path, pid in self.fits if path == report), None)
        if pid is None:
            return time_ns
        return int(self.own_times(report, pid, np.asarray([time_ns], dtype=np.int64))[0])

    def own_times(self, report: str, pid: int, times: Ints) -> Ints:
        """Moments of the common clock in the own time of a process."""
        moments = times
        for _ in range(ROUNDS):
            moments = moments + times - self.aligned(report, pid, moments)
        return moments


def common_clock(ranks: RankSet) -> CommonClock:
    """The common clock of a rank set; each report's own where there is but one, or no one job."""
    alone = len(ranks) < 2 or not ranks.one_job
    return CommonClock() if alone else CommonClock.of(alignment_of(ranks))
