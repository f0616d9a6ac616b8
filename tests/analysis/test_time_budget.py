"""Time budgets: small cases with the numbers in plain sight, and the invariants on any timeline."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.time_budget import (
    Activity,
    TimeBudget,
    activity,
    device_budgets,
    time_budget,
)
from nsightpy.errors import UsageError
from nsightpy.frames import Frame, Labels

Pairs = list[tuple[int, int]]


def spans(intervals: Pairs, offset: int = 0) -> Spans:
    starts = np.asarray([start + offset for start, _ in intervals], dtype=np.int64)
    return union(starts, np.asarray([end + offset for _, end in intervals], dtype=np.int64))


def done(
    compute: Pairs = (), communication: Pairs = (), memory: Pairs = (), graphs: Pairs = ()
) -> Activity:
    """An activity as `activity` makes it: opaque graphs are compute, too."""
    own = spans(list(compute)) | spans(list(graphs))
    return Activity(own, spans(list(communication)), spans(list(memory)), spans(list(graphs)))


FIELDS = ("compute", "communication", "memory", "graphs")
pairs = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=5)
edges = st.none() | st.integers(-5, 45)


def brute_force(sets: dict[str, set[int]], start: int, end: int) -> TimeBudget:
    """The budget by asking of every single nanosecond what ran in it."""
    window = set(range(start, end))
    c, n, m, g = (sets[name] & window for name in FIELDS)
    return TimeBudget(
        start_ns=start,
        end_ns=end,
        busy_ns=len(c | n | m | g),
        compute_ns=len(c),
        communication_ns=len(n),
        memory_ns=len(m),
        overlap_ns=len(c & n),
        exposed_communication_ns=len(n - c - m),
        copy_only_ns=len(m - c - n),
        opaque_graph_ns=len(g),
        all_three_ns=len(c & n & m),
    )


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(pairs, pairs, pairs, pairs, edges, edges)
@example([(10, 40), (50, 60)], [(20, 55), (65, 70)], [], [], None, None)
@example([(0, 10)], [], [], [], 8, 3)
def test_every_figure_is_that_of_the_timeline(
    compute: Pairs, comm: Pairs, memory: Pairs, graphs: Pairs, start: int | None, end: int | None
) -> None:
    given_pairs = dict(zip(FIELDS, (compute, comm, memory, graphs), strict=True))
    sets = {k: {p for a, b in v for p in range(a, b)} for k, v in given_pairs.items()}
    sets["compute"] |= sets["graphs"]
    everything = set().union(*sets.values())
    budget = time_budget(done(compute, comm, memory, graphs), start, end)

    first = min(everything, default=end or 0) if start is None else start
    last = max(everything, default=first - 1) + 1 if end is None else end
    assert budget == brute_force(sets, first, max(first, last))

    c, n, m = (sets[name] & set(range(first, last)) for name in FIELDS[:3])
    alone = (len(c - n - m), len((c & n) - m), len((c & m) - n), len((n & m) - c))
    assert alone == (
        budget.compute_only_ns,
        budget.compute_communication_ns,
        budget.compute_memory_ns,
        budget.communication_memory_ns,
    )


def frame(rows: list[tuple[int, int, int, int, str]]) -> Frame:
    """Rows of pid, device, start, end, name."""
    columns = ("pid", "device", "start_ns", "end_ns")
    made = {
        name: np.asarray([row[place] for row in rows], dtype=np.int64)
        for place, name in enumerate(columns)
    }
    return Frame({**made, "name": Labels.of(row[4] for row in rows)})


NOTHING = frame([])
ALL_REDUCE = (
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
)


def test_each_process_and_device_has_its_own_budget_and_window() -> None:
    kernels = frame(
        [
            (20, 0, 100, 200, "gemm"),
            (10, 1, 0, 50, "gemm"),
            (10, 0, 5, 15, "gemm"),
            (10, 0, 10, 40, ALL_REDUCE),
        ]
    )
    copies = frame([(10, 1, 60, 70, ""), (30, 0, 7, 9, "")])
    graphs = frame([(20, 0, 150, 260, "")])
    found = device_budgets(kernels, copies, graphs)
    assert list(found) == [(10, 0), (10, 1), (20, 0), (30, 0)]
    first, second, third, fourth = found.values()
    assert first == TimeBudget(5, 40, 35, 10, 30, 0, 5, 25, 0, 0)
    assert second == TimeBudget(0, 70, 60, 50, 0, 10, 0, 0, 10, 0)
    assert third == TimeBudget(100, 260, 160, 160, 0, 0, 0, 0, 0, 110)
    assert fourth == TimeBudget(7, 9, 2, 0, 0, 2, 0, 0, 2, 0)


def test_one_device_alone_is_the_same_as_among_others() -> None:
    rows = [(10, 0, 5, 15, "gemm"), (10, 0, 10, 40, ALL_REDUCE)]
    (alone,) = device_budgets(frame(rows), NOTHING, NOTHING).values()
    among = device_budgets(frame([*rows, (11, 0, 0, 99, "gemm")]), NOTHING, NOTHING)
    assert among[10, 0] == alone
    assert device_budgets(NOTHING, NOTHING, NOTHING) == {}
    cut = device_budgets(frame(rows), NOTHING, NOTHING, start_ns=12, end_ns=20)
    assert cut == {(10, 0): TimeBudget(12, 20, 8, 3, 8, 0, 3, 5, 0, 0)}


def test_patterns_of_the_user_are_communication_too() -> None:
    kernels = frame([(1, 0, 0, 10, "my_ring_exchange"), (1, 0, 5, 20, "gemm")])
    (plain,) = device_budgets(kernels, NOTHING, NOTHING).values()
    (extended,) = device_budgets(kernels, NOTHING, NOTHING, communication=["ring_ex"]).values()
    assert (plain.communication_ns, plain.compute_ns) == (0, 20)
    assert (extended.communication_ns, extended.compute_ns) == (10, 15)
    with pytest.raises(UsageError, match="no regular expression"):
        device_budgets(kernels, NOTHING, NOTHING, communication=["("])


def test_an_activity_counts_graphs_as_compute() -> None:
    kernels = frame([(1, 0, 0, 10, "gemm"), (1, 0, 20, 30, ALL_REDUCE)])
    made = activity(kernels, np.array([False, True]), NOTHING, frame([(1, 0, 8, 25, "")]))
    assert made == done([(0, 10)], [(20, 30)], graphs=[(8, 25)])
    assert made.busy == spans([(0, 30)])
