"""Pages of `ncu --csv`, real ones and hand-made ones of every shape they come in."""

from pathlib import Path

import pytest

from nsightpy.errors import ReportError
from nsightpy.frames import NCU_SCHEMAS, Frame
from nsightpy.readers.ncu import ncu_csv
from nsightpy.readers.ncu.printed import base_unit, is_german, number
from nsightpy.readers.ncu.tables import NcuTables
from nsightpy.reports.one_file import NcuReport
from tests.support.ncu_bench import GENE, REPORTS, SAMPLE, needs_library, needs_reports

IDS = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
SHAPES = '"Block Size","Grid Size","Device","CC",'
LONG = '"Section Name","Metric Name","Metric Unit","Metric Value"'
RULES = ',"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'
PAGE = f"{IDS}{SHAPES}{LONG}\n"
HEAD = '"0","42","app","127.0.0.1","k(int)","1","7","(32, 1, 1)","(8, 2, 1)","0","9.0",'
TIME, SM = "gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed"


def parsed(text: str) -> NcuTables:
    return ncu_csv.parse(Path("page.csv"), text)


def values(metrics: Frame, launch: int = 0) -> dict[str, float]:
    rows = metrics.tuples("launch", "metric", "value")
    return {metric: value for number, metric, value in rows if number == launch}


@needs_reports
@needs_library
@pytest.mark.parametrize("report", GENE, ids=lambda path: path.stem[-28:])
def test_a_report_and_its_csv_give_equal_frames(report: Path) -> None:
    """Whatever the CSV holds, the report holds too: same launches, values and units."""
    binary, printed = NcuReport(report), NcuReport(report.with_suffix(".csv"))
    ours, theirs = binary.frame("launches"), printed.frame("launches")
    assert theirs.rows == ours.rows > 0
    columns = ("launch", "context", "stream", "pid", "duration_ns", "name", "base_name", "process")
    assert list(theirs.tuples(*columns)) == list(ours.tuples(*columns))
    units = [{*each.frame("metrics").tuples("metric", "unit")} for each in (printed, binary)]
    assert units[0] <= units[1]
    for launch in range(ours.rows):
        whole = values(binary.frame("metrics"), launch)
        found = values(printed.frame("metrics"), launch)
        assert len(found) in (3, 5)
        assert found == pytest.approx({name: whole[name] for name in found}, rel=1e-9, abs=0.005)


@needs_reports
def test_the_details_page_of_a_t4() -> None:
    tables = ncu_csv.read(REPORTS / "copy_blocked_t4_details.csv")
    wanted = {
        SM: 1.30,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 61.84,
        "dram__bytes.sum.per_second": 196_456_177_859.63,
        TIME: 21_058_944,
        "launch__waves_per_multiprocessor": 6.40,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 96.26,
    }
    assert values(tables.metrics).items() >= wanted.items()
    of_launch = ("duration_ns", "blocks", "compute_major", "compute_minor")
    assert list(tables.launches.tuples(*of_launch)) == [(21_058_944, 1024, 7, 5)]
    rules = list(tables.rules.tuples("rule", "type", "speedup_pct", "speedup_scope"))
    assert len(rules) == 11
    assert rules[0][:2] == ("SOLBottleneck", "optimization")
    assert rules[2][2:] == (98.86, "local")


@needs_reports
@pytest.mark.parametrize("path", sorted((REPORTS / "csv_rtx5070_2026.2").glob("*.csv")), ids=str)
def test_noise_and_a_bom_before_the_page(path: Path) -> None:
    tables = ncu_csv.read(path)
    assert tables.launches.rows == 1
    assert len(values(tables.metrics)) == 12
    assert tables.launches.ints("compute_major")[0] == 12


def test_a_wide_page_with_prefixes_ranges_and_missing_values() -> None:
    nvtx = '"thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",'
    ranges = (
        '"1  ""<default domain>:step:none:none:RGB:0xff:ASCII:step""  '
        '""net:a:b:none:none:none:none:ASCII:a:b"" ",'
    )
    text = (
        '==PROF== Profiling "k" - 0: 0%....50%....100% - 9 passes\n'
        '"ID","Process ID","Process Name","Host Name",'
        f'{nvtx}"Kernel Name","Context","Stream",{SHAPES}'
        f'"{TIME}","dram__bytes.sum","x__y.avg","note"\n'
        '"","","","","","","","","","","","","us","Kbyte","",""\n'
        f'"0","42","app","127.0.0.1",{ranges}"void ns::k<int>(int)","1","7",'
        '"(32, 1, 1)","(8, 2, 1)","0","9.0","25.792000","1.500000","n/a","some text"\n'
        "the program says hello, 5\n"
        '"1","42","app","127.0.0.1","","k","1","7","(32, 1, 1)","(8, 2, 1)","0","9.0",'
        '"1","2","nan",""\n'
    )
    tables = parsed(text)
    assert values(tables.metrics)[TIME] == pytest.approx(25_792)
    assert values(tables.metrics)["dram__bytes.sum"] == 1500
    assert "x__y.avg" not in values(tables.metrics)
    assert tables.launches.labels("nvtx")[0] == "step, a:b@net"
    assert tables.launches.labels("base_name")[0] == "k"
    assert values(tables.metrics, 1)["dram__bytes.sum"] == 2000
    assert "some text" in tables.metrics.labels("text").values


def test_a_long_page_with_ragged_rows_and_a_wrong_stream_in_rule_rows() -> None:
    rule = '"SpeedOfLight","","","","SOLBottleneck","WRN","Latency.","",""'
    wrong = HEAD.replace(',"7",', ',"1",')
    cells = (
        '"GPU Speed Of Light","SM [%]","%","12.5"',
        '"GPU Speed Of Light","Memory [%]","%","7.25"',
        '"Memory Workload Analysis","Memory Throughput","Gbyte/second","1.5"',
        '"My Section","Strange Label","","3"',
    )
    rows = "".join(f"{HEAD}{cell},\n" for cell in cells)
    tables = parsed(f"{IDS}{SHAPES}{LONG}{RULES}\n{rows}{wrong}{rule}\n")
    assert values(tables.metrics) == {
        SM: 12.5,
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 7.25,
        "dram__bytes.sum.per_second": 1.5e9,
        "My Section: Strange Label": 3,
    }
    assert tables.launches.ints("stream").tolist() == [7]
    assert tables.rules.labels("type")[0] == "warning"


def page(*cells: tuple[str, str, str]) -> str:
    """A long page of these metrics, units and values of one launch."""
    rows = (f'{HEAD}"S","{metric}","{unit}","{value}"\n' for metric, unit, value in cells)
    return PAGE + "".join(rows)


REFUSED = "==ERROR== ERR_NVGPUCTRPERM - ...\n"


def test_metric_ids_and_german_numbers() -> None:
    count = "sm__inst_executed.sum"
    text = page((TIME, "nsecond", "1.234.567,5"), (SM, "%", "61,84"), (count, "inst", "12.345"))
    assert values(parsed(text).metrics) == {TIME: 1_234_567.5, SM: 61.84, count: 12_345}


def test_rates_per_cycle_that_were_rounded_away_are_missing() -> None:
    name = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"
    tables = parsed(page((name, "inst/cycle", "0.00"), (SM, "%", "61.84")))
    assert set(values(tables.metrics)) == {SM}
    assert "two decimals" in tables.notes[0]


def test_two_pages_in_one_file_number_their_results_apart() -> None:
    first, second = (page((TIME, "ns", time)) for time in ("5", "9"))
    launches = parsed(f"{first}==PROF== Disconnected from process 42\n{second}").launches
    assert list(launches.tuples("launch", "duration_ns")) == [(0, 5), (1, 9)]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_of_redirected_output(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "page.csv"
    path.write_bytes(page((TIME, "ns", "5")).replace("\n", "\r\n").encode(encoding))
    assert ncu_csv.looks_like_csv(path.read_bytes())
    assert values(ncu_csv.read(path).metrics) == {TIME: 5}


@pytest.mark.parametrize(
    ("text", "problem", "advice"),
    [
        ("", "empty", "page raw"),
        ("hello\n", "no `ncu --csv` page", "page raw"),
        (PAGE, "no row after", "page raw"),
        (REFUSED, "no results", "NVreg_Restrict"),
        (f"{REFUSED}{PAGE}", "no results", "NVreg_Restrict"),
        ('"Process ID","Process Name","Host Name"\n"1","a","b"\n', "no `ncu", "page raw"),
    ],
)
def test_what_holds_nothing_says_so(text: str, problem: str, advice: str, tmp_path: Path) -> None:
    path = tmp_path / "page.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ReportError, match=problem) as raised:
        ncu_csv.read(path)
    assert advice in raised.value.advice


def test_the_frames_have_their_schemas() -> None:
    report = NcuReport(SAMPLE)
    for name, schema in NCU_SCHEMAS.items():
        assert tuple(report.frame(name)) == schema.names
        assert list(getattr(report, name).columns) == list(schema.names)


UNITS = {
    "ns": ((1.0, "nsecond"), (1e3, "usecond"), (1e6, "ms"), (1e9, "second")),
    "byte": ((1.0, "byte"), (1e3, "Kbyte")),
    "byte/s": ((1e9, "Gbyte/second"), (1e12, "Tbyte/s"), (1e9, "byte/ns")),
    "hz": (
        *((1.0, "hz"), (1e3, "Khz"), (1e6, "MHz"), (1e9, "Ghz")),
        *((1.0, "cycle/second"), (1e6, "cycle/usecond"), (1e9, "cycle/nsecond")),
    ),
    "byte/cycle": ((1e3, "Kbyte/cycle"),),
    "byte/block": ((1e3, "Kbyte/block"),),
    "sector/s": ((1.0, "sector/second"),),
    **{unit: ((1.0, unit),) for unit in ("inst/cycle", "register/thread", "%", "", "SM", "thread")},
}


@pytest.mark.parametrize("unit", UNITS)
def test_units_become_base_units(unit: str) -> None:
    for factor, printed_unit in UNITS[unit]:
        assert base_unit(printed_unit) == (unit, pytest.approx(factor)), printed_unit


@pytest.mark.parametrize(
    ("cell", "german", "value"),
    [
        ("0", False, 0.0),
        ("1,234,567.89", False, 1234567.89),
        ("-1.5", False, -1.5),
        ("1e9", False, 1e9),
        ("7 (3; 4)", False, 7.0),
        ("4.963.609.951,19", True, 4963609951.19),
        ("61,84", True, 61.84),
        *((text, False, None) for text in ("240; 240", "n/a", "", "nan", "CachePreferNone")),
    ],
)
def test_numbers(cell: str, german: bool, value: float | None) -> None:
    assert number(cell, german=german) == value


@pytest.mark.parametrize(
    ("cells", "german"),
    [
        (["4.963.609.951,19", "61,84"], True),
        (["0,123"], True),
        (["4,963,609,951.19", "61.84"], False),
        (["4,963", "12,319"], False),  # grouping either way
        ([], False),
    ],
)
def test_german_pages_are_known_by_their_numbers(cells: list[str], german: bool) -> None:
    assert is_german(cells) == german
