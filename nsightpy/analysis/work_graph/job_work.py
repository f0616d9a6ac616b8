"""The work of all reports as one, on one clock."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.alignment import Alignment
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.host_chain import HostChain
from nsightpy.analysis.work_graph.launched_work import (
    COMMUNICATION,
    LaunchedWork,
    Mask,
    WorkFrames,
    launched_work,
)
from nsightpy.analysis.work_graph.waiting import Pairs, Queues
from nsightpy.frames import Frame, Ints, Labels, constant, last_before

# MPI calls that wait for each other (mpi.matching), by what names them: their report, process and
# start in its own time. All that enter an instance have to be there before one that exits goes on.
MEETING_COLUMNS = ("pid", "start_ns", "instance", "enters", "exits")
NO_MEETINGS = Frame({"report": Labels.of(()), **dict.fromkeys(MEETING_COLUMNS, constant(0, 0))})

Unit = tuple[str, int, int]


@dataclass(frozen=True)
class JobWork(LaunchedWork):
    """Operations and calls of all parts; times in ns of the common clock.

    Of operations: `unit` is a place in `units` (report, pid, device), `instance` its collective
    (-1: none), `events` are pairs of one and another that waits for it, `awaited` those of a
    blocking call and an operation. `meetings` are those of MPI calls (call, instance, enters,
    exits). Of calls: `call_unit` is the first unit of each (-1: none), `call_low` and `call_high`
    are the ends of their block (NO_TIME: it is a whole report). By block (row) and unit (column):
    when it `opened` and `closed`, and the `marker`, an operation (-1: none) with whose begin the
    unit is through with the block; where none follows on it, its end and all others' (`last`).
    """

    units: tuple[Unit, ...]
    unit: Ints
    block: Ints
    instance: Ints
    events: Pairs
    awaited: Pairs
    meetings: Frame
    call_unit: Ints
    call_low: Ints
    call_high: Ints
    opened: Ints
    closed: Ints
    marker: Ints
    last: Mask


def job_work(
    parts: Sequence[WorkFrames], alignment: Alignment | None = None, mpi: Frame = NO_MEETINGS
) -> JobWork:
    """The work of all parts; without an alignment on the clock that they have."""
    pids = [part.pids() for part in parts]
    processes = [(part, pid) for part, own in zip(parts, pids, strict=True) for pid in own.tolist()]
    # from when until when the stretch of each process is
    ends = [
        _aligned(part.report, alignment, np.full(2, pid), np.asarray([part.low, part.high]))
        for part, pid in processes
    ]
    numbered = [*zip(parts, pids, np.cumsum([0, *map(len, pids)])[:-1].tolist(), strict=True)]
    whole = WorkFrames.concatenate([_moved(*part, alignment) for part in numbered])
    work = launched_work(whole.work, whole.communication, whole.calls)
    queues, chain = Queues(work, whole), work.chain
    of_place = [(*processes[process], device) for process, device in work.places]
    owners = [(part.report, pid, device) for part, pid, device in of_place]
    units = sorted(set(owners))
    unit = np.asarray([units.index(owner) for owner in owners], dtype=np.int64)
    block = np.asarray([part.block for part, *_ in of_place], dtype=np.int64)
    first = {work.places[place][0]: int(unit[place]) for place in reversed(range(len(unit)))}
    of_thread = [(first.get(process, -1), *ends[process]) for process, _ in chain.threads]
    of_call = np.asarray(of_thread, dtype=np.int64).reshape(-1, 3)[chain.thread]
    opened, closed, marker, last = _blocks(work, block, unit, ends)
    return JobWork(
        **{name: getattr(work, name) for name in LaunchedWork.__dataclass_fields__},
        units=tuple(units),
        unit=unit[work.place],
        block=block[work.place],
        instance=_instances(work, owners, alignment),
        events=queues.events(),
        awaited=queues.awaited(),
        meetings=_meetings(chain, numbered, alignment, mpi),
        call_unit=of_call[:, 0],
        call_low=of_call[:, 1],
        call_high=of_call[:, 2],
        opened=opened,
        closed=closed,
        marker=marker,
        last=last,
    )


def _moved(part: WorkFrames, pids: Ints, first: int, alignment: Alignment | None) -> WorkFrames:
    """A part on the common clock, its processes numbered from `first` on."""

    def moved(frame: Frame) -> Frame:
        pid = frame.ints("pid")
        columns = {
            name: _aligned(part.report, alignment, pid, frame.ints(name))
            for name in ("start_ns", "end_ns")
            if name in frame
        }
        return Frame({**frame, **columns, "pid": first + np.searchsorted(pids, pid)})

    return part.each(moved)


def _aligned(report: str, alignment: Alignment | None, pid: Ints, times: Ints) -> Ints:
    """Times of a report's processes on the common clock, in ns; NO_TIME stays."""
    moved = np.array(times)
    if alignment is not None:
        for fit in (fit for fit in alignment.fits if fit.report == report):
            rows = (pid == fit.pid) & (times != NO_TIME)
            moved[rows] = fit.to_aligned(times[rows]) - alignment.base_ns
    return moved


def _blocks(
    work: LaunchedWork, block: Ints, unit: Ints, ends: Sequence[Ints]
) -> tuple[Ints, Ints, Ints, Mask]:
    """When the blocks of JobWork opened and closed, their markers, and which of those are last."""
    shape = (1 + int(block.max(initial=-1)), 1 + int(unit.max(initial=-1)))
    opened, closed = np.full(shape, NO_TIME), np.full(shape, NO_TIME)
    marker, last = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    for place, at in enumerate(zip(block.tolist(), unit.tolist(), strict=True)):
        rows = np.flatnonzero(work.place == place)
        start, end = work.start[rows], work.end[rows]
        low, high = ends[work.places[place][0]].tolist()
        is_whole = low == NO_TIME
        opened[at], closed[at] = (start.min(), end.max()) if is_whole else (low, high)
        after = np.zeros(len(rows), dtype=np.bool_) if is_whole else start >= high
        if not after.any():
            marker[at], last[at] = rows[np.argmax(end)], True
        elif not after.all():
            marker[at] = rows[after][np.argmin(start[after])]
    return opened, closed, marker, last


def _instances(work: LaunchedWork, owners: Sequence[Unit], alignment: Alignment | None) -> Ints:
    """The instance of each collective kernel; -1 for none, and for other work."""
    found = np.full(len(work), -1, dtype=np.int64)
    if alignment is None:
        return found
    ledger = alignment.ledger
    for number, unit in enumerate(ledger.units):
        fit = alignment.fits[unit.clock]
        low, high = np.searchsorted(ledger.unit, (number, number + 1))
        own = ledger.starts[low:high] - (fit.epoch_ns - alignment.base_ns)
        starts = fit.to_aligned(own) - alignment.base_ns
        owner = (fit.report, unit.pid, unit.device)
        is_own = np.asarray([one == owner for one in owners], dtype=np.bool_)[work.place]
        rows = np.flatnonzero(is_own & (work.kind == COMMUNICATION))
        at = np.minimum(np.searchsorted(starts, work.start[rows]), high - low - 1)
        same = starts[at] == work.start[rows]
        found[rows[same]] = alignment.instances.number[low:high][at[same]]
    return found


def _meetings(
    chain: HostChain,
    parts: Sequence[tuple[WorkFrames, Ints, int]],
    alignment: Alignment | None,
    mpi: Frame,
) -> Frame:
    """The MPI calls that are in the chain, each with its `call` there."""
    of_parts = []
    for part, pids, first in parts:
        own = mpi.take(mpi.labels("report").equals([part.report]) & np.isin(mpi.ints("pid"), pids))
        pid, start = own.ints("pid"), own.ints("start_ns")
        moved = _aligned(part.report, alignment, pid, start)
        numbers = first + np.searchsorted(pids, pid)
        of_parts.append(Frame({**own, "pid": numbers, "start_ns": moved}))
    rows = Frame.concatenate(of_parts)
    order = np.lexsort((chain.start, chain.pid))
    wanted = rows.ints("pid"), rows.ints("start_ns")
    call = np.append(order, -1)[last_before((chain.pid[order], chain.start[order]), wanted)]
    there = (call >= 0) & (np.append(chain.start, 0)[call] == wanted[1])
    return Frame({**rows, "call": call}).take(there)
