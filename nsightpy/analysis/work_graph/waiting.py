"""What stands in the queue of each stream, and what operations and blocking calls wait for in it.

A record on a stream is done when the operation is that was enqueued there last before it. A wait
names its record by eventSyncId, never by the reused eventId. The host's calls give the order of the
queue.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from nsightpy.analysis.launches import NO_LAUNCH, NO_TIME, launch_rows, launch_starts, matched
from nsightpy.analysis.work_graph.host_chain import WAIT
from nsightpy.analysis.work_graph.launched_work import (
    LaunchedWork,
    Mask,
    WorkFrames,
    numbered_streams,
)
from nsightpy.analysis.work_graph.thresholds import QUEUE_LENGTH, SOON_NS
from nsightpy.frames import Frame, Ints, distinct_pairs, last_before, positions

Pairs = tuple[Ints, Ints]
WAIT_KIND = "stream wait"
_WHOLE_DEVICE = re.compile("(?:Device|Ctx|Thread)Synchronize")


@dataclass(frozen=True)
class Queues:
    """The queues of the streams of some work, and the frames that tell of waits."""

    work: LaunchedWork
    frames: WorkFrames

    @cached_property
    def _enqueued(self) -> tuple[Ints, Ints]:
        """Stream and time of what is enqueued, by stream; without a launch with the one before."""
        order = self.work.by_stream
        return self.work.stream[order].astype(np.int64), self.work.reached(self.work.launch[order])

    def _streams_of(self, frame: Frame) -> Ints:
        """The number of each row's stream; of one without work that after all."""
        numbers = {stream: number for number, stream in enumerate(self.work.streams)}
        streams, codes = numbered_streams(frame)
        table = [numbers.get(stream, len(numbers)) for stream in streams]
        return np.asarray(table, dtype=np.int64)[codes]

    def enqueued(self, stream: Ints, times: Ints, before: int = 1) -> Ints:
        """The last operation enqueued on each stream before a time, or the next; -1 for none."""
        at = positions(self._enqueued, (stream, times)) - before
        bounds = np.append(self.work.bounds, [0, 0])
        there = (at >= bounds[stream]) & (at < bounds[stream + 1])
        return np.append(self.work.by_stream, -1)[np.where(there, at, -1)]

    @cached_property
    def _records(self) -> tuple[Frame, Ints]:
        """The records whose call is known, and the operation that each is done with; -1: none."""
        recorded = launch_starts(self.frames.events, self.frames.calls)
        dated = recorded != NO_TIME
        records = self.frames.events.take(dated)
        return records, self.enqueued(self._streams_of(records), recorded[dated])

    def _recorded(self, waits: Frame) -> Ints:
        """The operation with which the record is done that each wait names; -1: not known."""
        records, done_with = self._records
        record = matched(
            (records.ints("pid"), records.ints("event_sync_id")),
            np.arange(records.rows, dtype=np.int64),
            (waits.ints("pid"), waits.ints("event_sync_id")),
            -1,
        )
        return np.append(done_with, -1)[record]

    def events(self) -> Pairs:
        """Pairs of an operation and one that waits for it through events."""
        waits = self.frames.synchronizations
        waits = waits.take(waits.labels("kind").equals([WAIT_KIND]))
        producer = self._recorded(waits)
        consumer = self.enqueued(self._streams_of(waits), waits.ints("start_ns"), before=0)
        both = (producer >= 0) & (consumer >= 0)
        return producer[both], consumer[both]

    def awaited(self) -> Pairs:
        """Pairs of a call (row of the chain) and an operation that has to end before it returns.

        An operation that ended after the call was not waited for.
        """
        work, chain = self.work, self.work.chain
        rest = chain.kind == WAIT
        recorded, explained = self._synchronized()
        whole = np.flatnonzero(rest & ~explained & chain.labels.where(_WHOLE_DEVICE.search))
        pids = np.asarray([stream[0] for stream in work.streams], dtype=np.int64)
        own_copies = work.launched_by[work.own_copies].astype(np.int64), work.own_copies
        named = self._seen(recorded, self._of_streams(whole, chain.pid[whole], pids), own_copies)
        # a stream waits, too, for what it was made to wait for: the call then returns with that
        call, row = named
        since = np.maximum(work.end[row], chain.start[call])
        rest[call[chain.end[call] - since <= SOON_NS]] = False
        rest[self._on_full_queues()] = True
        return _joined([named, self._seen(self._last_ended(np.flatnonzero(rest)))])

    def _seen(self, *parts: Pairs) -> Pairs:
        """The pairs that the record does not contradict: the operation ended before the call."""
        call, row = _joined(parts)
        call, row = call[row >= 0], row[row >= 0]
        waits = self.work.end[row] <= self.work.chain.end[call]
        pairs = np.unique(np.stack([call[waits], row[waits]]), axis=1)
        return pairs[0], pairs[1]

    def _synchronized(self) -> tuple[Pairs, Mask]:
        """What the capture says itself, and which calls it is about."""
        chain, waits = self.work.chain, self.frames.synchronizations
        row = launch_rows(waits, self.frames.calls)
        there = (row != NO_LAUNCH) & ~waits.labels("kind").equals([WAIT_KIND])
        waits, call = waits.take(there), chain.outermost[row[there]].astype(np.int64)
        of_stream, of_event, of_context = (
            np.flatnonzero(waits.labels("kind").equals([kind]))
            for kind in ("stream", "event", "context")
        )
        explained = np.zeros(len(chain), dtype=np.bool_)
        explained[call] = True
        stream, on_stream = self._streams_of(waits)[of_stream], call[of_stream]
        owners = np.asarray([s[:2] for s in self.work.streams], dtype=np.int64).reshape(-1, 2).T
        own = np.stack([waits.ints("pid"), waits.ints("context")])[:, of_context]
        codes = distinct_pairs(*np.concatenate([owners, own], axis=1))[1].astype(np.int64)
        contexts, context = np.split(codes, [owners.shape[1]])
        pairs = (
            (on_stream, self.enqueued(stream, chain.start[on_stream])),
            (call[of_event], self._recorded(waits.take(of_event))),
            self._of_streams(call[of_context], context, contexts),
        )
        return _joined(pairs), explained

    def _of_streams(self, calls: Ints, owner: Ints, owners: Ints) -> Pairs:
        """The last operation on each stream (`owners`) of the owner of each call."""
        pairs = [(calls[:0], calls[:0])]
        for one in np.unique(owner):
            of_owner, streams = calls[owner == one], np.flatnonzero(owners == one)
            call, stream = np.repeat(of_owner, len(streams)), np.tile(streams, len(of_owner))
            pairs.append((call, self.enqueued(stream, self.work.chain.start[call])))
        return _joined(pairs)

    def _last_ended(self, calls: Ints) -> Pairs:
        """The operation of the process, launched before each call, that ended last in it."""
        work, chain = self.work, self.work.chain
        rows = np.flatnonzero(work.launch != NO_TIME)
        rows = rows[np.lexsort((work.end[rows], work.pid[rows]))]
        at = last_before((work.pid[rows], work.end[rows]), (chain.pid[calls], chain.end[calls]))
        row = np.append(rows, -1)[at]
        early = (row >= 0) & (np.append(work.launch, 0)[row] < chain.start[calls])
        return calls, np.where(early, row, -1)

    def _on_full_queues(self) -> Ints:
        """The calls that returned when so many operations as it holds waited in their stream."""
        work, full = self.work, [np.empty(0, dtype=np.int64)]
        for low, high in pairwise(work.bounds.tolist()):
            rows = work.by_stream[low:high]
            rows = rows[work.launched_by[rows] >= 0]
            call = work.launched_by[rows].astype(np.int64)
            begun = np.searchsorted(work.start[rows], work.chain.end[call])
            full.append(call[np.arange(len(rows)) - begun >= QUEUE_LENGTH])
        return np.unique(np.concatenate(full))


def _joined(parts: Iterable[Pairs]) -> Pairs:
    call, row = (np.concatenate(part) for part in zip(*parts, strict=True))
    return call, row
