"""Summaries of MPI: mpi_event_sum and mpi_msg_size_sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsightpy.analysis import ranking
from nsightpy.analysis.ranking import spread
from nsightpy.analysis.tally import Statistics, merge
from nsightpy.commands.stats.summary import Shown, Summary, Tallies, spread_fields, times
from nsightpy.frames import Frame, Labels
from nsightpy.query.scope import Scope
from nsightpy.reports.system import SystemReport
from nsightpy.results import Field

_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "kind")
_SIZES = ("bytes", "receive_bytes", "communicator")
# The tables that nsys names as the source of an event.
_SOURCES = {
    "point-to-point": "MPI_P2P_EVENTS",
    "collective": "MPI_COLLECTIVES_EVENTS",
    "wait": "MPI_START_WAIT_EVENTS",
    "other": "MPI_OTHER_EVENTS",
}
# What nsys calls the messages of these events, and the column of their sizes.
_MESSAGES = (
    ("p2p", "point-to-point", "bytes"),
    ("coll_send", "collective", "bytes"),
    ("coll_recv", "collective", "receive_bytes"),
)


def _events(report: SystemReport, scope: Scope, _: str) -> Tallies:
    frame = scope.narrow(report, report.frame("mpi_calls", _COLUMNS))
    kinds = frame.labels("kind")
    sources = tuple(_SOURCES.get(kind, kind) for kind in kinds.values)
    known = Frame({**frame, "source": Labels(kinds.codes, sources).merged()})
    return (ranking.tally_durations(known, ("source", "name")),)


def _messages(report: SystemReport, scope: Scope, _: str) -> Tallies:
    frame = scope.narrow(report, report.frame("mpi_calls", (*_COLUMNS, *_SIZES)))
    # of MPI calls that are NVTX ranges sizes are not known
    frame = frame.take(np.any([frame.ints(name) != 0 for name in _SIZES], axis=0))
    parts = []
    for source, kind, column in _MESSAGES:
        mine = frame.take(frame.labels("kind").equals([kind]))
        sized = {"source": Labels.constant(source, mine.rows), "bytes": mine[column]}
        parts.append(ranking.tally_bytes(Frame({**mine, **sized}), ("source", "name")))
    return (merge(parts),)


def _sizes(parts: Sequence[Statistics]) -> Shown:
    (statistics,) = parts
    groups = statistics.by_total()
    fields = (
        Field("Total Message Volume (bytes)", "bytes"),
        Field("Instances"),
        *spread_fields(unit="bytes"),
        Field("Source", "text"),
        Field("Name", "text"),
    )
    return fields, [
        (
            int(statistics.total[g]),
            int(statistics.instances[g]),
            *spread(statistics, g),
            *statistics.keys[g],
        )
        for g in groups
    ]


SUMMARIES = {
    "mpi_event_sum": Summary("MPI calls by time.", _events, times("Source", "Name"), "-t mpi"),
    "mpi_msg_size_sum": Summary("MPI calls by message size.", _messages, _sizes, "-t mpi"),
}
