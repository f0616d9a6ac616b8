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
from nsightpy.frames import Frame
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
class Cause:
    """One cause of lost time: the settings of the twin without it, and the edit that takes it away.

    `single`: it is one of those whose order counts.
    """

    name: str
    without: dict[str, float]
    edit: Callable[[Replayed], list[Edit]]
    single: bool = True


@dataclass(frozen=True)
class Replayed:
    """A job, the run of it, and the graph of a stretch of iterations of the reports it wrote."""

    job: TrainingJob
    run: Run
    graph: WorkGraph
    stretch: tuple[int, int]

    @classmethod
    def of(cls, job: TrainingJob, folder: Path) -> Replayed:
        """The job's graph, by its reports."""
        paths, _ = job.write(folder)
        ranks = open_ranks(paths)
        steps = {str(report.path): _steps(report) for report in ranks}
        found = [_steady(report, steps[str(report.path)]) for report in ranks]
        # the iterations that all ranks have in their steady state
        first, last = max(low for low, _ in found), min(high for _, high in found)
        parts = []
        for report in ranks:
            own = steps[str(report.path)]
            window = (int(own.ints("start_ns")[first]), int(own.ints("end_ns")[last]))
            parts.append(work_frames(report).between(*window))
        graph = WorkGraph.of(job_work(parts, alignment_of(ranks)))
        return cls(job, simulate(job), graph, (first, last))

    def unit(self, rank: int) -> int:
        """The graph's unit of a rank."""
        return next(n for n, unit in enumerate(self.graph.work.units) if rank_of(unit[0]) == rank)

    def between_nodes(self) -> np.ndarray:
        """Mask of the operations of collectives that cross nodes."""
        graph, job = self.graph, self.job
        nodes = np.asarray([job.node(rank_of(unit[0])) for unit in graph.work.units])
        own = nodes[graph.work.unit[graph.nodes.members]]
        low, high = np.full(len(graph.nodes.met), len(nodes)), np.full(len(graph.nodes.met), -1)
        np.minimum.at(low, graph.nodes.meeting, own)
        np.maximum.at(high, graph.nodes.meeting, own)
        mask = np.zeros(len(graph.work), dtype=np.bool_)
        mask[graph.nodes.members] = (low != high)[graph.nodes.meeting]
        return mask

    def true_gain(self, cause: Cause) -> tuple[int, int]:
        """What the twin's stretch is shorter by, and how long the job's is, in ns."""
        twin = simulate(replace(self.job, **cause.without))  # type: ignore[arg-type]
        lengths = []
        for run in (self.run, twin):
            begins, ends = [], []
            for rank in run.ranks:
                steps = [r for r in rank.ranges if r.text == "iteration"]
                begins.append(steps[self.stretch[0]].start)
                ends.append(steps[self.stretch[1]].end)
            # one rank may begin late without any other having to wait for it
            lengths.append(max(ends) - int(median(begins)))
        return lengths[0] - lengths[1], lengths[0]


def _steps(report: SystemReport) -> Frame:
    """The iterations of a report's one process, by start."""
    ranges = report.frame("nvtx_ranges", ("start_ns", "end_ns", "name"))
    return ranges.take(ranges.labels("name").equals(["iteration"])).ordered()


def _steady(report: SystemReport, steps: Frame) -> tuple[int, int]:
    """The first and the last iteration of the steady state; all without one."""
    states = map(steady_state, Scope().iterations(report).values())
    state = next(filter(None, states), None)
    if state is None:
        return 0, steps.rows - 1
    first = np.argmin(np.abs(steps.ints("start_ns") - state.window.starts[0]))
    return int(first), int(np.argmin(np.abs(steps.ints("end_ns") - state.window.ends[0])))


def rank_of(path: str) -> int:
    """The rank in the name of a simulated report."""
    return int(Path(path).stem.rsplit("rank", 1)[1])


def causes_of(job: TrainingJob) -> list[Cause]:
    """The causes that a job has, one by one, then some of them together."""
    waits, slows = job.data_gap_ns > 1_000_000, job.straggler is not None
    halved = {"launches": job.launches / 2}
    between = {"transfers_between_nodes": 0.5}
    host = Cause("host gaps", {"data_gap_ns": 0}, lambda r: edits.host_gaps(r.graph))
    fast = Cause("network x2", {"transfers": 0.5}, lambda r: edits.transfers(r.graph, 0.5), False)
    slow = Cause(
        "straggler",
        {"straggler_slowdown": 1.0},
        lambda r: edits.like_peers(r.graph, r.unit(job.straggler or 0)),
    )
    every = (
        (True, Cause("copies", {"copies": 0.0}, lambda r: edits.copies(r.graph))),
        (True, Cause("launch cost", halved, lambda r: edits.launches(r.graph, 0.5), False)),
        (waits, host),
        (
            job.loop_allocations,
            Cause(
                "allocation", {"allocation_ns": 0}, lambda r: edits.calls_of(r.graph, ALLOCATION)
            ),
        ),
        (True, Cause("network", {"transfers": 0.0}, lambda r: edits.transfers(r.graph))),
        (True, fast),
        (
            job.ranks_per_node < job.world,
            Cause(
                "network between nodes x2",
                between,
                lambda r: edits.transfers(r.graph, 0.5, r.between_nodes()),
                False,
            ),
        ),
        (slows, slow),
        (slows, _both(slow, fast)),
        (waits, _both(host, fast)),
    )
    return [cause for is_there, cause in every if is_there]


def _both(one: Cause, other: Cause) -> Cause:
    return Cause(
        f"{one.name} and {other.name}",
        one.without | other.without,
        lambda r: one.edit(r) + other.edit(r),
        single=False,
    )


@dataclass(frozen=True)
class Told:
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
        replayed = Replayed.of(job, Path(folder))
        return [
            Told(cause, replay(replayed.graph, cause.edit(replayed)).gain_ns, *truth)
            for cause in causes_of(job)
            for truth in [replayed.true_gain(cause)]
        ]


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
