"""One clock: --from and --to are the same moment on every rank, in every command."""

from pathlib import Path

import pytest

import nsightpy
from nsightpy.query.rank_alignment import CommonClock, common_clock
from nsightpy.report_sets.opening import open_ranks
from tests.support.samples import SINGLE, TRAINING


@pytest.fixture(scope="module")
def clock() -> CommonClock:
    return common_clock(open_ranks(TRAINING))


def test_own_times_and_moments_are_inverse(clock: CommonClock) -> None:
    assert len(clock.fits) == 4
    for path, pid in clock.fits:
        for moment in (-1_000_000_000, 0, 579_174_000, 10_000_000_000):
            assert abs(clock.moment(path, pid, clock.own(path, moment)) - moment) <= 1
            # the first rank keeps its own time
            if path.endswith("train_rank0.sqlite"):
                assert clock.moment(path, pid, moment) == moment
    assert common_clock(open_ranks(SINGLE)).fits == {}


def test_a_step_of_all_ranks_is_cut_out_of_all_ranks() -> None:
    """Where each rank's own time is cut instead, ranks seem to do different amounts of work."""
    table = nsightpy.iterations(TRAINING)
    steps = [row for row in table.records() if row["iteration"] == 5]
    start = min(row["start_ns"] for row in steps)
    end = max(row["start_ns"] + row["duration_ns"] for row in steps)
    assert max(row["start_ns"] for row in steps) - start < 0.2 * (end - start)
    budget = nsightpy.breakdown(TRAINING, from_time=start, to_time=end)
    compute = dict(zip(budget.column("rank"), budget.column("compute_ns"), strict=True))
    wanted = {row["rank"]: row["compute_ns"] for row in steps}
    for rank, ns in wanted.items():
        assert abs(compute[rank] - ns) < 0.1 * ns, rank


def test_findings_of_a_rank_alone_are_at_the_same_moment(clock: CommonClock) -> None:
    report = TRAINING / "train_rank1.sqlite"
    together, alone = (
        {row["id"]: row for row in nsightpy.findings(path).records()} for path in (TRAINING, report)
    )
    for name in ("host-gap", "exposed-h2d"):
        assert together[name]["rank"] == 1
        own = clock.own(str(report), int(str(together[name]["start_ns"])))
        assert own == pytest.approx(alone[name]["start_ns"], abs=1)


@pytest.mark.parametrize(
    ("start", "end", "told"), [("5s", None, True), (None, "1ms", True), ("0", "5s", False)]
)
@pytest.mark.parametrize("reports", [TRAINING, TRAINING / "train_rank1.sqlite"])
def test_a_stretch_without_gpu_work_is_told(
    reports: Path, start: str | None, end: str | None, told: bool
) -> None:
    notes = nsightpy.kernels(reports, from_time=start, to_time=end).notes
    assert any(one.endswith("asked for holds nothing to list.") for one in notes) == told
