"""Small programs of several ranks, run step by step over plain objects, and what is recorded.

The machine is exact: a call takes CALL_NS, its operation begins LATENCY_NS after it or GAP_NS after
the one before on its stream, whichever is later, but not before what its stream waits for; a
collective lasts from the last begin on. So a replay of the record has to be exact, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import numpy as np

from nsightpy.analysis.work_graph.job_work import MEETING_COLUMNS
from nsightpy.analysis.work_graph.launched_work import Work
from nsightpy.analysis.work_graph.work_frames import WorkFrames, calls_with_mpi
from nsightpy.frames import Frame, Labels

CALL_NS, LATENCY_NS, GAP_NS, OWN_SYNC_NS, WAKE_NS = 4_000, 3_000, 1_000, 2_000, 2_000
STREAMS = (7, 13, 21)


class Step(NamedTuple):
    """What a host does: gap, launch, collective, record, wait, sync, meeting with other hosts."""

    kind: str
    stream: int = 7
    length: int = 0
    number: int = 0


class Call(NamedTuple):
    """An API call and the step it is of."""

    start: int
    end: int
    name: str
    step: int


class Operation(NamedTuple):
    """An operation and the step that launched it."""

    start: int
    end: int
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
        found = {}
        for kind in ("collective", "meeting"):
            begins = [
                [
                    done.start
                    for done in (rank.calls if kind == "meeting" else rank.operations)
                    if program[done.step].kind == kind
                ]
                for rank, program in zip(ranks, programs, strict=True)
            ]
            for number, starts in enumerate(zip(*begins, strict=True)):
                found[kind, number] = max(starts)
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
    pid: int = 1,
    block: int = 0,
) -> WorkFrames:
    """The part of the graph that one rank's record makes, or a stretch of it."""
    met = [call for call in rank.calls if call.name == NAMES["meeting"]]
    made = [call for call in rank.calls if call.name != NAMES["meeting"]]
    calls = Frame(
        {
            **_made(made, pid),
            "correlation_id": np.asarray([call.step + 1 for call in made]),
            "event_class": np.zeros(len(made), dtype=np.int64),
        }
    )
    kinds = [program[operation.step].kind for operation in rank.operations]
    kernels = Frame(
        {
            **_columns(rank.operations, pid),
            **_placed([op.step for op in rank.operations], program, pid),
            "name": Labels.of(kinds),
        }
    )
    waits = [call for call in rank.calls if call.name == NAMES["wait"]]
    records = [call for call in rank.calls if call.name == NAMES["record"]]
    syncs = [call for call in rank.calls if call.name == NAMES["sync"]]
    synchronizations = Frame(
        {
            "start_ns": np.asarray([call.start for call in waits + syncs], dtype=np.int64),
            **_placed([call.step for call in waits + syncs], program, pid),
            "kind": Labels.of(["stream wait"] * len(waits) + ["stream"] * len(syncs)),
            "event_sync_id": _numbers(waits + syncs, program),
        }
    )
    events = Frame(
        {
            **_placed([call.step for call in records], program, pid),
            "event_sync_id": _numbers(records, program),
        }
    )
    nothing = np.zeros(0, dtype=np.int64)
    empty = Frame({name: nothing for name in kernels if name != "name"})
    copies = Frame(
        {
            **empty,
            "bytes": nothing,
            **{n: Labels.of([]) for n in ("operation", "source_memory", "target_memory")},
        }
    )
    communicates = np.asarray([kind == "collective" for kind in kinds], dtype=np.bool_)
    frames = WorkFrames(
        Work(kernels, copies, empty),
        communicates,
        calls_with_mpi(calls, Frame(_made(met, pid))),
        synchronizations,
        events,
        report,
        block,
    )
    return frames if window is None else frames.between(*window)


def _made(calls: Sequence[Call], pid: int) -> dict[str, np.ndarray | Labels]:
    names = Labels.of([call.name for call in calls])
    return {**_columns(calls, pid), "tid": np.full(len(calls), pid), "name": names}


def meetings_of(ranks: Sequence[Recorded], reports: Sequence[str], pid: int = 1) -> Frame:
    """The meetings of hosts of all ranks: the n-th of each is one."""
    met = [
        (report, call.start, number)
        for rank, report in zip(ranks, reports, strict=True)
        for number, call in enumerate(c for c in rank.calls if c.name == NAMES["meeting"])
    ]
    every = np.ones(len(met), dtype=np.int64)
    starts, numbers = (np.asarray([one[n] for one in met], dtype=np.int64) for n in (1, 2))
    columns = (pid * every, starts, numbers, every, every)
    names = Labels.of([one[0] for one in met])
    return Frame({"report": names, **dict(zip(MEETING_COLUMNS, columns, strict=True))})


def _columns(rows: Sequence[Call] | Sequence[Operation], pid: int) -> dict[str, np.ndarray]:
    return {
        "start_ns": np.asarray([row.start for row in rows], dtype=np.int64),
        "end_ns": np.asarray([row.end for row in rows], dtype=np.int64),
        "pid": np.full(len(rows), pid),
    }


def _placed(steps: Sequence[int], program: Sequence[Step], pid: int) -> dict[str, np.ndarray]:
    count = len(steps)
    return {
        "pid": np.full(count, pid),
        "device": np.zeros(count, dtype=np.int64),
        "context": np.ones(count, dtype=np.int64),
        "stream": np.asarray([program[step].stream for step in steps], dtype=np.int64),
        "correlation_id": np.asarray([step + 1 for step in steps], dtype=np.int64),
    }


def _numbers(calls: Sequence[Call], program: Sequence[Step]) -> np.ndarray:
    return np.asarray([program[call.step].number for call in calls], dtype=np.int64)
