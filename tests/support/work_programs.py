"""Small programs of several ranks, run step by step over plain objects, and what is recorded.

The machine is exact: a call takes CALL_NS, its operation begins LATENCY_NS after it or GAP_NS after
the one before on its stream, whichever is later, but not before what its stream waits for; a
collective lasts from the last begin on. So a replay of the record has to be exact, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

import numpy as np

from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS
from nsightpy.analysis.work_graph.job_work import MEETING_COLUMNS
from nsightpy.analysis.work_graph.launched_work import (
    EVENT_COLUMNS,
    SYNCHRONIZATION_COLUMNS,
    WORK_COLUMNS,
    Work,
    WorkFrames,
    calls_with_mpi,
)
from nsightpy.frames import Frame
from tests.support.frames import frame

CALL_NS, LATENCY_NS, GAP_NS, OWN_SYNC_NS, WAKE_NS = 4_000, 3_000, 1_000, 2_000, 2_000
STREAMS = (7, 13, 21)
SPANS = ("start_ns", "end_ns", "pid", "tid", "name")


class Step(NamedTuple):
    """What a host does: gap, launch, collective, record, wait, sync, meeting with other hosts."""

    kind: str
    stream: int = 7
    length: int = 0
    number: int = 0


class Operation(NamedTuple):
    """An operation and the step that launched it."""

    start: int
    end: int
    step: int


class Call(NamedTuple):
    """An API call and the step it is of."""

    start: int
    end: int
    name: str
    step: int


@dataclass
class Recorded:
    """What one rank did; `met` is when all ranks of each collective were there."""

    calls: list[Call] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """When its last operation ended."""
        return max(operation.end for operation in self.operations)


NAMES = {
    "launch": "cudaLaunchKernel",
    "collective": "cuLaunchKernelEx",
    "record": "cudaEventRecord",
    "wait": "cudaStreamWaitEvent",
    "sync": "cudaStreamSynchronize",
    "meeting": "MPI_Barrier",
}


def random_programs(random: Random, ranks: int, steps: int) -> list[list[Step]]:
    """Programs of some ranks that have their collectives in the same order."""
    kinds = ["gap", "launch", "launch", "launch", "collective", "event", "sync", "meeting"]
    plan = [random.choice(kinds) for _ in range(steps)]
    return [_prefix() + _program(random, plan) for _ in range(ranks)]


def _prefix() -> list[Step]:
    """Steps from which every usual latency can be read: streams empty and full, nothing to wait."""
    steps = []
    for stream in STREAMS:
        for kind in ("launch", "collective"):
            steps += [Step(kind, stream, 20_000), Step("sync", stream), Step("sync", stream)]
        steps += [Step("launch", stream, 90_000), Step("launch", stream, 30_000)]
        steps += [Step("sync", stream), Step("launch", stream, 10_000), Step("sync", stream)]
    return steps


def _program(random: Random, plan: Sequence[str]) -> list[Step]:
    steps: list[Step] = []
    for number, kind in enumerate(plan):
        stream, other = random.sample(STREAMS, 2)
        length = 2 * random.randrange(1_000, 60_000)
        if kind == "event":
            steps += [Step("launch", other, length), Step("record", other, number=number + 1)]
            steps += [Step("wait", stream, number=number + 1), Step("launch", stream, length)]
        elif kind == "gap":
            # a launch after each, so that two gaps are never one
            steps.append(Step(kind, length=random.choice([10, 30, 60]) * length))
            steps.append(Step("launch", stream, length))
        else:
            # a collective has one stream on all ranks
            steps.append(Step(kind, STREAMS[-1] if kind == "collective" else stream, length))
    return [*steps, *(Step("sync", stream) for stream in STREAMS)]


def run(programs: Sequence[Sequence[Step]]) -> list[Recorded]:
    """All ranks from their begin to their end; again until no collective moves."""
    met: dict[tuple[str, int], int] = {}
    while True:
        ranks = [_run(program, met) for program in programs]
        found: dict[tuple[str, int], int] = {}
        for rank, program in zip(ranks, programs, strict=True):
            for kind, recorded in (("collective", rank.operations), ("meeting", rank.calls)):
                begins = [one.start for one in recorded if program[one.step].kind == kind]
                for number, begin in enumerate(begins):
                    found[kind, number] = max(begin, found.get((kind, number), begin))
        if found == met:
            return ranks
        met = found


def _run(program: Sequence[Step], met: dict[tuple[str, int], int]) -> Recorded:
    rank, clock, collectives, meetings = Recorded(), 1_000_000, 0, 0
    free: dict[int, int] = {}
    held: dict[int, int] = {}
    records: dict[int, int] = {}
    for number, step in enumerate(program):
        if step.kind == "gap":
            clock += step.length
            continue
        start, end = clock, clock + (OWN_SYNC_NS if step.kind == "sync" else CALL_NS)
        if step.kind == "sync":
            if free.get(step.stream, 0) > start:
                end = max(end, free[step.stream] + WAKE_NS)
        elif step.kind == "meeting":
            end = max(start, met.get(("meeting", meetings), 0)) + OWN_SYNC_NS
            meetings += 1
        elif step.kind == "record":
            records[step.number] = max(free.get(step.stream, 0), held.get(step.stream, 0))
        elif step.kind == "wait":
            held[step.stream] = max(held.get(step.stream, 0), records[step.number])
        else:
            begin = max(end + LATENCY_NS, held.get(step.stream, 0))
            if step.stream in free:
                begin = max(begin, free[step.stream] + GAP_NS)
            until = begin
            if step.kind == "collective":
                until = max(begin, met.get(("collective", collectives), 0))
                collectives += 1
            free[step.stream] = until + step.length
            rank.operations.append(Operation(begin, until + step.length, number))
        rank.calls.append(Call(start, end, NAMES[step.kind], number))
        clock = end + 500
    return rank


def part_of(
    rank: Recorded,
    program: Sequence[Step],
    report: str,
    window: tuple[int, int] | None = None,
    block: int = 0,
) -> WorkFrames:
    """The part of the graph that one rank's record makes, or a stretch of it."""

    def rows(kind: str) -> list[Call]:
        return [call for call in rank.calls if call.name == NAMES[kind]]

    def queued(call: Call) -> tuple[int, ...]:
        step = program[call.step]
        return 1, 1, step.stream, call.step + 1, step.number

    calls = [call for call in rank.calls if call.name != NAMES["meeting"]]
    frames = frames_of(
        [(call.start, call.end, call.name, call.step + 1, 1) for call in calls],
        [
            (op.start, op.end, op.step + 1, program[op.step].kind, 0, program[op.step].stream)
            for op in rank.operations
        ],
        met=[(call.start, call.end, 1, 1, call.name) for call in rows("meeting")],
        waits=[
            (call.start, "stream wait" if kind == "wait" else "stream", *queued(call))
            for kind in ("wait", "sync")
            for call in rows(kind)
        ],
        records=[queued(call) for call in rows("record")],
    )
    frames = replace(frames, report=report, block=block)
    return frames if window is None else frames.between(*window)


def frames_of(
    calls: Sequence[tuple[Any, ...]],
    operations: Sequence[tuple[Any, ...]],
    met: Sequence[tuple[Any, ...]] = (),
    waits: Sequence[tuple[Any, ...]] = (),
    records: Sequence[tuple[Any, ...]] = (),
) -> WorkFrames:
    """The frames of process 1: calls are (start, end, name, correlation id, thread), operations
    (start, end, correlation id, name, device, stream), of which copies are by their names.
    """
    placed = [
        (start, end, 1, device, 1 + device, stream, number, name, 1 << 20, "", "")
        for start, end, number, name, device, stream in operations
    ]
    kernels = [row for row in placed if not row[7].startswith("[CUDA")]
    copies = [row for row in placed if row[7].startswith("[CUDA")]
    columns = (*WORK_COLUMNS, "name", "bytes", "source_memory", "target_memory")
    memory = frame((*WORK_COLUMNS, "operation", *columns[8:]), copies)
    made = [(start, end, 1, tid, number, name, 0) for start, end, name, number, tid in calls]
    return WorkFrames(
        Work(frame(columns[:8], kernels), memory, frame(WORK_COLUMNS, [])),
        np.asarray([row[7] == "collective" for row in kernels], dtype=np.bool_),
        calls_with_mpi(frame(CALL_COLUMNS, made), frame(SPANS, met)),
        frame(SYNCHRONIZATION_COLUMNS, waits),
        frame(EVENT_COLUMNS, records),
    )


def meetings_of(ranks: Sequence[Recorded], reports: Sequence[str]) -> Frame:
    """The meetings of hosts of all ranks: the n-th of each is one."""
    rows = [
        (report, 1, call.start, number, 1, 1)
        for rank, report in zip(ranks, reports, strict=True)
        for number, call in enumerate(c for c in rank.calls if c.name == NAMES["meeting"])
    ]
    return frame(("report", *MEETING_COLUMNS), rows)
