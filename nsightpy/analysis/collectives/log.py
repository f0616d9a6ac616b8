"""The collectives of many ranks side by side: what travels from each report, and the ledger of all.

A unit is one process on one device: a rank. A clock is one process of one report.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nsightpy.analysis.grouping import group_by
from nsightpy.frames import Frame, Ints

Codes: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]

UNKNOWN = -1
# Operations that no rank can leave before all have come: their ends show how clocks differ.
SYNCHRONISING = frozenset({"AllReduce", "AllGather", "AllGatherV", "ReduceScatter", "AllToAll"})
POINT_TO_POINT = frozenset({"Send", "Recv", "SendRecv"})


class Kind(NamedTuple):
    """What collectives of one rank have in common (columns of frames.COLLECTIVES)."""

    pid: int
    device: int
    stream: int
    operation: str
    data_type: str
    communicator: str
    group_size: int
    group_rank: int
    bytes: int
    peer: int


@dataclass(frozen=True, slots=True)
class CollectiveLog:
    """One report's collectives, small enough to travel; times in ns of the report, by start.

    `shown` marks those that a question is about; all serve the alignment.
    """

    kinds: tuple[Kind, ...]
    codes: Codes
    starts: Ints
    ends: Ints
    sequences: Ints | None
    shown: Mask

    def __len__(self) -> int:
        return len(self.codes)


_NOTHING = np.empty(0, dtype=np.int64)
NO_LOG = CollectiveLog(
    (), _NOTHING.astype(np.int32), _NOTHING, _NOTHING, None, _NOTHING.astype(np.bool_)
)


def log_of(frame: Frame, shown: Mask) -> CollectiveLog:
    """The log of a collectives frame, and which of its rows a question is about."""
    groups = group_by(frame, Kind._fields)
    sequences = frame.ints("sequence")
    return CollectiveLog(
        tuple(Kind(*key) for key in groups.keys),  # type: ignore[arg-type]
        groups.codes,
        frame.ints("start_ns"),
        frame.ints("end_ns"),
        sequences if (sequences != UNKNOWN).any() else None,
        shown,
    )


class Participant(NamedTuple):
    """One process on one device; `clock` is the place of its process among the clocks."""

    clock: int
    pid: int
    device: int


class Signature(NamedTuple):
    """What is the same of a collective on every rank that takes part."""

    operation: str
    data_type: str
    bytes: int


class Communicator(NamedTuple):
    """A communicator by the name of its payload; point to point between two of many is its own.

    Without a payload `ranks` are the units that seem to share it; it is `doubtful` where several
    groups of them would explain what is seen as well.
    """

    name: str
    ranks: tuple[int, ...] = ()
    doubtful: bool = False


@dataclass(frozen=True)
class Ledger:
    """The collectives of all units, by unit and then by start; times in ns of level 0.

    `signature` and `communicator` are places in the tables (communicator -1: unknown), `group_size`
    is that of each communicator's creation (0: unknown), `shown` marks what a question is about.
    """

    units: tuple[Participant, ...]
    signatures: tuple[Signature, ...]
    communicators: tuple[Communicator, ...]
    group_sizes: tuple[int, ...]
    unit: Codes
    signature: Codes
    communicator: Codes
    stream: Codes
    starts: Ints
    ends: Ints
    sequences: Ints
    shown: Mask

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def clock(self) -> Codes:
        """The clock of each row."""
        return np.asarray([unit.clock for unit in self.units], dtype=np.int32)[self.unit]

    @property
    def operation(self) -> Ints:
        """A code for the operation of each row: NCCL counts the calls of each by itself in every
        communicator. The two sides of a transfer call different operations: they have one code."""
        names = ["" if t.operation in POINT_TO_POINT else t.operation for t in self.signatures]
        codes: Ints = np.unique(names, return_inverse=True)[1][self.signature].astype(np.int64)
        return codes

    @property
    def synchronising(self) -> Mask:
        """Mask of the rows whose end shows how clocks differ."""
        table = np.asarray([t.operation in SYNCHRONISING for t in self.signatures], dtype=np.bool_)
        return table[self.signature]


def ledger_of(pids: Sequence[int], logs: Sequence[CollectiveLog], epochs: Sequence[int]) -> Ledger:
    """The ledger of all clocks: logs[clock] is that of its process, or of several that it holds.

    epochs[clock] is added to its times.
    """
    owners: dict[int, tuple[CollectiveLog, dict[int, int]]] = {}
    for number, (pid, log) in enumerate(zip(pids, logs, strict=True)):
        owners.setdefault(id(log), (log, {}))[1][pid] = number
    units = sorted(
        {
            Participant(clocks[kind.pid], kind.pid, kind.device)
            for log, clocks in owners.values()
            for kind in log.kinds
            if kind.pid in clocks
        }
    )
    codes = {unit: code for code, unit in enumerate(units)}
    signatures: dict[Signature, int] = {}
    sizes: dict[Communicator, int] = {}
    communicators: dict[Communicator, int] = {}
    parts = []
    for log, clocks in owners.values():
        facts = np.full((len(log.kinds), 5), UNKNOWN, dtype=np.int64)
        for row, kind in enumerate(log.kinds):
            clock = clocks.get(kind.pid)
            if clock is None:
                continue
            signature = Signature(kind.operation, kind.data_type, kind.bytes)
            facts[row, 0] = codes[Participant(clock, kind.pid, kind.device)]
            facts[row, 1] = signatures.setdefault(signature, len(signatures))
            facts[row, 3:] = kind.stream, epochs[clock]
            if (communicator := _communicator_of(kind)) is not None:
                facts[row, 2] = communicators.setdefault(communicator, len(communicators))
                size = 2 if len(communicator.ranks) == 2 else kind.group_size
                sizes[communicator] = max(sizes.get(communicator, 0), size)
        parts.append(_columns(log, facts))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    columns = columns or [np.empty(0, dtype=np.int64)] * 8
    order = np.lexsort((columns[5], columns[4], columns[0]))
    return Ledger(  # type: ignore[call-arg]
        tuple(units),
        tuple(signatures),
        tuple(communicators),
        tuple(sizes.values()),
        *(column[order].astype(np.int32) for column in columns[:4]),  # type: ignore[arg-type]
        *(column[order] for column in columns[4:7]),
        columns[7][order].astype(np.bool_),
    )


def _columns(log: CollectiveLog, facts: Ints) -> tuple[NDArray[Any], ...]:
    """A log's unit, signature, communicator, stream, start, end, sequence and shown."""
    rows = np.flatnonzero(facts[log.codes, 0] != UNKNOWN)
    *kinds, epoch = facts[log.codes[rows]].T
    sequences = np.full(len(rows), UNKNOWN) if log.sequences is None else log.sequences[rows]
    times = log.starts[rows] + epoch, log.ends[rows] + epoch
    return (*kinds, *times, sequences, log.shown[rows])


def _communicator_of(kind: Kind) -> Communicator | None:
    """The communicator that a payload names; of a transfer the two ranks in it, where known."""
    if not kind.communicator:
        return None
    if kind.operation not in POINT_TO_POINT:
        return Communicator(kind.communicator)
    pair = sorted({kind.group_rank, kind.peer} - {UNKNOWN})
    return Communicator(kind.communicator, tuple(pair) if len(pair) == 2 else (UNKNOWN,))
