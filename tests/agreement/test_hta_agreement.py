"""Agreement with Meta's HolisticTraceAnalysis 0.5.0 on real traces, to HTA's own rounding.

Its figures are goldens (scripts/make_hta_goldens.py). What HTA does differently, and where:

- it rounds times to us, starts up and ends down; the loader does the same before we compare;
- its constant of 30 for kernel wait is documented as ns and compared with us: ours is 30 us;
- it takes every event with a `stream` argument for a kernel, also host events of torch.compile;
- it knows only NCCL's kernels as communication: a custom all-reduce is computation to it;
- it measures a gap from the end of the operation before, not from the latest end so far, and adds
  the negative gaps of operations that overlap on one stream to kernel wait.
"""

import gzip
import json
import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import union
from nsightpy.analysis.time_budget import TimeBudget, activity, time_budget
from nsightpy.analysis.work_graph.idle_intervals import KERNEL_WAIT_NS, stream_waits
from nsightpy.analysis.work_graph.launched_work import Work, launched_work
from nsightpy.frames import Frame, Labels
from nsightpy.readers.torch.columns import whole
from nsightpy.units import percent
from tests.support.reports import REPORTS

GOLDENS = Path(__file__).parent.parent / "goldens" / "hta"
TRACES = REPORTS / "kineto"
US = 1000
NCCL = re.compile(r"^nccl.*Kernel")
NAMES = sorted(path.stem for path in GOLDENS.glob("*.json"))
# Its kernels overlap on one stream, a host event has a stream, and it has all-reduces of its own.
UNLIKE = "rank0_of8_b200"
MEMORY = {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}
Event = dict[str, Any]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    if not (TRACES / f"{request.param}.json.gz").exists():
        pytest.skip("the real traces are not here")
    return str(request.param)


def golden(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDENS / f"{name}.json").read_text(encoding="utf-8"))
    assert found["hta"] == "0.5.0"
    return found


class Trace(NamedTuple):
    """One trace as frames; times in ns of its own clock."""

    kernels: Frame
    operations: Frame
    graphs: Frame
    calls: Frame


def rounded(event: Event, to_us: bool) -> tuple[int, int]:
    """Start and end; of traces with parts of a us HTA rounds starts up and ends down."""
    start, end = event["ts"], event["ts"] + event["dur"]
    if to_us:
        return US * math.ceil(start), US * math.floor(end)
    return round(start * US), round(start * US) + round(event["dur"] * US)


def framed(events: Sequence[Event], to_us: bool) -> Frame:
    ordered = sorted(events, key=lambda event: rounded(event, to_us))
    arguments = {"stream": "stream", "context": "context", "correlation_id": "correlation"}
    columns = {
        name: [whole(event["args"].get(argument)) for event in ordered]
        for name, argument in arguments.items()
    }
    columns["start_ns"] = [rounded(event, to_us)[0] for event in ordered]
    columns["end_ns"] = [rounded(event, to_us)[1] for event in ordered]
    columns |= {name: [1] * len(ordered) for name in ("pid", "tid")}
    columns |= {name: [0] * len(ordered) for name in ("device", "bytes")}
    numbers = {name: np.asarray(values, dtype=np.int64) for name, values in columns.items()}
    nowhere = Labels.constant("", len(ordered))
    return Frame(
        {
            **numbers,
            "name": Labels.of(event["name"] for event in ordered),
            "operation": Labels.of(
                f"[CUDA {event['cat'].lower().removeprefix('gpu_')}]" for event in ordered
            ),
            **dict.fromkeys(("source_memory", "target_memory"), nowhere),
        }
    )


@cache
def read(name: str, *, any_stream: bool = False) -> Trace:
    """The events that HTA analyses when it is told to include the last profiler step.

    `any_stream` takes host events with a `stream` argument for kernels, as HTA does.
    """
    with gzip.open(TRACES / f"{name}.json.gz") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    to_us = any(isinstance(e["ts"], float) and e["ts"] % 1 for e in events)
    calls = [e for e in events if e.get("cat") in CALLS and "correlation" in e.get("args", {})]
    steps = [e for e in events if e.get("cat") in ("user_annotation", "cpu_op")]
    steps = [e for e in steps if e["name"].startswith("ProfilerStep#")]
    gpu = [e for e in events if e.get("cat") in MEMORY | {"kernel", "Kernel"}]
    if len({e["name"] for e in steps}) > 1:
        last = max(e["ts"] + e["dur"] for e in steps)
        launching = {e["args"]["correlation"] for e in calls if e["ts"] <= last}
        gpu = [e for e in gpu if e["args"]["correlation"] in launching]
    if any_stream:
        gpu += [e for e in events if e.get("cat") == "cpu_op" and "stream" in e.get("args", {})]
    kernels = [e for e in gpu if e["cat"] not in MEMORY]
    copies = [e for e in gpu if e["cat"] in MEMORY]
    return Trace(*(framed(part, to_us) for part in (kernels, copies, [], calls)))


def budget(trace: Trace) -> TimeBudget:
    """Ours, with HTA's idea of what communicates."""
    return time_budget(activity(trace.kernels, talking(trace), trace.operations, trace.graphs))


def talking(trace: Trace) -> NDArray[np.bool_]:
    """Mask of the kernels that HTA takes for communication."""
    names = trace.kernels.labels("name")
    hits = np.asarray([NCCL.match(value) is not None for value in names.values], dtype=np.bool_)
    return hits[names.codes]


@pytest.mark.slow
def test_the_temporal_breakdown_agrees(name: str) -> None:
    told = golden(name)["temporal"]
    found = budget(read(name, any_stream=True))
    assert found.window_ns == told["kernel_time(us)"] * US
    assert found.idle_ns == told["idle_time(us)"] * US
    assert found.compute_ns == told["compute_time(us)"] * US
    assert found.busy_ns - found.compute_ns == told["non_compute_time(us)"] * US
    assert round(100 * found.idle_ns / found.window_ns, 2) == told["idle_time_pctg"]
    assert round(100 * found.compute_ns / found.window_ns, 2) == told["compute_time_pctg"]


def test_the_overlap_of_communication_agrees(name: str) -> None:
    told = golden(name)["overlap_pctg"]
    found = budget(read(name))
    share = percent(found.overlap_ns, found.communication_ns)
    assert (None if share is None else round(share, 2)) == told


def test_the_times_of_each_type_of_kernel_agree(name: str) -> None:
    found = budget(read(name, any_stream=True))
    columns = {
        "COMPUTATION": found.compute_only_ns,
        "COMMUNICATION": found.exposed_communication_ns,
        "MEMORY": found.copy_only_ns,
        "COMPUTATION overlapping COMMUNICATION": found.compute_communication_ns,
        "COMPUTATION overlapping MEMORY": found.compute_memory_ns,
        "COMMUNICATION overlapping MEMORY": found.communication_memory_ns,
        "COMPUTATION overlapping COMMUNICATION overlapping MEMORY": found.all_three_ns,
    }
    told = golden(name)["type_us"]
    assert {kind: time / US for kind, time in columns.items() if time} == told
    assert sum(columns.values()) == found.busy_ns


def test_what_communicates_differs_only_by_what_hta_does_not_know(name: str) -> None:
    labels = read(name).kernels.labels("name")
    ours = {labels[int(row)] for row in np.flatnonzero(is_communication(labels))}
    theirs = {value for value in labels.values if NCCL.match(value)}
    assert theirs <= ours
    assert bool(ours - theirs) == (name == UNLIKE)
    assert all("multimem_all_reduce" in value for value in ours - theirs)


def test_the_idle_classes_of_every_stream_agree(name: str) -> None:
    assert KERNEL_WAIT_NS == 30 * US
    *device, calls = read(name)
    for stream, told in golden(name)["idle_us"].items():
        mine = [part.take(part.ints("stream") == int(stream)) for part in device]
        work = launched_work(Work(*mine), np.zeros(mine[0].rows, dtype=np.bool_), calls)
        everything = union(np.asarray([0]), np.asarray([2**62]))
        found = stream_waits(work, {0: everything})[0]
        assert found.host_wait_ns == told.get("host_wait", 0) * US
        assert found.other_wait_ns == told.get("other", 0) * US
        start, end = work.start[work.by_stream], work.end[work.by_stream]
        # later operations of a stream that start before the one before them ends
        negative = int(np.maximum(end[:-1] - start[1:], 0).sum())
        assert found.kernel_wait_ns - negative == told.get("kernel_wait", 0) * US
        assert (negative > 0) == (name == UNLIKE)
