"""The work of devices in one list: kinds, launches, streams, and what comes before what."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.launches import NO_TIME
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
from tests.support.work_programs import table


def rows(found: list[tuple[int, int, int, int]], name: str, *names: str) -> Frame:
    """Operations of 5 ns on device 0: start, process, stream, correlation id."""
    placed = [
        (start, start + 5, pid, 0, 0, stream, number, text, 99, "", "")
        for (start, pid, stream, number), text in zip(found, names, strict=True)
    ]
    return table((*WORK_COLUMNS, name, "bytes", "source_memory", "target_memory"), placed)


def test_kernels_copies_sets_and_graphs_are_one_list() -> None:
    kernels = rows([(10, 1, 7, 1), (30, 1, 7, 2), (10, 2, 7, 1)], "name", "gemm", "nccl", "gemm")
    copies = rows(
        [(20, 1, 7, 3), (20, 1, 13, 9)], "operation", "[CUDA memcpy HtoD]", "[CUDA memset]"
    )
    graphs = rows([(40, 1, 7, 4)], "name", "graph")
    made = [(1, 1, 1), (11, 1, 2), (21, 1, 3), (31, 1, 4), (41, 2, 1)]
    calls = table(
        CALL_COLUMNS, [(at, at + 5, pid, pid, number, "launch", 0) for at, pid, number in made]
    )
    work = launched_work(Work(kernels, copies, graphs), np.asarray([False, True, False]), calls)
    assert work.kind.tolist() == [COMPUTE, COMMUNICATION, COMPUTE, COPY, SET, GRAPH]
    assert work.launched_by.tolist() == [0, 1, 4, 2, -1, 3]
    assert work.launch.tolist() == [1, 11, 41, 21, NO_TIME, 31]
    assert work.pid.tolist() == [1, 1, 2, 1, 1, 1]
    assert work.streams == ((1, 0, 7), (1, 0, 13), (2, 0, 7))
    assert work.previous.tolist() == [-1, 3, -1, 0, -1, 1]
    reached = work.reached(np.asarray([9, 4, 8, 7, 3, 2]))
    assert reached.tolist() == [9, 9, 9, 9, 3, 2]
