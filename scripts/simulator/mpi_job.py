"""A job that talks through MPI alone: ranks, nodes with clocks of their own, planted waits.

Each step computes, passes a message from every even rank to the next one, and then meets in
collectives. The MPI library polls: ranks leave a collective some time after they could.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from simulator import schema
from simulator.clocks import Clock
from simulator.export import Export, Process

START_NS = 1_750_000_000_000_000_000
WORLD_HANDLE = 0x7F0000001000
MPI_DOMAIN_RANGES = "ranges"  # MPI calls as NVTX ranges, as in captures of 2022
LATENCY_NS = 2_000
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"


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
    polling_ns: int = 3_000
    clock_error_ns: int = 5_000_000
    drift_ppb: tuple[int, ...] = (0,)
    recorded: str = "uid"  # communicators by global id, by "members", not at all, MPI as "ranges"
    in_ranges: bool = True
    nccl: bool = False  # an AllReduce on the GPUs in each step, too

    @property
    def generation(self) -> str:
        return schema.MID if self.recorded == MPI_DOMAIN_RANGES else schema.NEW


@dataclass
class Call:
    """One MPI call of a rank in true time (ns)."""

    rank: int
    name: str
    start: int
    end: int
    size: int = 0
    peer: int | None = None
    path: tuple[str, ...] = ()


@dataclass
class MpiRun:
    """What happened: calls, kernels (rank, start, end), and for how long who waited in what."""

    settings: MpiSettings
    calls: list[Call] = field(default_factory=list)
    kernels: list[tuple[int, int, int]] = field(default_factory=list)
    reductions: list[tuple[int, int, int]] = field(default_factory=list)
    ranges: list[tuple[int, str, int, int]] = field(default_factory=list)
    waits: Counter[tuple[int, str]] = field(default_factory=Counter)
    clocks: list[Clock] = field(default_factory=list)

    def clock(self, rank: int) -> Clock:
        return self.clocks[rank // self.settings.ranks_per_node]

    def offset_ns(self, rank: int) -> int:
        """How far the clock of a rank's node is ahead of that of the first rank, at the start."""
        return self.clock(rank).utc_error_ns - self.clock(0).utc_error_ns


def simulate_mpi(settings: MpiSettings) -> MpiRun:
    """Play a job in true time."""
    draw = Random(settings.seed)
    nodes = -(-settings.ranks // settings.ranks_per_node)
    drifts = settings.drift_ppb
    limit = settings.clock_error_ns
    run = MpiRun(settings)
    for node in range(nodes):
        start = START_NS + node * 1_000_000
        run.clocks.append(Clock(start, draw.randint(-limit, limit), drifts[node % len(drifts)]))
    now = [START_NS + 50_000_000 + draw.randint(0, 2_000_000) for _ in range(settings.ranks)]
    for rank, time in enumerate(now):
        run.calls.append(Call(rank, "MPI_Init", time - 1_000_000, time - 500_000))
    for step in range(settings.steps):
        begun = list(now)
        _compute(run, now, draw)
        _messages(run, now)
        _collective(run, now, draw, "MPI_Barrier" if step % 4 == 0 else "MPI_Allreduce")
        _work(run, now, draw)
        _from_root(run, now, draw)
        _work(run, now, draw)
        _to_root(run, now, draw)
        if settings.nccl:
            _reduction(run, now, draw)
        run.ranges += [(rank, "step", at, now[rank]) for rank, at in enumerate(begun)]
    return run


def _work(run: MpiRun, now: list[int], draw: Random) -> None:
    for rank in range(len(now)):
        now[rank] += 10_000 + draw.randint(0, run.settings.jitter_ns)


def _compute(run: MpiRun, now: list[int], draw: Random) -> None:
    """A kernel on every rank, longer on the slow one; the host waits for it."""
    settings = run.settings
    for rank in range(len(now)):
        length = settings.compute_ns + draw.randint(0, settings.jitter_ns)
        length += settings.slow_ns if rank == settings.slow else 0
        run.kernels.append((rank, now[rank] + 2_000, now[rank] + length))
        now[rank] += length + 1_000
        now[rank] += settings.late_ns if rank == settings.late_sender else 0


def _messages(run: MpiRun, now: list[int]) -> None:
    """From every even rank to the next one; the send ends when its receive has begun."""
    for sender in range(0, len(now) - 1, 2):
        sent, posted = now[sender], now[sender + 1]
        both = max(sent, posted) + LATENCY_NS
        run.calls.append(Call(sender, "MPI_Send", sent, both, 4096, sender + 1, ("step",)))
        run.calls.append(Call(sender + 1, "MPI_Recv", posted, both, 4096, sender, ("step",)))
        run.waits[sender + 1, "late sender"] += max(sent - posted, 0)
        run.waits[sender, "late receiver"] += max(posted - sent, 0)
        now[sender] = now[sender + 1] = both + 500


def _reduction(run: MpiRun, now: list[int], draw: Random) -> None:
    """An AllReduce of NCCL: it ends for all within a microsecond; the hosts wait."""
    end = max(now) + 180_000
    for rank, time in enumerate(now):
        run.reductions.append((rank, time + 8_000, end + draw.randint(-600, 600)))
        now[rank] = end + 5_000


def _left(run: MpiRun, draw: Random, time: int) -> int:
    """When a rank leaves that could at that time: it polls, seldom for long."""
    slow = 4_000_000 if draw.random() < 0.002 else 0
    return time + LATENCY_NS + draw.randint(0, run.settings.polling_ns) + slow


def _collective(run: MpiRun, now: list[int], draw: Random, name: str) -> None:
    last = max(now)
    state = "wait at barrier" if name == "MPI_Barrier" else "wait at n-to-n"
    for rank, entered in enumerate(now):
        now[rank] = _left(run, draw, last)
        size = 0 if name == "MPI_Barrier" else 8_000
        run.calls.append(Call(rank, name, entered, now[rank], size, None, ("step",)))
        run.waits[rank, state] += last - entered


def _from_root(run: MpiRun, now: list[int], draw: Random) -> None:
    root = now[0]
    for rank, entered in enumerate(now):
        now[rank] = entered + 3_000 if rank == 0 else _left(run, draw, max(root, entered))
        run.calls.append(Call(rank, "MPI_Bcast", entered, now[rank], 64, 0, ("step",)))
        run.waits[rank, "late broadcast"] += max(root - entered, 0)


def _to_root(run: MpiRun, now: list[int], draw: Random) -> None:
    last = max(now)
    for rank, entered in enumerate(now):
        now[rank] = _left(run, draw, last) if rank == 0 else entered + 3_000
        run.calls.append(Call(rank, "MPI_Reduce", entered, now[rank], 64, 0, ("step",)))
    run.waits[0, "early reduce"] += last - run.calls[-len(now)].start


def write_mpi_reports(run: MpiRun, directory: Path) -> list[Path]:
    """One report for each rank. Returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    ranks = range(run.settings.ranks)
    return [_report(run, rank, directory / f"rank_{rank}.sqlite").write() for rank in ranks]


def _report(run: MpiRun, rank: int, path: Path) -> Export:
    settings, clock = run.settings, run.clock(rank)
    node = rank // settings.ranks_per_node
    export = Export(
        path,
        settings.generation,
        hostname=f"node{node}",
        utc_epoch_ns=clock.utc_epoch_ns,
        system_clock_ns=(node + 1) * 4_000_000_000_000,
        environment={"OMPI_COMM_WORLD_RANK": str(rank)},
    )
    process = export.process(1000 + rank)
    in_ranges = settings.recorded == MPI_DOMAIN_RANGES
    domain = export.nvtx_domain("MPI", process=process) if in_ranges else 0
    handle = None if settings.recorded == "unknown" else WORLD_HANDLE + 64 * rank
    if not in_ranges:
        export.mpi_rank(rank, process)
    if handle is not None and not in_ranges:
        members = tuple(range(settings.ranks))
        uid = 77 if settings.recorded == "uid" else None
        export.mpi_communicator(rank, handle, members, uid=uid)
    for call in (one for one in run.calls if one.rank == rank):
        start, end = clock.host([call.start, call.end]).tolist()
        if in_ranges:
            export.nvtx_push_pop(start, end, call.name, domain=domain, process=process)
        elif call.name == "MPI_Init":
            export.mpi_other(start, end, call.name, process)
        elif call.name in ("MPI_Send", "MPI_Recv"):
            peer = -1 if call.peer is None else call.peer
            export.mpi_message(
                start, end, call.name, call.size, peer, communicator=handle, process=process
            )
        else:
            export.mpi_collective(
                start, end, call.name, call.size, process, communicator=handle, root=call.peer
            )
    _gpu_work(export, run, rank, process)
    for owner, name, first, last in run.ranges if settings.in_ranges else ():
        if owner == rank:
            begin, end = clock.host([first, last]).tolist()
            export.nvtx_push_pop(begin, end, name, process=process)
    return export


def _gpu_work(export: Export, run: MpiRun, rank: int, process: Process) -> None:
    """The kernels of a rank, and those of its reductions."""
    work = [*((*one, "step_kernel", 7) for one in run.kernels)]
    work += [*((*one, ALLREDUCE, 21) for one in run.reductions)]
    for owner, first, last, name, stream in work:
        if owner == rank:
            begin, end = run.clock(rank).host([first, last]).tolist()
            launch = (begin - 900, begin)
            export.kernel(begin, end, name, process=process, launch=launch, stream=stream)
