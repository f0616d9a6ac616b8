"""Tables on a terminal: units in cells, columns that answer first, names that stay apart."""

import io
import re
from pathlib import Path

import pytest
from terminal import run_in_terminal

from nsightpy.output.cells import cell, cells
from nsightpy.output.escape import display_width
from nsightpy.render.text.layout import Shown, fitted, hidden_line
from nsightpy.render.text.terminal import console, print_table
from nsightpy.results import Field, Table, Value
from tests.support.golden import check_golden
from tests.support.reports import REPORTS, ask, needs_reports

TRAINING = "sample_reports/training_4rank"
SINGLE = "sample_reports/single_process.sqlite"


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        (Field("busy_ns", "time"), 1_300, "1.30 us"),
        (Field("busy_ns", "time"), 91, "91 ns"),
        (Field("busy_ns", "time"), None, "-"),
        (Field("share_of_busy", "share", 4), 0.7777, "77.8"),
        (Field("last_share", "share", 4), 0.00254, "0.25"),
        (Field("max_over_mean", "ratio", 4), 1.0676, "1.07"),
        (Field("mfu", "share", 4), 0.41, "41.0"),
        (Field("peak_bytes", "bytes"), 101_000_000, "101 MB"),
        (Field("delta_at_peak_bytes", "bytes"), 4, "+4 B"),
        (Field("Total (MB)", "MB", 3), 157.286, "157 MB"),
        (Field("Total (MB)", "MB", 3), 0.0, "< 1 KB"),
        (Field("busbw_gb_per_s", "GB/s", 3), 0.000749, "< 0.01"),
        (Field("busbw_gb_per_s", "GB/s", 3), 1708.376, "1,708"),
        (Field("straggler", "bool"), True, "yes"),
        (Field("range", "name"), " ", "(no name)"),
        (Field("domain", "text"), "", ""),
        (Field("report", "text"), "/a/b/c.sqlite", "c.sqlite"),
        (Field("model_flop_per_s", "flops/s"), 2.5e12, "2.50 TFLOP/s"),
    ],
)
def test_cells(field: Field, value: Value, shown: str) -> None:
    assert cell(field, value) == shown


def test_moments_share_a_unit_and_keep_microseconds() -> None:
    field = Field("start_ns", "moment")
    assert cells(field, [1_234_567_891, 5_000]) == (("1.234568", "0.000005"), "s")
    assert cells(field, [2_000_500, None]) == (("2.001", "-"), "ms")


def test_names_that_differ_in_their_parameters_only_stay_apart() -> None:
    names = [f"FSDP::pre_forward (transformer.layers.{n}.attention)" for n in range(12)]
    assert len(set(Shown("range", tuple(names), True).cut(30))) == len(names)


def test_what_answers_stays_and_the_rest_is_one_line() -> None:
    columns = [
        Shown("rank", ("0", "1"), False, "rank"),
        *(Shown(f"column{n}", ("12345678", "2"), False, f"c{n}") for n in range(12)),
        Shown("style", ("PushPop", "PushPop"), True, "style"),
        Shown("answer", ("42", "43"), False, "answer"),
    ]
    kept, hidden = fitted(columns, 40, ["answer", "rank"])
    assert {"answer", "rank"} <= {column.key for column in kept}
    assert kept[-1].key == "answer"
    line = hidden_line(hidden, 60)
    assert "style PushPop in all rows" in line
    assert display_width(line) <= 60
    assert "\n" not in line


def text_of(table: Table, rows: int | None = None, width: int = 80) -> list[str]:
    stream = io.StringIO()
    print_table(table, console(stream, width), rows)
    return stream.getvalue().splitlines()


def test_a_page_of_rows_and_how_many_there_are() -> None:
    fields = (Field("name", "name"), Field("count"))
    assert text_of(Table("kernels", fields, ())) == ["no rows"]
    table = Table("launches", fields, tuple((f"kernel{n}", n) for n in range(1_000)))
    assert text_of(table, 25)[-1] == "and 975 more rows: --top 0 shows them"
    assert len(text_of(table)) == 1_002
    assert text_of(table.first(3))[-1] == "and 997 more rows: --top 0 shows them"
    assert text_of(table, 999)[-1] == "and 1 more row: --top 0 shows them"
    with pytest.raises(KeyError, match="no column 'Name'; there are name"):
        table["Name"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "report", "columns"),
    [
        *(("summarize", report, columns) for report in (TRAINING, SINGLE) for columns in (80, 160)),
        *((n, TRAINING, 80) for n in ("ranks", "collectives", "breakdown", "launches", "nvtx")),
    ],
)
def test_golden_screens(command: str, report: str, columns: int) -> None:
    shown = run_in_terminal([command, report], columns, NO_COLOR="1")
    assert not re.search(r"\x1b\[(?:3|4|9)[0-9]", shown)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    check_golden(f"{command}_{Path(report).name.partition('_')[0]}_{columns}.txt", plain)


@pytest.mark.parametrize("command", ["kernels", "breakdown", "memory", "launches"])
def test_golden_csv(command: str) -> None:
    check_golden(f"{command}_single.csv", ask(command, SINGLE, "--format", "csv").text)


@pytest.mark.slow
def test_colour_on_terminals_and_all_rows_on_request() -> None:
    assert "\x1b[32m" in run_in_terminal(["summarize", TRAINING], 80)
    assert len(run_in_terminal(["launches", TRAINING, "--top", "0"], 80).splitlines()) > 130


@needs_reports
def test_unrelated_captures_are_named_and_have_no_common_clock() -> None:
    kineto = REPORTS / "kineto"
    paths = [str(kineto / "bert_small_h100.json.gz"), str(kineto / "vit_h100.json.gz")]
    shown = ask("summarize", *paths).text
    assert re.search(r"^  bert_small_h100 +█", shown, re.MULTILINE)
    assert "clock offset" not in ask("ranks", *paths).text
    assert "80 minutes after" in ask("ranks", *paths).stderr


@needs_reports
def test_what_a_finding_says_is_not_said_again() -> None:
    path = REPORTS / "nsys" / "no_kernels_a100_2026.2.sqlite"
    for command in ("summarize", "findings"):
        answer = ask(command, path)
        both = " ".join((answer.text + answer.stderr).split())
        assert both.count("The capture holds no GPU work") == 1
