"""Rankings: the rows, their order and their rounding, as SQLite and so `nsys stats` has them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nsightpy.analysis.launches import api_calls
from nsightpy.analysis.ranking import (
    KERNELS,
    MEMORY,
    ranked as ranked_by,
    shaped,
    tallies,
    tally_durations,
)
from nsightpy.frames import Frame
from nsightpy.results import Field, Table
from nsightpy.units import round_half_up
from tests.support.frames import frame

COLUMNS = (
    *("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Med (ns)"),
    *("Min (ns)", "Max (ns)", "StdDev (ns)", "Name"),
)
Kernel = tuple[str, int, int]  # name, device, duration


def durations(kernels: list[Kernel]) -> Frame:
    at = 1_800_000_000_000_000_000
    rows = [(at, at + length, device, name) for name, device, length in kernels]
    return frame("start_ns end_ns device name", rows)


def ranked(kernels: list[Kernel], top: int | None = None) -> Table:
    found = tally_durations(durations(kernels), ["name"]).statistics()
    return ranked_by("kernels", KERNELS, {"duration": found}).first(top)


def test_the_table_in_plain_sight() -> None:
    table = ranked(
        [("gemm", 0, 100), ("copy", 0, 10), ("gemm", 0, 201), ("copy", 0, 13), ("fill", 0, 1)]
    )
    assert table.columns == COLUMNS
    assert table.rows == (
        (92.6, 301, 2, 150.5, 150.5, 100, 201, 71.4, "gemm"),
        (7.1, 23, 2, 11.5, 11.5, 10, 13, 2.1, "copy"),
        (0.3, 1, 1, 1.0, 1.0, 1, 1, 0.0, "fill"),
    )


def test_equal_totals_are_ordered_by_name_then_by_split_unknown_first() -> None:
    kernels = [("b", 1, 5), ("c", 0, 6), ("a", 1, 5), ("b", 0, 5), ("a", 0, 5), ("a", 2, 5)]
    found = tally_durations(durations(kernels), ["device", "name"])
    keys = tuple((None if key[0] == 2 else key[0], *key[1:]) for key in found.keys)
    measures = {"duration": replace(found, keys=keys).statistics()}
    table = ranked_by("kernels", KERNELS, measures, splits=[Field("device", "id")])
    assert [(row[0], row[2], row[-1]) for row in table.rows] == [
        *((0, 6, "c"), (None, 5, "a"), (0, 5, "a"), (1, 5, "a"), (0, 5, "b"), (1, 5, "b")),
    ]
    assert table.columns[:2] == ("device", "Time (%)")


def test_top_keeps_the_percentages_of_the_whole_and_no_time_is_no_division_by_zero() -> None:
    kernels = [("a", 0, 50), ("b", 0, 30), ("c", 0, 20)]
    for top in (0, 1, 2, 9):
        assert ranked(kernels, top=top).rows == ranked(kernels).rows[:top]
    assert ranked([("a", 0, 0), ("b", 0, 0)]).column("Time (%)") == [0.0, 0.0]
    assert (ranked([]).columns, ranked([]).rows) == (COLUMNS, ())


@pytest.mark.parametrize(
    ("value", "digits", "rounded"),
    [
        (0.25, 1, 0.3),  # ties go away from zero, where Python's own round goes to even
        (-0.25, 1, -0.3),
        (12.25, 1, 12.3),
        (1.0625, 3, 1.063),
        (16823 / 20, 1, 841.1),  # 841.1499..., printed as 841.1 by nsys 2024.6
        (0.15, 1, 0.1),
        (0.45, 1, 0.5),  # 0.4500000000000000111
        (4737606281351.3125, 3, 4737606281351.313),
        (0.0, 1, 0.0),
        (99.96, 1, 100.0),
        (1e22, 1, 1e22),
        (-math.inf, 1, -math.inf),
    ],
)
def test_rounding_is_that_of_sqlite(value: float, digits: int, rounded: float) -> None:
    assert round_half_up(value, digits) == rounded


def memory(rows: list[tuple[str, int, int]]) -> Table:
    operations = frame("operation end_ns bytes", rows, start_ns=0)
    time = tally_durations(operations, ["operation"])
    # the groups of the sizes in an order of their own
    backwards = operations.take(np.arange(len(rows))[::-1])
    (size,) = tallies(backwards, ["operation"], ["bytes"])
    measures = {"duration": time.statistics(), "bytes": size.statistics()}
    return ranked_by("memory", MEMORY, measures)


def test_memory_sizes_are_decimal_megabytes_and_follow_the_time() -> None:
    """The operation that moves most is not the one that takes longest."""
    rows = [("set", 10, 9_000_000), ("copy", 4000, 1_500_000), ("copy", 2000, 500_600)]
    copy, fill = memory(rows).rows
    assert copy == (
        *(99.8, 6000, 2, 3000.0, 3000.0, 2000, 4000, 1414.2, "copy"),
        *(2.001, 1.0, 1.0, 0.501, 1.5, 0.707, round(2_000_600 / 6000, 3)),
    )
    assert fill[9] == 9.0
    assert memory([("set", 0, 100)]).column("throughput_gb_per_s") == [None]


def test_calls_are_runtime_driver_and_their_backtraces() -> None:
    rows = [(kind, at) for at, kind in enumerate((0, 1, 13, 27, 67, 77))]
    assert api_calls(frame("event_class start_ns", rows)).ints("start_ns").tolist() == [0, 1, 2]


def test_shapes_are_named() -> None:
    made = shaped(frame("grid_x grid_y grid_z", [(128, 1, 1), (2, 1, 3), (128, 1, 1)]), "grid")
    assert [made[row] for row in range(3)] == ["128x1x1", "2x1x3", "128x1x1"]
