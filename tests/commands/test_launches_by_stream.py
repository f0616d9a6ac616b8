"""Queues of launched work, and what waiting cost: by hand, by brute force, on real data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsightpy.analysis.intervals import union
from nsightpy.commands.gaps import sync_costs
from nsightpy.frames import Frame, Labels
from tests.support.reports import NSYS, needs_reports, rows_of

SAMPLES = Path(__file__).parent.parent.parent / "sample_reports"
TRAINING = SAMPLES / "training_4rank"


def test_only_waiting_in_which_the_device_did_nothing_costs() -> None:
    names = ("cudaStreamSynchronize", "cudaFree")
    calls = Frame(
        {
            "start_ns": np.asarray([10, 15, 50, 95, 200]),
            "end_ns": np.asarray([30, 35, 60, 120, 210]),
            "name": Labels(np.asarray([0, 0, 1, 0, 0], dtype=np.int32), names),
        }
    )
    window = union(np.asarray([0]), np.asarray([100]))
    idle = union(np.asarray([20, 90]), np.asarray([55, 140]))
    free, wait = sync_costs(calls, window, idle)
    # 20 to 35 inside two calls at once, and 95 to 100: the window ends there
    assert wait == ("cudaStreamSynchronize", 3, 65, 20.0, 25, 15 + 5)
    assert free == ("cudaFree", 1, 10, 10.0, 10, 5)


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
    (bound,), (row,) = (
        rows_of("launches", "--by", "stream", path),
        rows_of("breakdown", path),
    )
    assert bound["queue_max"] == 2
    assert bound["launch_bound_kernels"] > 0.5 * bound["operations"]
    assert bound["launch_bound_ns"] == row["launch_bound_ns"] > 0.3 * bound["window_ns"]


@needs_reports
def test_real_waits_are_told_from_what_they_cost() -> None:
    path = NSYS / "gpt2.7b_a100_2024.6.sqlite"
    (wait,) = rows_of("gaps", "--by", "call", path)
    assert (wait["api"], wait["calls"]) == ("cudaDeviceSynchronize", 1)
    assert wait["device_idle_ns"] < 0.01 * wait["total_ns"]
    first = rows_of("gaps", "--by", "call", NSYS / "solver_rtx3090_2025.5.sqlite")[0]
    assert (first["api"], first["calls"]) == ("cudaMemcpyFromSymbol", 3827)
    assert 0.3 < first["idle_share"] < 0.32
