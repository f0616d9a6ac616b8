"""Frames of memory: allocations whose rows cannot all be counted."""

from __future__ import annotations

from pathlib import Path

from nsightpy.reports.nsys import NsysReport
from tests.support.full_export import changed
from tests.support.reports import NSYS, needs_reports

TABLE = "CUDA_GPU_MEMORY_USAGE_EVENTS"


@needs_reports
def test_variables_are_those_of_the_rows_that_count(tmp_path: Path) -> None:
    original = NSYS / "memory_usage_windows_gtx1060_2022.1.sqlite"
    whole = NsysReport(original).frame("memory_usage")
    lost = f"UPDATE {TABLE} SET bytes = -1 WHERE rowid IN (SELECT rowid FROM {TABLE} LIMIT 7)"
    report = NsysReport(changed(original, tmp_path / "changed.sqlite", [lost]))
    kept = report.frame("memory_usage")
    assert kept.rows == whole.rows - 7
    assert f"7 rows of {TABLE} have a size below 0 and are left out." in map(str, report.notes)
    assert len(kept.labels("variable").codes) == kept.rows
