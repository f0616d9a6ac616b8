"""MPI, cuBLAS, cuDNN, OS runtime and GPU metrics: frames of them.

MPI tables, libraries and metrics are simulated rows.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from simulator import Export

from nsightpy.commands.findings.command import findings
from nsightpy.frames import SCHEMAS
from nsightpy.reports.opening import open_report
from tests.support.reports import NSYS, ROOT, exports, needs_reports, rows_of, select, tables

SAXPY = NSYS / "saxpy_mpi_rank0_a100_2022.2.sqlite"
SAMPLE = ROOT / "sample_reports" / "single_process.sqlite"


@exports
def test_every_os_call_is_read(path: Path) -> None:
    frame = open_report(path).frame("os_calls")
    assert tuple(frame) == SCHEMAS["os_calls"].names
    if "OSRT_API" in tables(path):
        sql = "SELECT COUNT(*), TOTAL(end - start) FROM OSRT_API WHERE eventClass = 27"
        lengths = frame.ints("end_ns") - frame.ints("start_ns")
        assert [(frame.rows, int(lengths.sum()))] == select(path, sql)


@needs_reports
def test_mpi_calls_of_an_old_export_are_its_nvtx_ranges() -> None:
    calls = list(open_report(SAXPY).frame("mpi_calls").tuples("name", "kind"))
    sent = ("MPI_Send", "point-to-point")
    assert calls[:3] == [("MPI_Init", "other"), sent, sent]
    assert len(calls) == 17


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    """Two processes with MPI, library and OS calls."""
    export = Export(tmp_path / "job.sqlite")
    for number, pid in enumerate((100, 200)):
        process = export.process(pid)
        export.mpi_rank(number, process)
        own = {"process": process}
        for start in (0, 1_000, 2_000):
            export.mpi_collective(start, start + 200 + 50 * number, "MPI_Allreduce", 4096, process)
            export.library("CUBLAS_EVENTS", start + 300, start + 340, "cublasSgemm_v2", **own)
            export.library("CUDNN_EVENTS", start + 350, start + 420, "cudnnSoftmax", **own)
            export.library("OSRT_API", start + 500, start + 900, "poll", **own)
        export.kernel(100, 200, "k", process=process, launch=(50, 60))
    return export.write()


def test_calls_of_libraries(simulated: Path) -> None:
    report = open_report(simulated)
    frames = {name: report.frame(f"{name}_calls") for name in ("library", "mpi", "os")}
    spent = {
        name: int((frame.ints("end_ns") - frame.ints("start_ns")).sum())
        for name, frame in frames.items()
    }
    assert spent == {"library": 2 * (120 + 210), "mpi": 600 + 750, "os": 2 * 1200}
    assert {*frames["library"].labels("name")} == {"cublasSgemm_v2", "cudnnSoftmax"}
    assert {*frames["mpi"].tuples("kind", "bytes", "peer")} == {("collective", 4096, -1)}


def test_context_switches_say_when_a_thread_ran(tmp_path: Path) -> None:
    """It runs for a quarter of each gap; what begins or ends outside of the capture is left out."""
    export = Export(tmp_path / "job.sqlite")
    process = export.process(100)
    switches = [(0, 5, 0), (3_500_000 * 20, 5, 1)]
    for start in range(0, 70_000_000, 3_500_000):
        export.kernel(start + 20_000, start + 500_000, "k", launch=(start, start + 10_000))
        switches += [(start, 5, 1), (start + 1_250_000, 5, 0)]
    path = export.write()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE SCHED_EVENTS (start INT, cpu INT, isSchedIn INT, globalTid INT)")
        rows = [(*switch, process.thread()) for switch in sorted(switches)]
        rows += [(4_000_000, 5, 0, process.thread() + 1)]
        file.executemany("INSERT INTO SCHED_EVENTS VALUES (?, ?, ?, ?)", rows)
    runs = open_report(path).frame("cpu_runs")
    assert set((runs.ints("end_ns") - runs.ints("start_ns")).tolist()) == {1_250_000}
    assert (runs.rows, set(runs.ints("cpu").tolist())) == (20, {5})
    (row,) = (row for row in findings(path).records() if row["id"] == "host-gap")
    assert "thread on a CPU for 25 %; ranges in the code" in str(row["evidence"])


def test_metrics_over_ranges_say_how_many_samples_they_rest_on(tmp_path: Path) -> None:
    """Two instances of a range; their kernels run at [500, 800) and [1000, 1200) on GPU 0."""
    export = Export(tmp_path / "job.sqlite")
    export.gpu(0)
    for start, end, name in ((0, 100, "step"), (200, 300, "step"), (400, 420, "launched nothing")):
        export.nvtx_push_pop(start, end, name)
    export.kernel(500, 800, "k", launch=(10, 20))
    export.kernel(1_000, 1_200, "k", launch=(210, 220))
    for time in range(0, 2_000, 100):
        export.gpu_metric(time, "SM Active", time // 100)
        export.gpu_metric(time, "SM Active", 99, gpu=1)
    whole, step = rows_of("nvtx", export.write(), "--metrics")
    assert (whole["range"], whole["samples"]) == ("(whole capture)", 40)
    figures = [step[name] for name in ("range", "metric", "samples", "mean", "minimum", "maximum")]
    assert figures == ["step", "SM Active", 5, (5 + 6 + 7 + 10 + 11) / 5, 5, 11]
    frame = open_report(export.path).frame("gpu_metrics")
    assert frame.rows == 40
    assert np.all(np.diff(frame.ints("time_ns")) >= 0)
    assert {*frame.tuples("gpu_id", "metric")} == {(0, "SM Active"), (1, "SM Active")}
