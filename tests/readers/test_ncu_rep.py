"""Reading .ncu-rep: NVIDIA's library where it is, its other homes, or a clear word."""

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nsightpy.errors import ReportError, ToolNotFoundError
from nsightpy.readers.ncu import ncu_rep
from nsightpy.readers.ncu.file import MAGIC, file_facts
from nsightpy.readers.ncu.tables import Launch, launches_frame, nvtx_text, plain_message
from nsightpy.reports.one_file import NcuReport
from nsightpy.reports.opening import is_ncu_file
from tests.support.ncu_bench import GENE, REPORTS, every_report, needs_library, needs_reports


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
def test_a_report_that_goes_away_while_it_is_read_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes((REPORTS / "gb200_full_2025.3.ncu-rep").read_bytes())
    facts = file_facts(path)
    monkeypatch.setattr(ncu_rep, "file_facts", lambda _: facts)
    path.unlink()
    with pytest.raises(ReportError, match="no such file"):
        ncu_rep.read(path)


@needs_reports
@needs_library
def test_one_launch_of_a_real_report() -> None:
    report = NcuReport(REPORTS / "gb200_full_2025.3.ncu-rep")
    wanted = {"name": "kernelA(float *, int)", "base_name": "kernelA", "stream": 16}
    wanted |= {"mangled_name": "_Z7kernelAPfi", "grid_x": 4, "block_x": 256, "device": 0}
    wanted |= {"gpu": "NVIDIA GB200", "compute_major": 10, "duration_ns": 5184}
    assert report.launches.iloc[0][list(wanted)].to_dict() == wanted
    assert report.rules["message"].str.contains("@").sum() == 0
    cutlass = NcuReport(REPORTS / "cutlass_a100_2024.1.ncu-rep")
    assert cutlass.launches["nvtx"].tolist()[0] == "Non-fused-GEMM"


@needs_reports
def test_without_any_reader_there_are_three_ways_out(alone: None, tmp_path: Path) -> None:
    with pytest.raises(ToolNotFoundError) as raised:
        ncu_rep.read(GENE[0])
    assert str(GENE[0]) in str(raised.value)
    importing = f"ncu --import {GENE[0].name} --csv"
    for way in ("pip install 'nsightpy[ncu]'", "NSIGHTPY_NCU", importing):
        assert way in raised.value.advice
    # damage is said before anything is looked for
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


def test_names_markup_and_ranges() -> None:
    for name, base in (
        ("void ns::sub::kernel<float, (int)4>(const float *, int)", "kernel"),
        ("sm90_xmma_gemm", "sm90_xmma_gemm"),
        ("unnamed>::saxpy_kernel(float, const float *)", "saxpy_kernel"),
    ):
        assert launches_frame([Launch(0, name)], []).labels("base_name")[0] == base
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
        "*_, last = [NcuReport(path).frame('metrics') for path in sys.argv[1:]]; "
        "print(sorted({*last.tuples('metric', 'unit')}))"
    )
    report, others = GENE[0], sorted(REPORTS.glob("*.ncu-rep"))
    printed = {
        subprocess.check_output([sys.executable, "-c", code, *before, report])
        for before in ((), others, others[::-1])
    }
    assert len(printed) == 1
    assert b"'thread'" not in printed.pop().replace(b"('launch__thread_count', 'thread')", b"")


VERSIONS = dict.fromkeys(("a10g_11kernels_2023.1", "a10g_onesection_2023.1"), "2023.1.1.0")
VERSIONS |= {"a40_2022.1": "2022.1.1.0", "cutlass_a100_2024.1": "2024.1.1.0"}
VERSIONS |= {"exgpu_a100_2020.3": "2020.3.1.0", "gb200_full_2025.3": "2025.3.1.0"}


@every_report
def test_facts_of_real_reports(path: Path) -> None:
    facts = file_facts(path)
    assert facts.tool_version == VERSIONS.get(path.stem, "")
    assert all(pid > 0 and "/" not in name for pid, name in facts.processes)
    assert len(facts.processes) == NcuReport(path).frame("launches").rows


@needs_reports
@pytest.mark.parametrize("kept", [4, 8, 30, 5000, -1, 1])
def test_a_report_of_another_length_is_recognised(kept: int, tmp_path: Path) -> None:
    whole, path = GENE[0].read_bytes(), tmp_path / "cut.ncu-rep"
    path.write_bytes(whole + b"\x07" if kept == 1 else whole[:kept])
    with pytest.raises(ReportError, match="cut short or damaged"):
        file_facts(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such file"),
        (b"", "is empty"),
        (b"no report\n", "Nsight Compute report"),
        (b"SQLite format 3\x00", "Nsight Compute report"),
        (MAGIC, "cut short"),
        (MAGIC + struct.pack("<I", 0xFFFFFFFF), "cut short"),
        (MAGIC + struct.pack("<I", 2) + b"\x0f\x01", "damaged"),
        pytest.param(
            *(MAGIC + struct.pack("<I", 2) + b"\x08\x07", "no results"), marks=needs_library
        ),
    ],
)
def test_what_is_no_report_says_so(content: bytes | None, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.ncu-rep"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReportError, match=problem) as raised:
        NcuReport(path).tables  # noqa: B018
    assert str(path) in str(raised.value)
    assert raised.value.advice


@needs_reports
def test_reports_are_recognised_by_suffix_and_by_content(tmp_path: Path) -> None:
    renamed = tmp_path / "profile.bin"
    renamed.write_bytes(GENE[0].read_bytes())
    pages = REPORTS / "csv_rtx5070_2026.2"
    for path in (renamed, REPORTS / "copy_blocked_t4_details.csv", pages / "saxpy.csv"):
        assert is_ncu_file(path)
    for path in (pages / "ncu_version.txt", tmp_path / "absent.csv"):
        assert not is_ncu_file(path)


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
