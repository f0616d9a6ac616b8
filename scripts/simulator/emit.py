"""A run as exports: every event of every rank, its true time become that of its report."""

from pathlib import Path
from typing import Any

from simulator import schema
from simulator.export import Export, mangled_name, short_name
from simulator.program import AUTOGRAD_THREAD
from simulator.rank import COPY_STREAM, Rank
from simulator.run import Run
from simulator.settings import Settings

SECRET = ("SECRET_TOKEN", "do-not-print")
NODE_NS = 4_000_000_000_000


def write_reports(run: Run, directory: Path) -> list[Path]:
    """Write every report of a run. Returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    return [_report(run.job, directory / name, ranks).write() for name, ranks in run.reports()]


def _report(job: Settings, path: Path, ranks: list[Rank]) -> Export:
    clock, node = job.clock(ranks[0].index), job.node(ranks[0].index)
    stop = max(job.clock(rank.index).host(rank.clock) for rank in ranks) + 1_000_000
    export = Export(
        path,
        job.generation,
        hostname=f"node{node}" if job.hostnames else None,
        utc_epoch_ns=clock.utc_epoch_ns,
        system_clock_ns=clock.start % NODE_NS + (node + 1) * NODE_NS,
        duration_ns=stop,
        environment=_environment(job, ranks),
        graph_mode="Node" if job.graph_mode == "node" else "Graph",
        include_json=job.payload == "json",
    )
    for rank in ranks:
        _RankEvents(export, job, rank).add()
    if export.has("DIAGNOSTIC_EVENT"):
        export.diagnostic(0, "Profiling has started.")
        export.diagnostic(stop, "Profiling has stopped.")
    return export


def _environment(job: Settings, ranks: list[Rank]) -> dict[str, str]:
    """What the launcher left in the profiler's environment; nothing for a stripped report."""
    first, world = ranks[0], str(job.world)
    index, local, node = str(first.index), str(first.local), str(job.node(first.index))
    if len(ranks) > 1:  # the profiler wraps the launcher and sees the node only
        index, local = node, "0"
    prefix = "OMPI_COMM_WORLD_"
    launchers = {
        "torchrun": {"RANK": index, "WORLD_SIZE": world, "LOCAL_RANK": local},
        "slurm_zero": {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1"},
        "openmpi": {f"{prefix}RANK": index, f"{prefix}LOCAL_RANK": local, f"{prefix}SIZE": world},
        "launcher": {"SLURM_PROCID": node, "SLURM_NODEID": node},
    }
    found: dict[str, str] = {}
    for kind in job.evidence:
        found |= launchers.get(kind, {})
    if job.evidence:
        found |= {"PATH": "/usr/bin:/bin", SECRET[0]: SECRET[1]}
    return found


class _RankEvents:
    """The rows of one rank in its report."""

    def __init__(self, export: Export, job: Settings, rank: Rank) -> None:
        self.export, self.job, self.rank = export, job, rank
        self.process, self.clock = export.process(rank.pid), job.clock(rank.index)
        self.device = job.device(rank.local)

    def add(self) -> None:
        """Add all rows, table by table."""
        self.surroundings()
        self.operations()
        self.calls()
        self.synchronizations()
        self.ranges()

    def surroundings(self) -> None:
        export, job, rank, process = self.export, self.job, self.rank, self.process
        export.thread_name("python", process=process)
        if job.autograd_thread:
            export.thread_name("pt_autograd_0", rank.pid + AUTOGRAD_THREAD, process)
        for local in range(min(job.ranks_per_node, job.world) if len(export.processes) == 1 else 0):
            ordinal = local if not job.one_device_per_process else None
            alone = local == rank.local and ordinal is None
            export.gpu(local, cuDevice=0 if alone else ordinal)
        export.cuda_device(rank.local, self.device, process)
        for stream in sorted({operation.stream for operation in rank.operations} - {7}):
            export.stream(stream, priority=0 if stream == COPY_STREAM else -1, process=process)
        if "mpi_table" in job.evidence:
            export.mpi_rank(rank.index, process)
        if "mpi_thread" in job.evidence:
            export.nvtx_thread_name(f"MPI Rank {rank.index}", process=process)

    def operations(self) -> None:
        export, operations = self.export, self.rank.in_order()
        names = dict.fromkeys(op.spec.name for op in operations if op.spec is not None)
        for form in (short_name, mangled_name, str):
            for name in names:
                export.string(form(name))
        for op in operations:
            start, end = self.clock.gpu(op.start), self.clock.gpu(op.end)
            on: dict[str, Any] = {"device": self.device, "stream": op.stream}
            on |= {"process": self.process, "correlation": op.correlation}
            if op.spec is not None:
                spec, limit = op.spec, int(op.spec.shared[1] > 49152)
                on |= {"grid": spec.grid, "block": spec.block, "shared": spec.shared}
                on |= {"registers": spec.registers, "graph": op.graph or 0}
                if export.generation != schema.OLD:
                    on |= {"sharedMemoryExecuted": 102400, "sharedMemoryLimitConfig": limit}
                export.kernel(start, end, spec.name, graph_node=op.node, **on)
            elif op.role == "memcpy":
                on |= {"source": op.source, "target": op.target}
                export.memcpy(start, end, op.size, op.copy_kind, **on)
            elif op.role == "memset":
                export.memset(start, end, op.size, **on)
            elif export.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
                graph = op.graph or 0
                export.graph_trace(start, end, graph, graph + 1, **on)

    def calls(self) -> None:
        """API calls, the making of graphs, and allocations."""
        export, host, process = self.export, self.clock.host, self.process
        for call in self.rank.recorded_calls():
            on: dict[str, Any] = {"correlation": call.correlation, "process": process}
            on |= {"event_class": call.api}
            export.api(host(call.start), host(call.end), call.name, call.tid, **on)
        for time, graph, executable in self.rank.graphs:
            if export.has("CUDA_GRAPH_EVENTS", "graphId"):
                export.graph_event(host(time), graph, process=process)
                export.graph_event(host(time) + 300_000, graph, executable, process=process)
        if self.job.memory_usage and export.has("CUDA_GPU_MEMORY_USAGE_EVENTS"):
            for time, size, address, correlation in self.rank.allocations:
                on = {"address": address, "device": self.device, "correlation": correlation}
                export.memory_usage(host(time), size, process=process, **on)

    def synchronizations(self) -> None:
        """Waits, and the events that they wait for."""
        export, host, process = self.export, self.clock.host, self.process
        for wait in self.rank.waits:
            on: dict[str, Any] = {"stream": wait.stream, "correlation": wait.correlation}
            if record := wait.record:
                on |= {"event": record.event, "event_sync": record.event_sync}
            export.sync(host(wait.start), host(wait.end), wait.kind, process=process, **on)
        for one in self.rank.records if export.has("CUPTI_ACTIVITY_KIND_CUDA_EVENT") else ():
            on = {"stream": one.stream, "correlation": one.correlation, "device": self.device}
            export.cuda_event(one.event, one.event_sync, process=process, **on)

    def ranges(self) -> None:
        """NVTX ranges, NCCL's in a domain of theirs."""
        export, job, process = self.export, self.job, self.process
        ranges = [r for r in self.rank.ranges if job.nvtx or not r.domain]
        ranges.sort(key=lambda r: (r.start, -r.end))
        nccl = 0
        if any(r.domain for r in ranges):
            before = self.clock.host(ranges[0].start) - 5_000
            nccl = export.nvtx_domain("NCCL", start=before, process=process)
            _add_schemas(export, nccl)
        for one in ranges:
            domain = nccl if one.domain else 0
            on: dict[str, Any] = {"registered": bool(one.domain), "domain": domain}
            if job.payload == "json":
                on["payload"] = one.payload
            start, end = self.clock.host(one.start), self.clock.host(one.end)
            export.nvtx_push_pop(start, end, one.text, one.tid, process=process, **on)


# The schemas of NCCL's payloads.

FIRST = 1 << 24
REDUCTION_ENUM = FIRST + 20
REDUCTIONS = ("Sum", "Product", "Max", "Min", "Avg")

Field = tuple[str, int, int]  # name, type code, offset in bytes

_ID: Field = ("NCCL communicator ID", 18, 0)
_SIZE: Field = ("Message size [bytes]", 22, 8)
_REDUCTION: Field = ("Reduction operation", REDUCTION_ENUM, 16)
_ROOT: Field = ("Root", 5, 16)
_PEER: Field = ("Peer rank", 5, 16)
_GROUP: tuple[Field, ...] = (("No. of ranks", 5, 8), ("Rank", 5, 12), ("CUDA device", 5, 16))
# Range text -> schema number and fields.
LAYOUTS: dict[str, tuple[int, tuple[Field, ...]]] = {
    "ncclAllGather": (FIRST + 4, (_ID, _SIZE)),
    "ncclAllReduce": (FIRST + 5, (_ID, _SIZE, _REDUCTION)),
    "ncclBroadcast": (FIRST + 6, (_ID, _SIZE, _ROOT)),
    "ncclReduceScatter": (FIRST + 7, (_ID, _SIZE, _REDUCTION)),
    "ncclSend": (FIRST + 9, (_ID, _SIZE, _PEER)),
    "ncclRecv": (FIRST + 10, (_ID, _SIZE, _PEER)),
    "ncclCommInitRankConfig": (FIRST + 11, (_ID, *_GROUP)),
}


def _add_schemas(export: Export, domain: int) -> None:
    """Write the schema tables, where this generation has them. Offset and value 0 are NULL."""
    if export.generation != schema.NEW:
        return
    for number, fields in LAYOUTS.values():
        same: dict[str, object] = {"domainId": domain, "schemaId": number}
        shape = {"type": 1, "numEntries": len(fields), "payloadSize": _bytes(fields)}
        export.add("NVTX_PAYLOAD_SCHEMAS", same | shape)
        for place, (name, kind, offset) in enumerate(fields):
            entry = {"idx": place, "type": kind, "name": name, "offset": offset or None}
            export.add("NVTX_PAYLOAD_SCHEMA_ENTRIES", same | entry)
    same = {"domainId": domain, "schemaId": REDUCTION_ENUM}
    export.add("NVTX_PAYLOAD_ENUMS", same | {"numEntries": len(REDUCTIONS), "size": 4})
    for place, name in enumerate(REDUCTIONS):
        member = {"idx": place, "name": name, "value": place or None}
        export.add("NVTX_PAYLOAD_ENUM_ENTRIES", same | member)


def _bytes(fields: tuple[Field, ...]) -> int:
    """The size of the C structure, aligned to 8 bytes."""
    return -(-(max(offset for _, _, offset in fields) + 4) // 8) * 8
