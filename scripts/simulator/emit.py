"""A run as exports: every event of every rank, its true time become that of its report."""

from pathlib import Path
from typing import Any

from simulator import payload, schema
from simulator.clocks import Clock
from simulator.export import Export
from simulator.names import mangled_name, short_name
from simulator.program import AUTOGRAD_THREAD
from simulator.rank import COPY_STREAM, Rank
from simulator.run import Run
from simulator.session import Process
from simulator.settings import Settings

SECRET = ("SECRET_TOKEN", "do-not-print")
NODE_NS = 4_000_000_000_000


def write_reports(run: Run, directory: Path) -> list[Path]:
    """Write every report of a run. Returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    return [_report(run.job, directory / name, ranks).write() for name, ranks in run.reports()]


def _report(job: Settings, path: Path, ranks: list[Rank]) -> Export:
    clock, node = job.clock(ranks[0].index), job.node(ranks[0].index)
    export = Export(
        path,
        job.generation,
        hostname=f"node{node}" if job.hostnames else None,
        utc_epoch_ns=clock.utc_epoch_ns,
        system_clock_ns=clock.start % NODE_NS + (node + 1) * NODE_NS,
        environment=_environment(job, ranks),
        graph_mode="Node" if job.graph_mode == "node" else "Graph",
        include_json=job.payload == "json",
    )
    for rank in ranks:
        one = _RankEvents(export, job, rank, export.process(rank.pid), job.clock(rank.index))
        one.surroundings()
        one.operations()
        one.calls()
        one.synchronizations()
        one.ranges()
    stop = max(int(job.clock(rank.index).host([rank.clock])[0]) for rank in ranks)
    export.duration_ns = stop + 1_000_000
    if export.has("DIAGNOSTIC_EVENT"):
        export.diagnostic(0, "Profiling has started.")
        export.diagnostic(export.duration_ns, "Profiling has stopped.")
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

    def __init__(
        self, export: Export, job: Settings, rank: Rank, process: Process, clock: Clock
    ) -> None:
        self.export, self.job, self.rank = export, job, rank
        self.process, self.clock = process, clock
        self.device = job.device(rank.local)

    def surroundings(self) -> None:
        """Threads, GPUs, streams, and the rank as MPI says it."""
        export, job, rank, process = self.export, self.job, self.rank, self.process
        export.thread_name("python", process=process)
        if job.autograd_thread:
            export.thread_name("pt_autograd_0", rank.pid + AUTOGRAD_THREAD, process)
        if process.pid == min(export.processes):
            for local in range(min(job.ranks_per_node, job.world)):
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
        """What the GPU did, by start."""
        export, operations = self.export, self.rank.in_order()
        names = dict.fromkeys(op.spec.name for op in operations if op.spec is not None)
        for form in (short_name, mangled_name, str):
            for name in names:
                export.string(form(name))
        starts = self.clock.gpu([op.start for op in operations]).tolist()
        ends = self.clock.gpu([op.end for op in operations]).tolist()
        for op, start, end in zip(operations, starts, ends, strict=True):
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
                ends_of = {"source": op.source, "target": op.target}
                export.memcpy(start, end, op.size, op.copy_kind, **ends_of, **on)
            elif op.role == "memset":
                export.memset(start, end, op.size, **on)
            elif export.has("CUPTI_ACTIVITY_KIND_GRAPH_TRACE"):
                graph = op.graph or 0
                export.graph_trace(start, end, graph, graph + 1, **on)

    def calls(self) -> None:
        """API calls, the making of graphs, and allocations."""
        export, process = self.export, self.process
        lost = self.rank.first_launches(self.job.orphan_kernels)
        calls = [call for call in self.rank.calls if call.correlation not in lost]
        starts = self.clock.host([call.start for call in calls]).tolist()
        ends = self.clock.host([call.end for call in calls]).tolist()
        for call, start, end in zip(calls, starts, ends, strict=True):
            on: dict[str, Any] = {"correlation": call.correlation, "process": process}
            export.api(start, end, call.name, call.tid, event_class=call.event_class, **on)
        for time, graph, executable in self.rank.graphs:
            if export.has("CUDA_GRAPH_EVENTS", "graphId"):
                start = int(self.clock.host([time])[0])
                export.graph_event(start, graph, process=process)
                export.graph_event(start + 300_000, graph, executable, process=process)
        if self.job.memory_usage and export.has("CUDA_GPU_MEMORY_USAGE_EVENTS"):
            for time, size, address, correlation in self.rank.allocations:
                start = int(self.clock.host([time])[0])
                on = {"address": address, "device": self.device, "correlation": correlation}
                export.memory_usage(start, size, process=process, **on)

    def synchronizations(self) -> None:
        """Waits, and the events that they wait for."""
        waits, export, process = self.rank.waits, self.export, self.process
        starts = self.clock.host([wait.start for wait in waits]).tolist()
        ends = self.clock.host([wait.end for wait in waits]).tolist()
        for wait, start, end in zip(waits, starts, ends, strict=True):
            on = {"stream": wait.stream, "correlation": wait.correlation}
            on |= {"event": wait.event, "event_sync": wait.event_sync}
            export.sync(start, end, wait.kind, process=process, **on)
        for one in self.rank.records if export.has("CUPTI_ACTIVITY_KIND_CUDA_EVENT") else ():
            on = {"stream": one.stream, "correlation": one.correlation, "device": self.device}
            export.cuda_event(one.event, one.event_sync, process=process, **on)

    def ranges(self) -> None:
        """NVTX ranges, NCCL's in a domain of theirs."""
        export, job, process = self.export, self.job, self.process
        ranges = [r for r in self.rank.ranges if job.nccl_nvtx or not r.domain]
        ranges.sort(key=lambda r: (r.start, -r.end))
        starts = self.clock.host([r.start for r in ranges]).tolist()
        ends = self.clock.host([r.end for r in ranges]).tolist()
        nccl = 0
        if any(r.domain for r in ranges):
            nccl = export.nvtx_domain("NCCL", start=starts[0] - 5_000, process=process)
            payload.add_schemas(export, nccl)
        for one, start, end in zip(ranges, starts, ends, strict=True):
            domain = nccl if one.domain else 0
            on: dict[str, Any] = {"registered": bool(one.domain), "domain": domain}
            if job.payload == "json":
                on["payload"] = one.payload
            elif job.payload == "blob":
                on["binaryData"] = payload.as_blob(one.text, domain, one.payload)
            export.nvtx_push_pop(start, end, one.text, one.tid, process=process, **on)
