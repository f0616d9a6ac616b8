"""What is true about a run, from its events and nothing else: no reader, no analysis.

Times are ns of each report's own clock where an event is meant, and plain ns for lengths.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from simulator.collective import Instance, bus_factor
from simulator.rank import Operation, Rank
from simulator.run import Run
from simulator.settings import Clock, Settings

COMPUTE, COMMUNICATION, MEMORY, GRAPH = 1, 2, 4, 8
_CLASS = {"compute": COMPUTE, "communication": COMMUNICATION, "memcpy": MEMORY}
_CLASS |= {"memset": MEMORY, "graph": GRAPH}
KERNEL_WAIT_NS = 30_000


def truth(run: Run) -> dict[str, object]:
    job = run.job
    collectives = sorted(run.instances, key=lambda i: (max(i.starts.values()), i.sequence))
    names = ("name", "seed", "world", "tensor", "data", "pipeline", "iterations", "warmup")
    return {
        "simulated": True,
        "job": {name: getattr(job, name) for name in names},
        "straggler": job.straggler,
        "groups": [
            {"kind": g.kind, "ranks": list(g.ranks), "communicator": g.number} for g in run.groups
        ],
        "ranks": [
            _rank(job, rank, report, collectives)
            for report, ranks in run.reports()
            for rank in ranks
        ],
        "collectives": [_collective(job, instance) for instance in collectives],
    }


def _rank(job: Settings, rank: Rank, report: str, collectives: list[Instance]) -> dict[str, object]:
    clock, node = job.clock(rank.index), job.node(rank.index)
    gpu = clock.gpu
    placed = [op._replace(start=gpu(op.start), end=gpu(op.end)) for op in rank.operations]
    joined = [instance for instance in collectives if rank.index in instance.starts]
    return {
        "rank": rank.index,
        "report": report,
        "node": node,
        "host": f"node{node}" if job.hostnames else None,
        "pid": rank.pid,
        "device": job.device(rank.local),
        "clock": {
            "session_start_true_ns": clock.start,
            "utc_error_ns": clock.utc_error_ns,
            "gpu_error_ns": clock.gpu_error_ns,
            "offset_ns": clock.utc_error_ns + clock.gpu_error_ns,
            "drift_ppm": clock.drift_ppb / 1000,
        },
        "budget": budget((op.start, op.end, _CLASS[op.role]) for op in placed),
        "idle": _stream_waits(clock, rank, placed),
        "kernels": _kernels(placed),
        "copies": _copies(placed),
        "memsets": _sum([op for op in placed if op.role == "memset"]),
        "graphs": _sum([op for op in placed if op.role == "graph"]),
        "iterations": _iterations(job, rank),
        "calls": len(rank.calls),
        "wait_ns": sum(max(i.starts.values()) - i.starts[rank.index] for i in joined),
        "collectives": len(joined),
        "arrived_last": sum(i.last_rank == rank.index for i in joined),
    }


def budget(events: Iterable[tuple[int, int, int]]) -> dict[str, object]:
    """Split a device's window (ns) by a sweep over the edges of (start, end, class) events."""
    edges: list[tuple[int, int, int]] = []
    for start, end, kind in events:
        edges += [(start, 1, kind), (end, -1, kind)]
    if not edges:
        return {"window_ns": 0}
    edges.sort()
    depth = {COMPUTE: 0, COMMUNICATION: 0, MEMORY: 0, GRAPH: 0}
    cells: dict[int, int] = defaultdict(int)
    for (at, step, kind), (following, _, _) in pairwise([*edges, edges[-1]]):
        depth[kind] += step
        if state := sum(bit for bit, count in depth.items() if count):
            cells[state] += following - at

    def total(chosen: int, without: int = 0) -> int:
        return sum(n for state, n in cells.items() if state & chosen and not state & without)

    window, busy, work = edges[-1][0] - edges[0][0], sum(cells.values()), COMPUTE | GRAPH
    return {
        "start_ns": edges[0][0],
        "end_ns": edges[-1][0],
        "window_ns": window,
        "busy_ns": busy,
        "compute_ns": total(work),
        "communication_ns": total(COMMUNICATION),
        "memory_ns": total(MEMORY),
        "overlap_ns": total(COMMUNICATION) - total(COMMUNICATION, work),
        "exposed_communication_ns": total(COMMUNICATION, work | MEMORY),
        "copy_only_ns": total(MEMORY, work | COMMUNICATION),
        "opaque_graph_ns": total(GRAPH),
        "idle_ns": window - busy,
    }


def _stream_waits(clock: Clock, rank: Rank, placed: list[Operation]) -> dict[str, int] | None:
    """What the streams waited for, ns; None where graphs hide what happened."""
    if any(op.role == "graph" for op in placed) or not placed:
        return None
    called = {call.correlation: clock.host(call.start) for call in rank.recorded_calls()}
    waits = {"host_wait_ns": 0, "kernel_wait_ns": 0, "other_wait_ns": 0}
    reached: dict[int, int] = {}
    for op in sorted(placed, key=lambda op: op.start):
        before = reached.get(op.stream, op.start)
        if op.start > before:
            by_host = called.get(op.correlation, before) > before
            short = op.start - before < KERNEL_WAIT_NS
            waiting = "host" if by_host else "kernel" if short else "other"
            waits[f"{waiting}_wait_ns"] += op.start - before
        reached[op.stream] = max(before, op.end)
    return waits


def _kernels(operations: Iterable[Operation]) -> list[dict[str, object]]:
    found: dict[str, list[int]] = defaultdict(list)
    for op in operations:
        if op.spec is not None:
            found[op.spec.name].append(op.end - op.start)
    return [
        {"name": name, "instances": len(d), "total_ns": sum(d), "median_ns": median(d)}
        for name, d in sorted(found.items(), key=lambda item: (-sum(item[1]), item[0]))
    ]


def _copies(operations: list[Operation]) -> list[dict[str, object]]:
    found: dict[tuple[str, str, str], list[Operation]] = defaultdict(list)
    for op in operations:
        if op.role == "memcpy":
            found[op.copy_kind, op.source, op.target].append(op)
    return [
        {"kind": kind, "source": source, "target": target} | _sum(copies)
        for (kind, source, target), copies in sorted(found.items())
    ]


def _sum(operations: list[Operation]) -> dict[str, object]:
    total = sum(op.end - op.start for op in operations)
    size = sum(op.size for op in operations)
    return {"count": len(operations), "bytes": size, "total_ns": total}


def _iterations(job: Settings, rank: Rank) -> list[dict[str, object]]:
    host = job.clock(rank.index).host
    found = [r for r in rank.ranges if not r.domain and r.text == "iteration"]
    return [
        {"iteration": i, "start_ns": host(r.start), "end_ns": host(r.end), "warmup": i < job.warmup}
        for i, r in enumerate(found)
    ]


def _collective(job: Settings, instance: Instance) -> dict[str, object]:
    """One instance; `start_ns` are report times by rank, waits and duration true ones."""
    group, last = instance.communicator, max(instance.starts.values())
    starts = sorted(instance.starts.items())
    duration = min(instance.ends[rank] - start for rank, start in starts)
    total = group.total_bytes(instance.operation, instance.size)
    factor = bus_factor(instance.operation, len(group.ranks))
    return {
        "operation": instance.operation,
        "group": group.kind,
        "communicator": group.number,
        "sequence": instance.sequence,
        "message_bytes": instance.size,
        "total_bytes": total,
        "ranks": [rank for rank, _ in starts],
        "start_ns": [job.clock(rank).gpu(start) for rank, start in starts],
        "wait_ns": [last - start for _, start in starts],
        "transfer_ns": duration,
        "busbw_gb_per_s": round(total * factor / duration, 6),
        "last_rank": instance.last_rank,
    }
