"""Every command on every real export: an answer, the promised columns, the input untouched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from nsightpy import frames
from nsightpy.commands.breakdown.command import CAUSES
from nsightpy.reports.nsys import NsysReport
from tests.support.documents import ENVELOPE
from tests.support.reports import COMMANDS, REQUESTS, ask, exports, formats_of, told

pytestmark = pytest.mark.slow

TIMES = ("Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)")
BUDGET = (
    *("window_ns", "busy_ns", "compute_ns", "communication_ns", "memory_ns", "overlap_ns"),
    *("exposed_communication_ns", "copy_only_ns", "opaque_graph_ns", "idle_ns"),
)
# As the command line promises them, in order.
COLUMNS = {
    "info": (
        *("report", "kind", "rank", "rank_source", "host", "gpu", "devices", "processes"),
        *("tool_version", "schema_version", "start_utc", "duration_ns", "kernels", "warnings"),
    ),
    "summarize": (
        *("finding", "severity", "rank", "device", "evidence", "recoverable_ns"),
        *("recoverable_share", "next_command"),
    ),
    "kernels": ("Time (%)", "Total Time (ns)", "Instances", *TIMES, "Name"),
    "api": ("Time (%)", "Total Time (ns)", "Num Calls", *TIMES, "Name"),
    "memory": (
        *("Time (%)", "Total Time (ns)", "Count", *TIMES, "Operation"),
        *("Total (MB)", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)"),
        "throughput_gb_per_s",
    ),
    "launches": (
        *("rank", "device", "api", "count", "queued_count", "api_med_ns", "queue_med_ns"),
        *("kernel_med_ns", "total_med_ns", "queue_max_ns", "name"),
    ),
    "breakdown": (
        *("rank", "device", *BUDGET),
        *(cause.name for cause in CAUSES),
        *("host_wait_ns", "kernel_wait_ns", "other_wait_ns"),
        *("exposed_wait_ns", "exposed_transfer_ns"),
    ),
}
SECTIONS = [
    *("header", "ranks", "breakdown", "kernels", "collectives", "memory", "nvtx"),
    *("findings", "next_steps"),
]


def columns_of(request: Sequence[str]) -> tuple[str, ...]:
    splits = tuple(request[2].split(",")) if "--by" in request else ()
    return (*splits, *COLUMNS[request[0]])


@exports
def test_inputs_are_untouched_and_nothing_lies_beside_them(path: Path) -> None:
    found = told(path)
    assert {request for request, _ in found.answers} == set(REQUESTS)
    assert found.after == found.before


@exports
def test_every_command_answers_or_says_why_not(path: Path) -> None:
    for (request, form), answer in told(path).answers.items():
        assert answer.code == 0
        assert "Traceback" not in answer.stderr
        assert b"\x1b" not in answer.everything
        lines = answer.stderr.splitlines()
        assert all(line.startswith("note: ") for line in lines), lines
        if form == "table" and request[0] not in ("summarize", "info"):
            assert len(answer.text.splitlines()) > 2 or lines, request
        if form == "table" and request[0] == "summarize":
            assert max(map(len, answer.text.splitlines())) > 20


@exports
def test_columns_are_the_promised_ones(path: Path) -> None:
    for request in REQUESTS:
        promised = columns_of(request)
        if "csv" in formats_of(request):
            table = told(path).answers[request, "csv"].csv
            assert tuple(table[0])[: len(promised)] == promised
        document = told(path).answers[request, "json"].json
        assert document["schema"] == f"nsightpy.{request[0]}/1"
        assert document["inputs"] == [str(path)]
        if request[0] == "summarize":
            assert [name for name in document if name in SECTIONS] == SECTIONS
            continue
        assert list(document)[: len(ENVELOPE)] == ENVELOPE
        assert all(tuple(row)[: len(promised)] == promised for row in document["rows"])


@exports
def test_csv_and_json_agree(path: Path) -> None:
    for request in [one for one in REQUESTS if "csv" in formats_of(one)]:
        document = told(path).answers[request, "json"].json
        found = document["findings" if request[0] == "summarize" else "rows"]
        head, *lines = told(path).answers[request, "csv"].csv
        assert len(lines) == len(found)
        for line, row in zip(lines, found, strict=True):
            for name, cell in zip(head, line, strict=True):
                assert same(cell, row[name]), (request, name, cell, row[name])


def same(cell: str, value: object) -> bool:
    if value is None:
        return cell == ""
    if isinstance(value, str):
        return cell in (value, f"'{value}")
    return float(cell) == pytest.approx(value, abs=5e-5)


@exports
def test_markdown_has_the_rows_of_csv(path: Path) -> None:
    for request in REQUESTS[: len(COMMANDS)]:
        marked = told(path).answers[request, "markdown"].text.splitlines()
        table = [line for line in marked if line.startswith("|")]
        assert len(table) == len(told(path).answers[request, "csv"].csv) + 1


@exports
def test_frames_keep_their_columns_and_whole_numbers(path: Path) -> None:
    report = NsysReport(path)
    for name, schema in frames.SCHEMAS.items():
        table = getattr(report, name, None)
        if table is None:
            continue
        assert tuple(table.columns) == schema.names
        kinds = {column.name: column.kind for column in schema.columns}
        for column, kind in kinds.items():
            assert str(table[column].dtype) == ("int64" if kind == "int" else "category")
    assert report.kernels["start_ns"].is_monotonic_increasing


def test_commands_here_are_those_of_the_program() -> None:
    text = ask("--help").text
    assert all(re.search(rf"^  {command} ", text, re.MULTILINE) for command in COMMANDS)
