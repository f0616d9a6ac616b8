"""Iterations: found where simulated jobs have them, by each source; not found where none are."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from simulator import Export
from simulator.presets import SMALL, TRAINING_4RANK

from nsightpy.analysis.iterations.levels import SEQUENCE
from nsightpy.analysis.iterations.recurrence import places_of, recurring
from nsightpy.analysis.iterations.steady import (
    STEADY,
    WARM_UP,
    Iterations,
    slow_iterations,
    steady_state,
)
from nsightpy.analysis.iterations.vocabulary import Batch, batch_of
from nsightpy.commands.iterations import iterations
from nsightpy.commands.summarize.command import summarize
from nsightpy.query.rank_alignment import common_clock
from nsightpy.report_sets.opening import open_ranks
from tests.support.launchers import Machine
from tests.support.programs import Program, named
from tests.support.reports import NSYS, ask, needs_reports, rows_of
from tests.support.samples import TRAINING

RANK0 = TRAINING / "train_rank0.sqlite"
STEPS = replace(SMALL, name="steps", iterations=7, warmup=2, layers=3, seed=11)


def in_own_times(found: list[dict[str, Any]], paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The rows with starts in the own time of each rank's report, as the truth has them."""
    clock = common_clock(open_ranks(paths))
    by_rank = {fit.rank: path for (path, _), fit in clock.fits.items()}
    return [
        row | {"start_ns": clock.own(by_rank[row["rank"]], row["start_ns"])}
        if row["rank"] in by_rank
        else row
        for row in found
    ]


@pytest.mark.slow
def test_nvtx_iterations_are_the_truth_to_the_nanosecond(tmp_path: Path) -> None:
    paths, truth = TRAINING_4RANK.write(tmp_path)
    found = in_own_times(rows_of("iterations", *paths), paths)
    for rank in truth["ranks"]:
        of_rank = [row for row in found if row["rank"] == rank["rank"]]
        assert len(of_rank) == len(rank["iterations"])
        for row, true in zip(of_rank, rank["iterations"], strict=True):
            assert row["iteration"] == true["iteration"]
            assert abs(row["start_ns"] - true["start_ns"]) <= 1  # a drift is rounded
            assert row["duration_ns"] == true["end_ns"] - true["start_ns"]
            assert (row["phase"] == WARM_UP) == true["warmup"]
            assert row["source"] == "repeated range 'iteration'"
            assert row["busy_ns"] + row["idle_ns"] == row["duration_ns"]


@pytest.mark.parametrize(
    "change",
    [
        {"nvtx": False},
        {"nvtx": False, "payload": None},
        {"nvtx": False, "tensor": 1},
        {"nvtx": False, "tensor": 1, "autograd_thread": True},
        {"nvtx": False, "orphan_kernels": 12, "tensor": 1},
    ],
)
def test_without_ranges_iterations_are_true(tmp_path: Path, change: dict[str, Any]) -> None:
    """One for each true one, lying in it but for the edges, which lie between two launches.

    The truth is that of the same job with ranges, whose making takes the host some microseconds.
    """
    paths, _ = replace(STEPS, **change).write(tmp_path)
    _, truth = replace(STEPS, **(change | {"nvtx": True})).write(tmp_path / "twin")
    found = in_own_times(rows_of("iterations", *paths), paths)
    for rank in truth["ranks"]:
        of_rank = [row for row in found if row["rank"] == rank["rank"]]
        true = rank["iterations"]
        assert [row["source"] for row in of_rank] == [SEQUENCE] * len(true)
        for row, one in zip(of_rank, true, strict=True):
            middle = row["start_ns"] + row["duration_ns"] // 2
            assert one["start_ns"] < middle < one["end_ns"]
        assert [row["phase"] == WARM_UP for row in of_rank] == [one["warmup"] for one in true]
        steady = [row for row in of_rank if row["phase"] == STEADY]
        for row, one in zip(steady, true[-len(steady) :], strict=True):
            length = one["end_ns"] - one["start_ns"]
            assert abs(row["duration_ns"] - length) < 0.03 * length


def test_a_job_without_iterations_abstains_and_says_why(tmp_path: Path) -> None:
    paths, _ = replace(STEPS, iterations=1, nvtx=False, warmup=0).write(tmp_path)
    assert "No iterations found" in ask("iterations", paths[0]).stderr
    assert rows_of("iterations", paths[0]) == []
    said = ask("iterations", paths[0], "-o", tmp_path / "none.png", expect=1).stderr
    assert "no iterations to draw" in said
    assert not (tmp_path / "none.png").exists()


@pytest.mark.parametrize(("times", "name"), [(1, "work"), (2, "work"), (1, "step")])
def test_ranges_that_hold_the_work_go_before_the_order_of_launches(times: int, name: str) -> None:
    """Of 25 or 50 launches each, where every 10 launches are the same."""
    each = 25 * times
    kernels = [f"k{n % 10}:2" for n in range(500)]
    parts = [named(name, " ".join(kernels[at : at + each])) for at in range(0, 500, each)]
    found = Program().run(*parts).found()
    assert (len(found), found.source) == (20 // times, f"repeated range {name!r}")
    assert [(one.source, len(one)) for one in found.others] == [(SEQUENCE, 50)]


@given(st.integers(2, 30), st.integers(4, 12), st.integers(0, 20), st.integers(0, 20), st.randoms())
def test_a_repeated_sequence_of_different_symbols_is_found(
    period: int, repeats: int, before: int, after: int, random: Any
) -> None:
    body = list(range(period))
    noise = [random.randrange(1000, 10**6) for _ in range(before + after)]
    symbols = noise[:before] + body * repeats + noise[before:]
    if period * repeats < len(symbols) / 2:
        return
    places = [places_of(np.asarray(symbols), run) for run in recurring(np.asarray(symbols))]
    assert {period} in [set(np.diff(found)) for found in places]


def steps(durations: list[int]) -> Iterations:
    """Of four kernels each, the last of which ends with the step."""
    program, now = Program(), 0
    for lasts in durations:
        spans = [(now + n, now + (lasts if n == 3 else n + 1)) for n in range(4)]
        program.kernels += [(*span, 0, f"k{n}") for n, span in enumerate(spans)]
        now += lasts
    return program.found()


@pytest.mark.parametrize(
    ("durations", "phases"),
    [
        # warm-up is what is slower than anything that comes again
        ([900, 500, 100, 130, 100, 101, 130, 99, 100, 130], "ww........"),
        # a first or last one of less than half the shortest other was cut
        ([40, 100, 90, 110, 50], "e...."),
        ([100, 90, 40, 110, 30], "....."),
        ([100, 90, 80, 110, 30], "....e"),
        # one of twenty later ones may be as slow
        ([140] + [100] * 12 + [140] + [100] * 12, "." * 26),
        ([150] * 7 + [100] * 25, "w" * 7 + "." * 25),
        # a run that never settles has no warm-up
        ([1000 - 20 * n for n in range(30)], "." * 30),
    ],
)
def test_phases(durations: list[int], phases: str) -> None:
    short = {"warm-up": "w", "edge": "e", STEADY: "."}
    assert "".join(short[phase] for phase in steps(durations).phase) == phases


def test_the_steady_state_spans_the_steady_iterations() -> None:
    found = steps([900, 100, 100, 100, 100, 100])
    state = steady_state(found)
    assert state is not None
    assert (state.count, state.window.total, state.median_ns) == (5, 500, 100.0)
    assert state.source == found.source
    assert steady_state(steps([5])) is None


@pytest.mark.parametrize(
    ("durations", "slow"),
    # none is so many times as long as nothing
    [([100, 100, 250, 100], [(2.5, 2)]), ([100, 100, 104, 100], []), ([0, 0, 90, 0, 0], [])],
)
def test_the_long_ones_stand_out(durations: list[int], slow: list[tuple[float, int]]) -> None:
    length = np.asarray(durations, dtype=np.int64)
    found = slow_iterations(np.arange(len(length)), length, {"idle": length})
    assert [(one.ratio, one.iteration) for one in found] == slow


@needs_reports
@pytest.mark.parametrize(
    ("name", "count", "steady", "source"),
    [
        # the last step of a loop that breaks out is none
        ("power_iteration_t4_2025.3", 44, 43, "repeated range 'Step # to #'"),
        ("gpt2.7b_a100_2024.6", 10, 9, "repeated kernel sequence"),
        ("cudagraph_a100_2024.6", 10, 10, "repeated kernel sequence"),
        ("rodinia_rtx3090_2022.4", 4095, 4095, "repeated kernel sequence"),
        # rounds that are whole are steady whatever the host does between
        ("saxpy_mpi_rank0_a100_2022.2", 5, 5, "repeated kernel sequence"),
        ("train_nvtx_a100_2026.3", 0, 0, None),
    ],
)
def test_real_captures(name: str, count: int, steady: int, source: str | None) -> None:
    found = rows_of("iterations", NSYS / f"{name}.sqlite")
    assert len(found) == count
    assert sum(row["phase"] == STEADY for row in found) == steady
    assert {row["source"] for row in found} == ({source} if source else set())
    for row in found:
        assert 0 <= row["compute_ns"] <= row["busy_ns"] <= row["duration_ns"]


def test_named_ranges_are_the_iterations() -> None:
    found = rows_of("iterations", RANK0, "--nvtx", "forward")
    assert len(found) == 8
    assert {row["source"] for row in found} == {"range 'forward'"}
    ids = {row["id"] for row in rows_of("findings", RANK0, "--nvtx", "forward")}
    assert ids
    assert "no-steady-state" not in ids


@pytest.mark.parametrize(("part", "count"), [("first", 5), ("second", 6), ("third", 7)])
def test_a_range_that_comes_once_is_looked_into(part: str, count: int, tmp_path: Path) -> None:
    thread = Machine(tmp_path / "report.sqlite").thread()
    for name, times in (("first", 5), ("second", 6), ("third", 7)):
        begin = thread.now
        for _ in range(times):
            thread.kernel("stencil", 90_000)
            thread.kernel("norm", 20_000)
            thread.wait()
        thread.export.nvtx_push_pop(begin, thread.now, name)
        thread.now += 1_000
    assert len(rows_of("iterations", thread.export.write(), "--nvtx", part)) == count


def test_slow_iterations_are_named_with_what_grew_and_the_critical_path() -> None:
    notes = iterations(RANK0).notes
    slow = [note for note in notes if "x the median" in note]
    assert [note.split(":")[0] for note in slow] == ["rank 0, iteration 5", "rank 0, iteration 2"]
    assert all("idle grew by" in note for note in slow)
    assert any("6 steady iterations (beside 2 warm-up) by repeated range" in n for n in notes)
    path = summarize(TRAINING).header["critical_path"]
    assert f"Critical path of 6 of 6 iterations: {path}." in iterations(TRAINING).notes
    assert not any("Critical path" in note for note in iterations(TRAINING, level=1).notes)


@pytest.mark.slow
def test_a_stretch_of_time_leaves_its_iterations_with_their_numbers() -> None:
    """Moments as the table prints them, rounded."""
    job = TRAINING
    every = {(row["rank"], row["iteration"]): row for row in rows_of("iterations", job)}
    found = rows_of("iterations", job, "--from", "566.284ms", "--to", "592.006ms")
    assert [(row["rank"], row["iteration"]) for row in found] == [
        (rank, number) for rank in range(4) for number in (3, 4)
    ]
    assert all(row == every[row["rank"], row["iteration"]] for row in found)
    table = iterations(job, from_time="566.284ms", to_time="592.006ms", rank=0)
    assert table.notes[0].startswith("rank 0: 2 steady iterations by")
    (within,) = rows_of("iterations", job, "--rank", "0", "--from", "595ms", "--to", "596ms")
    assert within == every[0, 5]
    assert rows_of("iterations", job, "--from", "598ms", "--iteration", "5-6", "--rank", "1") == [
        every[1, 5],
        every[1, 6],
    ]


def test_a_stretch_of_time_without_iterations_says_so() -> None:
    table = iterations(RANK0, from_time="4s")
    assert not table.rows
    assert "None of the 8 iterations is in the wanted time." in table.notes
    assert not any("steady iterations" in note for note in table.notes)


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("execute_context_1(888_788544)_generation_0(0)", Batch("prefill", 1, 888)),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk3)", Batch("decode", 32, 32)),
        (
            "execute_8192_context_9(sq8155sk8430sqsq7sqsk7)_generation_37(sq37sk3)",
            Batch("mixed", 46, 8192),
        ),
        ("step[DECODE bs=32]", Batch("decode", 32, 32)),
        ("step[EXTEND bs=2 toks=888]", Batch("prefill", 2, 888)),
        ("ProfilerStep#4", None),
    ],
)
def test_annotations_of_inference_engines(name: str, batch: Batch | None) -> None:
    assert batch_of(name) == batch


def test_steps_of_engines_say_what_they_worked_on(tmp_path: Path) -> None:
    export = Export(tmp_path / "engine.sqlite")
    for step, tokens in enumerate((512, 8, 8, 8)):
        begin = 10_000 * step
        phase = f"step[DECODE bs={tokens}]" if step else f"step[EXTEND bs=2 toks={tokens}]"
        export.nvtx_push_pop(begin, begin + 4_000, phase)
        for launch in (begin + 100, begin + 1_000):
            export.kernel(launch + 500, launch + 7_000, "k", launch=(launch, launch + 50))
    export.write()
    found = rows_of("iterations", tmp_path / "engine.sqlite")
    assert [(row["kind"], row["requests"], row["tokens"]) for row in found] == [
        ("prefill", 2, 512),
        *[("decode", 8, 8)] * 3,
    ]
    for row in found:
        assert row["duration_ns"] == 8_000
        assert row["tokens_per_s"] == pytest.approx(row["tokens"] / 8e-6)
    assert "tokens" not in rows_of("iterations", TRAINING, "--top", "1")[0]
