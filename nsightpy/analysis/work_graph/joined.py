"""The parts of all reports one after the other, on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.idle.gpu_work import COMMUNICATION
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.launched_work import Mask
from nsightpy.analysis.work_graph.part import GraphPart
from nsightpy.frames import Frame, Ints, Labels, last_before


@dataclass(frozen=True)
class HostMeetings:
    """MPI calls that wait for each other (mpi.matching), by what names each call in its part.

    `starts` are in the own time of process `pid` of a `report`. All that enter an `instance` have
    to be there before one that exits goes on.
    """

    report: tuple[str, ...]
    pid: Ints
    starts: Ints
    instance: Ints
    enters: Mask
    exits: Mask

    def of(self, part: GraphPart) -> tuple[Ints, Ints]:
        """The rows that are calls of a part, and which calls of its chain they are."""
        chain = part.chain
        rows = np.flatnonzero([report == part.report for report in self.report])
        order = np.lexsort((chain.start, chain.pid))
        wanted = (self.pid[rows], self.starts[rows])
        at = last_before((chain.pid[order], chain.start[order]), wanted)
        call = np.append(order, -1)[at]
        there = (call >= 0) & (np.append(chain.start, 0)[call] == self.starts[rows])
        return rows[there], call[there]


@dataclass(frozen=True)
class Joined:
    """Operations and calls of all parts; times in ns of the common clock, rows counted on.

    Of operations: `pageable` ones are copies that the driver stages, `unit` is a place in `units`
    (report, pid, device), `instance` its collective, `launched_by` its call, `previous` the
    operation before on its stream (-1: none), `launch` when its call began (NO_TIME: not known).
    `producer` and `consumer` are pairs of operations, `call`
    and `awaited` of a blocking call and an operation; `meeting_call`, `meeting`, `enters`, `exits`
    are HostMeetings. Of calls: `segment` numbers the calls of one
    thread in one block, `process` the processes, `call_unit` the first unit of each (-1: none);
    `call_low` and `call_high` are the ends of their
    block (NO_TIME: it is a whole report). By block (row) and unit (column): when it `opened` and
    `closed`, and the `marker`, an operation (-1: none) with whose begin the unit is through with
    the block; where none follows on it, its end and all others' (`last`).
    """

    units: tuple[tuple[str, int, int], ...]
    names: Labels
    call_names: Labels
    opened: Ints
    closed: Ints
    marker: Ints
    last: Mask
    start: Ints
    end: Ints
    kind: Ints
    pageable: Ints
    unit: Ints
    instance: Ints
    launched_by: Ints
    launch: Ints
    previous: Ints
    producer: Ints
    consumer: Ints
    block: Ints
    call_start: Ints
    call_end: Ints
    segment: Ints
    process: Ints
    call_unit: Ints
    call_low: Ints
    call_high: Ints
    call_kind: Ints
    call: Ints
    awaited: Ints
    meeting_call: Ints
    meeting: Ints
    enters: Ints
    exits: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def call_name(self) -> Ints:
        """The code of each call's function among `call_names`."""
        return self.call_names.codes.astype(np.int64)


def joined(
    parts: Sequence[GraphPart], alignment: Alignment | None, mpi: HostMeetings | None = None
) -> Joined:
    """The parts in their order; without an alignment all on the clock that they have."""
    units = sorted({(part.report, *place) for part in parts for place in part.work.places})
    shape = (1 + max((part.block for part in parts), default=-1), len(units))
    marker, last = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    opened, closed = np.full(shape, NO_TIME), np.full(shape, NO_TIME)
    columns: dict[str, list[Ints]] = {}
    rows = calls = segments = 0
    for number, part in enumerate(parts):
        own = np.asarray([units.index((part.report, *p)) for p in part.work.places], dtype=np.int64)
        values = _columns(part, alignment, own)
        for place, unit in enumerate(own.tolist()):
            at = (part.block, unit)
            found, last[at] = _marker(part, place)
            marker[at] = _moved(found, rows)
            opened[at], closed[at] = _stretch(part, alignment, place)
        values["process"] += number << 32
        values |= _meetings(part, mpi)
        of_calls = ("launched_by", "call", "meeting_call")
        for name, by in (*((name, calls) for name in of_calls), ("segment", segments)):
            values[name] = _moved(values[name], by)
        for name in ("previous", "producer", "consumer", "awaited"):
            values[name] = _moved(values[name], rows)
        for name, column in values.items():
            columns.setdefault(name, []).append(column)
        rows, calls = rows + len(part), calls + len(part.chain)
        segments += len(part.chain.threads)
    every = {name: np.concatenate(column) for name, column in columns.items()}
    names, call_names = (
        Frame.concatenate([Frame({"name": labels}) for labels in each]).labels("name").merged()
        for each in ([part.names for part in parts], [part.chain.labels for part in parts])
    )
    return Joined(tuple(units), names, call_names, opened, closed, marker, last, **every)


def _meetings(part: GraphPart, mpi: HostMeetings | None) -> dict[str, Ints]:
    """The columns of HostMeetings of one part."""
    none = np.empty(0, dtype=np.int64)
    if mpi is None:
        return dict.fromkeys(("meeting_call", "meeting", "enters", "exits"), none)
    rows, calls = mpi.of(part)
    columns = (calls, mpi.instance[rows], mpi.enters[rows], mpi.exits[rows])
    names = ("meeting_call", "meeting", "enters", "exits")
    return {n: c.astype(np.int64) for n, c in zip(names, columns, strict=True)}


def _moved(rows: Ints, by: int) -> Ints:
    return np.where(rows >= 0, rows + by, -1)


def _stretch(part: GraphPart, alignment: Alignment | None, place: int) -> Ints:
    """From when until when the stretch of a part is, in ns: of a whole report its work."""
    mine = part.work.place == place
    ends = np.asarray([part.work.start[mine].min(), part.work.end[mine].max()], dtype=np.int64)
    if part.low != NO_TIME:
        ends = np.asarray([part.low, part.high], dtype=np.int64)
    pid = np.full(2, part.work.places[place][0])
    return ends if alignment is None else _aligned(part, alignment, ends, pid)


def _marker(part: GraphPart, place: int) -> tuple[Ints, bool]:
    """The operation of a place with which its stretch ends, and whether it is in it itself."""
    mine = np.flatnonzero(part.work.place == place)
    after = mine[(part.work.start[mine] >= part.high) & (part.high != NO_TIME)]
    if len(after) == len(mine):
        return np.asarray(-1), False
    if len(after):
        return after[np.argmin(part.work.start[after])], False
    return mine[np.argmax(part.work.end[mine])], True


def _columns(part: GraphPart, alignment: Alignment | None, units: Ints) -> dict[str, Ints]:
    """The columns of Joined of one part, rows counted from its own first."""
    work, chain = part.work, part.chain
    pid = work.pid
    owners = [pid for pid, _ in work.places]
    first = {pid: int(units[owners.index(pid)]) for pid in owners}

    def moved(times: Ints, pid: Ints) -> Ints:
        return times if alignment is None else _aligned(part, alignment, times, pid)

    columns = {
        "start": moved(work.start, pid),
        "end": moved(work.end, pid),
        "kind": work.kind,
        "pageable": part.pageable,
        "unit": units[work.place],
        "instance": _instances(part, alignment),
        "launched_by": part.launched_by,
        "launch": moved(work.launch, pid),
        "previous": work.previous,
        "producer": part.events[0],
        "consumer": part.events[1],
        "block": np.full(len(work), part.block),
        "call_start": moved(chain.start, chain.pid),
        "call_end": moved(chain.end, chain.pid),
        "segment": chain.thread,
        "process": chain.pid.copy(),
        "call_unit": np.asarray([first.get(owner, -1) for owner, _ in chain.threads])[chain.thread],
        "call_low": moved(np.full(len(chain), part.low), chain.pid),
        "call_high": moved(np.full(len(chain), part.high), chain.pid),
        "call_kind": chain.kind,
        "call": part.awaited[0],
        "awaited": part.awaited[1],
    }
    return {name: np.asarray(column, dtype=np.int64) for name, column in columns.items()}


def _aligned(part: GraphPart, alignment: Alignment, times: Ints, pid: Ints) -> Ints:
    """Times of a part's processes on the common clock, in ns; NO_TIME stays."""
    moved = times.copy()
    for fit in alignment.fits:
        if fit.report == part.report:
            mine = (pid == fit.pid) & (times != NO_TIME)
            moved[mine] = fit.to_aligned(times[mine]) - alignment.base_ns
    return moved


def _instances(part: GraphPart, alignment: Alignment | None) -> Ints:
    """The instance of each collective kernel of a part; -1 for none, and for other work."""
    found = np.full(len(part), -1, dtype=np.int64)
    if alignment is None:
        return found
    work, ledger = part.work, alignment.ledger
    for number, unit in enumerate(ledger.units):
        fit, place = alignment.fits[unit.clock], (unit.pid, unit.device)
        if fit.report != part.report or place not in work.places:
            continue
        low, high = np.searchsorted(ledger.unit, (number, number + 1))
        starts = ledger.starts[low:high] - (fit.epoch_ns - alignment.base_ns)
        mine = work.place == work.places.index(place)
        rows = np.flatnonzero(mine & (work.kind == COMMUNICATION))
        at = np.minimum(np.searchsorted(starts, work.start[rows]), high - low - 1)
        same = starts[at] == work.start[rows]
        found[rows[same]] = alignment.instances.number[low:high][at[same]]
    return found
