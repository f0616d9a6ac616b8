"""Kernels joined to the calls that launched them, by process and correlation id."""

import pytest
from hypothesis import example, given, settings, strategies as st

from nsightpy.analysis.launches import (
    NO_LAUNCH,
    launch_phases,
    launch_rows,
)
from tests.support.frames import frame

Call = tuple[int, int, int]  # pid, correlation id, event class
Kernel = tuple[int, int]  # pid, correlation id
# Ids that a lookup table holds, and ids so far apart that it does not.
DENSE = (-1, 0, 1, 2, 3, 7)
SPARSE = (-1, 0, 1, 2, 3_000_000_000, 3_000_000_001, 2**62)


def join_cases(ids: tuple[int, ...]) -> st.SearchStrategy[tuple[list[Kernel], list[Call]]]:
    pid, number = st.sampled_from([1, 2, 0xFFFFFF]), st.sampled_from(ids)
    return st.tuples(
        st.lists(st.tuples(pid, number), max_size=20),
        st.lists(st.tuples(pid, number, st.sampled_from([0, 1, 13, 77])), max_size=20),
    )


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(join_cases(DENSE) | join_cases(SPARSE))
def test_the_join_is_that_of_a_dictionary(case: tuple[list[Kernel], list[Call]]) -> None:
    kernels, calls = case
    first: dict[Kernel, int] = {}
    for row, (pid, number, kind) in enumerate(calls):
        if kind in (0, 1) and number > 0:
            first.setdefault((pid, number), row)
    launched = frame("pid correlation_id", kernels)
    found = launch_rows(launched, frame("pid correlation_id event_class", calls))
    assert found.tolist() == [first.get(kernel, NO_LAUNCH) for kernel in kernels]


launches = st.lists(
    st.tuples(
        st.integers(1, 2),  # pid
        st.integers(1, 4),  # correlation id
        st.integers(0, 60),  # start of the kernel
        st.integers(0, 60),  # its duration
        st.sampled_from(["gemm", "fill"]),
    ),
    max_size=15,
)


@settings(max_examples=80, deadline=None)
@given(launches)
@example([(1, 1, 12, 5, "gemm")])
def test_phases_are_those_of_the_definitions(rows: list[tuple[int, int, int, int, str]]) -> None:
    """Calls of process 1 only; call i runs from 10 i for 2 i ns."""
    made = [(i, 10 * i, 12 * i, name) for i, name in enumerate("aba", 1)]
    calls = frame("correlation_id start_ns end_ns name", made, pid=1, event_class=0, tid=0)
    ran = [(pid, number, at, at + length, label) for pid, number, at, length, label in rows]
    kernels = frame("pid correlation_id start_ns end_ns label", ran)
    expected = []
    for pid, number, start, length, label in rows:
        if pid == 1 and number <= 3:
            began, returned = 10 * number, 12 * number
            queue, end = start - returned, max(returned, start + length)
            phases = (returned - began, queue, queue if queue > 0 else -1, end - began)
            expected.append((began, label, "_aba"[number], *phases))
    wanted = ("call_start_ns", "label", "function", "api", "queue", "queued", "total")
    found = list(launch_phases(kernels, calls).tuples(*wanted))
    assert [row[0] for row in found] == sorted(row[0] for row in found)
    assert sorted(found) == sorted(expected)
