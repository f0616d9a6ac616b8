"""Idle time has one vocabulary: breakdown divides it by the causes of gaps, exactly."""

from __future__ import annotations

from typing import Any

import pytest

import nsightpy
from nsightpy.commands.breakdown.command import CAUSES
from nsightpy.results import Table, number
from tests.support.reports import ROOT, ask

JOB = ROOT / "sample_reports" / "training_4rank"


def caused(table: Table) -> dict[str, int]:
    """Idle time by cause over all devices, ns."""
    records = table.records()
    sums = {cause.name: sum(int(number(row[cause.name])) for row in records) for cause in CAUSES}
    return {name: total for name, total in sums.items() if total}


@pytest.mark.slow
def test_breakdown_and_gaps_say_the_same() -> None:
    by_cause = nsightpy.gaps(JOB, by="cause")
    said = {str(row["cause"]): row["total_ns"] for row in by_cause.records()}
    assert {f"{cause.replace('-', '_')}_ns": total for cause, total in said.items()} == caused(
        nsightpy.breakdown(JOB)
    )
    places = nsightpy.gaps(JOB, by="cause,place,stream,before,call,range")
    assert sum(map(number, places.column("total_ns"))) == sum(said.values())
    assert len({row[:6] for row in places.rows}) == len(places)


def test_a_report_alone_does_not_know_who_waited() -> None:
    (alone,) = nsightpy.breakdown(sorted(JOB.glob("*.sqlite"))[0]).records()
    assert alone["exposed_wait_ns"] is alone["exposed_transfer_ns"] is None


def test_people_see_the_causes_that_matter() -> None:
    shown = ask("breakdown", JOB).everything.decode()
    assert "host-gap" in shown
    assert "allocation" not in shown
    assert "host wait" not in shown


@pytest.mark.parametrize("more", [{}, {"iteration": "steady"}, {"nvtx": "forward"}])
def test_parts_add_up_in_windows_with_holes_too(more: dict[str, Any]) -> None:
    for row in nsightpy.breakdown(JOB, **more).records():
        assert sum(number(row[cause.name]) for cause in CAUSES) == row["idle_ns"]
        parts = row["exposed_wait_ns"], row["exposed_transfer_ns"]
        assert sum(map(number, parts)) == row["exposed_communication_ns"]


def test_a_rank_alone_waited_as_long_as_among_all() -> None:
    every = nsightpy.breakdown(JOB).records()
    assert [nsightpy.breakdown(JOB, rank=rank).records()[0] for rank in range(4)] == every
