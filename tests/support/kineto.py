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
from nsightpy.readers.torch.columns import whole

Event = dict[str, Any]
MEMORY = {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
KERNELS = {"kernel", "Kernel"}
CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}
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
    rounded = rounded and any(isinstance(e["ts"], float) and e["ts"] % 1 for e in events)

    def times(event: Event) -> tuple[int, int]:
        start, end = event["ts"], event["ts"] + event["dur"]
        if rounded:
            return 1000 * math.ceil(start), 1000 * math.floor(end)
        return round(start * 1000), round(start * 1000) + round(event["dur"] * 1000)

    calls = [e for e in events if e.get("cat") in CALLS and "correlation" in e.get("args", {})]
    steps = [e for e in events if e.get("cat") in ("user_annotation", "cpu_op")]
    steps = [e for e in steps if e["name"].startswith("ProfilerStep#")]
    gpu = [e for e in events if e.get("cat") in MEMORY | KERNELS]
    if len({e["name"] for e in steps}) > 1:
        last = max(e["ts"] + e["dur"] for e in steps)
        launching = {e["args"]["correlation"] for e in calls if e["ts"] <= last}
        gpu = [e for e in gpu if e["args"]["correlation"] in launching]
    if any_stream:
        gpu += [e for e in events if e.get("cat") == "cpu_op" and "stream" in e.get("args", {})]
    kernels = [e for e in gpu if e["cat"] not in MEMORY]
    copies = [e for e in gpu if e["cat"] in MEMORY]
    operations = (e["cat"].lower().removeprefix("gpu_") for e in sorted(copies, key=times))
    named = Labels.of(f"[CUDA {operation}]" for operation in operations)
    nowhere = Labels.constant("", len(copies))
    memory = {"operation": named, "source_memory": nowhere, "target_memory": nowhere}
    return Trace(
        _frame(kernels, times),
        Frame({**_frame(copies, times), **memory}),
        _frame([], times),
        _frame(calls, times),
    )


def _frame(events: Sequence[Event], times: Callable[[Event], tuple[int, int]]) -> Frame:
    ordered = sorted(events, key=times)
    args = [e["args"] for e in ordered]
    columns: dict[str, list[int]] = {
        "start_ns": [times(e)[0] for e in ordered],
        "end_ns": [times(e)[1] for e in ordered],
        **{name: [PID] * len(ordered) for name in ("pid", "tid")},
        **{name: [0] * len(ordered) for name in ("device", "bytes")},
        "context": [whole(each.get("context")) for each in args],
        "stream": [whole(each.get("stream")) for each in args],
        "correlation_id": [whole(each.get("correlation")) for each in args],
    }
    numbers = {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}
    return Frame({**numbers, "name": Labels.of(e["name"] for e in ordered)})
