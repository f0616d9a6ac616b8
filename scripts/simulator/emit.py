"""A run as exports: true times become each report's own, rows go in bulk."""

from pathlib import Path

from simulator import payload
from simulator.clocks import Clock
from simulator.enumerations import COPY_KINDS, MEMORY_KINDS, NVTX_PUSH_POP, SYNC_KINDS
from simulator.export import INVALID, Export
from simulator.names import mangled_name, short_name
from simulator.program import AUTOGRAD_THREAD
from simulator.rank import COPY_STREAM, Operation, Rank
from simulator.run import Run
from simulator.session import Process
from simulator.settings import Settings

SECRET = ("SECRET_TOKEN", "do-not-print")
NODE_NS = 4_000_000_000_000


def write_reports(run: Run, directory: Path) -> list[Path]:
    """Write every report of a run. Returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, ranks in run.reports():
        paths.append(_report(run.job, directory / name, ranks).write())
    return paths


def device_of(job: Settings, rank: Rank) -> int:
    """The CUDA ordinal that a rank's process sees its GPU under."""
    return 0 if job.one_device_per_process else rank.local


def lost_calls(job: Settings, rank: Rank) -> set[int]:
    """The correlation ids of launches that happened before the capture began."""
    kernels = sorted((op for op in rank.operations if op.spec is not None), key=lambda op: op.start)
    return {op.correlation for op in kernels[: job.orphan_kernels]}


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
        process = export.process(rank.pid)
        clock = job.clock(rank.index)
        _surroundings(export, job, rank, process)
        _operations(export, job, rank, process, clock)
        _calls(export, job, rank, process, clock)
        _synchronizations(export, job, rank, process, clock)
        _ranges(export, job, rank, process, clock)
    stop = max(int(job.clock(rank.index).host([rank.clock])[0]) for rank in ranks)
    export.duration_ns = stop + 1_000_000
    if export.has("DIAGNOSTIC_EVENT"):
        export.diagnostic(0, "Profiling has started.")
        export.diagnostic(export.duration_ns, "Profiling has stopped.")
    return export


def _environment(job: Settings, ranks: list[Rank]) -> dict[str, str]:
    """What the launcher left in the profiler's environment; nothing for a stripped report."""
    first, world = ranks[0], str(job.world)
    index, local = str(first.index), str(first.local)
    if len(ranks) > 1:  # the profiler wraps the launcher and sees the node only
        index, local = str(job.node(first.index)), "0"
    node = str(job.node(first.index))
    known = {
        "torchrun": {"RANK": index, "WORLD_SIZE": world, "LOCAL_RANK": local},
        "slurm": {
            "SLURM_PROCID": index,
            "SLURM_LOCALID": local,
            "SLURM_NODEID": node,
            "SLURM_NTASKS": world,
        },
        "slurm_zero": {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NTASKS": "1"},
        "openmpi": {
            "OMPI_COMM_WORLD_RANK": index,
            "OMPI_COMM_WORLD_LOCAL_RANK": local,
            "OMPI_COMM_WORLD_SIZE": world,
        },
        "launcher": {"SLURM_PROCID": node, "SLURM_NODEID": node},
        "mpi_table": {},
        "mpi_thread": {},
        "plain": {},
    }
    found: dict[str, str] = {}
    for kind in job.evidence:
        found |= known[kind]
    if job.evidence:
        found |= {"PATH": "/usr/bin:/bin", SECRET[0]: SECRET[1]}
    return found


def _surroundings(export: Export, job: Settings, rank: Rank, process: Process) -> None:
    device = device_of(job, rank)
    export.thread_name("python", process=process)
    if job.autograd_thread:
        export.thread_name("pt_autograd_0", rank.pid + AUTOGRAD_THREAD, process)
    if process.pid == min(export.processes):
        for local in range(min(job.ranks_per_node, job.world)):
            ordinal = local if not job.one_device_per_process else None
            export.gpu(local, cuDevice=0 if local == rank.local and ordinal is None else ordinal)
    export.cuda_device(rank.local, device, process)
    for stream in sorted({operation.stream for operation in rank.operations} - {7}):
        export.stream(stream, priority=0 if stream == COPY_STREAM else -1, process=process)
    if "mpi_table" in job.evidence:
        export.mpi_rank(rank.index, process)
    if "mpi_thread" in job.evidence:
        export.nvtx_thread_name(f"MPI Rank {rank.index}", process=process)


def _operations(export: Export, job: Settings, rank: Rank, process: Process, clock: Clock) -> None:
    tables = {
        "compute": "CUPTI_ACTIVITY_KIND_KERNEL",
        "communication": "CUPTI_ACTIVITY_KIND_KERNEL",
        "memcpy": "CUPTI_ACTIVITY_KIND_MEMCPY",
        "memset": "CUPTI_ACTIVITY_KIND_MEMSET",
        "graph": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    }
    sorted_operations = sorted(rank.operations, key=lambda operation: operation.start)
    for table in dict.fromkeys(tables.values()):
        found = [op for op in sorted_operations if tables[op.role] == table]
        if not found or not export.has(table):
            continue
        columns: dict[str, object] = {
            "start": clock.gpu([op.start for op in found]),
            "end": clock.gpu([op.end for op in found]),
            "deviceId": device_of(job, rank),
            "contextId": 1,
            "streamId": [op.stream for op in found],
            "correlationId": [op.correlation for op in found],
            "globalPid": process.global_pid,
            "bytes": [op.size for op in found],
            "graphNodeId": [op.node for op in found],
        }
        if table.endswith("KERNEL"):
            columns |= _kernel_columns(export, found)
        elif table.endswith("MEMCPY"):
            columns["copyKind"] = [COPY_KINDS[op.copy_kind] for op in found]
            columns["srcKind"] = [MEMORY_KINDS[op.source] for op in found]
            columns["dstKind"] = [MEMORY_KINDS[op.target] for op in found]
            columns["copyCount"] = 1
        elif table.endswith("MEMSET"):
            columns["memKind"] = MEMORY_KINDS["Device"]
        else:
            columns["graphId"] = [op.graph for op in found]
            columns["graphExecId"] = [(op.graph or 0) + 1 for op in found]
        export.bulk(table, columns)


def _kernel_columns(export: Export, found: list[Operation]) -> dict[str, object]:
    specs = [op.spec for op in found if op.spec is not None]
    names = {spec.name: spec.name for spec in specs}
    short = {name: export.string(short_name(name)) for name in names}
    mangled = {name: export.string(mangled_name(name)) for name in names}
    demangled = {name: export.string(name) for name in names}
    columns: dict[str, object] = {
        "demangledName": [demangled[spec.name] for spec in specs],
        "shortName": [short[spec.name] for spec in specs],
        "mangledName": [mangled[spec.name] for spec in specs],
        "launchType": 1,
        "cacheConfig": 1,
        "registersPerThread": [spec.registers for spec in specs],
        "staticSharedMemory": [spec.shared[0] for spec in specs],
        "dynamicSharedMemory": [spec.shared[1] for spec in specs],
        "gridId": [op.correlation for op in found],
        "sharedMemoryExecuted": 102400,
        "sharedMemoryLimitConfig": [int(spec.shared[1] > 49152) for spec in specs],
        "graphId": [op.graph or 0 for op in found],
        "tensorSizeMinusOneElements": "[]",
    }
    for place, axis in enumerate("XYZ"):
        columns[f"grid{axis}"] = [spec.grid[place] for spec in specs]
        columns[f"block{axis}"] = [spec.block[place] for spec in specs]
    return columns


def _calls(export: Export, job: Settings, rank: Rank, process: Process, clock: Clock) -> None:
    lost = lost_calls(job, rank)
    calls = [call for call in rank.calls if call.correlation not in lost]
    export.bulk(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        {
            "start": clock.host([call.start for call in calls]),
            "end": clock.host([call.end for call in calls]),
            "eventClass": [call.event_class for call in calls],
            "globalTid": [process.thread(call.tid) for call in calls],
            "correlationId": [call.correlation for call in calls],
            "nameId": [export.string(call.name) for call in calls],
            "returnValue": 0,
        },
    )
    for time, graph, executable in rank.graphs:
        if export.has("CUDA_GRAPH_EVENTS", "graphId"):
            start = int(clock.host([time])[0])
            export.graph_event(start, graph, process=process)
            export.graph_event(start + 300_000, graph, executable, process=process)
    if job.memory_usage and export.has("CUDA_GPU_MEMORY_USAGE_EVENTS"):
        for time, size, address, correlation in rank.allocations:
            export.memory_usage(
                int(clock.host([time])[0]),
                size,
                address=address,
                device=device_of(job, rank),
                process=process,
                correlation=correlation,
            )


def _synchronizations(
    export: Export, job: Settings, rank: Rank, process: Process, clock: Clock
) -> None:
    waits, records = rank.waits, rank.records
    same = {"contextId": 1, "globalPid": process.global_pid}
    if waits:
        export.bulk(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            same
            | {
                "start": clock.host([wait.start for wait in waits]),
                "end": clock.host([wait.end for wait in waits]),
                "deviceId": 0,
                "streamId": [INVALID if w.kind == "context" else w.stream for w in waits],
                "correlationId": [wait.correlation for wait in waits],
                "syncType": [SYNC_KINDS[wait.kind] for wait in waits],
                "eventId": [wait.event for wait in waits],
                "eventSyncId": [wait.event_sync for wait in waits],
            },
        )
    if records and export.has("CUPTI_ACTIVITY_KIND_CUDA_EVENT"):
        export.bulk(
            "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
            same
            | {
                "timestamp": 0,
                "deviceId": device_of(job, rank),
                "streamId": [record.stream for record in records],
                "correlationId": [record.correlation for record in records],
                "eventId": [record.event for record in records],
                "eventSyncId": [record.event_sync for record in records],
            },
        )


def _ranges(export: Export, job: Settings, rank: Rank, process: Process, clock: Clock) -> None:
    ranges = sorted(
        (r for r in rank.ranges if job.nccl_nvtx or not r.domain), key=lambda r: (r.start, -r.end)
    )
    if not ranges:
        return
    first = int(clock.host([ranges[0].start])[0])
    domains = {"": 0}
    if any(r.domain for r in ranges):
        domains["NCCL"] = export.nvtx_domain("NCCL", start=first - 5_000, process=process)
        payload.add_schemas(export, domains["NCCL"])
    json_texts: list[str | None] = [None] * len(ranges)
    blobs: list[bytes | None] = [None] * len(ranges)
    if job.payload == "json":
        json_texts = [payload.as_json(r.payload) for r in ranges]
    if job.payload == "blob":
        blobs = [payload.as_blob(r.text, domains[r.domain], r.payload) for r in ranges]
    export.bulk(
        "NVTX_EVENTS",
        {
            "start": clock.host([r.start for r in ranges]),
            "end": clock.host([r.end for r in ranges]),
            "eventType": NVTX_PUSH_POP,
            "text": [None if r.domain else r.text for r in ranges],
            "textId": [export.string(r.text) if r.domain else None for r in ranges],
            "globalTid": [process.thread(r.tid) for r in ranges],
            "domainId": [domains[r.domain] for r in ranges],
            "jsonText": json_texts,
            "binaryData": blobs,
        },
    )
