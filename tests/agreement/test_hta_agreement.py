"""Agreement with Meta's HolisticTraceAnalysis 0.5.0 on real traces, to HTA's own rounding.

Its figures are goldens (scripts/make_hta_goldens.py). What HTA does differently, and where:

- it rounds times to us, starts up and ends down; the loader does the same before we compare;
- its constant of 30 for kernel wait is documented as ns and compared with us: ours is 30 us;
- it takes every event with a `stream` argument for a kernel, also host events of torch.compile;
- it knows only NCCL's kernels as communication: a custom all-reduce is computation to it;
- it measures a gap from the end of the operation before, not from the latest end so far, and adds
  the negative gaps of operations that overlap on one stream to kernel wait.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nsightpy.analysis.communication import is_communication
from nsightpy.analysis.intervals import spans_of, union
from nsightpy.analysis.time_budget import TimeBudget, activity, time_budget
from nsightpy.analysis.work_graph.idle_intervals import KERNEL_WAIT_NS, stream_waits
from nsightpy.analysis.work_graph.launched_work import Work, launched_work
from nsightpy.units import percent
from tests.support.kineto import Trace, load
from tests.support.reports import REPORTS

GOLDENS = Path(__file__).parent.parent / "goldens" / "hta"
TRACES = REPORTS / "kineto"
US = 1000
NCCL = re.compile(r"^nccl.*Kernel")
NAMES = sorted(path.stem for path in GOLDENS.glob("*.json"))
# Its kernels overlap on one stream, a host event has a stream, and it has all-reduces of its own.
UNLIKE = "rank0_of8_b200"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    if not (TRACES / f"{request.param}.json.gz").exists():
        pytest.skip("the real traces are not here")
    return str(request.param)


def golden(name: str) -> dict[str, Any]:
    found = json.loads((GOLDENS / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@cache
def read(name: str, **options: bool) -> Trace:
    return load(TRACES / f"{name}.json.gz", **{"rounded": True, **options})


def budget(trace: Trace) -> TimeBudget:
    """Ours, with HTA's idea of what communicates."""
    return time_budget(activity(trace.kernels, talking(trace), trace.operations, trace.graphs))


def talking(trace: Trace) -> NDArray[np.bool_]:
    """Mask of the kernels that HTA takes for communication."""
    names = trace.kernels.labels("name")
    hits = np.asarray([NCCL.match(value) is not None for value in names.values], dtype=np.bool_)
    return hits[names.codes]


def test_the_goldens_are_those_of_the_named_version() -> None:
    assert len(NAMES) == 8
    assert {golden(name)["hta"] for name in NAMES} == {"0.5.0"}


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


@pytest.mark.slow
def test_host_events_with_a_stream_are_no_kernels_to_us(name: str) -> None:
    theirs, ours = budget(read(name, any_stream=True)), budget(read(name))
    assert (theirs != ours) == (name == UNLIKE)
    # one host event of 74 us
    assert 0 <= theirs.busy_ns - ours.busy_ns <= 74 * US


def test_the_overlap_of_communication_agrees(name: str) -> None:
    told = golden(name)["overlap_pctg"]
    found = budget(read(name))
    share = percent(found.overlap_ns, found.communication_ns)
    assert (None if share is None else round(share, 2)) == told


def test_the_times_of_each_type_of_kernel_agree(name: str) -> None:
    trace = read(name, any_stream=True)
    talks = talking(trace)
    sets = {
        "COMPUTATION": spans_of(trace.kernels.take(~talks)),
        "COMMUNICATION": spans_of(trace.kernels.take(talks)),
        "MEMORY": spans_of(trace.operations),
    }
    found = {}
    for chosen in range(1, 8):
        inside = [kind for number, kind in enumerate(sets) if chosen >> number & 1]
        time = sets[inside[0]]
        for kind, spans in sets.items():
            time = time & spans if kind in inside else time - spans
        if time.total:
            found[" overlapping ".join(inside)] = time.total / US
    assert found == golden(name)["type_us"]
    told = budget(trace)
    columns = {
        "COMPUTATION": told.compute_only_ns,
        "COMMUNICATION": told.exposed_communication_ns,
        "MEMORY": told.copy_only_ns,
        "COMPUTATION overlapping COMMUNICATION": told.compute_communication_ns,
        "COMPUTATION overlapping MEMORY": told.compute_memory_ns,
        "COMMUNICATION overlapping MEMORY": told.communication_memory_ns,
        "COMPUTATION overlapping COMMUNICATION overlapping MEMORY": told.all_three_ns,
    }
    assert {kind: time / US for kind, time in columns.items() if time} == found
    assert sum(columns.values()) == told.busy_ns


def test_the_sums_of_the_largest_kernels_agree(name: str) -> None:
    trace = read(name, any_stream=True)
    names, talks = trace.kernels.labels("name"), talking(trace)
    lasted = trace.kernels.ints("end_ns") - trace.kernels.ints("start_ns")
    for kind, mine in (("COMPUTATION", ~talks), ("COMMUNICATION", talks)):
        sums = np.bincount(names.codes[mine], weights=lasted[mine])
        largest = sorted((each / US for each in sums.tolist() if each), reverse=True)
        told = golden(name)["kernel_us"].get(kind, [])
        # beyond ten names the tenth are all others together
        assert largest[: len(told)] == told
        assert len(told) >= min(len(largest), 9)


def test_what_communicates_differs_only_by_what_hta_does_not_know(name: str) -> None:
    names = read(name).kernels.labels("name").values
    labels = read(name).kernels.labels("name")
    ours = {labels[int(row)] for row in np.flatnonzero(is_communication(labels))}
    theirs = {value for value in names if NCCL.match(value)}
    assert theirs <= ours
    assert bool(ours - theirs) == (name == UNLIKE)
    assert all("multimem_all_reduce" in value for value in ours - theirs)


def test_the_idle_classes_of_every_stream_agree(name: str) -> None:
    assert KERNEL_WAIT_NS == 30 * US
    trace = read(name)
    for stream, told in golden(name)["idle_us"].items():
        mine = trace.of_stream(int(stream))
        no = np.zeros(mine.kernels.rows, dtype=np.bool_)
        work = launched_work(Work(mine.kernels, mine.operations, mine.graphs), no, mine.calls)
        everything = union(np.asarray([0]), np.asarray([2**62]))
        found = stream_waits(work, {0: everything})[0]
        assert found.host_wait_ns == told.get("host_wait", 0) * US
        assert found.other_wait_ns == told.get("other", 0) * US
        start, end = work.start[work.by_stream], work.end[work.by_stream]
        # later operations of a stream that start before the one before them ends
        negative = int(np.maximum(end[:-1] - start[1:], 0).sum())
        assert found.kernel_wait_ns - negative == told.get("kernel_wait", 0) * US
        assert (negative > 0) == (name == UNLIKE)
