"""Events of a PyTorch trace by hand: calls, the kernels that they launch, operators."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Event = dict[str, Any]
FORWARD, AUTOGRAD = 10, 11


def event(cat: str, name: str, ts: float, dur: float, tid: int = FORWARD, **args: Any) -> Event:
    place = {"pid": 0, "tid": 7} if cat == "kernel" else {"pid": 1, "tid": tid}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **place, "args": args}


def launch(number: int, at: float, length: float, tid: int = FORWARD) -> list[Event]:
    """A call on a thread, and the kernel of that length (us) that it launched."""
    return [
        event("cuda_runtime", "cudaLaunchKernel", at, 1, tid, correlation=number),
        event("kernel", f"kernel {number}", at + 500, length, correlation=number, stream=7),
    ]


def operator(
    name: str, at: float, length: float, sequence: int, tid: int = FORWARD, **args: Any
) -> Event:
    return event("cpu_op", name, at, length, tid, **{"Sequence number": sequence}, **args)


def written(events: list[Event], folder: Path) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    return path


def changed_trace(original: Path, path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a trace after a change of its document."""
    trace = json.loads(gzip.decompress(original.read_bytes()))
    change(trace)
    path.write_text(json.dumps(trace), encoding="utf-8")
    return path
