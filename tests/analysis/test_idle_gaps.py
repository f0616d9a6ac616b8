"""Idle intervals divided by cause: exact for whatever ran, was launched and was called."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given, settings, strategies as st

from nsightpy.analysis.idle.gap_causes import ALL_CAUSES, TO_DEVICE, TO_HOST, IdleGaps
from nsightpy.analysis.idle.gpu_work import GpuWork, gpu_work
from nsightpy.analysis.idle.idle_gaps import Launches, idle_gaps
from nsightpy.analysis.idle.idle_time import idle_time
from nsightpy.analysis.intervals import Spans, complement, union
from nsightpy.analysis.launches import NO_TIME
from nsightpy.frames import Frame, Labels
from tests.support.enqueued import Action, placed

NAMES = (
    "cudaDeviceSynchronize",
    "cudaMemcpy",
    "cudaMalloc",
    "cuModuleLoadData",
    "cudaLaunchKernel",
    "cudaGetLastError",
)
US = 1_000


class Call(NamedTuple):
    start: int
    length: int
    tid: int
    name: str


times = st.integers(0, 5_000).map(lambda value: value * US)
lengths = st.integers(0, 2_500).map(lambda value: value * US)
operations = st.lists(
    st.tuples(times, lengths, times | st.just(NO_TIME), lengths, st.integers(1, 2), st.booleans()),
    max_size=12,
)
calls = st.lists(st.builds(Call, times, lengths, st.integers(1, 2), st.sampled_from(NAMES)))


def work_of(found: list[tuple[int, int, int, int, int, bool]]) -> GpuWork:
    kernels = [Action(0, "op", 7, 0, s, s + n) for s, n, *_, copies in found if not copies]
    copied = [Action(0, "op", 8, 0, s, s + n) for s, n, *_, copies in found if copies]
    none = Frame(placed([], 99))
    return gpu_work(
        Frame(placed(kernels, 1)),
        np.zeros(len(kernels), bool),
        Frame(
            {
                **placed(copied, 1 + len(kernels)),
                "operation": Labels.of(["[CUDA memcpy Host-to-Device]"] * len(copied)),
            }
        ),
        none,
        Frame({name: none[name] for name in ("start_ns", "pid", "correlation_id")}),
    )


def gaps_of(
    found: list[tuple[int, int, int, int, int, bool]], made: list[Call], window: Spans
) -> IdleGaps:
    work = work_of(found)
    order = [one for one in found if not one[5]] + [one for one in found if one[5]]
    start = np.asarray([one[2] for one in order], np.int64)
    known = start != NO_TIME
    end = np.where(known, start + np.asarray([one[3] for one in order], np.int64), NO_TIME)
    thread = np.where(known, np.asarray([one[4] for one in order], np.int64), -1)
    first = np.arange(len(order)) % 2 == 0
    made = sorted(made)
    frame = Frame(
        {
            "start_ns": np.asarray([one.start for one in made], np.int64),
            "end_ns": np.asarray([one.start + one.length for one in made], np.int64),
            "tid": np.asarray([one.tid for one in made], np.int64),
            "name": Labels.of([one.name for one in made]),
        }
    )
    stages = np.resize(np.asarray([-1, TO_DEVICE, -1, TO_HOST], np.int8), len(order))
    stages[first] = -1  # copies are no first launches
    staged = np.arange(len(order)) % 3 == 0
    launches = Launches(start, end, thread, first, stages, staged, *(np.zeros_like(staged),) * 2)
    return idle_gaps(idle_time(work, 0), window, launches, frame)


@settings(max_examples=200, deadline=None)
@given(operations.filter(bool), calls, times, lengths, st.booleans())
def test_parts_add_up_to_each_interval_and_causes_to_idle(
    found: list[tuple[int, int, int, int, int, bool]],
    made: list[Call],
    low: int,
    length: int,
    broken: bool,
) -> None:
    high = low + length + US
    window = Spans.of(low, high)
    if broken:
        middle = (low + high) // 2
        window = union(np.asarray([low, middle + 1]), np.asarray([middle, high]))
    gaps = gaps_of(found, made, window)
    ran = union(
        np.asarray([one[0] for one in found]), np.asarray([one[0] + one[1] for one in found])
    )
    idle = complement(ran, low, high) & window
    assert int(gaps.length.sum()) == idle.total
    parts = np.column_stack(
        [gaps.in_call, gaps.queued, gaps.waiting, gaps.allocating, gaps.loading, gaps.outside]
    )
    assert (parts >= 0).all()
    known = gaps.thread >= 0
    assert (parts.sum(axis=1)[known] == gaps.length[known]).all()
    assert (gaps.causes >= 0).all()
    assert gaps.causes.shape == (len(gaps), len(ALL_CAUSES))
    assert (gaps.causes.sum(axis=1) == gaps.length).all()
    assert sum(gaps.totals.values()) == idle.total
    assert 0 <= gaps.run_ahead_lost_ns <= gaps.totals["launch-bound"]


def test_what_was_launched_long_before_does_not_wait_for_the_host() -> None:
    """A kernel that begins 3 ms after its call: a queue's delay, whether long or just too late."""
    for delay, cause in ((3_000, "queued"), (900, "launch-bound")):
        begin = 10 + delay
        found = [(0, 5 * US, NO_TIME, 0, 1, False)]
        found.append((begin * US, 5 * US, 6 * US, 4 * US, 1, False))
        gaps = gaps_of(found, [], Spans.of(0, (begin + 5) * US))
        idle = (begin - 5) * US
        late = delay * US if cause == "queued" else idle
        assert gaps.totals[cause] == late
        assert gaps.totals["launch-bound"] == idle - (late if cause == "queued" else 0)
