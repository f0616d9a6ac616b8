"""gaps: intervals of known cause, range and call; adding them up; what waiting calls cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulator import Export

import nsightpy
from nsightpy.errors import UsageError
from nsightpy.results import Value, number
from tests.support.launchers import MS, US

GROUPS = ("count", "total_ns", "longest_ns")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A thread loads data for 5 ms and for 3 ms, then waits for the device, then launches late."""
    export = Export(tmp_path / "a.sqlite")
    kernels = ((0, "a"), (5 * MS, "b"), (8 * MS, "c"), (9 * MS, "a"), (10 * MS, "b"))
    for begin, name in kernels:
        start = begin + 100 * US
        export.kernel(start, start + 100 * US, name, launch=(start - 10 * US, start - 2 * US))
    for begin, end in ((190 * US, 5_080 * US), (5_210 * US, 8_050 * US)):
        export.nvtx_push_pop(begin, end, "loading")
    export.nvtx_push_pop(0, 8_300 * US, "step")
    export.api(8_150 * US, 9_050 * US, "cudaDeviceSynchronize_v3020")
    return export.write()


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        (
            "cause,place",
            [
                ("host-gap", "loading", 2, 7_780 * US, 4_890 * US),
                ("launch-bound", None, 1, 900 * US, 900 * US),
                ("sync-drain", "cudaDeviceSynchronize", 1, 900 * US, 900 * US),
                ("launch-bound", "loading", 2, 20 * US, 10 * US),
            ],
        ),
        ("range", [("loading", 2, 7_800 * US, 4_900 * US), (None, 2, 1_800 * US, 900 * US)]),
        (
            "before,stream",
            [
                ("a", "7", 2, 5_800 * US, 4_900 * US),
                ("b", "7", 1, 2_900 * US, 2_900 * US),
                ("c", "7", 1, 900 * US, 900 * US),
            ],
        ),
    ],
)
def test_idle_time_is_added_up(by: str, wanted: list[tuple[Value, ...]], program: Path) -> None:
    table = nsightpy.gaps(program, by=by)
    assert table.columns == (*by.split(","), *GROUPS, "share_of_idle")
    assert [row[:-1] for row in table.rows] == wanted
    assert sum(map(number, table.column("share_of_idle"))) == pytest.approx(1)


def test_intervals_come_longest_first(program: Path) -> None:
    rows = nsightpy.gaps(program).records()
    columns = ("start_ns", "duration_ns", "cause", "before", "after")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (200 * US, 4_900 * US, "host-gap", "a", "b"),
        (5_200 * US, 2_900 * US, "host-gap", "b", "c"),
        (8_200 * US, 900 * US, "sync-drain", "c", "a"),
        (9_200 * US, 900 * US, "launch-bound", "a", "b"),
    ]
    assert "inside range 'loading'" in str(rows[0]["host_activity"])


def test_a_waiting_call_costs_the_idle_time_in_it(program: Path) -> None:
    (wait,) = nsightpy.gaps(program, by="call").records()
    assert (wait["api"], wait["calls"]) == ("cudaDeviceSynchronize", 1)
    assert (wait["total_ns"], wait["device_idle_ns"]) == (900 * US, 850 * US)
    assert wait["idle_share"] == pytest.approx(850 / 10_100)


def test_intervals_are_not_split_further(program: Path) -> None:
    for by in ("colour", "call,gap"):
        with pytest.raises(UsageError, match="there are cause, place, range"):
            nsightpy.gaps(program, by=by)
