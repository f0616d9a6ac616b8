"""Agreement with Meta's HolisticTraceAnalysis 0.5.0 on real traces, to HTA's own rounding.

Its figures are goldens (scripts/make_hta_goldens.py). What HTA does differently, and where:

- it rounds times to us, starts up and ends down; the loader does the same before we compare;
- its constant of 30 for kernel wait is documented as ns and compared with us: ours is 30 us;
- it takes every event with a `stream` argument for a kernel, also host events of torch.compile;
- it knows only NCCL's kernels as communication: a custom all-reduce is computation to it;
- it measures a gap from the end of the operation before, not from the latest end so far, and adds
  the negative gaps of operations that overlap on one stream to kernel wait.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import union
from nsightpy.analysis.time_budget import Activity, activity, time_budget
from nsightpy.analysis.work_graph.idle_intervals import KERNEL_WAIT_NS, stream_waits
from nsightpy.analysis.work_graph.launched_work import Work, launched_work
from nsightpy.frames import Frame
from nsightpy.readers.torch.columns import whole
from nsightpy.units import percent
from tests.support import plain_trace
from tests.support.frames import frame
from tests.support.plain_trace import KINETO, Event, load, of

GOLDENS = Path(__file__).parent.parent / "goldens" / "hta"
US = 1000
NCCL = re.compile(r"^nccl.*Kernel")
NAMES = sorted(path.stem for path in GOLDENS.glob("*.json"))
# Its kernels overlap on one stream, a host event has a stream, and it has all-reduces of its own.
UNLIKE = "rank0_of8_b200"
MEMORY = {"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
CALLS = {*plain_trace.CALLS, "Runtime"}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    if not (KINETO / f"{request.param}.json.gz").exists():
        pytest.skip("the real traces are not here")
    return str(request.param)


def golden(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDENS / f"{name}.json").read_text(encoding="utf-8"))
    assert found["hta"] == "0.5.0"
    return found


def framed(events: Sequence[Event], to_us: bool) -> Frame:
    """Events in order; of traces with parts of a us HTA rounds starts up and ends down."""
    rows = []
    for one in events:
        span = (-(-one.start // US) * US, one.end // US * US) if to_us else (one.start, one.end)
        ids = (whole(one.args.get(name)) for name in ("stream", "context", "correlation"))
        kind = f"[CUDA {one.category.lower().removeprefix('gpu_')}]"
        rows.append((*span, *ids, one.name, kind))
    same = {**dict.fromkeys(("pid", "tid"), 1), **dict.fromkeys(("device", "bytes"), 0)}
    same |= dict.fromkeys(("source_memory", "target_memory"), "")
    names = "start_ns end_ns stream context correlation_id name operation"
    return frame(names, sorted(rows, key=lambda row: row[:2]), **same)


@cache
def read(name: str, *, any_stream: bool = False) -> tuple[Work, Frame]:
    """What HTA analyses when it is told to include the last profiler step: GPU work, and calls.

    `any_stream` takes host events with a `stream` argument for kernels, as HTA does.
    """
    events = load(KINETO / f"{name}.json.gz")
    calls = [e for e in of(events, *CALLS) if "correlation" in e.args]
    steps = of(events, "user_annotation", "cpu_op")
    steps = [e for e in steps if e.name.startswith("ProfilerStep#")]
    kernels, copies = of(events, "kernel", "Kernel"), of(events, *MEMORY)
    if len({e.name for e in steps}) > 1:
        last = max(e.end for e in steps)
        launching = {e.args["correlation"] for e in calls if e.start <= last}
        kernels, copies = (
            [e for e in part if e.args["correlation"] in launching] for part in (kernels, copies)
        )
    if any_stream:
        kernels += [e for e in of(events, "cpu_op") if "stream" in e.args]
    to_us = any(e.start % US for e in events)
    work = Work(*(framed(part, to_us) for part in (kernels, copies, [])))
    return work, framed(calls, to_us)


def done(work: Work) -> Activity:
    """What ran, with HTA's idea of what communicates."""
    return activity(work.kernels, talking(work), work.operations, work.graphs)


def talking(work: Work) -> NDArray[np.bool_]:
    """Mask of the kernels that HTA takes for communication."""
    names = work.kernels.labels("name")
    hits = np.asarray([NCCL.match(value) is not None for value in names.values], dtype=np.bool_)
    return hits[names.codes]


@pytest.mark.slow
def test_the_temporal_breakdown_and_the_times_of_each_type_agree(name: str) -> None:
    work = read(name, any_stream=True)[0]
    told, found = golden(name)["temporal"], time_budget(done(work))
    assert found.window_ns == told["kernel_time(us)"] * US
    assert found.idle_ns == told["idle_time(us)"] * US
    assert found.compute_ns == told["compute_time(us)"] * US
    assert found.busy_ns - found.compute_ns == told["non_compute_time(us)"] * US
    c, n, m, _ = done(work).sets
    columns = {
        "COMPUTATION": (c - n - m).total,
        "COMMUNICATION": found.exposed_communication_ns,
        "MEMORY": found.copy_only_ns,
        "COMPUTATION overlapping COMMUNICATION": ((c & n) - m).total,
        "COMPUTATION overlapping MEMORY": ((c & m) - n).total,
        "COMMUNICATION overlapping MEMORY": ((n & m) - c).total,
        "COMPUTATION overlapping COMMUNICATION overlapping MEMORY": (c & n & m).total,
    }
    assert {kind: time / US for kind, time in columns.items() if time} == golden(name)["type_us"]


def test_the_overlap_of_communication_agrees(name: str) -> None:
    found = time_budget(done(read(name)[0]))
    share = percent(found.overlap_ns, found.communication_ns)
    assert (None if share is None else round(share, 2)) == golden(name)["overlap_pctg"]


def test_what_communicates_differs_only_by_what_hta_does_not_know(name: str) -> None:
    labels = read(name)[0].kernels.labels("name")
    ours = {labels[int(row)] for row in np.flatnonzero(is_communication(labels))}
    theirs = {value for value in labels.values if NCCL.match(value)}
    assert theirs <= ours
    assert bool(ours - theirs) == (name == UNLIKE)
    assert all("multimem_all_reduce" in value for value in ours - theirs)


def test_the_idle_classes_of_every_stream_agree(name: str) -> None:
    assert KERNEL_WAIT_NS == 30 * US
    device, calls = read(name)
    for stream, told in golden(name)["idle_us"].items():
        mine = [part.take(part.ints("stream") == int(stream)) for part in device]
        work = launched_work(Work(*mine), np.zeros(mine[0].rows, dtype=np.bool_), calls)
        everything = union(np.asarray([0]), np.asarray([2**62]))
        host, kernel, other = stream_waits(work, {0: everything})[0]
        assert host == told.get("host_wait", 0) * US
        assert other == told.get("other", 0) * US
        start, end = work.start[work.by_stream], work.end[work.by_stream]
        # later operations of a stream that start before the one before them ends
        negative = int(np.maximum(end[:-1] - start[1:], 0).sum())
        assert kernel - negative == told.get("kernel_wait", 0) * US
        assert (negative > 0) == (name == UNLIKE)
