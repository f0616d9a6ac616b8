"""Clocks are recovered to a microsecond from collectives, or said to be not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS

from nsightpy.analysis.clock_alignment.alignment import align
from nsightpy.analysis.clock_alignment.clocks import (
    COLLECTIVES,
    ONE_SESSION,
    SYSTEM_CLOCK,
    WALL_CLOCK,
    Clock,
    ClockFit,
    level_zero,
)
from nsightpy.analysis.clock_alignment.pairs import Ends, offset_between
from nsightpy.query.rank_alignment import alignment_of, collective_part
from nsightpy.report_sets.opening import open_ranks
from tests.support.jobs import (
    Edit,
    begin_late,
    change,
    lose_collectives,
    simulate,
    split_by_process,
)
from tests.support.reports import DDP, NSYS, needs_reports

pytestmark = pytest.mark.slow

NODES_APART = {"utc_error_ns": (0, 3_700_000)}


def _late(ranks: set[int], after_ns: int) -> Edit:
    return lambda paths: begin_late(paths, ranks, after_ns)


NO_SYSTEM_CLOCK = "UPDATE TARGET_INFO_SESSION_START_TIME SET systemClockNs = NULL"
EDITS: dict[str, Edit] = {
    "captures begin at other iterations": _late({1, 3, 4}, 30_000_000),
    "every capture begins mid-run": _late(set(range(8)), 22_000_000),
    "collectives are lost": lambda paths: lose_collectives(paths, 7),
    "no system clock": lambda paths: [change(path, NO_SYSTEM_CLOCK) for path in paths] and None,
    "no wall clock": lambda paths: change(paths[7], "DROP TABLE TARGET_INFO_SESSION_START_TIME"),
}


@pytest.mark.parametrize("payload", ["json", None])
@pytest.mark.parametrize(
    ("name", "edit", "apart_ns"),
    [
        *((name, "nothing", 3_700_000) for name in ("ranks_2", "training_4rank", "pipeline_4")),
        *(("ranks_8", "nothing", wrong) for wrong in (-90_000_000, 3_600_000_000_000)),
        *(("ranks_8", edit, 3_700_000) for edit in EDITS),
    ],
)
def test_offsets_within_a_microsecond_whatever_is_missing(
    tmp_path: Path, name: str, edit: str, apart_ns: int, payload: str | None
) -> None:
    preset = replace(PRESETS[name], payload=payload, utc_error_ns=(0, apart_ns))
    if edit != "nothing":
        preset = replace(preset, iterations=8, hostnames=False, evidence=())
    found = simulate(preset, tmp_path, EDITS.get(edit))
    fits = found.alignment().fits
    assert {fit.method for fit in fits} == {COLLECTIVES}
    assert found.errors_ns(fits).max() < 1_000
    assert fits[0].offset_ns == 0
    assert {fit.drift_ppm for fit in fits} == {None}, "too short to tell a drift"


THIRD_OF_A_SECOND = {"iterations": 30, "straggler": None, **NODES_APART}
# collectives are few and far between
SPARSE = {"data_gap_ns": 300_000_000, "long_gap_every": 0, "warmup": 0, "iterations": 16}
SPARSE |= NODES_APART


@pytest.mark.parametrize(
    ("job", "settings", "drift_ppb", "error_ppm"),
    [
        *(("ranks_8", THIRD_OF_A_SECOND, drift, 1.5) for drift in (0, 3_000, 20_000)),
        *(
            (name, {**SPARSE, "ranks_per_node": per_node, "payload": payload}, 40_000, 0.1)
            for name, per_node in (("ranks_2", 1), ("ranks_8", 4))
            for payload in ("json", None)
        ),
    ],
)
def test_drifts(
    tmp_path: Path, job: str, settings: dict[str, Any], drift_ppb: int, error_ppm: float
) -> None:
    """Hosts known by name alone, as in exports without the system clock, drift as one."""
    drifting = replace(PRESETS[job], drift_ppb=(0, drift_ppb), **settings)
    found = simulate(drifting, tmp_path, EDITS["no system clock"])
    fits, truth = found.alignment().fits, found.rank_truth("clock")
    offsets = [one["offset_ns"] for one in truth]
    assert [fit.offset_ns for fit in fits] == pytest.approx(offsets, abs=1_000)
    drifts = [one["drift_ppm"] if drift_ppb else None for one in truth]
    assert [fit.drift_ppm for fit in fits] == pytest.approx(drifts, abs=error_ppm)
    assert drift_ppb or found.errors_ns(fits).max() < 500


def test_residuals_are_those_of_the_jitter(tmp_path: Path) -> None:
    fits = simulate(PRESETS["ranks_8"], tmp_path).alignment().fits
    for fit in fits:
        assert fit.residual_p50_ns == pytest.approx(0, abs=200)
        assert -1_300 < (fit.residual_p05_ns or 0) < -300
        assert 300 < (fit.residual_p95_ns or 0) < 1_300
        assert fit.instances == 55


def test_too_little_evidence_keeps_the_wall_clock(tmp_path: Path) -> None:
    job = replace(PRESETS["pipeline_4"], data=1, pipeline=2, tensor=1, iterations=2, **NODES_APART)
    alignment = simulate(replace(job, ranks_per_node=1), tmp_path).alignment()
    assert [fit.method for fit in alignment.fits] == [SYSTEM_CLOCK, WALL_CLOCK]
    assert [fit.offset_ns for fit in alignment.fits] == [0, 0]
    assert any("not aligned" in note for note in alignment.notes)


def test_level_zero_prefers_the_hosts_own_clock() -> None:
    one = Clock("a", 1, utc_ns=10_000_000_500, system_clock_ns=500, host="node0", session="")
    clocks = [
        one,
        replace(one, report="b", utc_ns=10_000_400_900, system_clock_ns=900, shift_ns=7),
        replace(one, report="c", utc_ns=90_000_000_000, system_clock_ns=900),
        Clock("d", 1, utc_ns=10_000_000_000, host="node1"),
    ]
    fits = level_zero(clocks)
    assert [fit.method for fit in fits] == [SYSTEM_CLOCK, SYSTEM_CLOCK, WALL_CLOCK, WALL_CLOCK]
    assert fits[1].epoch_ns - fits[0].epoch_ns == 400 - 7
    assert level_zero([one, replace(one, pid=2)])[1].method == ONE_SESSION
    halves = [replace(one, report=name, session="s") for name in "ab"]
    assert level_zero(halves)[1].method == ONE_SESSION
    others = [replace(other, session="s") for other in clocks[:2]]
    assert level_zero(others)[1].method == SYSTEM_CLOCK, "an id alone is no proof"


@pytest.mark.parametrize("payload", ["json", None])
def test_processes_of_one_report_share_its_clock(tmp_path: Path, payload: str | None) -> None:
    job = replace(PRESETS["ranks_8"], report_per="node", evidence=("mpi_table",), payload=payload)
    fits = simulate(replace(job, drift_ppb=(0,)), tmp_path).alignment().fits
    assert {fit.method for fit in fits} == {COLLECTIVES}
    assert [fit.offset_ns for fit in fits[:4]] == [0] * 4
    assert {fit.offset_ns for fit in fits[4:]} == {fits[4].offset_ns}
    assert fits[4].offset_ns == pytest.approx(-7_800_000, abs=1_000)
    assert len({fit.residual_p50_ns for fit in fits}) > 2, "every GPU has residuals of its own"


def test_times_on_the_common_clock() -> None:
    fit = ClockFit("a", 1, 0, offset_ns=50, drift_ppm=10.0, epoch_ns=10**18, zero_ns=100)
    times = np.asarray([100, 1_000_100], dtype=np.int64)
    assert fit.to_aligned(times).tolist() == [10**18 + 50, 10**18 + 1_000_040]
    assert times.tolist() == [100, 1_000_100]


def test_noise_gives_no_offset() -> None:
    random = np.random.default_rng(3)

    def ends() -> Ends:
        times = np.sort(random.integers(0, 10**9, 400))
        return Ends(times, *np.zeros((2, 400), np.int32), np.full(400, -1))

    assert offset_between(ends(), ends()) is None


@pytest.mark.parametrize("beat_ns", [1_000_000, 100_000])
def test_a_perfect_rhythm_gives_the_nearest_offset_or_none(beat_ns: int) -> None:
    beat = np.arange(400, dtype=np.int64) * beat_ns
    unknown = np.full(400, -1, np.int32)

    def later(by_ns: int) -> Ends:
        return Ends(beat + by_ns, np.zeros(400, np.int32), unknown, unknown)

    near = offset_between(later(0), later(1_500))
    assert near is not None
    assert near.offset_ns == pytest.approx(1_500)
    assert offset_between(later(0), later(beat_ns * 48 // 100)) is None


@needs_reports
@pytest.mark.parametrize("split", [False, True])
def test_the_real_pair_of_ranks(tmp_path: Path, split: bool) -> None:
    ranks = open_ranks(split_by_process(NSYS / DDP, tmp_path) if split else NSYS / DDP)
    alignment = alignment_of(ranks)
    assert [fit.rank for fit in alignment.fits] == [0, 1]
    assert alignment.instances.count == 230
    assert alignment.instances.matched.all()
    for fit in alignment.fits:
        assert (fit.method, fit.offset_ns, fit.drift_ppm) == (ONE_SESSION, 0, None)
        assert fit.instances == 119
        assert abs(fit.residual_p50_ns or 0) < 1_000
    assert not alignment.notes


@needs_reports
def test_the_real_pair_as_if_of_two_hosts() -> None:
    ((_, part),) = open_ranks(NSYS / DDP).map(collective_part).results
    one, other = part.clocks
    clocks = (replace(one, session=""), replace(other, session="", report="other", host="other"))
    fits = align(clocks, [part.log] * 2).fits
    assert {fit.method for fit in fits} == {COLLECTIVES}
    assert abs(fits[1].offset_ns) < 700, "short collectives end together, long ones do not"
    assert fits[1].drift_ppm is None
