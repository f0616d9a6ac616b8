"""ranks: every rank on one clock, how much it waits, and which one the others wait for."""

from __future__ import annotations

from nsightpy.analysis.alignment import Clock, ClockFit, level_zero
from nsightpy.rank_set import RankSet
from nsightpy.reports import NsysReport


def align(rank_set: RankSet) -> list[ClockFit]:
    """How the times of each process of each report become times on one common clock."""
    mapped = rank_set.map(_clocks, ranked=True)
    return level_zero([clock for clocks in mapped.values for clock in clocks])


def _clocks(report: NsysReport) -> list[Clock]:
    session = report.session
    return [
        Clock(
            str(report.path),
            pid,
            report.rank_of(pid)[0],
            session.host,
            session.utc_ns,
            session.system_clock_ns,
            session.shift_ns,
            session.uuid,
        )
        for pid in report.pids
    ]
