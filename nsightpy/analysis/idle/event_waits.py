"""Which operation a stream waited for through CUDA events.

A record on a stream is done when everything enqueued on that stream before it is done: the last
operation there, and whatever the stream had to wait for since then (a relayed event). A wait
names its record by eventSyncId, never by the reused eventId. The times of the host's calls give
the order in which operations, records and waits were enqueued on a stream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.idle.gpu_work import GpuWork, Rows, numbered
from nsightpy.analysis.launches import NO_TIME, launch_starts, matched
from nsightpy.frames import Frame, Ints

WAIT_KIND = "stream wait"
SYNCHRONIZATION_COLUMNS = ("start_ns", "pid", "context", "stream", "kind", "event_sync_id")
EVENT_COLUMNS = ("pid", "context", "stream", "correlation_id", "event_sync_id")


@dataclass(frozen=True, slots=True)
class EventWaits:
    """For each GPU operation the row of the one it waited for through events, -1 for none.

    `producer` is None when nothing waited. Of several, the one that ended last. `waits` were
    made; `unresolved` of them name a record that the capture does not hold.
    """

    producer: Rows | None
    waits: int
    unresolved: int


def event_waits(work: GpuWork, synchronizations: Frame, events: Frame, calls: Frame) -> EventWaits:
    """Follow every stream wait to the operation it waited for.

    `calls` are the launch calls (start_ns, pid, correlation_id), which date the records.
    """
    is_wait = synchronizations.labels("kind").equals([WAIT_KIND])
    waits = synchronizations.take(is_wait)
    recorded = launch_starts(events, calls)
    records, recorded = events.take(recorded != NO_TIME), recorded[recorded != NO_TIME]
    record_of = matched(
        (records.ints("pid"), records.ints("event_sync_id")),
        np.arange(records.rows, dtype=np.int64),
        (waits.ints("pid"), waits.ints("event_sync_id")),
        -1,
    )
    known = record_of >= 0
    unresolved = int(np.count_nonzero(~known))
    if unresolved == waits.rows:
        return EventWaits(None, waits.rows, unresolved)
    waits, record_of = waits.take(known), record_of[known]
    queued = _Queued.of(
        work,
        _streams_of(work, waits, records),
        np.concatenate([waits.ints("start_ns"), recorded]),
    )
    return EventWaits(_producers(work, queued, record_of), len(is_wait.nonzero()[0]), unresolved)


def _streams_of(work: GpuWork, *frames: Frame) -> Ints:
    """The number of each row's stream; streams without work get numbers beyond the work's."""
    numbers: dict[tuple[int, ...], int] = {stream: n for n, stream in enumerate(work.streams)}
    codes, streams = numbered(frames, ("pid", "context", "stream"))
    return np.asarray(
        [numbers.setdefault(stream, len(numbers)) for stream in streams], dtype=np.int64
    )[codes]


@dataclass(frozen=True, slots=True)
class _Queued:
    """Waits, then records, in the queues of their streams.

    `behind` is the operation right before each one and `ahead` the one right after it (-1: none);
    `order` sorts them by stream and time, `segment` numbers, in that order, the runs of them that
    no operation interrupts.
    """

    behind: Ints
    ahead: Ints
    order: Ints
    segment: Ints

    @classmethod
    def of(cls, work: GpuWork, stream: Ints, time: Ints) -> _Queued:
        # an operation whose launch is not known was enqueued no earlier than the one before it
        enqueued = work.reached(work.launch[work.by_stream])
        order = np.lexsort((time, stream))
        edges = np.searchsorted(stream[order], np.arange(len(work.streams) + 1))
        place = np.zeros(len(stream), dtype=np.int64)
        behind, ahead = np.full(len(stream), -1), np.full(len(stream), -1)
        for number in np.flatnonzero(np.diff(edges)).tolist():
            mine = order[edges[number] : edges[number + 1]]
            low, high = int(work.bounds[number]), int(work.bounds[number + 1])
            at = low + np.searchsorted(enqueued[low:high], time[mine])
            place[mine] = at
            rows = work.by_stream[low:high]
            behind[mine] = np.where(at > low, rows[np.maximum(at - low - 1, 0)], -1)
            ahead[mine] = np.where(at < high, rows[np.minimum(at - low, high - low - 1)], -1)
        changes = (np.diff(place[order]) != 0) | (np.diff(stream[order]) != 0)
        return cls(behind, ahead, order, np.concatenate([[0], np.cumsum(changes)])[: len(order)])


def _producers(work: GpuWork, queued: _Queued, record_of: Ints) -> Rows:
    """For each operation the one that ended last of those that the waits before it wait for."""
    waits = len(record_of)
    behind = queued.behind[waits:]
    before = np.zeros(len(work), dtype=np.bool_)
    before[behind[behind >= 0]] = True
    ended = np.flatnonzero(before)
    ended = ended[np.argsort(work.end[ended], kind="stable")]
    # operations are compared by the place of their end; 0 is none
    place = np.zeros(len(work) + 1, dtype=np.int32)
    place[ended] = np.arange(1, len(ended) + 1)
    done_after = place[behind]
    bits = len(ended).bit_length()
    base = queued.segment << bits
    carried = np.zeros(len(queued.order), dtype=np.int64)
    while True:
        carried[:waits] = done_after[record_of]
        reached = np.empty_like(carried)
        reached[queued.order] = np.maximum.accumulate(base | carried[queued.order]) - base
        relayed = np.maximum(done_after, reached[waits:])
        if np.array_equal(relayed, done_after):
            break
        done_after = relayed
    latest = np.zeros(len(work) + 1, dtype=np.int32)
    # of the waits right before an operation the last one has reached the most
    in_order = queued.order[queued.order < waits]
    latest[queued.ahead[in_order]] = reached[in_order]
    return np.concatenate([[-1], ended]).astype(np.int32)[latest[:-1]]
