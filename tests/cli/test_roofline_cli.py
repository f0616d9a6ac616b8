"""`nsightpy roofline` and its library function: columns, formats, options, words, errors."""

import csv
import io
import json
from pathlib import Path

import pytest

import nsightpy
from nsightpy.commands.roofline.command import in_range, parse_clock, roofline
from nsightpy.errors import ReportError, UsageError
from nsightpy.frames import Labels
from nsightpy.readers.references import read_ceilings
from tests.support.ncu_bench import GENE, REPORTS, ROOT, SAMPLE, needs_library, needs_reports
from tests.support.reports import ask
from tests.support.samples import SINGLE

GB200 = REPORTS / "gb200_full_2025.3.ncu-rep"


def asked(*words: str | Path, expect: int = 0) -> tuple[str, str]:
    answer = ask("roofline", *words, expect=expect)
    return answer.text, answer.stderr


def table(*words: str | Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(asked(*words, "--format", "csv")[0])))


def test_columns_and_raw_units() -> None:
    rows = table(SAMPLE)
    gemm = next(r for r in rows if r["precision"] == "tensor_bf16" and r["level"] == "dram")
    assert float(gemm["peak_flops_per_s"]) == pytest.approx(4096 * 114 * 1.103e9)
    assert float(gemm["roof_fraction"]) == pytest.approx(0.779, abs=0.001)
    assert (gemm["grid"], gemm["block"], gemm["device"]) == ("64x64x1", "384x1x1", "0")
    copy = next(r for r in rows if (r["id"], r["precision"], r["level"]) == ("0", "fp32", "l1"))
    figures = ("flops_per_s", "arithmetic_intensity", "roof_fraction")
    assert [copy[name] for name in figures] == ["0.0", "0.0", ""]


def test_people_get_readable_units_and_verdicts() -> None:
    out, err = asked(SAMPLE)
    assert "NVIDIA H100 PCIe, SM clock 1103 MHz (profiled), 8 launches" in out
    assert "28.3 TFLOP/s" in out
    assert "Runs near the limit of memory, DRAM (92 %; compute 4 %)" in out
    assert "DRAM is hardly used" in out
    assert "The grid is too small" in out
    assert "note: Peaks are at an SM clock of 1103 MHz (profiled)" in err


@needs_library
@needs_reports
def test_reports_of_one_program_complete_each_other() -> None:
    """Two reports of the same kernels, one without throughputs: the other one is judged."""
    two = [REPORTS / f"a10g_{name}_2023.1.ncu-rep" for name in ("onesection", "11kernels")]
    out, _ = asked(*two, "--by", "launch")
    assert "a10g_onesection_2023.1.ncu-rep" in out, "ids repeat, and no rank distinguishes them"
    (both,) = (v for v in roofline(two).variants if v.first.base_name == "two_blocktiling")
    measured, bare = both.launches
    assert (measured.figures, bare.figures) == (2, 0)
    assert (measured.duration_ns or 0) > (bare.duration_ns or 0), "the median is the lower one"
    assert both.typical is measured
    out, err = asked(REPORTS / "exgpu_a100_2020.3.ncu-rep")
    assert "What limits it" not in out
    assert "speed of light was not collected" in err


@needs_reports
@needs_library
@pytest.mark.parametrize("by", [(), ("--by", "launch")])
def test_shares_are_of_all_launches_and_the_rest_is_counted(by: tuple[str, ...]) -> None:
    out, _ = asked(SAMPLE, "--top", "2", *by)
    assert "and 6 more launches: --top 0 shows them" in out
    assert "8 launches" in out.splitlines()[0]
    assert "68 % of the time" in out


def test_the_first_variants_are_whole() -> None:
    every, first = (roofline(GENE, by="variant", top=top) for top in (None, 1))
    assert (len(every.variants) > 1, first.variants) == (True, every.variants[:1])
    assert first.rows == every.rows[: len(first.rows)]
    assert (first.total_rows, first.truncated) == (len(every.rows), True)


def test_clocks_are_megahertz() -> None:
    for clock in ("1755", 1755.0):
        assert parse_clock(clock) == 1.755e9
    for wrong in ("fast", "0", "-5", "1e30", 0, 10**400):
        with pytest.raises(UsageError, match="MHz"):
            parse_clock(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "# measured\nname,value,unit\nfp32,18.9,TFLOPS\ndram,1.41,TB/s\n",
        "fp32, 18.9e12\ndram, 1.41e12\n",
    ],
)
def test_ceilings(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ceilings.txt"
    path.write_text(text)
    ceilings = roofline(SAMPLE, ceilings=path).ceilings
    assert ceilings == pytest.approx({"fp32": 18.9e12, "dram": 1.41e12})


@pytest.mark.parametrize(
    "text",
    [
        *("", "hbm, 5", "fp32", "fp32, fast", "fp32, 5, furlongs", "{", "[1]", "dram, -1"),
        *("[" * 100_000, "fp32, " + "9" * 5000, "fp32, NaN", "fp32, 1e308, PFLOP/s"),
        *("fp32, 18.9, TB/s", "dram, 5, GFLOP/s", "l1, 1\nL1, 2", '{"l2": 1}'),
    ],
)
def test_bad_ceilings_say_how_to_write_them(text: str, tmp_path: Path) -> None:
    path = tmp_path / "ceilings.txt"
    path.write_text(text)
    with pytest.raises(ReportError) as raised:
        read_ceilings(path)
    assert "one ceiling per line" in raised.value.advice


@needs_reports
@needs_library
def test_many_ranks() -> None:
    rows = table(REPORTS / "gene6rank", "--rank", "1-2")
    assert list(rows[0])[-2:] == ["rank", "report"]
    assert {row["rank"] for row in rows} == {"1", "2"}
    assert len(rows) == 2 * (4 + 12)
    assert all(Path(row["report"]).suffix == ".ncu-rep" for row in rows)
    untimed = next(row for row in rows if "flops_rank1" in row["report"])
    given = ["id", "kernel", "grid", "block", "rank", "report"]
    assert [name for name, value in untimed.items() if value] == given


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("absent.ncu-rep",), 1, "no such file"),
        ((SINGLE,), 1, "no Nsight Compute report"),
        ((ROOT / "README.md",), 1, "no `ncu --csv` page"),
        ((SAMPLE, "--clock", "fast"), 2, "MHz"),
        ((SAMPLE, "--from", "1s"), 2, "no timeline"),
        ((SAMPLE, "--rank", "7"), 1, "not of rank 7"),
        ((SAMPLE, "--ceilings", "absent.csv"), 1, "no such file"),
        ((), 2, "REPORT"),
    ],
)
def test_errors_name_what_to_do(arguments: tuple[str | Path, ...], code: int, word: str) -> None:
    out, err = asked(*arguments, expect=code)
    assert out == ""
    assert word in err


def test_info_describes_pages_and_reports() -> None:
    table = nsightpy.info([SAMPLE, SINGLE])
    by_kind = {row["kind"]: row for row in table.records()}
    assert set(by_kind) == {"ncu", "nsys"}
    page = by_kind["ncu"]
    assert (page["gpu"], page["kernels"], page["report"]) == ("NVIDIA H100 PCIe", 8, str(SAMPLE))
    assert all(page[name] is None for name in ("host", "processes", "start_utc", "duration_ns"))


def test_a_range_narrows_the_launches() -> None:
    texts = Labels.of(["A/step 1", "A/step 2, net@lib", "", "B"])
    assert in_range(texts, "A").tolist() == [True, True, False, False]
    assert in_range(texts, "step*").tolist() == [True, True, False, False]
    assert in_range(texts, "net").tolist() == [False] * 4
    assert in_range(texts, "net@lib").tolist() == [False, True, False, False]


def test_people_see_one_row_for_a_kernel_and_shape() -> None:
    shown = asked(SAMPLE)[0].split("\n\n")[0]
    assert len(shown.splitlines()) == 3 + len(roofline(SAMPLE).variants)
    assert "tensor_bf16  dram" in shown
    assert {row["kernel"] for row in table(SAMPLE, "--top", "1", "--name", "base")} == {"Kernel2"}
    every = asked(SAMPLE, "--by", "variant")[0].split("\n\n")[0]
    assert every.count("tensor_bf16") == 3


@needs_reports
@needs_library
def test_what_ncus_own_rules_estimate_is_said_beyond_the_nearest_roof() -> None:
    text = " ".join(asked(GB200)[0].split())
    assert "a warp waits: no instruction 34 %, long scoreboard 32 %" in text
    assert "Occupancy: 13 % of 100 % possible." in text
    out, _ = asked(GB200, "--format", "json")
    (kernel,) = (each for each in json.loads(out)["kernels"] if each["id"] == 0)
    first = kernel["rules"][0]
    assert (first["rule"], first["scope"]) == ("LaunchConfiguration", "global")
    assert first["speedup_pct"] == pytest.approx(97.368421)
    assert kernel["speed_of_light"]["stalls"][0][0] == "no instruction"


@needs_reports
def test_rules_of_a_csv_page_are_said_too() -> None:
    out, _ = asked(REPORTS / "copy_blocked_t4_details.csv")
    text = " ".join(out.split())
    assert "more than the 38 % that its nearest roof leaves: Uncoalesced Global Access 74 %" in text
    assert "CPI Stall 38 %" not in text
