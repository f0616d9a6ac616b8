"""Summaries of MPI: mpi_event_sum and mpi_msg_size_sum."""

from __future__ import annotations

from collections.abc import Sequence

from nsightpy.analysis import ranking
from nsightpy.analysis.tally import Statistics
from nsightpy.commands.stats.summary import Shown, Summary, Tallies, spread, spread_fields, times
from nsightpy.frames import Frame, Labels
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field

_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "kind", "bytes")
# The tables that nsys names as the source of an event.
_SOURCES = {
    "point-to-point": "MPI_P2P_EVENTS",
    "collective": "MPI_COLLECTIVES_EVENTS",
    "wait": "MPI_START_WAIT_EVENTS",
    "other": "MPI_OTHER_EVENTS",
}


def _calls(report: SystemReport, scope: Scope) -> Frame:
    frame = scope.narrow(report, report.frame("mpi_calls", _COLUMNS))
    kinds = frame.labels("kind")
    sources = tuple(_SOURCES.get(kind, kind) for kind in kinds.values)
    return Frame({**frame, "source": Labels(kinds.codes, sources).merged()})


def _events(report: SystemReport, scope: Scope) -> Tallies:
    return (ranking.tally_durations(_calls(report, scope), ("source", "name")),)


def _messages(report: SystemReport, scope: Scope) -> Tallies:
    frame = _calls(report, scope)
    carried = frame.take(frame.labels("kind").equals(["point-to-point", "collective"]))
    return (ranking.tally_bytes(carried, ("source", "name")),)


def _sizes(parts: Sequence[Statistics]) -> Shown:
    (found,) = parts
    groups = found.by_total()
    fields = (
        Field("Total Message Volume (bytes)", "bytes"),
        Field("Instances"),
        *spread_fields(unit="bytes"),
        Field("Source", "text"),
        Field("Name", "text"),
    )
    return fields, [
        (int(found.total[g]), int(found.instances[g]), *spread(found, g), *found.keys[g])
        for g in groups
    ]


SUMMARIES = {
    "mpi_event_sum": Summary("MPI calls by time.", _events, times("Source", "Name"), "-t mpi"),
    "mpi_msg_size_sum": Summary("MPI calls by message size.", _messages, _sizes, "-t mpi"),
}
