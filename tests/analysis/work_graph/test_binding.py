"""The causes of idle intervals, by what bound the operation that ended them."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.work_graph.binding import binding
from nsightpy.analysis.work_graph.critical_path import critical_path, trust_of
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.host_activity import HostEvents
from nsightpy.analysis.work_graph.idle_intervals import IdleIntervals
from nsightpy.analysis.work_graph.job_work import job_work
from nsightpy.analysis.work_graph.launched_work import WorkFrames, launched_work
from nsightpy.analysis.work_graph.replay import replay
from tests.support.frames import frame
from tests.support.work_programs import SPANS, frames_of

US, MS = 1_000, 1_000_000
TO_HOST = "[CUDA memcpy Unified Device-to-Host]"


class Call(NamedTuple):
    start: int
    length: int
    name: str
    correlation: int = 0
    tid: int = 1


class Op(NamedTuple):
    start: int
    length: int
    correlation: int = 0
    name: str = "kernel"
    device: int = 0


LAUNCH = "cudaLaunchKernel"
Done = tuple[int, int, int]


def part(calls: list[Call], operations: list[Op]) -> WorkFrames:
    """A report with those calls and operations."""
    return frames_of(
        [(c.start, c.start + c.length, *c[2:]) for c in calls],
        [(op.start, op.start + op.length, *op[2:], 7) for op in operations],
    )


def bound(frames: WorkFrames, window: Spans) -> IdleIntervals:
    return binding(launched_work(frames.work, frames.communication, frames.calls), 0, window)


def causes(frames: WorkFrames, window: Spans) -> dict[str, int]:
    found = bound(frames, window)
    np.testing.assert_array_equal(found.times.sum(axis=1), found.length)
    return {cause: time for cause, time in found.totals.items() if time}


def launched(number: int, at: int, length: int = 50 * US, wait: int = 5 * US) -> tuple[Call, Op]:
    return Call(at, 4 * US, LAUNCH, number), Op(at + 4 * US + wait, length, number)


def pair(gap: int, *between: Call, **second: int) -> WorkFrames:
    """A kernel, and another one that is launched `gap` after it has ended, with calls between."""
    warm = [launched(n, n * 200 * US) for n in (1, 2)]
    first, begun = launched(3, 1 * MS)
    ended = begun.start + begun.length
    call, op = launched(4, ended + gap, **second)
    moved = [one._replace(start=ended + one.start) for one in between]
    return part([*(c for c, _ in warm), first, *moved, call], [*(o for _, o in warm), begun, op])


def test_what_follows_a_blocking_call_is_its_drain() -> None:
    # synchronises 190 us before the kernel ends, returns 10 us after it
    window = Spans.of(1 * MS + 10 * US, 1 * MS + 160 * US)
    found = causes(pair(100 * US, Call(-190 * US, 200 * US, "cudaDeviceSynchronize")), window)
    assert list(found) == ["sync-drain"]
    # without the call the host would be ahead by as long as that took, no more
    found = causes(pair(100 * US, Call(-30 * US, 40 * US, "cudaDeviceSynchronize")), window)
    assert found["sync-drain"] == 40 * US
    assert found["launch-bound"] > 40 * US


def test_what_is_beside_a_long_first_launch_is_no_stretch_outside_cuda() -> None:
    (usual, before), later = launched(1, 0), launched(3, 6 * MS)
    first = Call(200 * US, 5 * MS, LAUNCH, 2)
    made = part([usual, first, later[0]], [before, Op(5_205 * US, 9 * US, 2, "other"), later[1]])
    found = causes(made, Spans.of(50 * US, 6 * MS))
    assert "host-gap" not in found, found


def test_nothing_is_known_without_a_launch() -> None:
    # what takes no time ends no interval
    made = part([], [Op(0, 10 * US), Op(1 * MS, 0), Op(5 * MS, 10 * US)])
    assert list(causes(made, Spans.of(0, 5 * MS))) == ["unknown"]
    assert bound(made, Spans.of(0, 5 * MS)).opened.tolist() == [10 * US]


def test_a_graph_without_calls_or_without_work_says_that_nothing_is_known() -> None:
    made = WorkGraph.of(job_work([part([], [Op(0, 10 * US), Op(5 * MS, 10 * US)])]))
    path = critical_path(made)
    assert path.totals["unexplained"] == 5 * MS - 10 * US
    assert trust_of(made, path).reason == "unlaunched"
    for calls in ([], [Call(0, 10 * US, "cudaStreamSynchronize")]):
        nothing = WorkGraph.of(job_work([part(calls, [])]))
        assert critical_path(nothing).length_ns == replay(nothing).gain_ns == 0


MOMENTS = st.integers(0, 5_000).map(lambda value: value * US)
LENGTHS = st.integers(0, 2_500).map(lambda value: value * US)
MADE = st.builds(
    Call,
    MOMENTS,
    LENGTHS,
    st.sampled_from((LAUNCH, "cudaMemcpy", "cudaMalloc", "cuModuleLoadData", "cudaFree", "other")),
    st.integers(0, 12),
    st.integers(1, 2),
)
RAN = st.builds(
    Op,
    MOMENTS,
    LENGTHS.map(lambda length: length + US),
    st.integers(0, 12),
    st.sampled_from(("kernel", "other", TO_HOST, "[CUDA memcpy Device-to-Host]")),
    st.integers(0, 1),
)
DONE = st.lists(st.tuples(MOMENTS, LENGTHS, st.integers(1, 2)), max_size=4)


def host_events(ranges: list[Done], os_calls: list[Done], mpi: list[Done]) -> HostEvents:
    """What threads did beside CUDA: ranges that compile, calls of the OS, of MPI."""
    frames = [
        frame(SPANS, [(start, start + length, 1, tid, name) for start, length, tid in spans])
        for name, spans in (("compile", ranges), ("write", os_calls), ("MPI_Wait", mpi))
    ]
    samples = frame(("time_ns", "tid", "name", "module"), [])
    return HostEvents(*frames, samples, frame(SPANS, []))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(MADE), st.lists(RAN, min_size=1), DONE, DONE, DONE, MOMENTS, LENGTHS, st.booleans())
def test_causes_add_up_to_the_idle_time(
    made: list[Call],
    ran: list[Op],
    ranges: list[Done],
    os_calls: list[Done],
    mpi: list[Done],
    low: int,
    length: int,
    broken: bool,
) -> None:
    frames, high = part(made, ran), low + length + US
    launched = launched_work(frames.work, frames.communication, frames.calls)
    window = Spans.of(low, high)
    if broken:
        middle = (low + high) // 2
        window = union(np.array([low, middle + 1]), np.array([middle, high]))
    for place, (_, device) in enumerate(launched.places):
        found = binding(launched, place, window, host_events(ranges, os_calls, mpi))
        own = [op for op in ran if op.device == device]
        start, length_ns = np.asarray([op[:2] for op in own], dtype=np.int64).T
        busy = union(start, start + length_ns)
        assert found.length.sum() == sum(found.totals.values()) == (window - busy).total
        np.testing.assert_array_equal(found.times.sum(axis=1), found.length)
        assert (found.times >= 0).all()
        assert 0 <= found.run_ahead_lost[1].sum() <= found.totals["launch-bound"]
        assert ((found.opened <= found.begun) & (found.begun <= found.closed)).all()
