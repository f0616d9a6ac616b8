"""MPI calls as a frame: from the MPI tables, or the NVTX ranges that stand for them.

Made from the Nsight Systems User Guide, "SQLite schema reference". No public capture with rows in
MPI_* was at hand: those are tested on simulated exports only; MPI as NVTX ranges on a real one.
"""

from operator import itemgetter
from typing import NamedTuple

import numpy as np

from nsightpy import frames
from nsightpy.frames import ColumnData, Frame, Labels, distinct
from nsightpy.readers.nsys.events import OF_THREAD, SPAN
from nsightpy.readers.nsys.table_frames import Derived, Source, reader
from nsightpy.readers.nsys.tables import MPI_TABLES, NsysExport, process_part

MPI_DOMAIN = "MPI"
# What is read of NVTX ranges where they stand for MPI calls.
MPI_COLUMNS = ("start_ns", "end_ns", "pid", "tid", "name", "domain")
COMMUNICATORS = "MPI_COMMUNICATORS"


class _Communicator(NamedTuple):
    """A communicator as one process knows it, from a moment on."""

    since: int
    name: str
    size: int
    rank: int


def _communicators_of(export: NsysExport, calls: Frame) -> dict[str, ColumnData]:
    """Name, size and own rank of the communicator of each call."""
    communicator_of = export.once(_communicators)
    pids, pid = distinct(calls.ints("pid"))
    handles, handle = distinct(calls.ints("communicator"))
    keys, codes = distinct(pid.astype(np.int64) * max(len(handles), 1) + handle)
    communicators = [_Communicator(0, "", 0, -1)]
    index = np.zeros(calls.rows, dtype=np.int64)
    for code, key in enumerate(keys.tolist()):
        owner, own = divmod(key, len(handles))
        if recorded := communicator_of.get((int(pids[owner]), int(handles[own]))):
            rows = np.flatnonzero(codes == code)
            since = np.asarray([communicator.since for communicator in recorded])
            latest = np.searchsorted(since, calls.ints("start_ns")[rows], side="right") - 1
            index[rows] = len(communicators) + np.maximum(latest, 0)
            communicators += recorded
    _, names, sizes, ranks = zip(*communicators, strict=True)
    return {
        "communicator_id": Labels(index.astype(np.int32), names).merged(),
        "communicator_size": np.asarray(sizes, dtype=np.int64)[index],
        "communicator_rank": np.asarray(ranks, dtype=np.int64)[index],
    }


def _communicators(export: NsysExport) -> dict[tuple[int, int], list[_Communicator]]:
    """The communicators of each process and handle by time, as handles are used again; all
    processes know one by its global id, or else by its members."""
    numbers = ("rank", "timestamp", "commHandle", "localRank", "size", "commUid")
    rows = export.file.values(COMMUNICATORS, numbers, ("members",))
    owners = {rank: pid for pid, rank in mpi_ranks(export)}
    only = next(iter(owners.values())) if len(owners) == 1 else None
    communicators: dict[tuple[int, int], list[_Communicator]] = {}
    complete = [(*(-1 if n is None else n for n in row), members) for *row, members in rows]
    for rank, since, handle, own_rank, size, uid, members in sorted(complete, key=itemgetter(1)):
        pid = owners.get(rank, only)
        if pid is not None:
            name = f"uid {uid}" if uid not in (0, -1) else f"ranks {members}" if members else ""
            communicator = _Communicator(since, name, max(size, 0), own_rank)
            communicators.setdefault((pid, handle), []).append(communicator)
    return communicators


mpi_calls = reader(
    frames.MPI_CALLS,
    *(
        Source(
            table,
            {
                **SPAN,
                "bytes": "size",
                "receive_bytes": "recvSize",
                "peer": ("remoteRank", "rootRank"),
                "tag": "tag",
                "request": "requestHandle",
                "communicator": "commHandle",
            },
            OF_THREAD,
            {"name": "textId"},
            same={"kind": kind},
            derived=(
                Derived(
                    ("communicator_id", "communicator_size", "communicator_rank"),
                    ("start_ns", "pid", "communicator"),
                    _communicators_of,
                ),
            ),
        )
        for table, kind in zip(
            MPI_TABLES, ("point-to-point", "collective", "wait", "other"), strict=True
        )
    ),
)


def mpi_ranks(export: NsysExport) -> list[tuple[int, int]]:
    """The process and the rank of each MPI rank."""
    rows = export.file.values("MPI_RANKS", ("globalTid", "rank"))
    return [(process_part(thread), rank) for thread, rank in rows if None not in (thread, rank)]


def mpi_ranges(ranges: Frame) -> Frame:
    """MPI calls of an export that has them as NVTX ranges of domain MPI only (2022 and before)."""
    ranges_of_mpi = ranges.take(ranges.labels("domain").equals([MPI_DOMAIN]))
    kinds = tuple(_kind_of(name) for name in ranges_of_mpi.labels("name").values)
    columns: dict[str, ColumnData] = {
        **Frame.blank(frames.MPI_CALLS, ranges_of_mpi.rows),
        **{name: ranges_of_mpi[name] for name in MPI_COLUMNS if name != "domain"},
        "kind": Labels(ranges_of_mpi.labels("name").codes, kinds).merged(),
    }
    return Frame({name: columns[name] for name in frames.MPI_CALLS.names})


def _kind_of(name: str) -> str:
    """The kind of an MPI function, as the tables of later exports sort them."""
    plain = name.removeprefix("MPI_").lower()
    if plain.startswith(("wait", "test", "start")):
        return "wait"
    if plain.lstrip("i").startswith(("send", "recv", "bsend", "ssend", "rsend", "probe", "mrecv")):
        return "point-to-point"
    words = ("bcast", "reduce", "gather", "scatter", "alltoall", "barrier", "scan")
    return "collective" if any(word in plain for word in words) else "other"
