"""What is true about a run, from its events and nothing else: no reader, no analysis.

Times are ns of each report's own clock where an event is meant, and plain ns for lengths.
"""

from collections.abc import Iterable
from itertools import pairwise
from statistics import median

from simulator.collective import Instance, bus_factor
from simulator.emit import device_of, lost_calls
from simulator.idle_truth import idle_truth
from simulator.rank import Operation, Rank
from simulator.run import Run
from simulator.settings import Settings

Interval = tuple[int, int]
COMPUTE, COMMUNICATION, MEMORY, GRAPH = 1, 2, 4, 8
_CLASS = {
    "compute": COMPUTE,
    "communication": COMMUNICATION,
    "memcpy": MEMORY,
    "memset": MEMORY,
    "graph": GRAPH,
}


def truth(run: Run) -> dict[str, object]:
    """The truth of a run, ready for JSON."""
    job = run.job
    collectives = sorted(run.instances, key=lambda i: (max(i.starts.values()), i.sequence))
    return {
        "simulated": True,
        "job": {
            "name": job.name,
            "seed": job.seed,
            "world": job.world,
            "tensor": job.tensor,
            "data": job.data,
            "pipeline": job.pipeline,
            "iterations": job.iterations,
            "warmup": job.warmup,
        },
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
    clock = job.clock(rank.index)
    starts = clock.gpu([op.start for op in rank.operations]).tolist()
    ends = clock.gpu([op.end for op in rank.operations]).tolist()
    placed = [
        op._replace(start=start, end=end)
        for op, start, end in zip(rank.operations, starts, ends, strict=True)
    ]
    mine = [instance for instance in collectives if rank.index in instance.starts]
    last = [i for i in mine if max(i.starts, key=lambda r: i.starts[r]) == rank.index]
    return {
        "rank": rank.index,
        "report": report,
        "node": job.node(rank.index),
        "host": f"node{job.node(rank.index)}" if job.hostnames else None,
        "pid": rank.pid,
        "device": device_of(job, rank),
        "clock": {
            "session_start_true_ns": clock.start,
            "utc_error_ns": clock.utc_error_ns,
            "gpu_error_ns": clock.gpu_error_ns,
            "offset_ns": clock.offset_ns,
            "drift_ppm": clock.drift_ppm,
        },
        "budget": budget((op.start, op.end, _CLASS[op.role]) for op in placed),
        "idle": idle_truth(clock, rank, placed, lost_calls(job, rank)),
        "kernels": kernels(placed),
        "copies": _copies(placed),
        "memsets": _sum(op for op in placed if op.role == "memset"),
        "graphs": _sum(op for op in placed if op.role == "graph"),
        "iterations": _iterations(job, rank),
        "calls": len(rank.calls),
        "wait_ns": sum(max(i.starts.values()) - i.starts[rank.index] for i in mine),
        "collectives": len(mine),
        "arrived_last": len(last),
    }


def budget(events: Iterable[tuple[int, int, int]]) -> dict[str, object]:
    """Split a device's window by a sweep over the edges of (start, end, class) events.

    All lengths in ns; the partition names which classes were at work together.
    """
    edges: list[tuple[int, int, int]] = []
    for start, end, kind in events:
        edges += [(start, 1, kind), (end, -1, kind)]
    if not edges:
        return {"window_ns": 0}
    edges.sort()
    depth = {COMPUTE: 0, COMMUNICATION: 0, MEMORY: 0, GRAPH: 0}
    cells: dict[int, int] = {}
    for (at, step, kind), (following, _, _) in pairwise([*edges, edges[-1]]):
        depth[kind] += step
        state = sum(bit for bit, count in depth.items() if count)
        if following > at:
            cells[state] = cells.get(state, 0) + following - at

    def total(chosen: int, without: int = 0) -> int:
        return sum(
            length for state, length in cells.items() if state & chosen and not state & without
        )

    window = edges[-1][0] - edges[0][0]
    work = COMPUTE | GRAPH
    busy = sum(length for state, length in cells.items() if state)
    overlap = sum(n for s, n in cells.items() if s & work and s & COMMUNICATION)
    return {
        "start_ns": edges[0][0],
        "end_ns": edges[-1][0],
        "window_ns": window,
        "busy_ns": busy,
        "compute_ns": total(work),
        "communication_ns": total(COMMUNICATION),
        "memory_ns": total(MEMORY),
        "overlap_ns": overlap,
        "exposed_communication_ns": total(COMMUNICATION, work | MEMORY),
        "copy_only_ns": total(MEMORY, work | COMMUNICATION),
        "opaque_graph_ns": total(GRAPH),
        "idle_ns": window - busy,
        "partition": _partition(cells),
    }


def _partition(cells: dict[int, int]) -> dict[str, int]:
    """Lengths by combination, graphs counted as compute; sums to busy."""
    named: dict[str, int] = {}
    for state, length in sorted(cells.items()):
        flags = {
            "compute": state & (COMPUTE | GRAPH),
            "communication": state & COMMUNICATION,
            "memory": state & MEMORY,
        }
        name = "+".join(word for word, on in flags.items() if on)
        if name:
            named[name] = named.get(name, 0) + length
    return named


def kernels(operations: Iterable[Operation]) -> list[dict[str, object]]:
    """Per demangled name: instances, total and median ns, largest total first."""
    found: dict[str, list[int]] = {}
    for op in operations:
        if op.spec is not None:
            found.setdefault(op.spec.name, []).append(op.end - op.start)
    rows: list[dict[str, object]] = [
        {"name": name, "instances": len(d), "total_ns": sum(d), "median_ns": median(d)}
        for name, d in sorted(found.items(), key=lambda item: (-sum(item[1]), item[0]))
    ]
    return rows


def _copies(operations: list[Operation]) -> list[dict[str, object]]:
    kinds = sorted(
        {(op.copy_kind, op.source, op.target) for op in operations if op.role == "memcpy"}
    )
    return [
        {"kind": kind, "source": source, "target": target}
        | _sum(
            op
            for op in operations
            if op.role == "memcpy" and (op.copy_kind, op.source, op.target) == key
        )
        for key in kinds
        for kind, source, target in [key]
    ]


def _sum(operations: Iterable[Operation]) -> dict[str, object]:
    found = list(operations)
    return {
        "count": len(found),
        "bytes": sum(op.size for op in found),
        "total_ns": sum(op.end - op.start for op in found),
    }


def _iterations(job: Settings, rank: Rank) -> list[dict[str, object]]:
    clock = job.clock(rank.index)
    found = [r for r in rank.ranges if not r.domain and r.text == "iteration"]
    starts = clock.host([r.start for r in found]).tolist()
    ends = clock.host([r.end for r in found]).tolist()
    return [
        {"iteration": i, "start_ns": start, "end_ns": end, "warmup": i < job.warmup}
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
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
        "start_ns": [int(job.clock(rank).gpu([start])[0]) for rank, start in starts],
        "wait_ns": [last - start for _, start in starts],
        "transfer_ns": duration,
        "busbw_gb_per_s": round(total * factor / duration, 6),
        "last_rank": max(instance.starts, key=lambda rank: instance.starts[rank]),
    }
