"""The command line as a contract: exit codes, columns, formats, streams, files."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from nsightpy.cli.main import run
from tests.support.documents import ENVELOPE, without_keys

ROOT = Path(__file__).parent.parent.parent
TRAINING = str(ROOT / "sample_reports" / "training_4rank")
SINGLE = str(ROOT / "sample_reports" / "single_process.sqlite")
TIMES = "Total Time (ns),{count},Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)"
COLUMNS = {
    "info": "report,kind,rank,rank_source,host,gpu,devices,processes,tool_version,schema_version,"
    "start_utc,duration_ns,kernels,warnings",
    "kernels": f"Time (%),{TIMES.format(count='Instances')},Name",
    "api": f"Time (%),{TIMES.format(count='Num Calls')},Name",
    "memory": f"Time (%),{TIMES.format(count='Count')},Operation,Total (MB),Avg (MB),Med (MB),"
    "Min (MB),Max (MB),StdDev (MB),throughput_gb_per_s",
    "launches": "rank,device,api,count,queued_count,api_med_ns,queue_med_ns,kernel_med_ns,"
    "total_med_ns,queue_max_ns,name",
    "breakdown": "rank,device,window_ns,busy_ns,compute_ns,communication_ns,memory_ns,overlap_ns,"
    "exposed_communication_ns,copy_only_ns,opaque_graph_ns,idle_ns,launch_bound_ns,host_gap_ns",
}


def output(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return capsysbinary.readouterr().out.decode()


@pytest.mark.parametrize("command", COLUMNS)
def test_csv_has_the_contract_columns_first(
    command: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = output(capsysbinary, command, TRAINING, "--format", "csv")
    header, *rows = list(csv.reader(io.StringIO(text)))
    wanted = COLUMNS[command].split(",")
    assert header[: len(wanted)] == wanted
    assert rows
    assert all(len(row) == len(header) for row in rows)
    assert not any(re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", cell) for row in rows for cell in row)


@pytest.mark.parametrize("command", COLUMNS)
def test_formats_carry_the_same_rows(
    command: str, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    document = json.loads(output(capsysbinary, command, TRAINING, "--format", "json"))
    assert list(document) == ENVELOPE
    assert document["schema"] == f"nsightpy.{command}/1"
    assert [Path(path).name for path in document["inputs"]] == [
        f"train_rank{rank}.sqlite" for rank in range(4)
    ]
    table = list(
        csv.DictReader(io.StringIO(output(capsysbinary, command, TRAINING, "--format", "csv")))
    )
    rows = without_keys(document["rows"])
    assert len(table) == len(rows) == document["total_rows"]
    for textual, row in zip(table, rows, strict=True):
        assert list(row) == list(textual)
        for name, value in row.items():
            assert textual[name] == ("" if value is None else textual[name])
            if isinstance(value, int | float):
                assert float(textual[name]) == pytest.approx(value)
    target = tmp_path / "table.parquet"
    run([command, TRAINING, "--format", "parquet", "-o", str(target)])
    assert pq.read_table(target).column_names == list(rows[0])
    assert pq.read_table(target).num_rows == len(table)
    markdown = output(capsysbinary, command, TRAINING, "--format", "markdown")
    assert markdown.count("\n| ") >= len(table)


def test_summary_json_has_its_sections(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    document = json.loads(output(capsysbinary, "summarize", TRAINING, "--format", "json"))
    sections = [
        "header", "ranks", "breakdown", "kernels", "collectives", "memory", "nvtx", "findings",
        "next_steps", "idle", "gaps", "categories",
    ]  # fmt: skip
    start, end = ["schema", "tool_version", "inputs"], ["notes", "abstentions", "untrusted"]
    assert list(document) == [*start, *sections, *end]
    assert document["header"]["kernels"] == 5376
    assert [row["rank"] for row in document["ranks"]] == [0, 1, 2, 3]


def test_piped_output_is_whole_and_plain() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "nsightpy", "summarize", TRAINING],
        capture_output=True,
        check=True,
    )
    text = ran.stdout.decode()
    assert "\x1b" not in text
    assert "…" not in text
    assert "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<" in text
    assert ran.stderr == b""


@pytest.mark.parametrize(
    ("suffix", "format_"),
    [
        (".csv", "csv"),
        (".json", "json"),
        (".md", "markdown"),
        (".MARKDOWN", "markdown"),
        (".parquet", "parquet"),
        (".txt", "table"),
    ],
)
def test_the_suffix_of_the_output_says_the_format(
    tmp_path: Path, suffix: str, format_: str
) -> None:
    said, asked = tmp_path / f"said{suffix}", tmp_path / "asked"
    assert run(["kernels", SINGLE, "-o", str(said)]) == 0
    assert run(["kernels", SINGLE, "--format", format_, "-o", str(asked)]) == 0
    assert said.read_bytes() == asked.read_bytes()


def test_a_format_that_is_given_overrules_the_suffix(tmp_path: Path) -> None:
    target = tmp_path / "kernels.csv"
    assert run(["kernels", SINGLE, "-o", str(target), "--format", "json"]) == 0
    assert json.loads(target.read_bytes())["schema"] == "nsightpy.kernels/1"
