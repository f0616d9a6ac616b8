"""Tables for machines: what a program reads back is what the table holds."""

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from nsightpy import __version__
from nsightpy.output.escape import printable
from nsightpy.output.formats import plain, write_csv, write_json, write_markdown, write_parquet
from nsightpy.results import Field, Finding, LazyRows, Note, Summary, Table, Value
from nsightpy.results.keys import KERNEL, key_of, row_keys
from nsightpy.results.tables import with_notes
from tests.support.reports import ENVELOPE

FIELDS = (
    Field("rank", "id"),
    Field("Time (%)", "%", 1, heading="time %"),
    Field("Total Time (ns)", "time", heading="total"),
    Field("ratio", "", 3, heading="after / before"),
    Field("ok", "flag"),
    Field("Name", "name"),
)
HUGE = 9_007_199_254_740_993  # the first whole number that float64 does not know
HOSTILE = '=HYPERLINK("http://x")|<img src=x>,"a"\n\x1b[2J\u202e'
ROWS: tuple[tuple[Value, ...], ...] = (
    (0, 62.5, HUGE, 0.125, True, "gemm<float, (int)4>"),
    (None, None, None, None, None, None),
    (10, math.nan, -1, math.inf, False, HOSTILE),
)
TABLE = Table(
    "kernels",
    FIELDS,
    ROWS,
    ("run_rank0.sqlite",),
    ("a note | with *signs*",),
    identity=row_keys(KERNEL, "Name"),
)

Row = tuple[int | None, float | None, int | None, float | None, bool | None, str | None]


def written(write: Callable[[Any, BinaryIO], None], answer: Table | Summary) -> bytes:
    file = io.BytesIO()
    write(answer, file)
    return file.getvalue()


def read_csv(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline="")))


def test_csv() -> None:
    head, first, absent, hostile = read_csv(written(write_csv, TABLE))
    assert head == ["rank", "Time (%)", "Total Time (ns)", "ratio", "ok", "Name"]
    assert first == ["0", "62.5", "9007199254740993", "0.125", "true", "gemm<float, (int)4>"]
    assert absent == [""] * 6
    assert hostile[:5] == ["10", "", "-1", "", "false"]
    assert hostile[5] == "'" + printable(HOSTILE)
    assert b"\r" not in written(write_csv, TABLE)
    assert written(write_csv, TABLE).count(b"\n") == 4


def test_json() -> None:
    abstention = Note("why not.", "`do this`")
    table = with_notes(TABLE, TABLE.inputs, (*TABLE.notes, abstention))
    document = json.loads(written(write_json, table))
    assert list(document) == ENVELOPE
    assert document["tool_version"] == __version__
    assert document["schema"] == "nsightpy.kernels/1"
    assert document["inputs"] == ["run_rank0.sqlite"]
    assert document["notes"] == ["a note | with *signs*", "why not. `do this`"]
    assert (document["total_rows"], document["truncated"]) == (3, False)
    assert document["untrusted"] == ["Name"]
    assert document["abstentions"] == [{"reason": "why not.", "what_would_help": "`do this`"}]
    assert [list(row.values()) for row in document["rows"]] == [
        [*ROWS[0], key_of("kernel", "gemm<float, 4>")],
        [None] * 7,
        [10, None, -1, None, False, HOSTILE, key_of("kernel", HOSTILE)],
    ]
    assert list(document["rows"][0]) == [*TABLE.columns, "key"]
    text = written(write_json, TABLE)
    assert text.isascii()
    assert text.endswith(b"}\n")
    assert not re.search(rb"NaN|Infinity", text)


def test_markdown() -> None:
    head, rule, first, absent, hostile, blank, note = (
        written(write_markdown, TABLE).decode().splitlines()
    )
    assert head == "| rank | time % | total | after / before | ok | name |"
    assert rule == "| ---: | ---: | ---: | ---: | ---: | --- |"
    assert first == "| 0 | 62.5 | 9007199 s | 0.125 | yes | gemm&lt;float, (int)4&gt; |"
    assert absent == "| - | - | - | - | - | - |"
    assert hostile.startswith("| 10 | - | -1 ns | - | no | =HYPERLINK")
    assert len(re.findall(r"(?<!\\)\|", hostile)) == 7
    assert (blank, note) == ("", r"- a note \| with \*signs\*")
    assert written(write_markdown, Table("x", FIELDS[:1], ())) == b"| rank |\n| ---: |\n"


def read_parquet(table: Table) -> pa.Table:
    return pq.read_table(pa.BufferReader(written(write_parquet, table)))


def test_parquet() -> None:
    read = read_parquet(TABLE)
    assert read.schema.names == list(TABLE.columns)
    types = " ".join(str(column.type) for column in read.columns)
    assert types == "int64 double int64 double bool string"
    rows = [tuple(row.values()) for row in read.to_pylist()]
    assert rows == [*ROWS[:2], (10, None, -1, None, False, HOSTILE)]
    metadata = read.schema.metadata
    assert metadata[b"nsightpy"] == b"kernels/1"
    assert json.loads(metadata[b"nsightpy.about"]) == {
        "inputs": ["run_rank0.sqlite"],
        "notes": ["a note | with *signs*"],
    }


def test_a_document_is_indented_as_one_that_is_written_at_once() -> None:
    for table in (TABLE, Table("kernels", FIELDS, ())):
        text = written(write_json, table).decode()
        assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_rows_that_are_made_while_they_are_written_are_written_alike() -> None:
    rows = LazyRows(lambda: iter(ROWS), len(ROWS))
    for write in (write_csv, write_json, write_parquet):
        assert written(write, replace(TABLE, rows=rows)) == written(write, TABLE)
    assert (len(rows), rows[1], rows[-1]) == (3, ROWS[1], ROWS[2])
    assert tuple(rows[1:]) == tuple(rows[-2:9]) == ROWS[1:]
    assert (tuple(rows[:2]), tuple(rows[::2]), tuple(rows[2:1])) == (ROWS[:2], ROWS[::2], ())
    with pytest.raises(IndexError):
        rows[3]


def test_parquet_keeps_columns_without_a_single_value() -> None:
    fields = (Field("n"), Field("share", "%", 1), Field("name", "name"))
    for rows in ((), ((None, None, None),)):
        read = read_parquet(Table("x", fields, rows))
        assert [str(t) for t in read.schema.types] == ["int64", "double", "string"]
        assert read.num_rows == len(rows)


def test_bytes_that_are_no_text_can_be_written_everywhere() -> None:
    """A report's file name may hold any bytes; Python shows them as lone surrogates."""
    table = Table("x", (Field("report", "text"),), (("run\udcff",),), ("run\udcff",), ("\udcff",))
    assert read_csv(written(write_csv, table))[1] == [r"run\udcff"]
    assert written(write_markdown, table).decode().splitlines()[2] == r"| run\\udcff |"
    assert read_parquet(table).to_pylist() == [{"report": r"run\udcff"}]
    assert json.loads(written(write_json, table))["rows"] == [{"report": "run\udcff"}]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
whole = st.none() | st.integers(-(2**63), 2**63 - 1)
tenths = st.none() | st.integers(-(10**9), 10**9).map(lambda n: n / 10)
eighths = st.none() | st.integers(-(10**6), 10**6).map(lambda n: n / 8)
rows = st.lists(
    st.tuples(whole, tenths, whole, eighths, st.none() | st.booleans(), st.none() | texts)
)


@settings(max_examples=60, deadline=None)
@given(rows)
def test_every_format_holds_the_same_values(rows: list[Row]) -> None:
    table = Table("x", FIELDS, tuple(rows))
    assert [tuple(row.values()) for row in json.loads(written(write_json, table))["rows"]] == rows
    assert [tuple(row.values()) for row in read_parquet(table).to_pylist()] == rows

    for row, cells in zip(rows, read_csv(written(write_csv, table))[1:], strict=True):
        *figures, shown = cells
        assert not any(re.search(r"[, '_eE]", cell) for cell in figures[:4])
        assert [int(cell) if cell else None for cell in figures[0:3:2]] == [row[0], row[2]]
        assert [float(cell) if cell else None for cell in figures[1:4:2]] == [row[1], row[3]]
        assert figures[4] == {None: "", True: "true", False: "false"}[row[4]]
        assert shown.removeprefix("'") == printable(row[5] or "").removeprefix("'")


@pytest.mark.parametrize(
    ("value", "field", "text"),
    [
        *((1234567, Field("n"), "1234567"), (1234567.0, Field("t", "time", 1), "1234567.0")),
        *((0.1, Field("x", ""), "0.1"), (2, Field("x", "%", 1), "2"), (None, Field("x"), "")),
        *((-math.inf, Field("x", "%", 1), ""), (True, Field("x"), "true")),
        *(
            (value, Field("share", "share", digits), text)
            for value, digits, text in (
                *((0.00039432, 3, "0.000394"), (-0.000012345, 4, "-0.0000123"), (0.0, 4, "0.0000")),
                (1e-300, 4, "0.000000000000000"),
            )
        ),
        (0.04, Field("Time (%)", "%", 1), "0.0"),
    ],
)
def test_plain(value: Value, field: Field, text: str) -> None:
    assert plain(value, field) == text


def test_a_summary_is_its_sections_by_name() -> None:
    finding = Finding("GPU idle", "warning", "nothing ran", 3, 0, 500, math.nan, "nsightpy x")
    header = {"gpus": 2, "share": math.nan}
    summary = Summary(("a.sqlite",), header, {"kernels": TABLE}, (finding,), (("do", "y"),))
    document = json.loads(written(write_json, summary))
    assert document["schema"] == "nsightpy.summarize/1"
    assert document["header"] == {"gpus": 2, "share": None}
    assert document["kernels"][2]["Time (%)"] is None
    assert document["findings"][0]["recoverable_ns"] == 500
    assert document["findings"][0]["recoverable_share"] is None
    assert document["next_steps"] == [{"command": "do", "why": "y"}]
    assert (document["inputs"], document["notes"]) == (["a.sqlite"], [])


def test_data_frames_keep_whole_numbers_whole() -> None:
    frame = TABLE.to_pandas()
    assert list(frame.columns) == [*TABLE.columns, "key"]
    assert frame["rank"].dtype == frame["Total Time (ns)"].dtype == "Int64"
    assert int(frame["Total Time (ns)"][0]) == HUGE
    assert frame.isna().sum().tolist() == [1, 2, 1, 1, 1, 1, 1]
    assert Table("x", FIELDS[:1], ((3,), (4,))).to_pandas()["rank"].dtype == "int64"
    assert Table("x", FIELDS, ()).to_pandas().columns.tolist() == list(TABLE.columns)


def test_notebooks_show_names_and_never_run_them() -> None:
    shown = TABLE._repr_html_()
    assert "<img" not in shown
    assert html.escape("<img src=x>") in shown
    assert "gemm&lt;float, (int)4&gt;" in shown
    assert str(HUGE) in shown
    assert "None" not in shown
    assert "NA" not in shown.replace("Name", "")
