"""Why a simulated device was idle, walked kernel by kernel through what its host enqueued.

Definitions: an interval without compute is launch-starved until the launch of the kernel that ends
it begins; the rest is blocking when something that kernel waited for ended after both the
interval's begin and the launch, else dependency-stalled. Times are the report's own, in ns.
"""

from collections.abc import Iterable
from typing import NamedTuple

from simulator.clocks import Clock
from simulator.rank import Operation, Rank

KERNEL_WAIT_NS = 30_000


class Entry(NamedTuple):
    """Something in the queue of a stream: an operation, a wait or a record; by correlation."""

    correlation: int
    operation: int | None = None
    waits_for: int | None = None
    records: int | None = None


def idle_truth(
    clock: Clock, rank: Rank, placed: list[Operation], lost: Iterable[int] = ()
) -> dict[str, int] | None:
    """The causes and stream waits of one rank, ns; None where graphs hide what happened.

    `placed` are the rank's operations in report time, `lost` the calls that the report lacks.
    """
    if any(op.role == "graph" for op in placed) or not placed:
        return None
    hidden = set(lost)
    starts = clock.host([call.start for call in rank.calls]).tolist()
    launch = {
        call.correlation: start
        for call, start in zip(rank.calls, starts, strict=True)
        if call.correlation not in hidden
    }
    found = _causes(placed, launch, Queues(rank, placed))
    return found | _stream_waits(placed, launch)


class Queues:
    """What each stream was given, in the order of the calls, and where what is asked for lies.

    `place_of` gives an operation's place in its stream, `record_at` the stream and place of an
    event's record.
    """

    def __init__(self, rank: Rank, placed: list[Operation]) -> None:
        self.entries: dict[int, list[Entry]] = {}
        for index, op in enumerate(placed):
            self._add(op.stream, Entry(op.correlation, operation=index))
        for wait in rank.waits:
            if wait.kind == "stream_wait":
                self._add(wait.stream, Entry(wait.correlation, waits_for=wait.event_sync))
        for record in rank.records:
            self._add(record.stream, Entry(record.correlation, records=record.event_sync))
        self.place_of: dict[int, int] = {}
        self.record_at: dict[int, tuple[int, int]] = {}
        for stream, queue in self.entries.items():
            queue.sort(key=lambda entry: entry.correlation)
            for place, entry in enumerate(queue):
                if entry.operation is not None:
                    self.place_of[entry.operation] = place
                if entry.records is not None:
                    self.record_at.setdefault(entry.records, (stream, place))

    def _add(self, stream: int, entry: Entry) -> None:
        self.entries.setdefault(stream, []).append(entry)

    def done_before(self, stream: int, place: int, ends: list[int]) -> int | None:
        """When everything is done that a stream has to do before an entry; None for nothing."""
        latest: int | None = None
        queue = self.entries[stream]
        for at in range(place - 1, -1, -1):
            entry = queue[at]
            if entry.operation is not None:
                end = ends[entry.operation]
                return end if latest is None else max(latest, end)
            if entry.waits_for is not None:
                awaited = self.done_before(*self.record_at[entry.waits_for], ends)
                if awaited is not None:
                    latest = awaited if latest is None else max(latest, awaited)
        return latest


def _causes(placed: list[Operation], launch: dict[int, int], queues: Queues) -> dict[str, int]:
    ends = [op.end for op in placed]
    begin, finish = min(op.start for op in placed), max(ends)
    compute = sorted((op.start, index) for index, op in enumerate(placed) if op.role == "compute")
    starved = blocking = stalled = unattributed = 0
    opened = begin
    for start, index in compute:
        op = placed[index]
        if start > opened:
            called = launch.get(op.correlation)
            if called is None:
                unattributed += start - opened
            else:
                called = min(max(called, opened), start)
                done = queues.done_before(op.stream, queues.place_of[index], ends)
                starved += called - opened
                if done is not None and done > called:
                    blocking += start - called
                else:
                    stalled += start - called
        opened = max(opened, op.end)
    return {
        "launch_starved_ns": starved,
        "blocking_ns": blocking,
        "dependency_stalled_ns": stalled,
        "unattributed_ns": unattributed + max(finish - opened, 0),
    }


def _stream_waits(placed: list[Operation], launch: dict[int, int]) -> dict[str, int]:
    waits = {"host_wait_ns": 0, "kernel_wait_ns": 0, "other_wait_ns": 0}
    for stream in {op.stream for op in placed}:
        reached: int | None = None
        for op in sorted((op for op in placed if op.stream == stream), key=lambda op: op.start):
            gap = 0 if reached is None else op.start - reached
            if gap > 0 and reached is not None:
                called = launch.get(op.correlation)
                if called is not None and called > reached:
                    waits["host_wait_ns"] += gap
                elif gap < KERNEL_WAIT_NS:
                    waits["kernel_wait_ns"] += gap
                else:
                    waits["other_wait_ns"] += gap
            reached = op.end if reached is None else max(reached, op.end)
    return waits
