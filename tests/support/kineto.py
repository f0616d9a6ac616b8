"""PyTorch (Kineto) traces as nsightpy's frames: their GPU and runtime events, nothing else."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nsightpy.frames import Frame, Labels

Event = dict[str, Any]
MEMORY = {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
KERNELS = {"kernel", "Kernel"}
CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}
MEMORY_KINDS = ("source_memory", "target_memory")
PID = 1


@dataclass(frozen=True)
class Trace:
    """One trace as frames; times in ns of its own clock."""

    kernels: Frame
    operations: Frame
    graphs: Frame
    calls: Frame

    def of_stream(self, stream: int) -> Trace:
        """Only what ran on one stream."""
        kernels, operations, graphs = (
            part.take(part.ints("stream") == stream)
            for part in (self.kernels, self.operations, self.graphs)
        )
        return Trace(kernels, operations, graphs, self.calls)


def load(path: Path, *, rounded: bool, any_stream: bool = False) -> Trace:
    """The events that HTA analyses when it is told to include the last profiler step.

    `rounded` rounds as HTA rounds traces of sub-microsecond times: starts up, ends down, to us.
    `any_stream` takes host events with a `stream` argument for kernels, as HTA does.
    """
    with gzip.open(path) as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    times = _rounded_ns if rounded and _is_fractional(events) else _exact_ns
    calls = [e for e in events if e.get("cat") in CALLS and "correlation" in e.get("args", {})]
    last = _last_step_end(events)
    launching = {e["args"]["correlation"] for e in calls if last is None or e["ts"] <= last}
    gpu = [e for e in events if e.get("cat") in MEMORY | KERNELS]
    if last is not None:
        gpu = [e for e in gpu if e["args"]["correlation"] in launching]
    if any_stream:
        gpu += [e for e in events if e.get("cat") == "cpu_op" and "stream" in e.get("args", {})]
    gpu.sort(key=times)
    kernels = [e for e in gpu if e["cat"] not in MEMORY]
    copies = [e for e in gpu if e["cat"] in MEMORY]
    return Trace(
        Frame({**_placed(kernels, times), "name": Labels.of(e["name"] for e in kernels)}),
        Frame(
            {
                **_placed(copies, times),
                "operation": Labels.of(_operation(e) for e in copies),
                "bytes": np.zeros(len(copies), dtype=np.int64),
                **{name: Labels.constant("", len(copies)) for name in MEMORY_KINDS},
            }
        ),
        Frame(_placed([], times)),
        _calls(calls, times),
    )


def _operation(event: Event) -> str:
    return "[CUDA memset]" if event["cat"].lower().endswith("memset") else "[CUDA memcpy]"


def _is_fractional(events: Sequence[Event]) -> bool:
    return any(isinstance(e["ts"], float) and e["ts"] % 1 for e in events)


def _exact_ns(event: Event) -> tuple[int, int]:
    start = round(event["ts"] * 1000)
    return start, start + round(event["dur"] * 1000)


def _rounded_ns(event: Event) -> tuple[int, int]:
    return 1000 * math.ceil(event["ts"]), 1000 * math.floor(event["ts"] + event["dur"])


def _last_step_end(events: Sequence[Event]) -> float | None:
    """The end of the last profiler step; None where there are fewer than two of them."""
    hosts = (e for e in events if e.get("cat") in {"user_annotation", "cpu_op"})
    steps = [e for e in hosts if e["name"].startswith("ProfilerStep#")]
    if len({e["name"] for e in steps}) < 2:
        return None
    return max(float(e["ts"] + e["dur"]) for e in steps)


def _placed(events: list[Event], times: Callable[[Event], tuple[int, int]]) -> dict[str, Any]:
    placed = [(*times(e), e["args"]) for e in events]
    columns: dict[str, list[int]] = {
        "start_ns": [start for start, _, _ in placed],
        "end_ns": [end for _, end, _ in placed],
        "pid": [PID] * len(placed),
        "device": [0] * len(placed),
        "context": [int(args.get("context", 0)) for _, _, args in placed],
        "stream": [int(args["stream"]) for _, _, args in placed],
        "correlation_id": [int(args.get("correlation", 0)) for _, _, args in placed],
    }
    return {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}


def _calls(events: list[Event], times: Callable[[Event], tuple[int, int]]) -> Frame:
    placed = sorted((*times(e), int(e["args"]["correlation"])) for e in events)
    columns = {
        "start_ns": [start for start, _, _ in placed],
        "end_ns": [end for _, end, _ in placed],
        "pid": [PID] * len(placed),
        "tid": [PID] * len(placed),
        "correlation_id": [number for _, _, number in placed],
    }
    numbers = {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}
    return Frame({**numbers, "name": Labels.constant("cudaLaunchKernel", len(placed))})
