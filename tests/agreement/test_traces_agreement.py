"""The traces of stats against what NVIDIA wrote, and against plain SQL on real exports."""

import csv
from collections import Counter
from pathlib import Path

import pytest

import nsightpy
from tests.support.reports import NSYS, ask, exports, select, tables

# Column of the older layout -> what it is called in the newest one; it had no GreenCtx.
RENAMED = {"Throughput (MBps)": "Throughput (MB/s)"}
# What older versions wrote for a value that there is not.
NONE = {"None": ""}
GPU = ("KERNEL", "MEMCPY", "MEMSET")


WRITTEN = sorted(NSYS.glob("*.cuda_gpu_trace.csv"))


@pytest.mark.parametrize("theirs", WRITTEN, ids=lambda path: path.name.partition(".")[0])
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
