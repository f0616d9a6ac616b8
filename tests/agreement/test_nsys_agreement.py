"""Every figure, name and row of NVIDIA's own outputs that lie beside the real reports."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from nsightpy.reports.profiles import NsysReport
from tests.support.nsys_stats import Rows, printed, tables_of
from tests.support.reports import NSYS, ask, needs_reports, select

ELLIPSIS = "…"
COMMANDS = {"cuda_gpu_kern_sum": "kernels", "cuda_api_sum": "api"}
TIMES = ("Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)", "Name")
COLUMNS = {
    "kernels": ("Time (%)", "Total Time (ns)", "Instances", *TIMES),
    "api": ("Time (%)", "Total Time (ns)", "Num Calls", *TIMES),
}


def ours(report: Path, command: str) -> Rows:
    return ask(command, report, "--format", "csv").csv


def agree(mine: Rows, theirs: Rows, command: str) -> None:
    assert tuple(theirs[0]) == tuple(mine[0]) == COLUMNS[command]
    assert len(mine) == len(theirs)
    for own, other in zip(mine[1:], theirs[1:], strict=True):
        assert own[:-1] == other[:-1]
        if other[-1].endswith(ELLIPSIS):
            assert own[-1].startswith(other[-1].removesuffix(ELLIPSIS))
        else:
            assert own[-1] == other[-1]


def written() -> Sequence[object]:
    """(export, report name, csv) for every csv that NVIDIA wrote and a command of ours answers."""
    found = []
    for path in sorted(NSYS.glob("*.csv")):
        stem, _, report = path.name.removesuffix(".csv").rpartition(".")
        if report in COMMANDS:
            name = f"{stem}.{report}"
            found.append(pytest.param(path.with_name(f"{stem}.sqlite"), report, path, id=name))
    return found or [pytest.param(None, None, None, marks=needs_reports, id="none")]


@pytest.mark.parametrize("report", COMMANDS)
@pytest.mark.parametrize("export, stats", printed())
def test_nsys_stats_printed_the_same(export: Path, stats: Path, report: str) -> None:
    theirs = tables_of(stats)[report]
    assert len(theirs) > 1
    agree(ours(export, COMMANDS[report]), theirs, COMMANDS[report])


@pytest.mark.parametrize("export, stats", printed())
def test_memory_is_empty_where_nsys_stats_skipped_it(export: Path, stats: Path) -> None:
    text = stats.read_text(encoding="utf-8")
    assert len(re.findall("does not contain GPU memory data", text)) == 2
    assert len(ours(export, "memory")) == 1


@pytest.mark.parametrize("export, report, theirs", written())
def test_nsys_stats_wrote_the_same(export: Path, report: str, theirs: Path) -> None:
    with theirs.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    agree(ours(export, COMMANDS[report]), rows, COMMANDS[report])


@needs_reports
def test_every_row_that_nvidia_printed_was_compared() -> None:
    found = [tables_of(stats) for stats in sorted(NSYS.glob("*.nsys-stats.txt"))]
    counts = {name: [len(tables[name]) - 1 for tables in found] for name in (*COMMANDS, "osrt_sum")}
    assert counts == {"cuda_gpu_kern_sum": [2, 23], "cuda_api_sum": [5, 3], "osrt_sum": [13, 13]}


@needs_reports
def test_gpu_trace_agrees_with_the_kernels_frame() -> None:
    with (NSYS / "trixi_v100_2023.1.cuda_gpu_trace.csv").open(encoding="utf-8", newline="") as file:
        (theirs,) = csv.DictReader(file)
    report = NsysReport(NSYS / "trixi_v100_2023.1.sqlite")
    (kernel,) = report.kernels.to_dict("records")
    assert str(kernel["start_ns"]) == theirs["Start (ns)"]
    assert str(kernel["end_ns"] - kernel["start_ns"]) == theirs["Duration (ns)"]
    shape = [theirs[name] for name in ("GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ")]
    assert [str(kernel[f"{s}_{a}"]) for s in ("grid", "block") for a in "xyz"] == shape
    ids = [theirs[name] for name in ("CorrId", "Reg/Trd", "Ctx", "Strm", "Name")]
    names = ("correlation_id", "registers_per_thread", "context", "stream", "name")
    assert [str(kernel[name]) for name in names] == ids
    (device,) = report.devices["name"]
    assert f"{device} ({kernel['device']})" == theirs["Device"]


@needs_reports
def test_backtrace_rows_are_no_calls() -> None:
    export = NSYS / "exgpu_a100_2021.sqlite"
    classes = dict(
        select(export, "SELECT eventClass, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1")
    )
    assert classes == {0: 18, 67: 18}
    assert sum(int(row[2]) for row in ours(export, "api")[1:]) == 18
