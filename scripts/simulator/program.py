"""What every rank of a training job does, in the order its host thread does it."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from random import Random

from simulator import catalogue
from simulator.collective import Communicator
from simulator.rank import COMPUTE_STREAM, COPY_STREAM, Post, Rank
from simulator.settings import Change, Settings

DATA_STREAM, WORLD_STREAM, PIPELINE_STREAM, EXPERT_STREAM = 25, 29, 33, 37
STREAMS = {"tensor": 21, "data": DATA_STREAM, "world": WORLD_STREAM}
AUTOGRAD_THREAD = 61


def groups_of(rank: int, groups: Iterable[Communicator]) -> dict[str, Communicator]:
    """A rank's communicators by kind; before and after are its pipeline neighbours."""
    found = {}
    for group in (group for group in groups if rank in group.ranks):
        neighbour = "after" if group.ranks[0] == rank else "before"
        found[neighbour if group.kind == "pipeline" else group.kind] = group
    return found


def _changed(
    specs: tuple[catalogue.KernelSpec, ...], changes: tuple[Change, ...]
) -> Iterator[catalogue.KernelSpec]:
    """The kernels to launch, the first change that begins at one in its place."""
    while specs:
        names = tuple(spec.name for spec in specs)
        fits = (one for one in changes if names[: len(one.kernels)] == one.kernels)
        change = next(fits, Change(names[:1], specs[:1]))
        yield from change.becomes
        specs = specs[len(change.kernels) :]


def split_bytes(job: Settings, number: int, source: int, target: int) -> int:
    """What one rank of a group sends another in its all-to-all of that number, in whole rows."""
    share = Random(f"{job.seed} {number} {source} {target}").uniform(0.5, 1.5)
    return int(job.expert_bytes * share * (3.0 if target == 1 else 1.0)) // 8_192 * 8_192


class Program:
    """Writes a rank's work down as it goes; generators stop where a group must meet."""

    def __init__(self, job: Settings, rank: Rank, groups: dict[str, Communicator]) -> None:
        self.job = job
        self.rank = rank
        self.groups = groups
        self.scale = 1.0

    def everything(self) -> Post:
        rank, job = self.rank, self.job
        self.initialize()
        rank.call("cudaProfilerStart_v4000", 12_000)
        for iteration in range(job.iterations):
            warm = iteration < job.warmup
            rank.host_cost = job.launches * ((14.0, 9.0)[min(iteration, 1)] if warm else 1.0)
            self.scale = (1.3, 1.15)[min(iteration, 1)] if warm else 1.0
            with self._range("iteration"):
                yield from self._iteration(iteration)
        if job.graph_mode and job.graph_replays:
            self._replays()
        rank.synchronize(None)
        rank.call("cudaProfilerStop_v4000", 9_000)

    def _range(self, text: str) -> AbstractContextManager[None]:
        return self.rank.range(text) if self.job.nvtx else nullcontext()

    def initialize(self) -> None:
        rank = self.rank
        for group in self.groups.values():
            payload: dict[str, object] = {"NCCL communicator ID": group.number}
            payload |= {"No. of ranks": len(group.ranks), "Rank": group.ranks.index(rank.index)}
            payload["CUDA device"] = rank.local
            with rank.range("ncclCommInitRankConfig", "NCCL", payload):
                rank.clock += 1_800_000

    def _iteration(self, iteration: int) -> Post:
        rank, job = self.rank, self.job
        self._load(iteration)
        with self._range("forward"):
            for _ in range(job.microbatches):
                yield from self._neighbour("before", sends=False)
                yield from self._forward()
                yield from self._neighbour("after", sends=True)
        with self._range("backward"):
            # Frameworks launch the backward pass from a thread of their own.
            rank.tid += AUTOGRAD_THREAD if job.autograd_thread else 0
            for batch in range(job.microbatches):
                yield from self._neighbour("after", sends=False)
                yield from self._backward(batch == job.microbatches - 1)
                yield from self._neighbour("before", sends=True)
            rank.tid = rank.pid
        with self._range("optimizer"):
            yield from self._optimizer()
        if "after" not in self.groups:
            rank.copy(4, "DtoH", "Pageable", COMPUTE_STREAM)
        rank.synchronize(COMPUTE_STREAM)

    def _load(self, iteration: int) -> None:
        """The data loader keeps the thread; then the batch is copied in."""
        rank, job = self.rank, self.job
        every = job.long_gap_every
        long = every > 0 and iteration % every == every - 1
        gap = job.long_gap_ns if long else job.data_gap_ns
        with self._range("data_loading"):
            rank.clock += int(gap * (1.0 + 0.06 * abs(rank.normal())))
        if iteration == 0:
            for number, size in enumerate((512 << 20, 128 << 20, 64 << 20)):
                rank.allocate(size, 0x7F20_0000_0000 + (number << 30))
        for number in range(job.loop_allocations):
            rank.allocate(1 << 20, 0x7F30_0000_0000 + (number << 20), job.allocation_ns, 1.0)
        if job.input_copies and job.pageable:
            rank.copy(job.input_bytes, "HtoD", "Pageable", COMPUTE_STREAM)
        elif job.input_copies:
            rank.copy(job.input_bytes, "HtoD", "Pinned", COPY_STREAM)
            rank.wait(COMPUTE_STREAM, rank.record(COPY_STREAM))

    def _forward(self) -> Post:
        rank, job = self.rank, self.job
        if "before" not in self.groups:
            rank.launch(catalogue.EMBEDDING, scale=self.scale)
        for layer in range(job.layers):
            if layer == 0:
                # The other copies are prefetched while the GPU computes.
                for _ in range(job.input_copies - 1):
                    rank.copy(job.input_bytes)
            self._launch(*catalogue.FORWARD_ATTENTION)
            yield from self._blocking("tensor", "AllReduce", job.tensor_bytes)
            yield from self._experts()
            self._launch(catalogue.ADD, *catalogue.FORWARD_MLP)
            yield from self._blocking("tensor", "AllReduce", job.tensor_bytes)
            self._launch(catalogue.ADD)
        if "after" not in self.groups:
            self._launch(*catalogue.LOSS_FORWARD)

    def _backward(self, reduces: bool) -> Post:
        job = self.job
        if "after" not in self.groups:
            self._launch(*catalogue.LOSS_BACKWARD)
        for layer in range(job.layers):
            self._launch(*catalogue.BACKWARD_MLP)
            yield from self._blocking("tensor", "AllReduce", job.tensor_bytes)
            self._launch(*catalogue.BACKWARD_NORM, *catalogue.BACKWARD_ATTENTION)
            yield from self._blocking("tensor", "AllReduce", job.tensor_bytes)
            self._launch(*catalogue.BACKWARD_NORM)
            due = job.buckets * (layer + 1) // job.layers - job.buckets * layer // job.layers
            for _ in range(due if reduces and "data" in self.groups else 0):
                yield from self._reduce_bucket()
        if "before" not in self.groups:
            self._launch(catalogue.EMBEDDING_BACKWARD)

    def _optimizer(self) -> Post:
        rank, job, data = self.rank, self.job, self.groups.get("data")
        if data is not None:
            rank.wait(COMPUTE_STREAM, rank.record(DATA_STREAM))
        self._launch(*catalogue.OPTIMIZER[:1])
        yield from self._blocking("world", "AllReduce", 4, "f32")
        self._launch(*catalogue.OPTIMIZER[1:])
        if data is not None and job.sharded:
            for _ in range(job.buckets):
                part = job.bucket_bytes // len(data.ranks)
                yield from self._blocking("data", "AllGather", part)
        rank.memset(job.bucket_bytes)
        rank.launch(catalogue.FILL)

    def _launch(self, *specs: catalogue.KernelSpec) -> None:
        for spec in _changed(specs, self.job.changes):
            self.rank.launch(spec, scale=self.scale)

    def _experts(self) -> Post:
        """Tokens go to the ranks of their experts, to some more than to others."""
        group, rank, job = self.groups.get("data"), self.rank, self.job
        if group is None or not job.expert_bytes:
            return
        number, own = len(rank.sent), group.ranks.index(rank.index)
        calls = []
        for peer in range(len(group.ranks)):
            calls.append(("Send", split_bytes(job, number, own, peer), peer))
            calls.append(("Recv", split_bytes(job, number, peer, own), peer))
        rank.wait(EXPERT_STREAM, rank.record(COMPUTE_STREAM))
        yield from rank.exchange(group, calls, job.expert_bytes, EXPERT_STREAM)
        rank.wait(COMPUTE_STREAM, rank.record(EXPERT_STREAM))

    def _reduce_bucket(self) -> Post:
        """Gradients of one bucket, summed while the backward pass goes on."""
        group, rank = self.groups["data"], self.rank
        rank.wait(DATA_STREAM, rank.record(COMPUTE_STREAM))
        size, operation = self.job.bucket_bytes, "AllReduce"
        if self.job.sharded:
            size, operation = size // len(group.ranks), "ReduceScatter"
        yield from rank.communicate(group, operation, size, DATA_STREAM, "bf16")

    def _blocking(self, kind: str, operation: str, size: int, data: str = "bf16") -> Post:
        """A collective of the rank's group of a kind, if any, that the compute stream waits for."""
        if (group := self.groups.get(kind)) is None:
            return
        rank, stream = self.rank, STREAMS[kind]
        rank.wait(stream, rank.record(COMPUTE_STREAM))
        yield from rank.communicate(group, operation, size, stream, data)
        rank.wait(COMPUTE_STREAM, rank.record(stream))

    def _neighbour(self, kind: str, sends: bool) -> Post:
        """Hand activations or gradients to the stage before or after, or take them."""
        if (group := self.groups.get(kind)) is None:
            return
        rank, size = self.rank, self.job.pipeline_bytes
        calls = [("Send" if sends else "Recv", size, 1 - group.ranks.index(rank.index))]
        rank.wait(PIPELINE_STREAM, rank.record(COMPUTE_STREAM))
        yield from rank.exchange(group, calls, size, PIPELINE_STREAM)
        if not sends:
            rank.wait(COMPUTE_STREAM, rank.record(PIPELINE_STREAM))

    def _replays(self) -> None:
        """Inference after training: a CUDA graph launched again and again."""
        rank = self.rank
        rank.graphs.append((rank.clock, 5, 6))
        rank.clock += 900_000
        with self._range("inference"):
            for _ in range(self.job.graph_replays):
                rank.clock += 120_000
                rank.copy(2 << 20, "HtoD", "Pageable", COMPUTE_STREAM)
                rank.graph(catalogue.INFERENCE, 6, self.job.graph_mode == "node")
                rank.copy(256 << 10, "DtoH", "Pageable", COMPUTE_STREAM)
                rank.synchronize(COMPUTE_STREAM)
