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

from simulator.clocks import Clock
from simulator.emit import device_of, lost_calls
from simulator.rank import Call, Operation, Range, Rank
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
_NAMES = {
    "AllReduce": "allreduce",
    "AllGather": "_allgather_base",
    "ReduceScatter": "_reduce_scatter_base",
    "Broadcast": "broadcast",
    "Send": "send",
    "Recv": "recv",
}
Event = dict[str, Any]


def write_traces(run: Run, directory: Path, *, packed: bool = True) -> list[Path]:
    """Write one trace per rank. Returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    return [_write(run, rank, directory, packed=packed) for rank in run.ranks]


def _write(run: Run, rank: Rank, directory: Path, *, packed: bool) -> Path:
    path = directory / f"{run.job.name}_rank{rank.index}.pt.trace.json{'.gz' if packed else ''}"
    base = run.job.clock(rank.index).utc_epoch_ns // BASE_NS * BASE_NS
    groups = [
        {"pg_name": str(n), "pg_desc": group.kind, "ranks": list(group.ranks)}
        for n, group in enumerate(run.groups)
    ]
    head: Event = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": n} | GPU for n in range(run.job.ranks_per_node)],
        "distributedInfo": {
            "backend": "nccl",
            "rank": rank.index,
            "world_size": run.job.world,
            "pg_count": len(groups),
            "pg_config": groups,
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
    }
    events = ",\n".join(_text(event) for event in _events(run, rank, base))
    text = f'{json.dumps(head)[:-1]}, "traceEvents": [\n{events}\n]}}\n'.encode()
    # no time of writing, so that the bytes are the same every time
    path.write_bytes(gzip.compress(text, mtime=0) if packed else text)
    return path


def _text(event: Event) -> str:
    """An event as JSON, its times in microseconds with three decimals."""
    times = {name: _micros(event[name]) for name in ("ts", "dur") if name in event}
    plain = {name: value for name, value in event.items() if name not in times}
    rest = json.dumps(plain)[:-1]
    return rest + "".join(f', "{name}": {text}' for name, text in times.items()) + "}"


def _micros(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03}"


def _events(run: Run, rank: Rank, base: int) -> Iterator[Event]:
    clock, device = run.job.clock(rank.index), device_of(run.job, rank)
    shift = clock.utc_epoch_ns - base
    lost = lost_calls(run.job, rank)
    calls = [call for call in rank.calls if call.correlation not in lost]
    yield {"ph": "M", "name": "process_name", "pid": rank.pid, "tid": 0, "args": {"name": "python"}}
    yield {"ph": "M", "name": "process_labels", "pid": rank.pid, "args": {"labels": "CPU"}}
    for span in sorted((r for r in rank.ranges if not r.domain), key=lambda r: (r.start, -r.end)):
        yield _host(rank, clock, shift, "user_annotation", span.text, span.tid, span) | {"args": {}}
    by_correlation = {op.correlation: op for op in rank.operations}
    for call in calls:
        if call.correlation in by_correlation:
            around = (call.start - 150, call.end + 150)
            name = operator_name(by_correlation[call.correlation])
            yield _host(rank, clock, shift, "cpu_op", name, call.tid, around)
        category = "cuda_driver" if call.event_class else "cuda_runtime"
        args = {"correlation": call.correlation}
        name = call.name.rsplit("_v", 1)[0]
        yield _host(rank, clock, shift, category, name, call.tid, call) | {"args": args}
    yield from _gpu_events(run, rank, clock, shift, device)
    yield from _waits(rank, clock, shift, device)


def operator_name(operation: Operation) -> str:
    """What the operator is called that launches an operation."""
    if operation.spec is None:
        return f"aten::{operation.role}"
    return f"aten::{operation.spec.name.partition('(')[0].rsplit('::', 1)[-1][:24]}"


def _host(
    rank: Rank,
    clock: Clock,
    shift: int,
    category: str,
    name: str,
    tid: int,
    span: Call | Range | tuple[int, int],
) -> Event:
    start, end = clock.host([span[0], span[1]]).tolist()
    times = {"ts": start + shift, "dur": end - start}
    return {"ph": "X", "cat": category, "name": name, "pid": rank.pid, "tid": tid} | times


def _gpu_events(run: Run, rank: Rank, clock: Clock, shift: int, device: int) -> Iterator[Event]:
    collective_args = _collectives(run, rank)
    for op in sorted(rank.operations, key=lambda one: one.start):
        start, end = clock.gpu([op.start, op.end]).tolist()
        args: Event = {"device": device, "context": 1, "stream": op.stream}
        args["correlation"] = op.correlation
        category, name = _gpu_name(op)
        if op.spec is not None:
            args |= {"grid": list(op.spec.grid), "block": list(op.spec.block)}
            args |= {
                "registers per thread": op.spec.registers,
                "shared memory": sum(op.spec.shared),
            }
        elif op.size:
            args["bytes"] = op.size
        args |= collective_args.get(op.correlation, {})
        yield {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": device,
            "tid": op.stream,
            "ts": start + shift,
            "dur": end - start,
            "args": args,
        }


def _gpu_name(op: Operation) -> tuple[str, str]:
    if op.spec is not None:
        return "kernel", op.spec.name
    if op.role == "memset":
        return "gpu_memset", "Memset (Device)"
    return "gpu_memcpy", f"Memcpy {op.copy_kind} ({op.source} -> {op.target})"


def _waits(rank: Rank, clock: Clock, shift: int, device: int) -> Iterator[Event]:
    """cuda_sync events (enable_cuda_sync_events): which recording a stream waited for."""
    made = {record.event_sync: record for record in rank.records}
    for wait in rank.waits:
        record = made.get(wait.event_sync)
        if wait.kind != "stream_wait" or record is None:
            continue
        start, end = clock.host([wait.start, wait.end]).tolist()
        args = {
            "cuda_sync_kind": "Stream Wait Event",
            "stream": wait.stream,
            "correlation": wait.correlation,
            "device": device,
            "context": 1,
            "wait_on_stream": record.stream,
            "wait_on_cuda_event_id": record.event,
            "wait_on_cuda_event_record_corr_id": record.correlation,
        }
        names = {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event"}
        times = {"ts": start + shift, "dur": end - start}
        yield names | {"pid": device, "tid": wait.stream} | times | {"args": args}


def _collectives(run: Run, rank: Rank) -> dict[int, Event]:
    """The arguments of NCCL's kernels by correlation: those of the last call before the launch."""
    called = sorted((r for r in rank.ranges if r.payload), key=lambda r: r.start)
    starts = [r.start for r in called]
    calls = {call.correlation: call for call in rank.calls}
    numbers = {group.number: place for place, group in enumerate(run.groups)}
    found = {}
    for op in rank.operations:
        place = bisect_right(starts, calls[op.correlation].start) - 1
        if op.role != "communication" or op.spec is None or place < 0:
            continue
        payload = called[place].payload or {}
        number = numbers.get(int(str(payload["NCCL communicator ID"])))
        if number is not None:
            found[op.correlation] = _arguments(run, number, called[place].text, payload, op)
            if op.correlation in rank.sent:
                found[op.correlation] |= _splits(rank.sent[op.correlation][1])
    return found


def _splits(sent: list[int]) -> Event:
    """Arguments of an all-to-all of so many bytes for each rank, 8 KiB a row."""
    rows = [size // 8_192 for size in sent]
    shown = f"[{', '.join(map(str, rows[:30]))}{', ...' if len(rows) > 30 else ''}]"
    elements = sum(sent) // _TYPES["bf16"][1]
    return {"Collective name": "all_to_allv", "In msg nelems": elements, "In split size": shown}


def _arguments(run: Run, number: int, text: str, payload: Event, op: Operation) -> Event:
    operation, ranks = text.removeprefix("nccl"), run.groups[number].ranks
    name, size = _TYPES["f32" if op.spec and "f32" in op.spec.name else "bf16"]
    elements = int(payload["Message size [bytes]"]) // size
    more = len(ranks) if operation == "AllGather" else 1
    less = len(ranks) if operation == "ReduceScatter" else 1
    side = {"Send": "Dst Rank", "Recv": "Src Rank"}.get(operation)
    peer = {side: ranks[int(str(payload["Peer rank"]))]} if side else {}
    return peer | {
        "Collective name": _NAMES.get(operation, operation.lower()),
        "In msg nelems": elements * less,
        "Out msg nelems": elements * more,
        "Group size": len(ranks),
        "dtype": name,
        "Process Group Name": str(number),
        "Process Group Description": run.groups[number].kind,
        "Process Group Ranks": json.dumps(list(ranks)),
    }
