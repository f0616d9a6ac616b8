"""MPI calls by time, by message size and one by one."""

from collections.abc import Iterator

import numpy as np

from nsightpy.analysis.ranking import spread
from nsightpy.commands.stats.operations import events
from nsightpy.commands.stats.reports import Listing, Reports, by_time, known, numbered_by, sum_of
from nsightpy.frames import Frame, Labels
from nsightpy.query import Scope, SystemReport

_MPI = "-t mpi"
_MESSAGE, _COLLECTIVE = "point-to-point", "collective"
# The tables that nsys names as the source of an event.
_SOURCES = {
    _MESSAGE: "MPI_P2P_EVENTS",
    _COLLECTIVE: "MPI_COLLECTIVES_EVENTS",
    "wait": "MPI_START_WAIT_EVENTS",
    "other": "MPI_OTHER_EVENTS",
}
# What nsys calls the messages of these events, and the column of their sizes.
_MESSAGES = (
    ("p2p", _MESSAGE, "bytes"),
    ("coll_send", _COLLECTIVE, "bytes"),
    ("coll_recv", _COLLECTIVE, "receive_bytes"),
)


def _sized(report: SystemReport, scope: Scope, *more: str) -> Frame:
    """MPI calls with the sizes of their messages: -1 for those of calls that are NVTX ranges."""
    sizes = ("bytes", "receive_bytes", "communicator")
    frame = scope.read(report, "mpi_calls", ("name", "pid", "tid", "kind", *sizes, *more))
    unknown = np.all([frame.ints(size) == 0 for size in sizes], axis=0)
    known = {size: np.where(unknown, -1, frame.ints(size)) for size in sizes[:2]}
    return Frame({**frame, **known})


def _by_source(report: SystemReport, scope: Scope, label: str) -> Frame:
    frame = events(report, scope, label, name="mpi_calls")
    source = frame.labels("kind").renamed(lambda kind: _SOURCES.get(kind, kind))
    return Frame({**frame, "source": source})


def _messages(report: SystemReport, scope: Scope, _: str) -> Frame:
    calls = _sized(report, scope)
    parts = []
    for source, kind, column in _MESSAGES:
        rows = calls.labels("kind").equals([kind])
        sized = Frame({"name": calls["name"], "bytes": calls[column]}).take(rows)
        parts.append(Frame({**sized, "source": Labels.constant(source, sized.rows)}))
    return Frame.concatenate(parts)


def _calls(report: SystemReport, scope: Scope, _: str) -> Iterator[Frame]:
    frame = _sized(report, scope, "tag", "peer").ordered()
    message, collective = (frame.labels("kind").equals([k]) for k in (_MESSAGE, _COLLECTIVE))
    peer, size, received = (frame.ints(name) for name in ("peer", "bytes", "receive_bytes"))
    columns = {
        "tag": known(frame.ints("tag"), message),
        "rank": numbered_by(frame, ("pid",), lambda pid: report.rank_of(pid)[0]),
        "other": known(peer, message),
        "root": known(peer, collective),
        "size": known(size, message),
        "sent": known(size, collective),
        "received": known(received, collective),
    }
    yield Frame({**frame, **columns})


_NAMES = {"source": "Source", "name": "Name"}
REPORTS: Reports = {
    "mpi_event_sum": by_time(_by_source, keys=_NAMES, records=_MPI, on_host=True),
    "mpi_msg_size_sum": sum_of(
        _messages,
        tuple(_NAMES),
        "Total Message Volume (bytes)=total of bytes, Instances=instances of bytes, "
        f"{spread(unit='bytes', of='bytes')}, Source=source, Name=name",
        records=_MPI,
        measures=("bytes",),
        on_host=True,
    ),
    "mpi_event_trace": Listing(
        _calls,
        "Start (ns)=start_ns, End (ns)=end_ns, Duration (ns)=duration, Event=name, Pid=pid, "
        "Tid=tid, Tag=tag>-1, Rank=rank, PeerRank=other>-1, RootRank=root>-1, Size (B)=size>-1, "
        "CollSendSize (B)=sent>-1, CollRecvSize (B)=received>-1",
        records=_MPI,
    ),
}
