"""A simulated training job: what is configured, and the run that follows from it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from simulator import schema
from simulator.clocks import Clock
from simulator.collective import Communicator, Instance, Rendezvous
from simulator.program import Groups, program
from simulator.rank import Post, Rank

TRUE_START_NS = 1_750_000_000_000_000_000
FIRST_PID = 21_000
MIB = 1 << 20


@dataclass(frozen=True)
class TrainingJob:
    """Everything that decides a run. Sizes in bytes, times in ns, bandwidths in bytes per ns.

    Per-node and per-rank tuples are used cyclically, so one value stands for all.
    """

    name: str = "train"
    seed: int = 1
    # Layout: consecutive ranks share a tensor group, then a data group, then a pipeline stage.
    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    ranks_per_node: int = 8
    report_per: str = "rank"  # or "node"
    # Work
    iterations: int = 6
    warmup: int = 2
    layers: int = 4
    microbatches: int = 1
    tensor_bytes: int = 16 * MIB
    bucket_bytes: int = 32 * MIB
    buckets: int = 4
    sharded: bool = False
    pipeline_bytes: int = 16 * MIB
    input_bytes: int = 24 * MIB
    input_copies: int = 2
    pageable: bool = False
    data_gap_ns: int = 1_200_000
    long_gap_ns: int = 5_000_000
    long_gap_every: int = 3
    graph_mode: str | None = None  # or "graph", "node"
    graph_replays: int = 0
    bandwidth_in_node: float = 300.0
    bandwidth_between_nodes: float = 48.0
    # Troubles
    straggler: int | None = None
    straggler_slowdown: float = 1.1
    jitter_ns: float = 500.0
    start_skew_ns: tuple[int, ...] = (0, 240_000, 90_000, 410_000)
    # Clocks
    session_skew_ns: tuple[int, ...] = (0, 31_000_000, 12_000_000, 47_000_000)
    utc_error_ns: tuple[int, ...] = (0,)  # per node
    drift_ppb: tuple[int, ...] = (0,)  # per node
    gpu_error_ns: tuple[int, ...] = (0,)  # per rank
    gpu_drift_ppb: tuple[int, ...] = (0,)  # per rank
    # What the report shows
    generation: str = schema.NEW
    payload: str | None = "json"
    nvtx: bool = True
    nccl_nvtx: bool = True
    evidence: tuple[str, ...] = ("torchrun",)
    hostnames: bool = True
    one_device_per_process: bool = False
    autograd_thread: bool = False
    orphan_kernels: int = 0
    memory_usage: bool = False

    def __post_init__(self) -> None:
        if self.graph_mode == "graph" and self.generation != schema.NEW:
            raise ValueError(f"generation {self.generation!r} cannot show whole graph launches")

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self.tensor * self.data * self.pipeline

    def node(self, rank: int) -> int:
        """The node that a rank runs on."""
        return rank // self.ranks_per_node

    def clock(self, rank: int) -> Clock:
        """The clocks of a rank; ranks of one report share all but the GPU's own."""
        node = self.node(rank)
        session = rank if self.report_per == "rank" else node
        return Clock(
            TRUE_START_NS + _cycle(self.session_skew_ns, session),
            _cycle(self.utc_error_ns, node),
            _cycle(self.drift_ppb, node),
            _cycle(self.gpu_error_ns, rank),
            _cycle(self.gpu_drift_ppb, rank),
        )

    def groups(self) -> Iterator[Communicator]:
        """Every communicator of the job, the world first."""
        numbers = Random(self.seed * 15_485_863 + 5)
        if self.world > 1:
            yield self._group("world", tuple(range(self.world)), numbers)
        cube = self.tensor * self.data
        for start in range(0, self.world, self.tensor):
            if self.tensor > 1:
                yield self._group("tensor", tuple(range(start, start + self.tensor)), numbers)
        for stage in range(self.pipeline):
            for place in range(self.tensor if self.data > 1 else 0):
                first = stage * cube + place
                members = range(first, first + cube, self.tensor)
                yield self._group("data", tuple(members), numbers)
        for first in range(self.world - cube if self.pipeline > 1 else 0):
            yield self._group("pipeline", (first, first + cube), numbers)

    def _group(self, kind: str, ranks: tuple[int, ...], numbers: Random) -> Communicator:
        inside = len({self.node(rank) for rank in ranks}) == 1
        speed = self.bandwidth_in_node if inside else self.bandwidth_between_nodes
        # NCCL's ids are hashes; the world's is always one that needs all 64 bits.
        number = numbers.getrandbits(64) | (kind == "world") << 63
        return Communicator(kind, ranks, number, speed)

    def run(self) -> "Run":
        """Simulate the job on the true clock."""
        return _simulate(self)

    def write(self, directory: str | Path) -> tuple[list[Path], dict[str, object]]:
        """Simulate, write one report per rank or node, and return their paths and the truth."""
        from simulator.emit import write_reports
        from simulator.truth import truth

        run = self.run()
        return write_reports(run, Path(directory)), truth(run)


@dataclass(frozen=True)
class Run:
    """What happened, on the true clock."""

    job: TrainingJob
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


def _cycle(values: tuple[int, ...], index: int) -> int:
    return values[index % len(values)]


def _simulate(job: TrainingJob) -> Run:
    """Run every rank until it waits for others, and let complete groups go on."""
    groups = tuple(job.groups())
    rendezvous = Rendezvous(job.jitter_ns, job.seed)
    ranks = tuple(_rank(job, index) for index in range(job.world))
    programs: dict[int, Post] = {}
    for rank in ranks:
        mine = Groups.of(rank.index, groups)
        programs[rank.index] = program(job, rank, mine)
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


def _rank(job: TrainingJob, index: int) -> Rank:
    local = index % job.ranks_per_node
    slow = job.straggler_slowdown if index == job.straggler else 1.0
    begin = TRUE_START_NS + 500_000_000 + _cycle(job.start_skew_ns, index)
    return Rank(index, local, FIRST_PID + 10 * local, job.seed, begin, slow)
