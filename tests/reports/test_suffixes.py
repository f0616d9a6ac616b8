"""A suffix means the same in any case, directly and through the folder of the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nsightpy.report_sets.opening import find_ncu_reports, find_reports
from nsightpy.reports.one_file import MemorySnapshot
from nsightpy.reports.opening import is_no_report, open_report
from tests.support.reports import ROOT, ask, refused

SAMPLES = ROOT / "sample_reports"


@pytest.mark.parametrize("name", ["RUN.SQLITE", "Run.Db"])
def test_exports_of_any_case_are_read(name: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(SAMPLES / "single_process.sqlite", tmp_path / name))
    direct = ask("kernels", path, "--format", "csv").text
    assert ask("kernels", tmp_path, "--format", "csv").text == direct
    assert find_reports(tmp_path) == find_reports(tmp_path / "*") == [path]


@pytest.mark.parametrize("name", ["x.NSYS-REP", "x.QdRep"])
def test_binary_reports_of_any_case_are_reports(name: str, tmp_path: Path) -> None:
    """They are handed to nsys, and its export beside them is no second report."""
    path = tmp_path / name
    path.write_bytes(b"no such thing")
    shutil.copy(SAMPLES / "single_process.sqlite", tmp_path / "x.SQLITE")
    assert find_reports(tmp_path) == [path]
    assert not is_no_report(path)
    assert "is no report of a kind" not in refused("kernels", path)


def test_measurements_snapshots_and_traces_of_any_case(tmp_path: Path) -> None:
    csv = Path(shutil.copy(SAMPLES / "kernels_h100.ncu.csv", tmp_path / "K.CSV"))
    assert find_ncu_reports(tmp_path) == [csv]
    (tmp_path / "K.NCU-REP").write_bytes(b"")
    assert find_ncu_reports(tmp_path) == [tmp_path / "K.NCU-REP"]
    snapshot = shutil.copy(SAMPLES / "training_memory.pickle", tmp_path / "M.PICKLE")
    assert isinstance(open_report(snapshot), MemorySnapshot)
    (tmp_path / "traces").mkdir()
    trace = SAMPLES / "torch_2rank" / "train_rank0.pt.trace.json.gz"
    shutil.copy(trace, tmp_path / "traces" / "T.JSON.GZ")
    assert ask("kernels", tmp_path / "traces", "--format", "csv").csv[1:]
