"""What stands in the queue of each stream, and what operations and blocking calls wait for in it.

A record on a stream is done when everything enqueued there before it is done: the last operation,
and what the stream had to wait for since then (a relayed event). A wait names its record by
eventSyncId, never by the reused eventId. The host's calls give the order of the queue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.idle.gpu_work import STREAM, GpuWork, numbered_streams
from nsightpy.analysis.intervals import consecutive
from nsightpy.analysis.launches import NO_TIME, launch_starts, matched
from nsightpy.analysis.work_graph.thresholds import MOST_RELAYED
from nsightpy.frames import Frame, Ints, positions

WAIT_KIND = "stream wait"
SYNCHRONIZATION_COLUMNS = (
    *("start_ns", "pid", "context", "stream", "correlation_id", "kind", "event_sync_id"),
)
EVENT_COLUMNS = ("pid", "context", "stream", "correlation_id", "event_sync_id")
NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class DeviceQueue:
    """The queues of the streams of some work: places count its rows in the order of `by_stream`.

    `enqueued` is when the operation at each place was, one without a launch with the one before.
    """

    work: GpuWork
    enqueued: Ints

    @classmethod
    def of(cls, work: GpuWork) -> DeviceQueue:
        """The queues of some work."""
        return cls(work, work.reached(work.launch[work.by_stream]))

    def streams_of(self, *frames: Frame) -> list[Ints]:
        """The number of each row's stream; streams without work get numbers beyond the work's."""
        numbers = {stream: number for number, stream in enumerate(self.work.streams)}
        streams, codes = numbered_streams(Frame.concatenate([f.select(STREAM) for f in frames]))
        table = [numbers.setdefault(stream, len(numbers)) for stream in streams]
        edges = np.cumsum([frame.rows for frame in frames])[:-1]
        return np.split(np.asarray(table, dtype=np.int64)[codes], edges)

    def places(self, stream: Ints, times: Ints) -> Ints:
        """The place in the queue of what is enqueued on a stream at a time."""
        queued = (self.work.stream[self.work.by_stream], self.enqueued)
        return positions(queued, (stream, times))

    def behind(self, stream: Ints, place: Ints) -> Ints:
        """The operation right before each place of a stream; -1 for none."""
        return self._at(stream, place - 1)

    def ahead(self, stream: Ints, place: Ints) -> Ints:
        """The operation right after each place of a stream; -1 for none."""
        return self._at(stream, place)

    def _at(self, stream: Ints, place: Ints) -> Ints:
        rows = np.full(len(place), -1, dtype=np.int64)
        there = np.flatnonzero(stream < len(self.work.streams))
        low, high = (self.work.bounds[stream[there] + more] for more in (0, 1))
        there = there[(place[there] >= low) & (place[there] < high)]
        rows[there] = self.work.by_stream[place[there]]
        return rows

    def last_enqueued(self, stream: Ints, times: Ints) -> Ints:
        """The last operation enqueued on each stream before a time; -1 for none."""
        return self.behind(stream, self.places(stream, times))


def event_edges(
    queue: DeviceQueue, synchronizations: Frame, events: Frame, calls: Frame
) -> tuple[Ints, Ints]:
    """Pairs of an operation and one that waits for it through events.

    `calls` are the launch calls (start_ns, pid, correlation_id), which date the records.
    """
    waits = synchronizations.take(synchronizations.labels("kind").equals([WAIT_KIND]))
    records, recorded = dated(events, calls)
    record = record_of(waits, records)
    known = record >= 0
    asked = waits.take(known)
    stream, source = queue.streams_of(asked, records)
    order = np.lexsort((asked.ints("start_ns"), stream))
    stream, time, record = stream[order], asked.ints("start_ns")[order], record[known][order]
    place, source_place = queue.places(stream, time), queue.places(source, recorded)
    first, relays = _relayed(
        (stream, place, time), (source, source_place, recorded), queue.work.bounds[-1] + 1
    )
    owner, producer = _followed(record, queue.behind(source, source_place), first, relays)
    consumer = queue.ahead(stream, place)[owner]
    return producer[consumer >= 0], consumer[consumer >= 0]


Queued = tuple[Ints, Ints, Ints]


def _relayed(waits: Queued, records: Queued, places: int) -> tuple[Ints, Ints]:
    """Which waits stand between a record and the operation before it: the first, and how many.

    Both are given by stream, place and time, the waits in that order.
    """
    count = len(waits[0])
    time = np.argsort(np.argsort(np.concatenate([waits[2], records[2]]), kind="stable"))
    width = len(time) + 1
    keys = [(part[0] * places + part[1]) * width for part in (waits, records)]
    axis = keys[0] + time[:count]
    first = np.searchsorted(axis, keys[1])
    last = np.searchsorted(axis, keys[1] + time[count:])
    relays = np.minimum(last - first, MOST_RELAYED)
    return last - relays, relays


def _followed(record: Ints, behind: Ints, first: Ints, relays: Ints) -> tuple[Ints, Ints]:
    """Pairs of a wait and an operation that it waits for; `record` is that of each wait."""
    owner, asked = np.arange(len(record)), record
    owners, producers = [NO_ROWS], [NO_ROWS]
    while len(owner):
        direct = behind[asked] >= 0
        owners.append(owner[direct])
        producers.append(behind[asked[direct]])
        through = consecutive(first[asked], relays[asked])
        pairs = np.stack([np.repeat(owner, relays[asked]), record[through]])
        owner, asked = np.unique(pairs, axis=1) if pairs.size else (NO_ROWS, NO_ROWS)
    return np.concatenate(owners), np.concatenate(producers)


def dated(events: Frame, calls: Frame) -> tuple[Frame, Ints]:
    """The records whose call is known, and when it began, ns."""
    recorded = launch_starts(events, calls)
    return events.take(recorded != NO_TIME), recorded[recorded != NO_TIME]


def record_of(waits: Frame, records: Frame) -> Ints:
    """The row of the record that each wait names; -1 for one that is not known."""
    return matched(
        (records.ints("pid"), records.ints("event_sync_id")),
        np.arange(records.rows, dtype=np.int64),
        (waits.ints("pid"), waits.ints("event_sync_id")),
        -1,
    )
