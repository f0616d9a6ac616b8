"""A job that talks through MPI alone: ranks, nodes with clocks of their own, planted waits.

Each step computes, passes a message from every even rank to the next one, and then meets in
collectives. The MPI library polls: ranks leave a collective some time after they could.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from simulator import schema
from simulator.export import Export, Process
from simulator.settings import TRUE_START_NS as START_NS, Clock, cycle

WORLD_HANDLE = 0x7F0000001000
MPI_DOMAIN_RANGES = "ranges"  # MPI calls as NVTX ranges, as in captures of 2022
LATENCY_NS = 2_000
POLLING_NS = 3_000
CLOCK_ERROR_NS = 5_000_000
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"
Span = tuple[int, int, int]  # rank, start, end


@dataclass(frozen=True)
class MpiSettings:
    """What decides a job. Times in ns; `slow` computes `slow_ns` longer in each step,
    `late_sender` sends so much later; `drift_ppb` by node."""

    seed: int = 1
    ranks: int = 4
    ranks_per_node: int = 1
    steps: int = 40
    compute_ns: int = 300_000
    jitter_ns: int = 60_000
    slow: int | None = None
    slow_ns: int = 0
    late_sender: int | None = None
    late_ns: int = 0
    drift_ppb: tuple[int, ...] = (0,)
    recorded: str = "uid"  # communicators by global id, by "members", not at all, MPI as "ranges"
    nccl: bool = False  # an AllReduce on the GPUs in each step, too


@dataclass
class Call:
    """One MPI call of a rank in true time (ns)."""

    rank: int
    name: str
    start: int
    end: int
    size: int = 0
    peer: int | None = None


class MpiRun:
    """What happened: calls, kernels, NCCL's reductions, steps, and how long who waited in what.

    `now` is each rank's time while the job is played.
    """

    def __init__(self, settings: MpiSettings) -> None:
        self.settings, self.draw = settings, Random(settings.seed)
        self.kernels: list[Span] = []
        self.reductions: list[Span] = []
        self.ranges: list[Span] = []
        self.waits: Counter[tuple[int, str]] = Counter()
        self.clocks: list[Clock] = []
        for node in range(-(-settings.ranks // settings.ranks_per_node)):
            start = START_NS + node * 1_000_000
            error = self.draw.randint(-CLOCK_ERROR_NS, CLOCK_ERROR_NS)
            self.clocks.append(Clock(start, error, cycle(settings.drift_ppb, node)))
        begin, ranks = START_NS + 50_000_000, range(settings.ranks)
        self.now = [begin + self.draw.randint(0, 2_000_000) for _ in ranks]
        self.calls = [
            Call(n, "MPI_Init", self.now[n] - 10**6, self.now[n] - 500_000) for n in ranks
        ]

    def clock(self, rank: int) -> Clock:
        return self.clocks[rank // self.settings.ranks_per_node]

    def offset_ns(self, rank: int) -> int:
        """How far the clock of a rank's node is ahead of that of the first rank, at the start."""
        return self.clock(rank).utc_error_ns - self.clock(0).utc_error_ns

    def step(self, meeting: str) -> None:
        begun = list(self.now)
        self.compute()
        self.messages()
        self.meet(meeting)
        self.work()
        self.from_root()
        self.work()
        self.to_root()
        if self.settings.nccl:
            self.reduce()
        self.ranges += zip(range(len(begun)), begun, self.now, strict=True)

    def call(self, rank: int, name: str, end: int, size: int, peer: int | None = None) -> None:
        self.calls.append(Call(rank, name, self.now[rank], end, size, peer))
        self.now[rank] = end

    def work(self) -> None:
        for rank in range(len(self.now)):
            self.now[rank] += 10_000 + self.draw.randint(0, self.settings.jitter_ns)

    def compute(self) -> None:
        settings = self.settings
        for rank, begun in enumerate(self.now):
            length = settings.compute_ns + self.draw.randint(0, settings.jitter_ns)
            length += settings.slow_ns if rank == settings.slow else 0
            self.kernels.append((rank, begun + 2_000, begun + length))
            late = settings.late_ns if rank == settings.late_sender else 0
            self.now[rank] += length + 1_000 + late

    def messages(self) -> None:
        """From every even rank to the next one; the send ends when its receive has begun."""
        for sender in range(0, len(self.now) - 1, 2):
            sent, posted = self.now[sender : sender + 2]
            both = max(sent, posted) + LATENCY_NS
            self.call(sender, "MPI_Send", both, 4096, sender + 1)
            self.call(sender + 1, "MPI_Recv", both, 4096, sender)
            self.waits[sender + 1, "late sender"] += max(sent - posted, 0)
            self.waits[sender, "late receiver"] += max(posted - sent, 0)
            self.now[sender : sender + 2] = [both + 500] * 2

    def reduce(self) -> None:
        """An AllReduce of NCCL: it ends for all within a microsecond; the hosts wait."""
        end = max(self.now) + 180_000
        for rank, time in enumerate(self.now):
            ended = end + self.draw.randint(-600, 600)
            self.reductions.append((rank, time + 8_000, ended))
            self.now[rank] = end + 5_000

    def left(self, time: int) -> int:
        """When a rank leaves that could at that time: it polls, seldom for long."""
        slow = 4_000_000 if self.draw.random() < 0.002 else 0
        return time + LATENCY_NS + self.draw.randint(0, POLLING_NS) + slow

    def meet(self, name: str) -> None:
        """All wait for the last."""
        last, barrier = max(self.now), name == "MPI_Barrier"
        for rank, entered in enumerate(self.now):
            self.call(rank, name, self.left(last), 0 if barrier else 8_000)
            state = "wait at barrier" if barrier else "wait at n-to-n"
            self.waits[rank, state] += last - entered

    def from_root(self) -> None:
        root = self.now[0]
        for rank, entered in enumerate(self.now):
            end = self.left(max(root, entered)) if rank else entered + 3_000
            self.call(rank, "MPI_Bcast", end, 64, 0)
            self.waits[rank, "late broadcast"] += max(root - entered, 0)

    def to_root(self) -> None:
        last = max(self.now)
        self.waits[0, "early reduce"] += last - self.now[0]
        for rank, entered in enumerate(self.now):
            self.call(rank, "MPI_Reduce", entered + 3_000 if rank else self.left(last), 64, 0)


def simulate_mpi(settings: MpiSettings) -> MpiRun:
    """Play a job in true time."""
    run = MpiRun(settings)
    for step in range(settings.steps):
        run.step("MPI_Barrier" if step % 4 == 0 else "MPI_Allreduce")
    return run


def write_mpi_reports(run: MpiRun, directory: Path) -> list[Path]:
    """One report for each rank. Returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    ranks = range(run.settings.ranks)
    return [_report(run, rank, directory / f"rank_{rank}.sqlite").write() for rank in ranks]


def _report(run: MpiRun, rank: int, path: Path) -> Export:
    settings, clock = run.settings, run.clock(rank)
    node, in_ranges = rank // settings.ranks_per_node, settings.recorded == MPI_DOMAIN_RANGES
    export = Export(
        path,
        schema.MID if in_ranges else schema.NEW,
        hostname=f"node{node}",
        utc_epoch_ns=clock.utc_epoch_ns,
        system_clock_ns=(node + 1) * 4_000_000_000_000,
        environment={"OMPI_COMM_WORLD_RANK": str(rank)},
    )
    process = export.process(1000 + rank)
    _add_calls(export, run, rank, process)
    for spans, name, stream in ((run.kernels, "step_kernel", 7), (run.reductions, ALLREDUCE, 21)):
        for start, end in _own(spans, rank, clock):
            launch = (start - 900, start)
            export.kernel(start, end, name, process=process, launch=launch, stream=stream)
    for start, end in _own(run.ranges, rank, clock):
        export.nvtx_push_pop(start, end, "step", process=process)
    return export


def _own(spans: list[Span], rank: int, clock: Clock) -> list[tuple[int, int]]:
    """A rank's spans in its own time."""
    return [(clock.host(start), clock.host(end)) for owner, start, end in spans if owner == rank]


def _add_calls(export: Export, run: MpiRun, rank: int, process: Process) -> None:
    """A rank's calls in the tables of MPI, or as ranges."""
    settings, clock, domain, handle = run.settings, run.clock(rank), 0, None
    if settings.recorded == MPI_DOMAIN_RANGES:
        domain = export.nvtx_domain("MPI", process=process)
    else:
        export.mpi_rank(rank, process)
    if settings.recorded in ("uid", "members"):
        handle, uid = WORLD_HANDLE + 64 * rank, 77 if settings.recorded == "uid" else None
        export.mpi_communicator(rank, handle, tuple(range(settings.ranks)), uid=uid)
    for call in (one for one in run.calls if one.rank == rank):
        start, end = clock.host(call.start), clock.host(call.end)
        on: dict[str, Any] = {"communicator": handle, "process": process}
        if domain:
            export.nvtx_push_pop(start, end, call.name, domain=domain, process=process)
        elif call.name == "MPI_Init":
            export.mpi_other(start, end, call.name, process)
        elif call.name in ("MPI_Send", "MPI_Recv"):
            export.mpi_message(start, end, call.name, call.size, call.peer or 0, **on)
        else:
            export.mpi_collective(start, end, call.name, call.size, root=call.peer, **on)
