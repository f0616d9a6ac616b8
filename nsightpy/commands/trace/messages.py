"""trace --mpi: MPI calls by start, as nsys stats mpi_event_trace lists them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nsightpy.commands.trace.cells import Place, batches, listed, rows_of, texts
from nsightpy.frames import Frame, Ints
from nsightpy.query.scope import Scope
from nsightpy.results import Field, Row, Value, fields_in

FIELDS = (
    *fields_in("ns", "Start (ns)", "End (ns)", "Duration (ns)"),
    Field("Event", "text"),
    *fields_in("id", "Pid", "Tid", "Tag", "Rank", "PeerRank", "RootRank"),
    *fields_in("bytes", "Size (B)", "CollSendSize (B)", "CollRecvSize (B)"),
)
COLUMNS = (
    *("start_ns", "end_ns", "name", "kind", "pid", "tid", "tag", "peer", "bytes"),
    *("receive_bytes", "communicator"),
)


def listing(place: Place, scope: Scope, _: str = "") -> Iterator[Row]:
    """The rows of a report in time order."""
    calls = scope.narrow(place.report, place.report.frame("mpi_calls", COLUMNS))
    for frame in batches(calls.ordered()):
        yield from _rows(place, frame)


def _rows(place: Place, calls: Frame) -> list[Row]:
    start, end, peer = (calls.ints(name) for name in ("start_ns", "end_ns", "peer"))
    pids = calls.ints("pid").tolist()
    ranks = {pid: place.report.rank_of(pid)[0] for pid in set(pids)}
    kinds = calls.labels("kind")
    message, collective = kinds.equals(["point-to-point"]), kinds.equals(["collective"])
    sent, received = calls.ints("bytes"), calls.ints("receive_bytes")
    # of MPI calls that are NVTX ranges sizes are not known
    known = (calls.ints("communicator") != 0) | (sent != 0) | (received != 0)
    return rows_of(
        [
            place.times(calls, start),
            place.times(calls, end),
            listed(end - start),
            texts(calls.labels("name")),
            listed(calls.ints("pid")),
            listed(calls.ints("tid")),
            _of(calls.ints("tag"), message & (calls.ints("tag") >= 0)),
            [ranks[pid] for pid in pids],
            _of(peer, message & (peer >= 0)),
            _of(peer, collective & (peer >= 0)),
            _of(sent, message & known),
            _of(sent, collective & known),
            _of(received, collective & known),
        ]
    )


def _of(values: Ints, mine: NDArray[np.bool_]) -> list[Value]:
    """The numbers of some rows; of others nothing."""
    pairs = zip(values.tolist(), mine.tolist(), strict=True)
    return [value if is_own else None for value, is_own in pairs]
