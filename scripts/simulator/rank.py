"""One simulated rank: a host thread that launches, streams that run in order, and what happened.

Times are ns of the true global clock; reports map them to their own clocks later.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from simulator.catalogue import LAUNCH_DRIVER, KernelSpec, nccl
from simulator.collective import Arrival, Communicator, normal
from simulator.settings import TRUE_START_NS, Settings, cycle

FIRST_PID = 21_000
COMPUTE_STREAM, COPY_STREAM = 7, 13
STREAM_GAP_NS = 900
# How much the durations of a kernel differ.
NOISE = 0.02
LAUNCH_LATENCY_NS = 3_200
COPY_BYTES_PER_NS = {"Pinned": 52, "Pageable": 11}

Post = Generator[Arrival, int, None]
Message = tuple[str, int, int]  # name, bytes, peer
Payload = dict[str, object] | None


class Call(NamedTuple):
    """A CUDA API call."""

    start: int
    end: int
    name: str
    tid: int
    correlation: int

    @property
    def api(self) -> str:
        """The interface that it belongs to, runtime or driver."""
        return "driver" if self.name == LAUNCH_DRIVER else "runtime"


class Operation(NamedTuple):
    """Something the GPU did; role is compute, communication, memcpy, memset or graph."""

    start: int
    end: int
    role: str
    stream: int
    correlation: int
    spec: KernelSpec | None = None
    size: int = 0
    copy_kind: str = ""
    source: str = ""
    target: str = ""
    graph: int | None = None
    node: int | None = None


class Range(NamedTuple):
    """An NVTX push/pop range; domain is empty for the default one."""

    start: int
    end: int
    text: str
    tid: int
    domain: str = ""
    payload: Payload = None


class Record(NamedTuple):
    """A CUDA event recorded on a stream, done at `time`."""

    stream: int
    event: int
    event_sync: int
    correlation: int
    time: int


class Wait(NamedTuple):
    """A synchronisation row, of a stream with an event or of the host."""

    start: int
    end: int
    kind: str
    stream: int
    correlation: int
    record: Record | None


class Rank:
    """The machine of one rank: `slowdown` stretches compute, `host_cost` every call."""

    def __init__(self, job: Settings, index: int) -> None:
        self.index, self.local = index, index % job.ranks_per_node
        self.pid = self.tid = FIRST_PID + 10 * self.local
        self.clock = TRUE_START_NS + 500_000_000 + cycle(job.start_skew_ns, index)
        self.slowdown = job.straggler_slowdown if index == job.straggler else 1.0
        if job.run_noise:
            self.slowdown *= 1.0 + job.run_noise * Random(job.seed * 6_700_417 + 3).gauss(0.0, 1.0)
        self.host_cost, self.copies, self.orphans = job.launches, job.copies, job.orphan_kernels
        self.random = Random(job.seed * 7919 + index)
        self.calls: list[Call] = []
        self.operations: list[Operation] = []
        self.ranges: list[Range] = []
        self.waits: list[Wait] = []
        self.records: list[Record] = []
        # by launch of an all-to-all the communicator, and what was sent to each of its ranks
        self.sent: dict[int, tuple[Communicator, list[int]]] = {}
        self.graphs: list[tuple[int, int, int]] = []
        self.allocations: list[tuple[int, int, int, int]] = []
        self.free: dict[int, int] = {}

    def normal(self) -> float:
        return normal(self.random)

    def call(self, name: str, cost_ns: int = 4_000, cost: float | None = None) -> Call:
        """One API call, after which the thread does a little work; `cost` replaces host_cost."""
        scale = self.host_cost if cost is None else cost
        start, number = self.clock, len(self.calls) + 1
        lasted = int(cost_ns * scale * (1.0 + 0.15 * abs(self.normal())))
        call = Call(start, start + lasted, name, self.tid, number)
        self.calls.append(call)
        self.clock = call.end + int(2_400 * scale * (1.0 + 0.2 * abs(self.normal())))
        return call

    def _start(self, call: Call, stream: int) -> int:
        """When an operation begins: launched, and the stream has come to it."""
        arrived = call.end + LAUNCH_LATENCY_NS + int(400 * abs(self.normal()))
        gap = STREAM_GAP_NS + int(150 * abs(self.normal()))
        return max(arrived, self.free.get(stream, 0) + gap)

    def _duration(self, base_ns: float) -> int:
        return max(800, int(base_ns * self.slowdown * (1.0 + NOISE * self.normal())))

    def launch(self, spec: KernelSpec, stream: int = COMPUTE_STREAM, scale: float = 1.0) -> None:
        call = self.call(spec.launch)
        start = self._start(call, stream)
        end = start + self._duration(spec.duration_ns * scale)
        self._ran(call, start, end, "compute", stream, spec)

    def copy(
        self, size: int, kind: str = "HtoD", host: str = "Pinned", stream: int = COPY_STREAM
    ) -> None:
        """A copy of `size` bytes; a pageable one holds the thread until it is done."""
        call = self.call("cudaMemcpyAsync_v3020", 5_200)
        start = self._start(call, stream)
        end = start + int(self.copies * (1_300 + size // COPY_BYTES_PER_NS[host]))
        ends = (host, "Device") if kind == "HtoD" else ("Device", host)
        self._ran(call, start, end, "memcpy", stream, None, size, kind, *ends)
        if host == "Pageable":
            self._stretch(end + 4_000)

    def memset(self, size: int, stream: int = COMPUTE_STREAM) -> None:
        call = self.call("cudaMemsetAsync_v3020", 3_400)
        start = self._start(call, stream)
        end = start + 1_000 + size // 1_800
        self._ran(call, start, end, "memset", stream, None, size)

    def allocate(
        self, size: int, address: int, cost_ns: int = 90_000, cost: float | None = None
    ) -> None:
        """A device allocation of `size` bytes; the thread waits for it."""
        call = self.call("cudaMalloc_v3020", cost_ns, cost)
        self.allocations.append((call.end, size, address, call.correlation))

    def graph(self, specs: tuple[KernelSpec, ...], graph: int, nodes: bool) -> None:
        """A CUDA graph launched: one opaque interval, or its kernels where nodes are traced."""
        call = self.call("cudaGraphLaunch_v10000", 9_000)
        first = at = self._start(call, COMPUTE_STREAM)
        for node, spec in enumerate(specs, graph << 32 | 1):
            end = at + self._duration(spec.duration_ns * 0.6)
            if nodes:
                self._ran(call, at, end, "compute", COMPUTE_STREAM, spec, graph=graph, node=node)
            at = end + 600
        if not nodes:
            self._ran(call, first, at - 600, "graph", COMPUTE_STREAM, graph=graph)

    def record(self, stream: int) -> Record:
        """An event recorded on a stream; ids are used again, the sync id is not."""
        call = self.call("cudaEventRecord_v3020", 1_500)
        number = len(self.records) + 1
        event = 4 + number % 61
        done = self.free.get(stream, 0)
        self.records.append(Record(stream, event, number, call.correlation, done))
        return self.records[-1]

    def wait(self, stream: int, record: Record) -> None:
        """Make a stream wait for an event."""
        call = self.call("cudaStreamWaitEvent_v3020", 1_100)
        self.free[stream] = max(self.free.get(stream, 0), record.time)
        self._waited(call, "stream_wait", stream, record)

    def synchronize(self, stream: int | None = COMPUTE_STREAM) -> None:
        """The thread waits for a stream, or for the whole device."""
        name = "cudaDeviceSynchronize_v3020" if stream is None else "cudaStreamSynchronize_v3020"
        self.call(name, 2_000)
        done = max(self.free.values()) if stream is None else self.free.get(stream, 0)
        self._stretch(done + 5_000)
        kind = "context" if stream is None else "stream"
        self._waited(self.calls[-1], kind, stream or 0)

    @contextmanager
    def range(self, text: str, domain: str = "", payload: Payload = None) -> Iterator[None]:
        """An NVTX range around what the block does on this thread."""
        start = self.clock
        tid = self.tid
        self.clock += 350
        yield
        self.ranges.append(Range(start, self.clock, text, tid, domain, payload))
        self.clock += 250

    def communicate(
        self, communicator: Communicator, operation: str, size: int, stream: int, data: str
    ) -> Post:
        """A collective: launched inside its NCCL range, ending when the group is done."""
        with self.range(f"nccl{operation}", "NCCL", communicator.payload(operation, size)):
            call = self.call(LAUNCH_DRIVER, 6_500)
        yield from self._transfer(call, communicator, operation, size, stream, data)

    def exchange(self, group: Communicator, calls: list[Message], size: int, stream: int) -> Post:
        """Sends and receives, the launch in ncclGroupEnd; `size` decides how long they take."""
        with self.range("ncclGroupStart", "NCCL"):
            self.clock += 300
        for name, moved, peer in calls:
            payload = group.payload(name, moved) | {"Peer rank": peer}
            with self.range(f"nccl{name}", "NCCL", payload):
                self.clock += 900 if len(calls) == 1 else 300
        with self.range("ncclGroupEnd", "NCCL"):
            call = self.call(LAUNCH_DRIVER, 6_500)
        if len(calls) > 1:
            sent = [moved for name, moved, _ in calls if name == "Send"]
            self.sent[call.correlation] = (group, sent)
        yield from self._transfer(call, group, "SendRecv", size, stream, "bf16")

    def _transfer(
        self, call: Call, group: Communicator, operation: str, size: int, stream: int, data: str
    ) -> Post:
        start = self._start(call, stream)
        end = yield Arrival(group, self.index, operation, size, start)
        spec = nccl(operation, data)
        self._ran(call, start, end, "communication", stream, spec, size)

    def in_order(self) -> list[Operation]:
        return sorted(self.operations, key=lambda operation: operation.start)

    def recorded_calls(self) -> list[Call]:
        """All API calls but the launches of the first kernels, where those were lost."""
        kernels = [op for op in self.in_order() if op.spec is not None]
        lost = {op.correlation for op in kernels[: self.orphans]}
        return [call for call in self.calls if call.correlation not in lost]

    def _ran(
        self, call: Call, start: int, end: int, role: str, stream: int, *facts: Any, **more: Any
    ) -> None:
        done = Operation(start, end, role, stream, call.correlation, *facts, **more)
        self.operations.append(done)
        self.free[stream] = end

    def _stretch(self, until: int) -> None:
        """The last call lasts until a moment, and the thread goes on after it."""
        last = self.calls[-1]
        end = max(last.end, until)
        self.calls[-1] = last._replace(end=end)
        self.clock = max(self.clock, end + 1_500)

    def _waited(self, call: Call, kind: str, stream: int, record: Record | None = None) -> None:
        start, end = call.start + 200, max(call.start + 300, call.end - 300)
        self.waits.append(Wait(start, end, kind, stream, call.correlation, record))
