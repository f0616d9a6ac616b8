"""Kernels joined to the calls that launched them, by process and correlation id."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nsightpy.analysis.launches import (
    NO_LAUNCH,
    LaunchStatistics,
    launch_rows,
    launch_statistics,
    matched,
)
from nsightpy.frames import Frame, Labels

Call = tuple[int, int, int]  # pid, correlation id, event class
Kernel = tuple[int, int]  # pid, correlation id
# Ids that a lookup table holds, and ids so far apart that it does not.
DENSE = (0, 1, 2, 3, 7)
SPARSE = (0, 1, 2, 3_000_000_000, 3_000_000_001, 2**62)


def ints(values: list[int]) -> np.ndarray:
    return np.asarray(values, dtype=np.int64)


def kernels_of(rows: list[Kernel]) -> Frame:
    return Frame(
        {"pid": ints([pid for pid, _ in rows]), "correlation_id": ints([i for _, i in rows])}
    )


def calls_of(rows: list[Call]) -> Frame:
    return Frame(
        {
            "pid": ints([pid for pid, _, _ in rows]),
            "correlation_id": ints([number for _, number, _ in rows]),
            "event_class": ints([kind for _, _, kind in rows]),
        }
    )


def joined(kernels: list[Kernel], calls: list[Call]) -> list[int]:
    return launch_rows(kernels_of(kernels), calls_of(calls)).tolist()


def modelled(kernels: list[Kernel], calls: list[Call]) -> list[int]:
    """The same join, one dictionary entry at a time."""
    first: dict[Kernel, int] = {}
    for row, (pid, number, kind) in enumerate(calls):
        if kind in (0, 1) and number > 0:
            first.setdefault((pid, number), row)
    return [first.get(kernel, NO_LAUNCH) for kernel in kernels]


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
    assert joined(kernels, calls) == modelled(kernels, calls)


@pytest.mark.parametrize("shift", [0, 2**40], ids=["dense", "sparse"])
class TestJoin:
    def test_equal_ids_of_two_processes_are_two_launches(self, shift: int) -> None:
        kernels = [(10, shift + 5), (20, shift + 5), (30, shift + 5)]
        calls = [(20, shift + 5, 0), (10, shift + 5, 0)]
        assert joined(kernels, calls) == [1, 0, NO_LAUNCH]

    def test_one_launch_may_own_many_kernels(self, shift: int) -> None:
        kernels = [(1, shift + 4), (1, shift + 9), (1, shift + 4), (1, shift + 4)]
        assert joined(kernels, [(1, shift + 9, 0), (1, shift + 4, 1)]) == [1, 0, 1, 1]

    def test_only_runtime_and_driver_rows_are_launches(self, shift: int) -> None:
        calls = [(1, shift + 3, 13), (1, shift + 3, 77), (1, shift + 3, 1), (1, shift + 3, 0)]
        assert joined([(1, shift + 3)], calls) == [2]
        assert joined([(1, shift + 3)], calls[:2]) == [NO_LAUNCH]

    def test_ids_without_a_call_stay_without(self, shift: int) -> None:
        calls = [(1, shift + 3, 0), (1, shift + 5, 0)]
        wanted = [(1, shift + 2), (1, shift + 4), (1, shift + 6), (1, 2**62)]
        assert joined(wanted, calls) == [NO_LAUNCH] * 4

    def test_nothing_to_join(self, shift: int) -> None:
        assert joined([], [(1, shift + 3, 0)]) == []
        assert joined([(1, shift + 3)], []) == [NO_LAUNCH]


def test_id_0_is_no_id() -> None:
    assert joined([(1, 0), (1, 1)], [(1, 0, 0), (1, 1, 0)]) == [NO_LAUNCH, 1]


@pytest.mark.parametrize("shift", [0, 2**40], ids=["dense", "sparse"])
def test_every_kernel_of_a_large_report_finds_its_own_launch(shift: int) -> None:
    """Two processes with the same ids in opposite order, in one of them each id twice."""
    ids = np.arange(1, 20_001) + shift
    kernels = Frame(
        {
            "pid": np.repeat(np.array([100, 200]), len(ids)),
            "correlation_id": np.concatenate([ids, ids]),
        }
    )
    calls = Frame(
        {
            "pid": np.repeat(np.array([200, 100, 100]), len(ids)),
            "correlation_id": np.concatenate([ids[::-1], ids, ids]),
            "event_class": np.repeat(np.array([0, 0, 1]), len(ids)),
        }
    )
    found = launch_rows(kernels, calls)
    assert found[: len(ids)].tolist() == list(range(20_000, 40_000))
    assert found[len(ids) :].tolist() == list(range(19_999, -1, -1))


pair = st.tuples(st.sampled_from([1, 2]), st.sampled_from([*SPARSE, -1]) | st.sampled_from(DENSE))


@settings(max_examples=150, deadline=None)
@given(st.lists(pair, max_size=12), st.lists(pair, max_size=12))
def test_values_under_a_process_and_an_id(keys: list[Kernel], wanted: list[Kernel]) -> None:
    first: dict[Kernel, int] = {}
    for row, key in enumerate(keys):
        if key[1] > 0:
            first.setdefault(key, 100 + row)

    def columns(rows: list[Kernel]) -> tuple[np.ndarray, np.ndarray]:
        return ints([pid for pid, _ in rows]), ints([number for _, number in rows])

    values = 100 + np.arange(len(keys))
    found = matched(columns(keys), values, columns(wanted), -7)
    assert found.tolist() == [first.get(key, -7) for key in wanted]
    # a process that is one value for all rows takes no memory, and changes nothing
    for pid in (1, 2):
        alike = np.broadcast_to(np.int64(pid), len(wanted))
        found = matched(columns(keys), values, (alike, columns(wanted)[1]), -7)
        assert found.tolist() == [first.get((pid, number), -7) for _, number in wanted]


def timed(rows: list[tuple[int, int, int, int]], **names: list[str]) -> Frame:
    """Rows of pid, correlation id, start, end, and label columns."""
    columns = ("pid", "correlation_id", "start_ns", "end_ns")
    made = {name: ints([row[place] for row in rows]) for place, name in enumerate(columns)}
    labels = {name: Labels.of(values) for name, values in names.items()}
    return Frame({**made, **labels, "event_class": ints([0] * len(rows))})


def test_phases_in_plain_sight() -> None:
    calls = timed(
        [(1, 1, 0, 10), (1, 2, 20, 40), (1, 3, 50, 60), (1, 4, 90, 95)],
        name=["cudaLaunchKernel"] * 3 + ["cuLaunchKernel"],
    )
    kernels = timed(
        [
            (1, 1, 15, 115),  # queued for 5
            (1, 2, 30, 35),  # done before the call returned: no queue, total is the call
            (1, 3, 72, 80),  # queued for 12
            (1, 4, 95, 99),  # began as the call returned: it did not wait
            (1, 9, 0, 1000),  # its launch was not recorded
        ],
        label=["gemm"] * 5,
    )
    assert launch_statistics(kernels, calls, ("pid", "label")) == [
        LaunchStatistics((1, "gemm"), "cuLaunchKernel", 1, 0, 5.0, None, 4.0, 9.0, None, 4),
        LaunchStatistics(
            key=(1, "gemm"),
            api="cudaLaunchKernel",
            count=3,
            queued_count=2,
            api_med_ns=10.0,
            queue_med_ns=8.5,
            kernel_med_ns=8.0,
            total_med_ns=30.0,
            queue_max_ns=12,
            kernel_total_ns=113,
        ),
    ]
    assert launch_statistics(kernels.take(np.array([4])), calls, ("pid", "label")) == []


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
def test_phases_per_group_are_those_of_the_definitions(
    rows: list[tuple[int, int, int, int, str]],
) -> None:
    """Calls of process 1 only; call i runs from 10 i for 2 i ns."""
    calls = timed([(1, i, 10 * i, 12 * i) for i in (1, 2, 3)], name=["a", "b", "a"])
    kernels = timed(
        [(pid, number, start, start + length) for pid, number, start, length, _ in rows],
        label=[label for *_, label in rows],
    )
    groups: dict[tuple[str, str], list[tuple[int, int, int, int]]] = {}
    for pid, number, start, length, label in rows:
        if pid == 1 and number <= 3:
            began, returned = 10 * number, 12 * number
            phases = (
                returned - began,
                start - returned,
                length,
                max(returned, start + length) - began,
            )
            groups.setdefault((label, "_aba"[number]), []).append(phases)
    found = launch_statistics(kernels, calls, ("label",))
    assert {(str(one.key[0]), one.api) for one in found} == set(groups)
    for one in found:
        api, queue, length, total = zip(*groups[str(one.key[0]), one.api], strict=True)
        waits = [wait for wait in queue if wait > 0]
        assert (one.count, one.queued_count) == (len(api), len(waits))
        assert one.api_med_ns == statistics.median(api)
        assert one.kernel_med_ns == statistics.median(length)
        assert one.total_med_ns == statistics.median(total)
        assert one.kernel_total_ns == sum(length)
        assert one.queue_med_ns == (statistics.median(waits) if waits else None)
        assert one.queue_max_ns == max(waits, default=None)
