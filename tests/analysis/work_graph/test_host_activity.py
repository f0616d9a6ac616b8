"""What hosts did while a device was idle: by calls, by CPU samples, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.work_graph.host_activity import (
    covering_range,
    most_in,
    most_sampled,
)
from nsightpy.frames import Frame, Labels


def samples(*rows: tuple[int, str, str]) -> Frame:
    """CPU samples: time, function, module."""
    times = np.asarray([time for time, _, _ in rows], dtype=np.int64)
    names = Labels.of(name for _, name, _ in rows)
    return Frame({"time_ns": times, "name": names, "module": Labels.of(m for *_, m in rows)})


def test_the_functions_on_top_of_the_stack_are_named_with_their_shares() -> None:
    rows = [(10 * n, "gc" if n % 3 else "poll", "libjulia") for n in range(9)]
    found = samples(*rows, (500, "outside", "x"))
    assert most_sampled(Spans.of(0, 90), found) == "gc [libjulia] 67 %, poll [libjulia] 33 %"
    assert most_sampled(Spans.of(0, 40), found) == ""


def test_the_function_that_took_most_of_a_time_is_named_with_the_share_of_all() -> None:
    calls = Frame(
        {
            "start_ns": np.asarray([0, 20, 60], dtype=np.int64),
            "end_ns": np.asarray([10, 50, 200], dtype=np.int64),
            "name": Labels.of(["a", "b", "c"]),
        }
    )
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
    starts, ends, names = zip(*ranges, strict=True) if ranges else ((), (), ())
    times = {
        name: np.asarray(at, dtype=np.int64)
        for name, at in (("start_ns", starts), ("end_ns", ends))
    }
    frame = Frame({**times, "name": Labels.of(names)})
    assert covering_range(Spans.of(10, 50), frame, Spans.of(0, 1_000)) == found
