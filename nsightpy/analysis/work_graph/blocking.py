"""Which operations each blocking call of the host waited for."""

from __future__ import annotations

import re

import numpy as np

from nsightpy.analysis.idle.gpu_work import GpuWork
from nsightpy.analysis.idle.host_calls import WAIT
from nsightpy.analysis.launches import NO_LAUNCH, NO_TIME, call_rows
from nsightpy.analysis.work_graph.device_queue import DeviceQueue, dated, record_of
from nsightpy.analysis.work_graph.host_chain import FREES, HostChain
from nsightpy.analysis.work_graph.launched_work import LaunchedWork, Mask
from nsightpy.analysis.work_graph.thresholds import QUEUE_LENGTH, SOON_NS
from nsightpy.frames import Frame, Ints, last_before

Pairs = tuple[Ints, Ints]
_WHOLE_DEVICE = re.compile("(?:Device|Ctx|Thread)Synchronize")


def awaited(
    launched: LaunchedWork,
    queue: DeviceQueue,
    synchronizations: Frame,
    events: Frame,
    calls: Frame,
) -> Pairs:
    """Pairs of a call (row of the chain) and an operation that has to end before it returns.

    An operation that ended after the call was not waited for.
    """
    work, chain, launched_by = launched.work, launched.chain, launched.launched_by
    copies = launched.own_copies
    recorded, known = _by_rows(chain, queue, synchronizations, events, calls)
    unknown = (chain.kind == WAIT) & ~known
    whole = unknown & chain.labels.where(_WHOLE_DEVICE.search)
    frees = chain.labels.where(FREES.search)
    everything = np.arange(len(work.streams))
    named = _seen(
        chain,
        work,
        recorded,
        _of_streams(chain, queue, np.flatnonzero(whole), everything),
        (launched_by[copies], copies),
    )
    rest = chain.kind == WAIT
    # a stream waits, too, for what it was made to wait for: the call then returns with that
    call, row = named
    since = np.maximum(work.end[row], chain.start[call])
    rest[call[chain.end[call] - since <= SOON_NS]] = False
    rest[_on_full_queues(chain, work, launched_by)] = True
    call, row = _seen(chain, work, _last_ended(chain, work, np.flatnonzero(rest | frees)))
    # freeing waits for the device where it is seen to wait
    waits = ~frees[call] | (work.end[row] > chain.start[call])
    return np.concatenate([named[0], call[waits]]), np.concatenate([named[1], row[waits]])


def _seen(chain: HostChain, work: GpuWork, *parts: Pairs) -> Pairs:
    """The pairs that the record does not contradict: the operation ended before the call."""
    call, row = (np.concatenate(part) for part in zip(*parts, strict=True))
    call, row = call[row >= 0], row[row >= 0]
    waits = work.end[row] <= chain.end[call]
    pairs = np.unique(np.stack([call[waits], row[waits]]), axis=1)
    return pairs[0], pairs[1]


def _by_rows(
    chain: HostChain, queue: DeviceQueue, synchronizations: Frame, events: Frame, calls: Frame
) -> tuple[Pairs, Mask]:
    """What the capture says itself, and which calls it is about."""
    row = call_rows(synchronizations, calls)
    kind = synchronizations.labels("kind")
    there = (row != NO_LAUNCH) & ~kind.equals(["stream wait"])
    synchronizations, kind = synchronizations.take(there), kind.take(there)
    call = chain.outermost[row[there]].astype(np.int64)
    on_stream, on_event, on_context = (kind.equals([k]) for k in ("stream", "event", "context"))
    known = np.zeros(len(chain), dtype=np.bool_)
    (stream,) = queue.streams_of(synchronizations)
    pairs = [(call[on_stream], queue.last_enqueued(stream, chain.start[call])[on_stream])]
    known[call[on_stream]] = True
    asked = synchronizations.take(on_event)
    records, recorded = dated(events, calls)
    record = record_of(asked, records)
    named = record >= 0
    (source,) = queue.streams_of(records)
    done = queue.last_enqueued(source, recorded)
    pairs.append((call[on_event][named], done[record[named]]))
    known[call[on_event][named]] = True
    owner = np.asarray([s[:2] for s in queue.work.streams], dtype=np.int64).reshape(-1, 2)
    pid, context = (synchronizations.ints(name) for name in ("pid", "context"))
    for one in np.unique(np.stack([pid, context])[:, on_context], axis=1).T:
        rows = call[on_context & (pid == one[0]) & (context == one[1])]
        streams = np.flatnonzero((owner == one).all(axis=1))
        pairs.append(_of_streams(chain, queue, rows, streams))
        known[rows] = True
    joined = [np.concatenate(part) for part in zip(*pairs, strict=True)]
    return (joined[0], joined[1]), known


def _of_streams(chain: HostChain, queue: DeviceQueue, calls: Ints, streams: Ints) -> Pairs:
    """The last operation on each of some streams of the caller's process."""
    pid = np.asarray([s[0] for s in queue.work.streams], dtype=np.int64)
    call, stream = np.repeat(calls, len(streams)), np.tile(streams, len(calls))
    same = chain.pid[call] == pid[stream]
    call, stream = call[same], stream[same]
    return call, queue.last_enqueued(stream, chain.start[call])


def _last_ended(chain: HostChain, work: GpuWork, calls: Ints) -> Pairs:
    """The operation of the process, launched before each call, that ended last until its end."""
    rows = np.flatnonzero(work.launch != NO_TIME)
    rows = rows[np.lexsort((work.end[rows], work.pid[rows]))]
    at = last_before((work.pid[rows], work.end[rows]), (chain.pid[calls], chain.end[calls]))
    row = np.append(rows, -1)[at]
    early = (row >= 0) & (np.append(work.launch, 0)[row] < chain.start[calls])
    return calls, np.where(early, row, -1)


def _on_full_queues(chain: HostChain, work: GpuWork, launched_by: Ints) -> Ints:
    """The calls that returned when so many operations of their stream had not begun as it holds."""
    order = work.by_stream[launched_by[work.by_stream] >= 0]
    call = launched_by[order]
    waiting = np.zeros(len(order), dtype=np.int64)
    for stream in range(len(work.streams)):
        mine = np.flatnonzero(work.stream[order] == stream)
        begun = np.searchsorted(work.start[order[mine]], chain.end[call[mine]])
        waiting[mine] = np.arange(len(mine)) - begun
    return np.unique(call[waiting >= QUEUE_LENGTH])
