"""Simulated jobs and their twins: the same job, same seed, with one cause taken away.

What a cause costs is then known: the steady stretch of the job less that of its twin. As a program
(`python -m tests.support.twins JOBS SEED`) it replays so many jobs and says how right they are.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from simulator import TrainingJob
from simulator.run import Run, simulate
from simulator.settings import MIB

from nsightpy.analysis.iterations.steady import steady_state
from nsightpy.analysis.work_graph import replay as edits
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.host_chain import ALLOCATION
from nsightpy.analysis.work_graph.job_work import job_work
from nsightpy.analysis.work_graph.replay import Edit, replay
from nsightpy.query.rank_alignment import alignment_of
from nsightpy.query.scope import Scope
from nsightpy.query.work_reading import work_frames
from nsightpy.report_sets.opening import open_ranks
from nsightpy.reports.system import SystemReport

LAYOUTS = ((2, 1, 1), (1, 2, 1), (2, 2, 1), (1, 4, 1), (1, 2, 2), (2, 2, 2), (1, 8, 1), (4, 4, 1))
# A gain is right within this part of the truth, or this part of the time.
OF_TRUTH, OF_TIME = 0.10, 0.01


def random_job(seed: int) -> TrainingJob:
    """A job of 2 to 16 ranks with several troubles at once."""
    random = Random(seed)
    tensor, data, pipeline = random.choice(LAYOUTS)
    world = tensor * data * pipeline
    return TrainingJob(
        name="twin",
        seed=seed,
        tensor=tensor,
        data=data,
        pipeline=pipeline,
        ranks_per_node=random.choice((world, world // 2)),
        iterations=5,
        warmup=1,
        layers=random.choice((1, 2, 3)),
        buckets=random.choice((1, 2)),
        straggler=random.choice((None, random.randrange(world))),
        straggler_slowdown=random.uniform(1.05, 1.3),
        data_gap_ns=random.choice((50_000, 1_100_000, 2_000_000, 3_500_000)),
        long_gap_every=0,
        input_bytes=random.choice((4, 24, 64)) * MIB,
        input_copies=random.choice((1, 2)),
        pageable=random.random() < 0.3,
        tensor_bytes=random.choice((4, 16, 48)) * MIB,
        bucket_bytes=random.choice((16, 32, 96)) * MIB,
        payload=random.choice(("json", None)),
        autograd_thread=random.random() < 0.3,
        loop_allocations=random.choice((0, 0, 1, 4)),
        allocation_ns=random.choice((90_000, 300_000)),
        launches=random.choice((1.0, 1.0, 8.0)),
    )


@dataclass(frozen=True)
class Replayed:
    """A job, and the graph of a stretch of iterations of the reports it wrote."""

    job: TrainingJob
    graph: WorkGraph
    stretch: tuple[int, int]

    @classmethod
    def of(cls, job: TrainingJob, folder: Path) -> Replayed:
        """The job's graph, by its reports."""
        ranks = open_ranks(job.write(folder)[0])
        found = [_steady(report) for report in ranks]
        # the iterations that all ranks have in their steady state
        first, last = max(one[1] for one in found), min(one[2] for one in found)
        parts = [
            work_frames(report).between(spans[first][0], spans[last][1])
            for report, (spans, *_) in zip(ranks, found, strict=True)
        ]
        return cls(job, WorkGraph.of(job_work(parts, alignment_of(ranks))), (first, last))

    @property
    def ranks(self) -> list[int]:
        """The rank of each unit of the graph, from the name of its report."""
        return [int(Path(unit[0]).stem.rsplit("rank", 1)[1]) for unit in self.graph.work.units]

    def between_nodes(self) -> np.ndarray:
        """Mask of the operations of collectives that cross nodes."""
        work, nodes = self.graph.work, self.graph.nodes
        own = np.asarray(list(map(self.job.node, self.ranks)))[work.unit[nodes.members]]
        low, high = np.full(len(nodes.met), self.job.world), np.full(len(nodes.met), -1)
        np.minimum.at(low, nodes.meeting, own)
        np.maximum.at(high, nodes.meeting, own)
        mask = np.zeros(len(work), dtype=np.bool_)
        mask[nodes.members] = (low != high)[nodes.meeting]
        return mask


@dataclass(frozen=True)
class Cause:
    """One cause of lost time: the settings of the twin without it, and the edit that takes it away.

    `single`: it is one of those whose order counts.
    """

    name: str
    without: dict[str, Any]
    edit: Callable[[Replayed], list[Edit]]
    single: bool = True

    def beside(self, other: Cause) -> Cause:
        """Both together."""
        return Cause(
            f"{self.name} and {other.name}",
            self.without | other.without,
            lambda r: self.edit(r) + other.edit(r),
            single=False,
        )


def _steady(report: SystemReport) -> tuple[list[tuple[int, int]], int, int]:
    """Start and end of a report's iterations; the first and the last one of the steady state."""
    ranges = report.frame("nvtx_ranges", ("start_ns", "end_ns", "name"))
    steps = ranges.take(ranges.labels("name").equals(["iteration"])).ordered()
    spans = list(zip(steps.ints("start_ns").tolist(), steps.ints("end_ns").tolist(), strict=True))
    states = map(steady_state, Scope().iterations(report).values())
    state = next(filter(None, states), None)
    if state is None:
        return spans, 0, steps.rows - 1
    first = np.argmin(np.abs(steps.ints("start_ns") - state.window.starts[0]))
    last = np.argmin(np.abs(steps.ints("end_ns") - state.window.ends[0]))
    return spans, int(first), int(last)


def causes_of(job: TrainingJob) -> list[Cause]:
    """The causes that a job has, one by one, then some of them together."""

    def between(r: Replayed) -> list[Edit]:
        return edits.transfers(r.graph, 0.5, r.between_nodes())

    def like_peers(r: Replayed) -> list[Edit]:
        return edits.like_peers(r.graph, r.ranks.index(job.straggler or 0))

    def allocations(r: Replayed) -> list[Edit]:
        return edits.calls_of(r.graph, ALLOCATION)

    fewer = {"launches": job.launches / 2}
    host = Cause("host gaps", {"data_gap_ns": 0}, lambda r: edits.host_gaps(r.graph))
    fast = Cause("network x2", {"transfers": 0.5}, lambda r: edits.transfers(r.graph, 0.5), False)
    slow = Cause("straggler", {"straggler_slowdown": 1.0}, like_peers)
    found = [
        Cause("copies", {"copies": 0.0}, lambda r: edits.copies(r.graph)),
        Cause("launch cost", fewer, lambda r: edits.launches(r.graph, 0.5), False),
        Cause("network", {"transfers": 0.0}, lambda r: edits.transfers(r.graph)),
        fast,
    ]
    if job.data_gap_ns > 1_000_000:
        found += [host, host.beside(fast)]
    if job.loop_allocations:
        found.append(Cause("allocation", {"allocation_ns": 0}, allocations))
    if job.ranks_per_node < job.world:
        half = {"transfers_between_nodes": 0.5}
        found.append(Cause("network between nodes x2", half, between, False))
    if job.straggler is not None:
        found += [slow, slow.beside(fast)]
    return found


def length_of(run: Run, stretch: tuple[int, int]) -> int:
    """How long a stretch of iterations of a run is, in ns."""
    steps = [[r for r in rank.ranges if r.text == "iteration"] for rank in run.ranks]
    # one rank may begin late without any other having to wait for it
    begin = int(median(own[stretch[0]].start for own in steps))
    return max(own[stretch[1]].end for own in steps) - begin


class Told(NamedTuple):
    """What the replay says of one cause of a job, and what is true, in ns."""

    cause: Cause
    gain: int
    truth: int
    length: int

    @property
    def right(self) -> bool:
        """Whether the gain is near enough."""
        return abs(self.gain - self.truth) <= max(OF_TRUTH * abs(self.truth), OF_TIME * self.length)


def told_of(job: TrainingJob) -> list[Told]:
    """What the replay of a job's reports says of each of its causes."""
    with tempfile.TemporaryDirectory() as folder:
        replayed, told = Replayed.of(job, Path(folder)), []
        length = length_of(simulate(job), replayed.stretch)
        for cause in causes_of(job):
            twin = length_of(simulate(replace(job, **cause.without)), replayed.stretch)
            gain = replay(replayed.graph, cause.edit(replayed)).gain_ns
            told.append(Told(cause, gain, length - twin, length))
        return told


def order_is_right(told: list[Told]) -> bool:
    """Whether the three that are worth most are in their order, but for those as good as equal."""
    single = [one for one in told if one.cause.single]
    named = sorted(single, key=lambda one: -one.gain)[:3]
    true = sorted(single, key=lambda one: -one.truth)[:3]
    return all(
        abs(one.truth - other.truth) <= OF_TIME * one.length
        for one, other in zip(named, true, strict=True)
    )


if __name__ == "__main__":
    JOBS, SEED = (int(text) for text in sys.argv[1:3])
    GAINS = [told_of(random_job(SEED + number)) for number in range(JOBS)]
    EVERY = [gain for job in GAINS for gain in job]
    for gain in EVERY:
        if not gain.right:
            print(f"{gain.cause.name}: {gain.gain} of {gain.truth} ns in {gain.length}")
    print(f"{sum(gain.right for gain in EVERY)} of {len(EVERY)} gains are right")
    print(f"{sum(map(order_is_right, GAINS))} of {JOBS} orders are right")
