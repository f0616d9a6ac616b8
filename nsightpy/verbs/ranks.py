"""ranks: every rank on one clock, how much it waits, and which one the others wait for."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.analysis.alignment import Alignment, Clock, ClockFit
from nsightpy.analysis.alignment import align as align_clocks
from nsightpy.analysis.collectives import CollectiveLog, log_of
from nsightpy.rank_set import RankSet
from nsightpy.reports import NsysReport


def align(rank_set: RankSet) -> list[ClockFit]:
    """How the times of each process of each report become times on one common clock."""
    return list(alignment_of(rank_set).fits)


def alignment_of(rank_set: RankSet) -> Alignment:
    """The fits with the collectives they rest on, matched across ranks."""
    mapped = rank_set.map(collective_log)
    rank_set.find_ranks()
    return aligned(mapped.results)


def aligned(results: Sequence[tuple[NsysReport, CollectiveLog]]) -> Alignment:
    """The alignment of reports whose collectives are at hand, in the order of their ranks."""
    units = [(clock, log) for report, log in results for clock in clocks_of(report)]
    units.sort(key=lambda unit: (unit[0].rank is None, unit[0].rank or 0))
    return align_clocks([clock for clock, _ in units], [log for _, log in units])


def collective_log(report: NsysReport) -> CollectiveLog:
    """What travels of a report's collectives."""
    return log_of(report.frame("collectives"))


def clocks_of(report: NsysReport) -> list[Clock]:
    """What a report says about the clock of each of its processes."""
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
