"""Clocks placed by MPI operations alone: simulated jobs whose offsets and drifts are known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from simulator.mpi_job import START_NS, MpiRun, MpiSettings, simulate_mpi, write_mpi_reports

import nsightpy
from nsightpy.analysis.clock_alignment.mpi_placement import intervals_of
from nsightpy.analysis.mpi.matching import MESSAGE, matched_calls
from nsightpy.analysis.mpi.waits import Waits, wait_rows
from nsightpy.frames import MPI_CALLS, Frame, Ints, Labels
from nsightpy.results import Table
from tests.support.frames import frame

# A long job with clocks that drift, in few operations.
DRIFTING = MpiSettings(
    ranks=3,
    steps=60,
    compute_ns=150_000_000,
    jitter_ns=5_000_000,
    drift_ppb=(0, 9_000, -14_000),
)


def placed(run: MpiRun, folder: Path) -> tuple[Table, list[Any]]:
    """The ranks of a run, also as rows of their own."""
    table = nsightpy.ranks(write_mpi_reports(run, folder))
    return table, list(table.to_pandas().itertuples())


def misplaced(run: MpiRun, row: Any) -> float:
    """How far the found offset is from the true one at the middle of the calls, ns."""
    starts = [call.start for call in run.calls]
    middle = (min(starts) + max(call.end for call in run.calls)) // 2 - START_NS
    drift_ppb = run.clock(row.rank).drift_ppb - run.clock(0).drift_ppb
    return abs(row.offset_ns - run.offset_ns(row.rank) - drift_ppb * 1e-9 * middle)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "error_ns"),
    [
        (MpiSettings(seed=1, ranks=2, recorded="members"), 3_000),
        (MpiSettings(seed=2, ranks=5), 3_500),
        (MpiSettings(seed=3, ranks=8, ranks_per_node=2, recorded="ranges"), 90_000),
        (MpiSettings(seed=4, ranks=4, recorded="unknown"), 90_000),
        (MpiSettings(seed=5, ranks=4, slow=2, slow_ns=200_000), 3_500),
        (replace(DRIFTING, seed=6), 8_000),
        (MpiSettings(seed=7, ranks=64, ranks_per_node=8, steps=4), 40_000),
    ],
    ids=lambda value: f"{value.ranks}-{value.recorded}" if hasattr(value, "ranks") else "",
)
def test_offsets_are_inside_their_error_bars(
    settings: MpiSettings, error_ns: int, tmp_path: Path
) -> None:
    run = simulate_mpi(settings)
    table, rows = placed(run, tmp_path)
    away = [row for row in rows if row.rank >= settings.ranks_per_node]
    assert {row.alignment for row in away} == {"MPI"}
    assert len(away) == settings.ranks - settings.ranks_per_node
    for row in away:
        assert row.residual_p95_ns == -row.residual_p05_ns
        assert misplaced(run, row) <= row.residual_p95_ns <= error_ns
        assert pd.isna(row.drift_ppm)
    assert any("placed by MPI operations" in note for note in table.notes)
    assert not any("only the wall clock" in note for note in table.notes)
    broken = any("clock condition" in note for note in table.notes)
    assert broken == any(settings.drift_ppb)


def test_reports_of_one_host_keep_its_clock_and_violations_are_counted(tmp_path: Path) -> None:
    run = simulate_mpi(MpiSettings(seed=8, ranks=2, ranks_per_node=2, steps=10))
    for call in run.calls:  # rank 1 is half a millisecond late in its own report
        if call.rank == 1:
            call.start += 500_000
            call.end += 500_000
    table, rows = placed(run, tmp_path)
    assert {row.alignment for row in rows} == {"system clock"}
    (note,) = (note for note in table.notes if "clock condition" in note)
    assert "of 40 MPI operations" in note


def cut_short(run: MpiRun) -> None:
    """One rank lacks a call that the others made."""
    run.calls.remove(next(c for c in run.calls if c.rank == 1 and c.name == "MPI_Bcast"))


def divided(run: MpiRun) -> None:
    """The job divides its ranks."""
    run.calls += [replace(call, name="MPI_Comm_split") for call in run.calls if "Init" in call.name]


@pytest.mark.parametrize(
    ("change", "said"),
    [(cut_short, "1 MPI communicator could not"), (divided, "tell communicators apart")],
)
def test_ranges_are_matched_only_where_all_ranks_made_the_same_calls(
    change: Callable[[MpiRun], None], said: str, tmp_path: Path
) -> None:
    run = simulate_mpi(MpiSettings(seed=9, ranks=3, recorded="ranges", steps=5))
    change(run)
    table, rows = placed(run, tmp_path)
    assert "MPI" not in {row.alignment for row in rows}
    assert any(said in note for note in table.notes)


def test_a_capture_that_ends_early_is_matched_up_to_there(tmp_path: Path) -> None:
    run = simulate_mpi(MpiSettings(seed=10, ranks=3, steps=20))
    last = max(call.end for call in run.calls)
    run.calls = [call for call in run.calls if call.rank != 2 or call.end < last - 2_000_000]
    _, (_, *others) = placed(run, tmp_path)
    assert {row.alignment for row in others} == {"MPI"}
    assert all(misplaced(run, row) <= row.residual_p95_ns for row in others)


def calls_of(*rows: tuple[int, str, int, int, int, int], **columns: Any) -> tuple[Frame, Ints]:
    """Calls (clock, name, start, end, peer, request) of one communicator."""
    own = frame("communicator_rank name start_ns end_ns peer request", rows, tag=0)
    same = {"communicator_id": Labels.constant("uid 1", len(rows)), **columns}
    return Frame({**Frame.blank(MPI_CALLS, len(rows)), **own, **same}), own.ints(
        "communicator_rank"
    )


def test_a_receive_ends_with_the_wait_for_its_request() -> None:
    calls, clock = calls_of(
        (0, "MPI_Send", 100, 120, 1, 0),
        (0, "MPI_Isend", 300, 310, 1, 0),
        (1, "MPI_Irecv", 10, 12, 0, 7),
        (1, "MPI_Wait", 50, 130, -1, 7),
        (1, "MPI_Irecv", 140, 141, 0, 7),
        (1, "MPI_Waitall", 150, 333, -1, 7),
    )
    matched = matched_calls(calls, clock, [0, 1])
    assert set(matched.kind.tolist()) == {MESSAGE}
    assert matched.row[matched.exits].tolist() == [3, 5]
    assert matched.posted[matched.exits].tolist() == [2, 4]
    assert matched.row[matched.enters].tolist() == [0, 1]


def test_messages_that_do_not_balance_are_not_matched() -> None:
    calls, clock = calls_of(
        (0, "MPI_Send", 100, 120, 1, 0),
        (0, "MPI_Send", 300, 310, 1, 0),
        (1, "MPI_Recv", 10, 122, 0, 0),
        (1, "MPI_Recv", 130, 312, -1, 0),  # from any rank
    )
    assert matched_calls(calls, clock, [0, 1]).count == 0


def test_bounds_reach_a_clock_through_a_third() -> None:
    """Ranks 0 and 2 never meet; 1 is 1,000 ahead of 0, and 2 500 ahead of 1."""
    meetings = [(0, 1, 0), (1, 2, 0), (0, 1, 1), (1, 2, 1)]
    ahead, lines, names = (0, 1_000, 1_500), [], []
    for number, (first, second, late) in enumerate(meetings):
        base = 100_000 * number
        for place, clock in enumerate((first, second)):
            entered = base + (500 if place == late else 0) + ahead[clock]
            names.append(f"{first}{second}")
            times = entered, base + 520 + ahead[clock]
            lines.append((clock, "MPI_Barrier", *times, -1, 0))
    calls, clock = calls_of(*lines, communicator_id=Labels.of(names))
    matched = matched_calls(calls, clock, [0, 1, 2])
    times = calls.ints("start_ns"), calls.ints("end_ns")
    middle, error, first, operations = intervals_of(matched, clock, *times, 3)
    assert first.tolist() == [0, 0, 0]
    assert np.abs(middle - ahead).max() < 5.0
    # 20 ns each way, and what the clocks may drift in between
    assert error.tolist() == pytest.approx([0.0, 20.0, 40.0], abs=45.0)
    assert operations.tolist() == [2, 4, 2]


def test_waits_of_many_ranks_keep_their_causes() -> None:
    """Groups times clocks are beyond 32 bits."""
    count = 50_000
    row = np.arange(count)
    waits = Waits(np.zeros(count, np.int64), row, row[::-1].copy(), np.full(count, 5))
    spans = {"start_ns": 10 * row, "end_ns": 10 * row + 9}
    texts = {name: Labels.constant(name, count) for name in ("name", "range")}
    rows = wait_rows(waits, row, Frame({**texts, **spans}), [None] * count)
    assert len(rows) == count
    assert {cause + clock for clock, *_, cause, _ in rows} == {count - 1}
