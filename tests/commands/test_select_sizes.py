"""Kernels that run under very many grids: select groups them by size, and plans what people run."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightpy.analysis.selection.coverage import MOST_CHOSEN
from nsightpy.commands.select.command import select
from tests.support.ncu_stand_in import Scripted, write_export


def launches(grids: int) -> list[Scripted]:
    """Three launches under each of so many grids, blocks of one size."""
    return [Scripted("kernel", grid=(grid, 1, 1)) for grid in range(1, grids + 1) for _ in range(3)]


def test_few_grids_are_variants_of_their_own(tmp_path: Path) -> None:
    plan = select(write_export(tmp_path / "r.sqlite", launches(20)), coverage=1.0, whole=True)
    assert len(plan) == 20
    assert not any("launches of one size" in note for note in plan.notes)


def test_many_grids_are_grouped_by_powers_of_two_and_a_real_launch_stands_for_them(
    tmp_path: Path,
) -> None:
    plan = select(write_export(tmp_path / "r.sqlite", launches(100)), coverage=1.0, whole=True)
    # grids 1, 2-3, 4-7, 8-15, 16-31, 32-63, 64-100
    assert sorted(plan.column("instances")) == [3, 6, 12, 24, 48, 96, 111]  # type: ignore[type-var]
    assert sum(plan.column("share")) == pytest.approx(1.0)  # type: ignore[arg-type]
    for record in plan.records():
        grid = int(str(record["grid"]).split("x")[0])
        size = {3: (1, 1), 6: (2, 3), 12: (4, 7), 24: (8, 15), 48: (16, 31), 96: (32, 63)}
        low, high = size.get(int(str(record["instances"])), (64, 100))
        assert low <= grid <= high
        # the launches are in the order of their grids, three of each
        assert int(str(record["launch_skip"])) // 3 == grid - 1
    assert any("7 rows stand for launches of one size" in note for note in plan.notes)


def test_a_plan_is_no_longer_than_people_run_unless_asked(tmp_path: Path) -> None:
    names = [Scripted(f"kernel{n}") for n in range(60) for _ in range(2)]
    report = write_export(tmp_path / "r.sqlite", names)
    plan = select(report, whole=True)
    assert len(plan) == MOST_CHOSEN
    assert "23 more variants would be needed for the usual 80 %" in " ".join(plan.notes)
    assert len(select(report, coverage=0.8, whole=True)) == 48
    assert len(select(report, top=60, whole=True)) == 60
