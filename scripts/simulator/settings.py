"""What decides a simulated training job: its layout, work, troubles, clocks and reports."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from simulator import schema
from simulator.catalogue import KernelSpec
from simulator.collective import Communicator

TRUE_START_NS = 1_750_000_000_000_000_000
MIB = 1 << 20


@dataclass(frozen=True)
class Clock:
    """From the true clock to a rank's; times ns, drift in parts per billion from session start on.

    A report shows UTC as utcEpochNs + session time, so a GPU event's UTC is wrong by both errors
    + drift x (time since session start).
    """

    start: int
    utc_error_ns: int = 0
    drift_ppb: int = 0
    gpu_error_ns: int = 0

    @property
    def utc_epoch_ns(self) -> int:
        """What the report gives as UTC at session time 0."""
        return self.start + self.utc_error_ns

    def host(self, time: int) -> int:
        since = time - self.start
        return since + since * self.drift_ppb // 10**9

    def gpu(self, time: int) -> int:
        return self.host(time) + self.gpu_error_ns


@dataclass(frozen=True)
class Change:
    """Kernels that follow each other, by name, and what is launched in their place."""

    kernels: tuple[str, ...]
    becomes: tuple[KernelSpec, ...]

    @classmethod
    def slower(cls, spec: KernelSpec, factor: float) -> "Change":
        slow = replace(spec, duration_ns=round(spec.duration_ns * factor))
        return cls((spec.name,), (slow,))


@dataclass(frozen=True)
class Settings:
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
    expert_bytes: int = 0  # of an all-to-all of the data group in every layer, split unevenly
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
    changes: tuple[Change, ...] = ()
    run_noise: float = 0.0  # how much the speed of a GPU differs from run to run
    # Troubles
    straggler: int | None = None
    straggler_slowdown: float = 1.1
    # Each as a factor of what it takes else: 0 is how the job would be without it.
    transfers: float = 1.0
    transfers_between_nodes: float = 1.0
    copies: float = 1.0
    launches: float = 1.0
    loop_allocations: int = 0
    allocation_ns: int = 90_000
    jitter_ns: float = 500.0
    start_skew_ns: tuple[int, ...] = (0, 240_000, 90_000, 410_000)
    # Clocks
    session_skew_ns: tuple[int, ...] = (0, 31_000_000, 12_000_000, 47_000_000)
    utc_error_ns: tuple[int, ...] = (0,)  # per node
    drift_ppb: tuple[int, ...] = (0,)  # per node
    gpu_error_ns: tuple[int, ...] = (0,)  # per rank
    # What the report shows
    generation: str = schema.NEW
    payload: str | None = "json"
    nvtx: bool = True
    evidence: tuple[str, ...] = ("torchrun",)
    hostnames: bool = True
    one_device_per_process: bool = False
    autograd_thread: bool = False
    orphan_kernels: int = 0
    memory_usage: bool = False

    @property
    def world(self) -> int:
        return self.tensor * self.data * self.pipeline

    def node(self, rank: int) -> int:
        return rank // self.ranks_per_node

    def device(self, local: int) -> int:
        """The CUDA ordinal that the process of a local rank sees its GPU under."""
        return 0 if self.one_device_per_process else local

    def clock(self, rank: int) -> Clock:
        """The clocks of a rank; ranks of one report share all but the GPU's own."""
        node = self.node(rank)
        session = rank if self.report_per == "rank" else node
        return Clock(
            TRUE_START_NS + cycle(self.session_skew_ns, session),
            cycle(self.utc_error_ns, node),
            cycle(self.drift_ppb, node),
            cycle(self.gpu_error_ns, rank),
        )

    def groups(self) -> Iterator[Communicator]:
        """Every communicator of the job, the world first."""
        numbers = Random(self.seed * 15_485_863 + 5)
        cube = self.tensor * self.data
        stages = range(0, self.world, cube)
        lanes = [stage + lane for stage in stages for lane in range(self.tensor)]
        members = {
            "world": [range(self.world)],
            "tensor": [range(n, n + self.tensor) for n in range(0, self.world, self.tensor)],
            "data": [range(n, n + cube, self.tensor) for n in lanes],
            "pipeline": [range(n, n + 2 * cube, cube) for n in range(self.world - cube)],
        }
        for kind, groups in members.items():
            for ranks in groups:
                if len(ranks) > 1:
                    yield self._group(kind, tuple(ranks), numbers)

    def _group(self, kind: str, ranks: tuple[int, ...], numbers: Random) -> Communicator:
        inside = len({self.node(rank) for rank in ranks}) == 1
        speed = self.bandwidth_in_node if inside else self.bandwidth_between_nodes
        # NCCL's ids are hashes; the world's is always one that needs all 64 bits.
        number = numbers.getrandbits(64) | (kind == "world") << 63
        stretch = self.transfers * (1.0 if inside else self.transfers_between_nodes)
        return Communicator(kind, ranks, number, speed, stretch)


def cycle(values: tuple[int, ...], index: int) -> int:
    """The value of a node or rank, where one may stand for several."""
    return values[index % len(values)]
