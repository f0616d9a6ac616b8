"""The run that follows from a job's settings: what every rank did, on the true clock."""

from collections import deque
from dataclasses import dataclass

from simulator.collective import Communicator, Instance, Rendezvous
from simulator.program import Program, groups_of
from simulator.rank import Post, Rank
from simulator.settings import Settings


@dataclass(frozen=True)
class Run:
    """What happened, on the true clock."""

    job: Settings
    ranks: tuple[Rank, ...]
    groups: tuple[Communicator, ...]
    instances: tuple[Instance, ...]

    def reports(self) -> list[tuple[str, list[Rank]]]:
        """File name -> the ranks in it."""
        if self.job.report_per == "rank":
            return [(f"{self.job.name}_rank{rank.index}.sqlite", [rank]) for rank in self.ranks]
        nodes: dict[int, list[Rank]] = {}
        for rank in self.ranks:
            nodes.setdefault(self.job.node(rank.index), []).append(rank)
        return [(f"{self.job.name}_node{node}.sqlite", nodes[node]) for node in nodes]


def simulate(job: Settings, program: type[Program] = Program) -> Run:
    """Run every rank until it waits for others, and let complete groups go on."""
    groups = tuple(job.groups())
    rendezvous = Rendezvous(job.jitter_ns, job.seed)
    ranks = tuple(Rank(job, index) for index in range(job.world))
    programs: dict[int, Post] = {}
    for rank in ranks:
        programs[rank.index] = program(job, rank, groups_of(rank.index, groups)).everything()
    ready: deque[tuple[int, int | None]] = deque((rank.index, None) for rank in ranks)
    running = len(ranks)
    while ready:
        index, end = ready.popleft()
        try:
            arrival = next(programs[index]) if end is None else programs[index].send(end)
        except StopIteration:
            running -= 1
            continue
        instance = rendezvous.arrive(arrival)
        if instance.complete:
            ready.extend(instance.ends.items())
    if running:
        raise RuntimeError(f"{running} ranks wait for a collective that nobody completes")
    return Run(job, ranks, groups, tuple(rendezvous.instances))
