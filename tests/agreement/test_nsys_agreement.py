"""Every figure, name and row of NVIDIA's own outputs that lie beside the real reports; what the
listings of stats hold on all of them.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

import nsightpy
from tests.support.nsys_stats import Rows, printed, tables_of
from tests.support.reports import NSYS, ask, exports, needs_reports, select, tables

ELLIPSIS = "…"
COMMANDS = {"cuda_gpu_kern_sum": "kernels", "cuda_api_sum": "api"}
TIMES = ("Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)", "Name")
COLUMNS = {
    "kernels": ("Time (%)", "Total Time (ns)", "Instances", *TIMES),
    "api": ("Time (%)", "Total Time (ns)", "Num Calls", *TIMES),
}
# Column of the older layout -> what it is called in the newest one; it had no GreenCtx.
RENAMED = {"Throughput (MBps)": "Throughput (MB/s)"}
# What older versions wrote for a value that there is not.
NONE = {"None": ""}
GPU = ("KERNEL", "MEMCPY", "MEMSET")


TRACES = sorted(NSYS.glob("*.cuda_gpu_trace.csv"))


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
    counts = {name: [len(each[name]) - 1 for each in found] for name in (*COMMANDS, "osrt_sum")}
    assert counts == {"cuda_gpu_kern_sum": [2, 23], "cuda_api_sum": [5, 3], "osrt_sum": [13, 13]}


@pytest.mark.parametrize("theirs", TRACES, ids=lambda path: path.name.partition(".")[0])
def test_every_row_is_the_one_that_nsys_stats_wrote(theirs: Path) -> None:
    with theirs.open(encoding="utf-8", newline="") as file:
        old = [
            {RENAMED.get(k, k): NONE.get(v, v) for k, v in r.items()} for r in csv.DictReader(file)
        ]
    stem = theirs.name.removesuffix(".cuda_gpu_trace.csv")
    path = theirs.with_name(f"{stem}.sqlite")
    header, *rows = ask("stats", "-r", "cuda_gpu_trace", path, "--format", "csv").csv
    ours = [dict(zip(header, row, strict=True)) for row in rows]
    assert [name for name in header if name != "GreenCtx"] == list(old[0])
    assert [{k: v for k, v in row.items() if k != "GreenCtx"} for row in ours] == old


@exports
def test_every_operation_is_listed_in_time_order(path: Path) -> None:
    here = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in GPU]
    here = [table for table in here if table in tables(path)]
    query = "SELECT start, end - start, correlationId FROM {} WHERE end IS NOT NULL"
    expected = select(path, " UNION ALL ".join(map(query.format, here))) if here else []
    rows = nsightpy.stats(path, report="cuda_gpu_trace").rows
    assert [row[0] for row in rows] == sorted(start for start, _, _ in expected)
    assert sorted(row[:3] for row in rows) == sorted(expected)


@exports
def test_every_launch_has_its_phases(path: Path) -> None:
    if not {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"} <= tables(path):
        return
    rows = nsightpy.stats(path, report="cuda_kern_exec_trace").rows
    starts = [row[0] for row in rows]
    assert starts == sorted(starts)
    for start, length, queue, waited, begin, ran, total, *_ in rows:
        assert total == max(start + length, begin + ran) - start
        assert waited == (begin - start - length if begin >= start + length else None)
        assert queue == (None if waited is None else start + length)


@exports
def test_projected_ranges_hold_their_children(path: Path) -> None:
    rows = nsightpy.stats(path, report="nvtx_gpu_proj_trace").rows
    by_id = {row[11]: row for row in rows}
    children = Counter(row[12] for row in rows if row[12] is not None)
    for row in rows:
        if row[12] is not None:
            parent = by_id[row[12]]
            assert parent[9] == row[9] - 1
            assert parent[1] <= row[1]
            assert row[13] == f"{parent[13]}:{row[11]}"
    assert {row[11]: row[10] for row in rows if row[10]} == children
