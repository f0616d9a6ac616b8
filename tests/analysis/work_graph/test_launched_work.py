"""The work of devices in one list, and what hosts did: by calls, by CPU samples, by hand."""

import numpy as np
import pytest

from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.host_activity import (
    covering_range,
    most_in,
    most_sampled,
)
from nsightpy.analysis.work_graph.host_chain import CALL_COLUMNS
from nsightpy.analysis.work_graph.launched_work import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    GRAPH,
    SET,
    WORK_COLUMNS,
    Work,
    launched_work,
)
from nsightpy.frames import Frame
from tests.support.frames import frame

SPANS = "start_ns end_ns name"


def rows(found: list[tuple[int, int, int, int]], name: str, *names: str) -> Frame:
    """Operations of 5 ns on device 0: start, process, stream, correlation id."""
    placed = [
        (start, start + 5, pid, 0, 0, stream, number, text, 99, "", "")
        for (start, pid, stream, number), text in zip(found, names, strict=True)
    ]
    return frame((*WORK_COLUMNS, name, "bytes", "source_memory", "target_memory"), placed)


def test_kernels_copies_sets_and_graphs_are_one_list() -> None:
    kernels = rows([(10, 1, 7, 1), (30, 1, 7, 2), (10, 2, 7, 1)], "name", "gemm", "nccl", "gemm")
    copies = rows(
        [(20, 1, 7, 3), (20, 1, 13, 9)], "operation", "[CUDA memcpy HtoD]", "[CUDA memset]"
    )
    graphs = rows([(40, 1, 7, 4)], "name", "graph")
    made = [(1, 1, 1), (11, 1, 2), (21, 1, 3), (31, 1, 4), (41, 2, 1)]
    calls = frame(
        CALL_COLUMNS, [(at, at + 5, pid, pid, number, "launch", 0) for at, pid, number in made]
    )
    talks = np.asarray([False, True, False])
    work = launched_work(Work(kernels, copies, graphs), talks, calls)
    assert work.kind.tolist() == [COMPUTE, COMMUNICATION, COMPUTE, COPY, SET, GRAPH]
    assert work.launched_by.tolist() == [0, 1, 4, 2, -1, 3]
    assert work.launch.tolist() == [1, 11, 41, 21, NO_TIME, 31]
    assert work.pid.tolist() == [1, 1, 2, 1, 1, 1]
    assert work.streams == ((1, 0, 7), (1, 0, 13), (2, 0, 7))
    assert work.previous.tolist() == [-1, 3, -1, 0, -1, 1]
    reached = work.reached(np.asarray([9, 4, 8, 7, 3, 2]))
    assert reached.tolist() == [9, 9, 9, 9, 3, 2]


def test_the_functions_on_top_of_the_stack_are_named_with_their_shares() -> None:
    rows = [(10 * n, "gc" if n % 3 else "poll", "libjulia") for n in range(9)]
    found = frame("time_ns name module", [*rows, (500, "outside", "x")])
    assert most_sampled(Spans.of(0, 90), found) == "gc [libjulia] 67 %, poll [libjulia] 33 %"
    assert most_sampled(Spans.of(0, 40), found) == ""


def test_the_function_that_took_most_of_a_time_is_named_with_the_share_of_all() -> None:
    calls = frame(SPANS, [(0, 10, "a"), (20, 50, "b"), (60, 200, "c")])
    assert most_in(Spans.of(0, 100), calls) == ("c", 0.8)
    assert most_in(Spans.of(0, 70), calls) == ("b", 5 / 7)


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        ([(0, 100, "all"), (20, 60, "load")], ("load", 0.75)),
        ([(0, 100, "all"), (30, 49, "brief")], ("all", 1.0)),
        ([(0, 60, "most"), (0, 1_000, "whole")], ("most", 1.0)),
        ([(30, 49, "brief")], ("", 0.0)),
        ([], ("", 0.0)),
    ],
)
def test_the_shortest_kind_of_range_over_half_of_a_time_is_named(
    ranges: list[tuple[int, int, str]], found: tuple[str, float]
) -> None:
    assert covering_range(Spans.of(10, 50), frame(SPANS, ranges), Spans.of(0, 1_000)) == found
