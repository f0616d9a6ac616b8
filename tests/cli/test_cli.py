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

import nsightpy
from nsightpy.cli.main import COMMANDS, run
from tests.support.documents import ENVELOPE, without_keys

ROOT = Path(__file__).parent.parent.parent
TRAINING = str(ROOT / "sample_reports" / "training_4rank")
SINGLE = str(ROOT / "sample_reports" / "single_process.sqlite")
NCU = str(ROOT / "sample_reports" / "kernels_h100.ncu.csv")
SNAPSHOT = str(ROOT / "sample_reports" / "training_memory.pickle")
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


def test_top_and_splits(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    text = output(
        capsysbinary, "kernels", TRAINING, "--by", "rank,device", "--top", "3", "--format", "csv"
    )
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][:3] == ["rank", "device", "Time (%)"]
    assert len(rows) == 1 + 4 * 3, "of each rank"


def test_library_functions_bear_the_commands_names() -> None:
    for name, columns in COLUMNS.items():
        table = getattr(nsightpy, name)(SINGLE)
        assert list(table.columns)[: columns.count(",") + 1] == columns.split(",")
    report = nsightpy.open_report(SINGLE)
    assert len(report.kernels) == nsightpy.info(SINGLE).column("kernels")[0]
    assert "<table" in report._repr_html_()


def test_output_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "kernels.csv"
    command = ["kernels", SINGLE, "--format", "csv", "-o", str(target)]
    assert run(command) == 0
    first = target.read_bytes()
    assert run(command) == 1
    assert "--force" in capsys.readouterr().err
    assert run([*command, "--force"]) == 0
    assert target.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["kernels.csv"]


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


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["kernels", NCU], f"`nsightpy roofline {NCU}`"),
        (["summarize", SNAPSHOT], f"`nsightpy memory-usage {SNAPSHOT}`"),
        (["roofline", SINGLE], f"`nsightpy summarize {SINGLE}`"),
    ],
)
def test_hints_at_another_command_keep_the_folder(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 1
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["kernels"], 2),
        (["kernels", SINGLE, "--by", "colour"], 2),
        (["kernels", SINGLE, "--rank", "x"], 2),
        (["kernels", SINGLE, "--from", "soon"], 2),
        (["kernels", SINGLE, "--from", "2s", "--to", "1s"], 2),
        (["kernels", SINGLE, "--rank-regex", "("], 2),
        (["kernls", SINGLE], 2),
        (["kernels", SINGLE, "--format", "xml"], 2),
        (["kernels", "no/such/file.sqlite"], 1),
    ],
)
def test_exit_codes(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.strip()
    assert "Traceback" not in said.err


def test_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", overview, re.MULTILINE)
        assert run([command, "--help"]) == 0
        assert "Usage: nsightpy" in capsys.readouterr().out


def test_cache_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NSIGHTPY_CACHE_DIR", str(tmp_path))
    assert run(["cache"]) == 0
    assert "0 entries" in capsys.readouterr().out
    assert run(["cache", "--clear"]) == 0
    assert "removed 0 entries" in capsys.readouterr().out
