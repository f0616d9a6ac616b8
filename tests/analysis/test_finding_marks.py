"""Findings as marks of a timeline: their times are kept, whoever they are about."""

import pytest

from nsightpy.analysis.timeline.marks import finding_marks
from nsightpy.results.findings import Finding, findings_table
from nsightpy.results.tracks import Owner

RANKLESS = tuple(Owner(f"{name}.sqlite", name, 7, None, 0) for name in "ab")
RANKS = tuple(Owner(f"{rank}.sqlite", "a", 7, rank, 0) for rank in range(2))


@pytest.mark.parametrize(
    ("owners", "rank", "device", "about"),
    [
        pytest.param(RANKLESS, None, 0, None, id="two-processes-without-a-rank"),
        pytest.param(RANKS, 9, 0, None, id="a-rank-that-is-not-drawn"),
        pytest.param(RANKS, 1, 0, RANKS[1], id="a-rank"),
        pytest.param(RANKS, None, None, None, id="the-job"),
        pytest.param(RANKS[:1], None, None, RANKS[0], id="the-job-of-one"),
    ],
)
def test_a_finding_with_a_time_is_a_mark_with_a_time(
    owners: tuple[Owner, ...], rank: int | None, device: int | None, about: Owner | None
) -> None:
    found = Finding("straggler", "warning", "", rank, device, start_ns=300, duration_ns=40)
    nowhere = Finding("start-up dominates", "warning", "", rank, device)
    placed, without = finding_marks(owners, findings_table([found, nowhere]))
    assert (placed.start_ns, placed.end_ns, placed.owner) == (300, 340, about)
    assert (without.start_ns, without.end_ns, without.owner) == (None, None, about)
