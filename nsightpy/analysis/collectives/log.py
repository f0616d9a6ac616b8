"""The collectives of many ranks side by side: what travels from each report, and the ledger of all.

A unit is one process on one device: a rank. A clock is one process of one report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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
LOG_COLUMNS = (
    "pid",
    "device",
    "stream",
    "operation",
    "data_type",
    "communicator",
    "group_size",
    "group_rank",
    "bytes",
    "peer",
)


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

    def take(self, rows: Mask) -> CollectiveLog:
        """The log with some of its collectives."""
        columns = (self.codes, self.starts, self.ends, self.sequences, self.shown)
        taken = (None if column is None else column[rows] for column in columns)
        return CollectiveLog(self.kinds, *taken)  # type: ignore[arg-type]


NO_LOG = CollectiveLog(
    (),
    np.empty(0, np.int32),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    None,
    np.empty(0, np.bool_),
)


def log_of(frame: Frame, shown: Mask) -> CollectiveLog:
    """The log of a collectives frame, and which of its rows a question is about."""
    groups = group_by(frame, LOG_COLUMNS)
    sequences = frame.ints("sequence")
    return CollectiveLog(
        tuple(Kind(*key) for key in groups.keys) if frame.rows else (),  # type: ignore[arg-type]
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
    def synchronising(self) -> Mask:
        """Mask of the rows whose end shows how clocks differ."""
        table = np.asarray([t.operation in SYNCHRONISING for t in self.signatures], dtype=np.bool_)
        return table[self.signature] if len(table) else np.zeros(len(self), dtype=np.bool_)


def ledger_of(
    logs: Sequence[tuple[CollectiveLog, dict[int, int]]], epochs: Sequence[int]
) -> Ledger:
    """The ledger of logs, each with its clocks by pid; epochs[clock] is added to its times."""
    units = sorted(
        {
            Participant(clocks[kind.pid], kind.pid, kind.device)
            for log, clocks in logs
            for kind in log.kinds
            if kind.pid in clocks
        }
    )
    tables = _Tables({unit: place for place, unit in enumerate(units)})
    parts = [tables.part(log, clocks, epochs) for log, clocks in logs if len(log)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [
        np.empty(0, dtype=np.int64) for _ in range(8)
    ]
    order = np.lexsort((columns[5], columns[4], columns[0]))
    unit, signature, communicator, stream, starts, ends, sequences, shown = (
        column[order] for column in columns
    )
    return Ledger(
        tuple(units),
        tuple(tables.signatures),
        tuple(tables.communicators),
        tuple(tables.sizes),
        unit.astype(np.int32),
        signature.astype(np.int32),
        communicator.astype(np.int32),
        stream.astype(np.int32),
        starts,
        ends,
        sequences,
        shown.astype(np.bool_),
    )


class _Tables:
    """Places of units, signatures and communicators, filled as the logs are read."""

    def __init__(self, units: dict[Participant, int]) -> None:
        self.units = units
        self.signatures: dict[Signature, int] = {}
        self.communicators: dict[Communicator, int] = {}
        self.sizes: list[int] = []

    def part(
        self, log: CollectiveLog, clocks: dict[int, int], epochs: Sequence[int]
    ) -> tuple[Ints, ...]:
        """A log's unit, signature, communicator, stream, start, end, sequence and shown."""
        known = [kind.pid in clocks for kind in log.kinds]
        rows = np.asarray(known, dtype=np.bool_)[log.codes]
        codes = log.codes[rows]
        facts = [
            (
                self.units[Participant(clocks[kind.pid], kind.pid, kind.device)],
                self._signature(kind),
                self._communicator(kind),
                kind.stream,
                epochs[clocks[kind.pid]],
            )
            if present
            else (0, 0, 0, 0, 0)
            for kind, present in zip(log.kinds, known, strict=True)
        ]
        table = np.asarray(facts, dtype=np.int64).reshape(-1, 5)[codes]
        sequences = np.full(len(codes), UNKNOWN, dtype=np.int64)
        if log.sequences is not None:
            sequences = log.sequences[rows]
        starts, ends = log.starts[rows] + table[:, 4], log.ends[rows] + table[:, 4]
        return (*table[:, :4].T, starts, ends, sequences, log.shown[rows].astype(np.int64))

    def _signature(self, kind: Kind) -> int:
        signature = Signature(kind.operation, kind.data_type, kind.bytes)
        return self.signatures.setdefault(signature, len(self.signatures))

    def _communicator(self, kind: Kind) -> int:
        if not kind.communicator:
            return UNKNOWN
        communicator = Communicator(kind.communicator)
        if kind.operation in POINT_TO_POINT:
            pair = sorted({kind.group_rank, kind.peer} - {UNKNOWN})
            communicator = Communicator(
                kind.communicator, tuple(pair) if len(pair) == 2 else (UNKNOWN,)
            )
        place = self.communicators.setdefault(communicator, len(self.communicators))
        if place == len(self.sizes):
            self.sizes.append(0)
        size = len(communicator.ranks) if len(communicator.ranks) == 2 else kind.group_size
        self.sizes[place] = max(self.sizes[place], size)
        return place
