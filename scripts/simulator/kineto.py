"""A run as traces of PyTorch's profiler: Kineto's JSON, one file per rank.

The same events on the same clocks as in the exports of emit.py; NCCL's calls are arguments of its
kernels instead of ranges, and around every launch there is an operator.
"""

import gzip
import json
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulator.rank import Operation, Range, Rank
from simulator.run import Run

# Times count from a boundary of three months, as in traces since 2024.
BASE_NS = 7_889_238 * 10**9
GPU = {
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85_045_018_624,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
}
_TYPES = {"bf16": ("BFloat16", 2), "f32": ("Float", 4)}
_NAMES = {"AllGather": "_allgather_base", "ReduceScatter": "_reduce_scatter_base"}
Event = dict[str, Any]


def write_traces(run: Run, directory: Path, *, packed: bool = True) -> list[Path]:
    """Write one trace per rank. Returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for rank in run.ranks:
        path = directory / f"{run.job.name}_rank{rank.index}.pt.trace.json{'.gz' * packed}"
        text = _RankTrace(run, rank).text().encode()
        # no time of writing, so that the bytes are the same every time
        path.write_bytes(gzip.compress(text, mtime=0) if packed else text)
        paths.append(path)
    return paths


def operator_name(operation: Operation) -> str:
    """What the operator is called that launches an operation."""
    if operation.spec is None:
        return f"aten::{operation.role}"
    return f"aten::{operation.spec.name.partition('(')[0].rsplit('::', 1)[-1][:24]}"


def _json(event: Event) -> str:
    """An event as JSON, its times in microseconds with three decimals."""
    times = {name: event.pop(name) for name in ("ts", "dur") if name in event}
    micros = (f', "{name}": {ns // 1000}.{ns % 1000:03}' for name, ns in times.items())
    return json.dumps(event)[:-1] + "".join(micros) + "}"


class _RankTrace:
    """The trace of one rank."""

    def __init__(self, run: Run, rank: Rank) -> None:
        self.run, self.rank = run, rank
        self.clock, self.device = run.job.clock(rank.index), run.job.device(rank.local)
        self.base = self.clock.utc_epoch_ns // BASE_NS * BASE_NS

    def text(self) -> str:
        groups = [
            {"pg_name": str(n), "pg_desc": group.kind, "ranks": list(group.ranks)}
            for n, group in enumerate(self.run.groups)
        ]
        head: Event = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": n} | GPU for n in range(self.run.job.ranks_per_node)],
            "distributedInfo": {
                "backend": "nccl",
                "rank": self.rank.index,
                "world_size": self.run.job.world,
                "pg_count": len(groups),
                "pg_config": groups,
            },
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base,
        }
        events = ",\n".join(map(_json, self.events()))
        return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{events}\n]}}\n'

    def events(self) -> Iterator[Event]:
        """Every event: names, ranges, operators and calls, what the GPU did, waits."""
        rank, pid = self.rank, self.rank.pid
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "python"}}
        yield {"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": "CPU"}}
        ranges = sorted((r for r in rank.ranges if not r.domain), key=lambda r: (r.start, -r.end))
        for span in ranges:
            yield self.on_host("user_annotation", span.text, span.tid, span.start, span.end, {})
        launched = {op.correlation: op for op in rank.operations}
        for call in rank.recorded_calls():
            if call.correlation in launched:
                name = operator_name(launched[call.correlation])
                yield self.on_host("cpu_op", name, call.tid, call.start - 150, call.end + 150)
            args, name = {"correlation": call.correlation}, call.name.rsplit("_v", 1)[0]
            yield self.on_host(f"cuda_{call.api}", name, call.tid, call.start, call.end, args)
        yield from self.operations()
        yield from self.waits()

    def event(self, category: str, name: str, pid: int, tid: int, start: int, end: int) -> Event:
        """A complete event; times are of the session."""
        event: Event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid}
        shift = self.clock.utc_epoch_ns - self.base
        return event | {"ts": start + shift, "dur": end - start}

    def on_host(
        self, category: str, name: str, tid: int, start: int, end: int, args: Event | None = None
    ) -> Event:
        """What a thread did; times are true ones."""
        host = self.clock.host
        event = self.event(category, name, self.rank.pid, tid, host(start), host(end))
        return event if args is None else event | {"args": args}

    def operations(self) -> Iterator[Event]:
        collectives, gpu = self.collectives(), self.clock.gpu
        for op in self.rank.in_order():
            args: Event = {"device": self.device, "context": 1, "stream": op.stream}
            args["correlation"] = op.correlation
            category = "gpu_memcpy"
            name = f"Memcpy {op.copy_kind} ({op.source} -> {op.target})"
            if op.spec is not None:
                category, name = "kernel", op.spec.name
                args |= {"grid": list(op.spec.grid), "block": list(op.spec.block)}
                args["registers per thread"] = op.spec.registers
                args["shared memory"] = sum(op.spec.shared)
            elif op.size:
                args["bytes"] = op.size
            if op.role == "memset":
                category, name = "gpu_memset", "Memset (Device)"
            args |= collectives.get(op.correlation, {})
            event = self.event(category, name, self.device, op.stream, gpu(op.start), gpu(op.end))
            yield event | {"args": args}

    def waits(self) -> Iterator[Event]:
        """cuda_sync events (enable_cuda_sync_events): which recording a stream waited for."""
        name, host = "Stream Wait Event", self.clock.host
        for wait in self.rank.waits:
            if (record := wait.record) is None:
                continue
            args = {
                "cuda_sync_kind": name,
                "stream": wait.stream,
                "correlation": wait.correlation,
                "device": self.device,
                "context": 1,
                "wait_on_stream": record.stream,
                "wait_on_cuda_event_id": record.event,
                "wait_on_cuda_event_record_corr_id": record.correlation,
            }
            where = self.device, wait.stream, host(wait.start), host(wait.end)
            yield self.event("cuda_sync", name, *where) | {"args": args}

    def collectives(self) -> dict[int, Event]:
        """Arguments of NCCL's kernels by correlation: those of the last call before the launch."""
        rank = self.rank
        called = sorted((r for r in rank.ranges if r.payload), key=lambda r: r.start)
        starts = [r.start for r in called]
        launches = {call.correlation: call.start for call in rank.calls}
        found = {}
        for op in rank.operations:
            place = bisect_right(starts, launches[op.correlation]) - 1
            if op.role == "communication" and place >= 0:
                found[op.correlation] = self.arguments(called[place], op)
        return found

    def arguments(self, call: Range, op: Operation) -> Event:
        """The arguments of a collective or message, of the last one of a group of calls."""
        payload = call.payload or {}
        numbers = [group.number for group in self.run.groups]
        number = numbers.index(int(str(payload["NCCL communicator ID"])))
        group = self.run.groups[number]
        operation, ranks = call.text.removeprefix("nccl"), group.ranks
        name, size = _TYPES["f32" if op.spec and "f32" in op.spec.name else "bf16"]
        elements = int(str(payload["Message size [bytes]"])) // size
        side = {"Send": "Dst Rank", "Recv": "Src Rank"}.get(operation)
        peer: Event = {side: ranks[int(str(payload["Peer rank"]))]} if side else {}
        return peer | {
            "Collective name": _NAMES.get(operation, operation.lower()),
            "In msg nelems": elements * (len(ranks) if operation == "ReduceScatter" else 1),
            "Out msg nelems": elements * (len(ranks) if operation == "AllGather" else 1),
            "Group size": len(ranks),
            "dtype": name,
            "Process Group Name": str(number),
            "Process Group Description": group.kind,
            "Process Group Ranks": json.dumps(list(ranks)),
            **_splits(self.rank.sent.get(op.correlation)),
        }


def _splits(sent: tuple[object, list[int]] | None) -> Event:
    """Arguments of an all-to-all of so many bytes for each rank, 8 KiB a row."""
    if sent is None:
        return {}
    rows = [size // 8_192 for size in sent[1]]
    shown = f"[{', '.join(map(str, rows[:30]))}{', ...' if len(rows) > 30 else ''}]"
    elements = sum(sent[1]) // _TYPES["bf16"][1]
    return {"Collective name": "all_to_allv", "In msg nelems": elements, "In split size": shown}
