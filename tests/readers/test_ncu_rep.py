"""Reading .ncu-rep: NVIDIA's library where it is, its other homes, or a clear word."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nsightpy.errors import ReportError, ToolNotFoundError
from nsightpy.readers.ncu import ncu_rep
from nsightpy.readers.ncu.tables import Launch, launches_frame, nvtx_text, plain_message
from nsightpy.report_sets.report_set import ReportSet
from nsightpy.reports.one_file import NcuReport
from tests.support.ncu_bench import GENE, REPORTS, needs_library, needs_reports


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with neither ncu_report nor Nsight Compute."""
    monkeypatch.setattr(ncu_rep, "MODULE", "ncu_report_of_a_test")
    monkeypatch.setattr(ncu_rep, "INSTALLED", ())
    monkeypatch.setenv("NSIGHTPY_NCU", "/absent/ncu")
    ncu_rep.find_module.cache_clear()
    yield
    sys.modules.pop("ncu_report_of_a_test", None)
    ncu_rep.find_module.cache_clear()


@needs_reports
@needs_library
def test_one_launch_of_a_real_report() -> None:
    report = NcuReport(REPORTS / "gb200_full_2025.3.ncu-rep")
    first = report.launches.iloc[0]
    assert (first["name"], first["base_name"]) == ("kernelA(float *, int)", "kernelA")
    assert first["mangled_name"] == "_Z7kernelAPfi"
    assert (first["grid_x"], first["block_x"], first["device"], first["stream"]) == (4, 256, 0, 16)
    assert (first["gpu"], first["compute_major"], first["duration_ns"]) == (
        "NVIDIA GB200",
        10,
        5184,
    )
    assert report.tool_version == "2025.3.1.0"
    assert report.rules["message"].str.contains("@").sum() == 0
    cutlass = NcuReport(REPORTS / "cutlass_a100_2024.1.ncu-rep")
    assert cutlass.launches["nvtx"].tolist()[0] == "Non-fused-GEMM"


@needs_reports
def test_without_any_reader_there_are_three_ways_out(alone: None) -> None:
    with pytest.raises(ToolNotFoundError) as raised:
        ncu_rep.read(GENE[0])
    advice = raised.value.advice
    assert str(GENE[0]) in str(raised.value)
    for way in (
        "pip install 'nsightpy[ncu]'",
        "NSIGHTPY_NCU",
        f"ncu --import {GENE[0].name} --csv",
    ):
        assert way in advice


@needs_reports
def test_damage_is_said_before_anything_is_looked_for(alone: None, tmp_path: Path) -> None:
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(GENE[0].read_bytes()[:5000])
    with pytest.raises(ReportError, match="cut short"):
        ncu_rep.read(cut)


@needs_reports
def test_the_module_of_an_installed_nsight_compute(
    alone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "nsight-compute-2026.3.1" / "extras" / "python"
    folder.mkdir(parents=True)
    (folder / "ncu_report_of_a_test.py").write_text(
        "def load_report(path): raise RuntimeError('too new')"
    )
    monkeypatch.setattr(ncu_rep, "INSTALLED", (str(tmp_path / "*" / "extras" / "python"),))
    with pytest.raises(ReportError, match="too new") as raised:
        ncu_rep.read(GENE[0])
    assert "upgrade" in raised.value.advice
    assert str(folder) not in sys.path


@needs_reports
@needs_library
def test_a_report_is_loaded_once_per_process() -> None:
    module = ncu_rep.find_module()
    first = ncu_rep._load(module, GENE[0])
    assert ncu_rep._load(module, GENE[0]) is first


def rows_of(report: NcuReport) -> int:
    return report.frame("launches").rows


@needs_reports
@needs_library
def test_many_reports_in_worker_processes(tmp_path: Path) -> None:
    bad = tmp_path / "bad_rank9.ncu-rep"
    bad.write_bytes(b"")
    reports = [NcuReport(path) for path in (*GENE[:3], bad)]
    mapped = ReportSet(reports, jobs=2).map(rows_of)
    assert [found for _, found in mapped.results] == [rows_of(NcuReport(p)) for p in GENE[:3]]
    assert [error.path for error in mapped.failures] == [str(bad)]
    with pytest.raises(ReportError, match="empty"):
        ReportSet(reports, jobs=2, on_error="raise").map(rows_of)
    with pytest.raises(ReportError, match="empty"):
        ReportSet(reports[3:]).map(rows_of)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("void ns::sub::kernel<float, (int)4>(const float *, int)", "kernel"),
        ("kernelA(float *, int)", "kernelA"),
        ("sm90_xmma_gemm", "sm90_xmma_gemm"),
        ("unnamed>::saxpy_kernel(float, const float *)", "saxpy_kernel"),
    ],
)
def test_base_names_of_pages_that_have_none(name: str, base: str) -> None:
    launches = launches_frame([Launch(0, name)], [])
    assert launches.labels("base_name")[0] == base


def test_markup_and_ranges() -> None:
    marked = "See the @url:Guide:https://docs.nvidia.com/a#b@ and the @section:Memory:Memory Part@."
    assert plain_message(marked) == "See the Guide and the Memory Part."
    assert plain_message("mail me@example and\nyou") == "mail me@example and you"
    assert nvtx_text({"<default domain>": ["a", "b"], "net": ["c"], "none": []}) == "a/b, c@net"


@needs_reports
@needs_library
def test_units_do_not_depend_on_what_was_loaded_before() -> None:
    """The library's own do: "thread" becomes "inst" once a report of another version was read."""
    code = (
        "import sys; from nsightpy.reports.one_file import NcuReport; "
        "frames = [NcuReport(path).frame('metrics') for path in sys.argv[1:]]; "
        "m, u = frames[-1].labels('metric'), frames[-1].labels('unit'); "
        "print(sorted({(m[row], u[row]) for row in range(frames[-1].rows)}))"
    )
    report, others = GENE[0], sorted(REPORTS.glob("*.ncu-rep"))
    told = {
        subprocess.run(
            [sys.executable, "-c", code, *before, report], check=True, capture_output=True
        ).stdout
        for before in ((), others, others[::-1])
    }
    assert len(told) == 1
    assert b"'thread'" not in told.pop().replace(b"('launch__thread_count', 'thread')", b"")
