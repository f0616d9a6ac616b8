"""Traces of nsys stats on exports of known content: order, scope, memory that is bounded."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from simulator import Export

import nsightpy
from nsightpy.reports import system
from tests.support.full_export import changed, full
from tests.support.reports import ROOT, ask

TRAINING = ROOT / "sample_reports" / "training_4rank"
GPU_TRACE = "cuda_gpu_trace"
LISTINGS = (
    *(GPU_TRACE, "cuda_api_trace", "nvtx_gpu_proj_trace", "cuda_kern_exec_trace"),
    "nvtx_pushpop_trace",
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "full.sqlite"
    full(path).write()
    return path


def test_copies_and_sets_have_sizes_and_memory(small: Path) -> None:
    rows = ask("stats", "-r", GPU_TRACE, small, "--format", "csv").csv
    copy = next(row for row in rows if row[-1].startswith("[CUDA memcpy"))
    sets = next(row for row in rows if row[-1] == "[CUDA memset]")
    assert copy[3:12] == [""] * 9
    assert copy[12:14] == ["0.004", f"{4096 * (10**9 // 300) / 10**6:.3f}"]
    assert sets[12:14] == ["0.000", f"{100 * (10**9 // 50) / 10**6:.3f}"]
    assert sets[14] != ""
    assert sets[15] == ""


def test_parts_of_any_size_give_the_same_rows(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [tuple(nsightpy.stats(small, report=name).rows) for name in LISTINGS]
    monkeypatch.setattr(system, "PART_ROWS", 3)
    assert [tuple(nsightpy.stats(small, report=name).rows) for name in LISTINGS] == whole
    assert all(whole)


def test_several_reports_are_one_list_on_one_clock() -> None:
    table = nsightpy.stats(TRAINING, report=GPU_TRACE)
    starts = [row[0] for row in table.rows]
    assert table.columns[-2:] == ("rank", "report")
    assert starts == sorted(starts)
    assert {row[-2] for row in table.rows} == {0, 1, 2, 3}
    aligned = nsightpy.open(TRAINING).events("kernels")["start_ns"]
    assert set(aligned) <= set(starts)


def test_scope_chooses_rows(small: Path) -> None:
    every = nsightpy.stats(small, report=GPU_TRACE).rows
    part = nsightpy.stats(small, report=GPU_TRACE, from_time=5_000, to_time=9_550).rows
    assert 0 < len(part) < len(every)
    assert list(part) == [r for r in every if r[0] < 9_550 and r[0] + r[1] > 5_000]
    assert list(nsightpy.stats(small, report=GPU_TRACE, top=3).rows) == list(every[:3])


def test_people_see_the_beginning(tmp_path: Path) -> None:
    export = Export(tmp_path / "many.sqlite")
    process = export.process(100)
    for at in range(300):
        export.kernel(at * 10, at * 10 + 5, "k", process=process, launch=(at * 10 - 5, at * 10 - 2))
    export.write()
    answer = ask("stats", "-r", GPU_TRACE, tmp_path / "many.sqlite")
    assert "and 100 more rows" in answer.text
    assert (
        len(ask("stats", "-r", GPU_TRACE, tmp_path / "many.sqlite", "--format", "csv").csv) == 301
    )


def test_figures_are_written_as_nsys_2026_writes_them(tmp_path: Path) -> None:
    """Lengths and rates of copies of 4 MiB that a public output of nsys 2026.3.1 holds."""
    export = Export(tmp_path / "copies.sqlite")
    for start, length in enumerate((661_398, 660_534, 500_528)):
        export.memcpy(start, start + length, 4_194_304, "HtoD", launch=(-9, -8))
    rates = nsightpy.stats(export.write(), report=GPU_TRACE).column("Throughput (MB/s)")
    assert [round(float(rate or 0), 3) for rate in rates] == [6337.593, 6345.982, 8376.025]


def test_push_pop_ranges_hold_what_is_inside_them(tmp_path: Path) -> None:
    """Ids, stacks and trees as a public output of nsys 2026.3.1 has them."""
    export = Export(tmp_path / "ranges.sqlite")
    process = export.process(53)
    export.nvtx_push_pop(100, 400, "warmup", process=process)
    export.nvtx_push_pop(500, 1_000, "call", process=process)
    export.nvtx_push_pop(510, 700, "copy_in", process=process)
    export.nvtx_push_pop(710, 800, "kernel", process=process)
    export.nvtx_start_end(1_100, 1_200, "not listed", process=process)
    export.write()
    header, *rows = ask("stats", "-r", "nvtx_pushpop_trace", export.path, "--format", "csv").csv
    assert ",".join(header) == (
        "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,"
        "NumChild,RangeId,ParentId,RangeStack,NameTree"
    )
    tid = rows[0][7]
    assert [",".join(row) for row in rows] == [
        f"100,400,300,0,300,:warmup,53,{tid},0,0,1,,:1,:warmup",
        f"500,1000,500,280,220,:call,53,{tid},0,2,2,,:2,:call",
        f"510,700,190,0,190,:copy_in,53,{tid},1,0,3,2,:2:3,'--:copy_in",
        f"710,800,90,0,90,:kernel,53,{tid},1,0,4,2,:2:4,'--:kernel",
    ]


def test_congestion_is_what_waits_beyond_the_threshold(tmp_path: Path) -> None:
    export = Export(tmp_path / "nic.sqlite")
    export.kernel(0, 10, "k", launch=(-5, -2))
    export.nic_metric(100, 200, "IB: Send waits", 9_999)
    export.nic_metric(200, 300, "IB: Send waits", 25_000)
    export.nic_metric(200, 300, "IB: Bytes sent", 90_000)
    path = export.write()
    with closing(sqlite3.connect(path)) as file:
        file.executescript(
            "CREATE TABLE NIC_ID_MAP (nicId, globalId); INSERT INTO NIC_ID_MAP VALUES (7, 1);"
            "CREATE TABLE TARGET_INFO_NIC_INFO (GUID, nicId, name);"
            "INSERT INTO TARGET_INFO_NIC_INFO VALUES (-2, 7, 'mlx5_0');"
        )
    (row,) = nsightpy.stats(path, report="network_congestion").rows
    assert row == (200, 300, 100, 25_000, "0xFFFFFFFFFFFFFFFE", "mlx5_0")
    (note,) = [
        n
        for n in nsightpy.stats(TRAINING, report="network_congestion").notes
        if "nothing of it" in n
    ]
    assert "nsys profile --nic-metrics=lf" in note


@pytest.mark.slow
def test_a_range_is_a_range_whatever_lies_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ask("stats", "-r", GPU_TRACE, TRAINING, "--nvtx", "forward", "--top", "5").text
    monkeypatch.chdir(tmp_path)
    (tmp_path / "forward").mkdir()
    assert ask("stats", "-r", GPU_TRACE, "--nvtx", "forward", TRAINING, "--top", "5").text == wanted


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """The peak of four times as many rows is nearly the same, and far below what they take."""
    peaks = []
    for rows in (4_000, 16_000):
        path = tmp_path / f"{rows}.sqlite"
        export = Export(path)
        process = export.process(100)
        export.kernel(0, 5, "k", process=process, launch=(-5, -2))
        export.write()
        _multiply(path, rows)
        script = (
            "import tracemalloc, nsightpy\nfrom nsightpy.commands.stats import reports\n"
            "from nsightpy.reports import system\nfrom nsightpy.output import formats\n"
            "system.PART_ROWS = reports.BATCH_ROWS = formats.BATCH_ROWS = 1000\n"
            f"table = nsightpy.stats({str(path)!r}, report={GPU_TRACE!r}, jobs=1)\n"
            f"assert len(table) == {rows}\n"
            "tracemalloc.start()\n"
            f"with open({str(path)!r} + '.csv', 'wb') as file:\n"
            "    formats.WRITERS['csv'](table, file)\n"
            "print(tracemalloc.get_traced_memory()[1])"
        )
        words = [sys.executable, "-c", script]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
        with Path(f"{path}.csv").open(encoding="utf-8", newline="") as file:
            starts = [int(row[0]) for row in csv.reader(file) if row[0].isdecimal()]
        assert starts == [10 * row for row in range(rows)]
    assert peaks[1] < 1.3 * peaks[0]


def _multiply(path: Path, rows: int) -> None:
    """So many kernels of the one that there is, ten ns after one another."""
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    with closing(sqlite3.connect(path)) as connection:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        picked = ", ".join(
            f"10 * n + {5 * (name == 'end')}" if name in ("start", "end") else name
            for name in names
        )
        connection.execute(
            f"INSERT INTO {table} WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t "
            f"WHERE n < {rows - 1}) SELECT {picked} FROM t, (SELECT * FROM {table} LIMIT 1)"
        )
        connection.commit()


def test_rows_without_a_place_are_counted_once_for_all_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "PART_ROWS", 3)
    whole = full(tmp_path / "full.sqlite").write()
    statements = [
        "CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
        "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
        "ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET streamId = NULL WHERE rowid % 2",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL WHERE rowid = 11",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET registersPerThread = 0",
    ]
    table = nsightpy.stats(changed(whole, tmp_path / "a.sqlite", statements), report=GPU_TRACE)
    notes = [note for note in table.notes if "CUPTI_ACTIVITY_KIND_KERNEL" in note]
    about = "rows of CUPTI_ACTIVITY_KIND_KERNEL have no"
    assert notes == [f"1 {about} process.", f"6 {about} stream."]
    assert set(table.column("Reg/Trd")) == {None}


def test_kernels_without_a_known_launch_are_no_empty_capture(tmp_path: Path) -> None:
    whole = full(tmp_path / "full.sqlite").write()
    lost = ["UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = 0"]
    path = changed(whole, tmp_path / "a.sqlite", lost)
    for name in ("cuda_kern_exec_trace", "cuda_kern_exec_sum"):
        notes = ask("stats", "-r", name, path, "--format", "json").json["notes"]
        assert "12 kernels have no recorded launch call: they are left out." in notes
        assert not any("capture holds" in note for note in notes)


def test_an_id_that_a_trace_lacks_is_empty(tmp_path: Path) -> None:
    def event(name: str, kind: str, start: int, args: dict[str, int]) -> dict[str, Any]:
        times = {"ts": start, "dur": 5, "args": args}
        return {"ph": "X", "name": name, "cat": kind, "pid": 1, "tid": 2, **times}

    gpu = {"device": 0, "stream": 7}
    events = [
        event("cudaLaunchKernel", "cuda_runtime", 0, {"correlation": 4}),
        event("cuLaunchKernel", "cuda_driver", 9, {}),
        event("gemm", "kernel", 20, {**gpu, "correlation": 4}),
        event("gemm", "kernel", 30, gpu),
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    assert nsightpy.stats(path, report="cuda_api_trace").column("CorrID") == [4, None]
    assert nsightpy.stats(path, report=GPU_TRACE).column("CorrId") == [4, None]
