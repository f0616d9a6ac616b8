"""Empty, cut, foreign and odd files are recognised before anything reads them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from nsightpy.errors import ReportError
from nsightpy.readers.ncu import ncu_rep
from nsightpy.readers.ncu.file import MAGIC, file_facts
from nsightpy.reports.one_file import NcuReport, is_ncu_file
from tests.support.ncu_bench import GENE, REPORTS, every_report, needs_library, needs_reports

VERSIONS = {
    "a10g_11kernels_2023.1": "2023.1.1.0",
    "a10g_onesection_2023.1": "2023.1.1.0",
    "a40_2022.1": "2022.1.1.0",
    "cutlass_a100_2024.1": "2024.1.1.0",
    "exgpu_a100_2020.3": "2020.3.1.0",
    "gb200_full_2025.3": "2025.3.1.0",
}


@every_report
def test_facts_of_real_reports(path: Path) -> None:
    facts = file_facts(path)
    assert facts.tool_version == VERSIONS.get(path.stem, "")
    assert all(process.pid > 0 and "/" not in process.name for process in facts.processes)
    assert len(facts.processes) == NcuReport(path).frame("launches").rows


@needs_reports
@pytest.mark.parametrize("kept", [4, 7, 8, 9, 30, 200, 5000, -1, -4, -1000])
def test_a_cut_report_is_recognised(kept: int, tmp_path: Path) -> None:
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(GENE[0].read_bytes()[:kept])
    with pytest.raises(ReportError, match="cut short"):
        file_facts(cut)


@needs_reports
def test_trailing_bytes_are_recognised(tmp_path: Path) -> None:
    longer = tmp_path / "longer.ncu-rep"
    longer.write_bytes(GENE[0].read_bytes() + b"\x07")
    with pytest.raises(ReportError, match="damaged"):
        file_facts(longer)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"no report\n", "is no Nsight Compute report"),
        (b"SQLite format 3\x00", "is no Nsight Compute report"),
        (MAGIC, "cut short"),
        (MAGIC + struct.pack("<I", 0xFFFFFFFF), "cut short"),
        (MAGIC + struct.pack("<I", 2) + b"\x0f\x01", "damaged"),
    ],
)
def test_what_is_no_report_says_so(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.ncu-rep"
    path.write_bytes(content)
    with pytest.raises(ReportError, match=problem) as raised:
        NcuReport(path).tables  # noqa: B018
    assert str(path) in str(raised.value)
    assert raised.value.advice


def test_a_missing_report_says_so(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no such file"):
        file_facts(tmp_path / "absent.ncu-rep")


@needs_library
def test_a_whole_file_without_results_says_so(tmp_path: Path) -> None:
    path = tmp_path / "nothing.ncu-rep"
    path.write_bytes(MAGIC + struct.pack("<I", 2) + b"\x08\x07")
    with pytest.raises(ReportError, match="no results"):
        ncu_rep.read(path)


@needs_reports
def test_reports_are_recognised_by_suffix_and_by_content(tmp_path: Path) -> None:
    renamed = tmp_path / "profile.bin"
    renamed.write_bytes(GENE[0].read_bytes())
    assert is_ncu_file(renamed)
    assert is_ncu_file(REPORTS / "copy_blocked_t4_details.csv")
    assert is_ncu_file(REPORTS / "csv_rtx5070_2026.2" / "saxpy.csv")
    assert not is_ncu_file(REPORTS / "csv_rtx5070_2026.2" / "ncu_version.txt")
    assert not is_ncu_file(tmp_path / "absent.csv")


@needs_reports
def test_a_result_that_claims_another_size_is_damage(tmp_path: Path) -> None:
    """NVIDIA's library does not refuse it: it ends the process."""
    data = bytearray(GENE[0].read_bytes())
    place = 4 + struct.unpack_from("<I", data, 4)[0] + 4  # magic, file header
    place += 4 + struct.unpack_from("<I", data, place)[0]  # the session's block has no payload
    place += 4 + struct.unpack_from("<I", data, place)[0]
    for size in (2**32 - 7049, len(data)):
        struct.pack_into("<I", data, place, size)
        path = tmp_path / "damaged.ncu-rep"
        path.write_bytes(data)
        with pytest.raises(ReportError, match="cut short or damaged"):
            file_facts(path)
