"""Time budgets: small cases with the numbers in plain sight, and the invariants on any timeline."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from nsightpy.analysis.intervals import Spans, union
from nsightpy.analysis.time_budget import (
    Activity,
    TimeBudget,
    device_budgets,
    time_budget,
)
from nsightpy.errors import UsageError
from tests.support.frames import frame

Pairs = list[tuple[int, int]]


def spans(intervals: Pairs) -> Spans:
    return union(*np.asarray(intervals, dtype=np.int64).reshape(-1, 2).T)


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
        window=Spans.of(start, end),
        busy_ns=len(c | n | m | g),
        compute_ns=len(c),
        communication_ns=len(n),
        memory_ns=len(m),
        overlap_ns=len(c & n),
        exposed_communication_ns=len(n - c - m),
        copy_only_ns=len(m - c - n),
        opaque_graph_ns=len(g),
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


WORK = "pid device start_ns end_ns name"
NOTHING = frame(WORK, [])
ALL_REDUCE = (
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
)


def test_each_process_and_device_has_its_own_budget_and_window() -> None:
    rows = [(10, 0, 5, 15, "gemm"), (10, 0, 10, 40, ALL_REDUCE)]
    others = [(20, 0, 100, 200, "gemm"), (10, 1, 0, 50, "gemm")]
    copies = frame(WORK, [(10, 1, 60, 70, ""), (30, 0, 7, 9, "")])
    graphs = frame(WORK, [(20, 0, 150, 260, "")])
    found = device_budgets(frame(WORK, others + rows), copies, graphs)
    assert list(found.items()) == [
        ((10, 0), TimeBudget(Spans.of(5, 40), 35, 10, 30, 0, 5, 25, 0, 0)),
        ((10, 1), TimeBudget(Spans.of(0, 70), 60, 50, 0, 10, 0, 0, 10, 0)),
        ((20, 0), TimeBudget(Spans.of(100, 260), 160, 160, 0, 0, 0, 0, 0, 110)),
        ((30, 0), TimeBudget(Spans.of(7, 9), 2, 0, 0, 2, 0, 0, 2, 0)),
    ]
    # alone it is the same as among others
    assert device_budgets(frame(WORK, rows), NOTHING, NOTHING) == {(10, 0): found[10, 0]}
    assert device_budgets(NOTHING, NOTHING, NOTHING) == {}
    cut = device_budgets(frame(WORK, rows), NOTHING, NOTHING, start_ns=12, end_ns=20)
    assert cut == {(10, 0): TimeBudget(Spans.of(12, 20), 8, 3, 8, 0, 3, 5, 0, 0)}


def test_patterns_of_the_user_are_communication_too() -> None:
    kernels = frame(WORK, [(1, 0, 0, 10, "my_ring_exchange"), (1, 0, 5, 20, "gemm")])
    for patterns, expected in (((), (0, 20)), (["ring_ex"], (10, 15))):
        found = device_budgets(kernels, NOTHING, NOTHING, communication=patterns)[1, 0]
        assert (found.communication_ns, found.compute_ns) == expected
    with pytest.raises(UsageError, match="no regular expression"):
        device_budgets(kernels, NOTHING, NOTHING, communication=["("])
