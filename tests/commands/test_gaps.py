"""gaps and queues: intervals of known cause, what waiting calls cost, how much work waited."""

from pathlib import Path

import numpy as np
import pytest
from simulator import Export

import nsightpy
from nsightpy.analysis.intervals import union
from nsightpy.commands.gaps import sync_costs
from nsightpy.frames import Frame, Labels
from nsightpy.results import Value, number
from tests.support.launchers import MS, US
from tests.support.reports import NSYS, needs_reports, rows_of
from tests.support.samples import TRAINING

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


IDLE: dict[str, list[tuple[Value, ...]]] = {
    "cause,place": [
        ("host-gap", "loading", 2, 7_780 * US, 4_890 * US),
        ("launch-bound", None, 1, 900 * US, 900 * US),
        ("sync-drain", "cudaDeviceSynchronize", 1, 900 * US, 900 * US),
        ("launch-bound", "loading", 2, 20 * US, 10 * US),
    ],
    "range": [("loading", 2, 7_800 * US, 4_900 * US), (None, 2, 1_800 * US, 900 * US)],
    "before,stream": [
        ("a", "7", 2, 5_800 * US, 4_900 * US),
        ("b", "7", 1, 2_900 * US, 2_900 * US),
        ("c", "7", 1, 900 * US, 900 * US),
    ],
}


@pytest.mark.parametrize("by", IDLE)
def test_idle_time_is_added_up(by: str, program: Path) -> None:
    table = nsightpy.gaps(program, by=by)
    assert table.columns == (*by.split(","), *GROUPS, "share_of_idle")
    assert [row[:-1] for row in table.rows] == IDLE[by]
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


def test_only_waiting_in_which_the_device_did_nothing_costs() -> None:
    names = ("cudaStreamSynchronize", "cudaFree")
    calls = Frame(
        {
            "start_ns": np.asarray([10, 15, 50, 95, 200, -5, -9]),
            "end_ns": np.asarray([30, 35, 60, 120, 210, 5, 0]),
            "name": Labels(np.asarray([0, 0, 1, 0, 0, 1, 1], dtype=np.int32), names),
        }
    )
    window = union(np.asarray([0]), np.asarray([100]))
    idle = union(np.asarray([20, 90]), np.asarray([55, 140]))
    wait, free = sync_costs(calls, window, idle)
    # 20 to 35 inside two calls at once, and 95 to 100: the window ends there
    assert wait == ("cudaStreamSynchronize", 3, 65, 20.0, 25, 15 + 5)
    assert free == ("cudaFree", 2, 20, 10.0, 10, 5)


def test_queues_of_the_sample_reports_agree_with_their_launches() -> None:
    found = rows_of("launches", "--by", "stream", TRAINING)
    launched = {(row["rank"], row["device"]): 0 for row in found}
    for row in found:
        launched[row["rank"], row["device"]] += row["operations"]
        assert 0 < row["queue_mean"] <= row["queue_max"]
        assert 0 <= row["empty_share"] < 1
        assert 0 <= row["launch_bound_ns"] <= row["window_ns"]
    kernels = rows_of("kernels", TRAINING, "--by", "rank")
    for (rank, _), operations in launched.items():
        assert operations > sum(r["Instances"] for r in kernels if r["rank"] == rank)


@needs_reports
def test_real_queues_show_what_set_the_pace() -> None:
    # once begun, the host runs ahead until the 1,024 places of the launch queue are taken
    (full,) = rows_of("launches", "--by", "stream", NSYS / "gpt2.7b_a100_2024.6.sqlite")
    assert full["queue_max"] == 1022
    assert full["launch_bound_kernels"] < 10 < 0.001 * full["operations"]
    # kernels of 1 to 2 us behind calls of 4 us, and a wait after every third
    path = NSYS / "solver_rtx3090_2025.5.sqlite"
    (bound,), (row,) = (rows_of("launches", "--by", "stream", path), rows_of("breakdown", path))
    assert bound["queue_max"] == 2
    assert bound["launch_bound_kernels"] > 0.5 * bound["operations"]
    assert bound["launch_bound_ns"] == row["launch_bound_ns"] > 0.3 * bound["window_ns"]
