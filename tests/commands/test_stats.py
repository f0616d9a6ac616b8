"""stats: the summaries of nsys against NVIDIA's own output, plain SQL and hand-made exports."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from simulator import Export

import nsightpy
from nsightpy.commands.stats.command import REPORTS
from nsightpy.errors import UsageError
from tests.support.full_export import full
from tests.support.nsys_stats import printed, tables_of
from tests.support.reports import ask, exports, needs_reports
from tests.support.samples import TRAINING


@pytest.mark.parametrize(("export", "stats"), printed())
def test_osrt_sum_is_nvidias_and_what_that_skips(export: Path, stats: Path) -> None:
    theirs = tables_of(stats)["osrt_sum"]
    assert ask("stats", "-r", "osrt_sum", export, "--format", "csv").csv == theirs
    text = stats.read_text(encoding="utf-8")
    names = re.findall(r"/reports/(\w+)\.py\]\.\.\. *\nSKIPPED: \S+ does not contain", text)
    mine = [name for name in names if name in REPORTS]
    assert {"nvtx_sum", "openmp_sum", "um_sum", "openacc_sum", "syscall_sum"} <= set(mine)
    for name in mine:
        table = nsightpy.stats(export, report=name)
        assert not table.rows
        assert "nsys profile" in table.abstentions[0]["what_would_help"]


@exports
@needs_reports
def test_reports_that_are_commands_say_the_same(path: Path) -> None:
    kernels, memory, calls = nsightpy.kernels(path), nsightpy.memory(path), nsightpy.api(path)
    for name, table in (
        ("cuda_gpu_kern_sum:base", nsightpy.kernels(path, name="base")),
        ("cuda_api_sum", calls),
        ("cuda_gpu_mem_time_sum", memory),
    ):
        found = nsightpy.stats(path, report=name)
        assert found.records() == [{c: row[c] for c in found.columns} for row in table.records()]
    together = nsightpy.stats(path, report="cuda_api_gpu_sum")
    names = ("Category", "Operation", "Total Time (ns)", "StdDev (ns)")
    assert sorted(zip(*map(together.column, names), strict=True)) == sorted(
        (category, row[name], row["Total Time (ns)"], row["StdDev (ns)"])
        for category, table, name in (
            ("CUDA_KERNEL", kernels, "Name"),
            ("MEMORY_OPER", memory, "Operation"),
            ("CUDA_API", calls, "Name"),
        )
        for row in table.records()
    )
    shares = sum(together.column("Time (%)"))
    assert shares == pytest.approx(100 if together.rows else 0, abs=2)


def test_nvtx_sums_are_those_of_nvtx() -> None:
    ranges = nsightpy.nvtx(TRAINING, top=0).records()
    wanted = {
        (f"{row['domain']}:{row['range']}", row["style"]): (row["instances"], row["total_range_ns"])
        for row in ranges
    }
    rows = nsightpy.stats(TRAINING, report="nvtx_sum").records()
    assert {
        (row["Range"], row["Style"]): (row["Instances"], row["Total Time (ns)"]) for row in rows
    } == wanted
    pushed = nsightpy.stats(TRAINING, report="nvtx_pushpop_sum").column("Range")
    assert sorted(pushed) == sorted(name for name, style in wanted if style == "PushPop")


def test_kernels_by_range_and_projections_of_a_small_export(tmp_path: Path) -> None:
    path = tmp_path / "small.sqlite"
    export = Export(path)
    export.nvtx_push_pop(0, 1_000, "step")
    export.nvtx_push_pop(100, 400, "layer")
    export.nvtx_push_pop(500, 900, "layer")
    export.kernel(2_000, 2_010, "a", launch=(110, 120))
    export.kernel(2_010, 2_040, "a", launch=(130, 140))
    export.kernel(2_050, 2_100, "b", launch=(510, 520))
    export.kernel(2_200, 2_300, "a", launch=(950, 960))
    export.write()
    table = nsightpy.stats(path, report="nvtx_kern_sum")
    names = ("NVTX Range", "Kernel Name", "NVTX Inst", "Kern Inst", "Total Time (ns)", "Med (ns)")
    assert set(zip(*map(table.column, names), strict=True)) == {
        (":step", "a", 1, 3, 140, 30.0),
        (":step", "b", 1, 1, 50, 50.0),
        (":layer", "a", 1, 2, 40, 20.0),
        (":layer", "b", 1, 1, 50, 50.0),
    }
    step, layer = nsightpy.stats(path, report="nvtx_gpu_proj_sum").records()
    names = ("Range", "Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances")
    assert [step[name] for name in names] == [":step", 300, 1_000, 1]
    assert [layer[name] for name in names] == [":layer", 40 + 50, 700, 2]
    names = ("Total GPU Ops", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child")
    assert [step[name] for name in names] == [4, 4.0, 0.0, 2.0]
    assert [layer[name] for name in names] == [3, 1.5, 1.0, 0.0]
    names = (f"Proj {name} (ns)" for name in ("Avg", "Med", "Min", "Max", "StdDev"))
    assert [layer[name] for name in names] == [45.0, 45.0, 40, 50, 7.1]


def test_a_kernel_waits_in_the_queue_where_it_begins_after_its_call(tmp_path: Path) -> None:
    """Kernels go apart by thread, call and name."""
    export = Export(tmp_path / "queue.sqlite")
    for begin in (18, 25, 20):  # its call returns at 20
        export.kernel(begin, begin + 10, "a", launch=(10, 20))
    export.kernel(18, 100, "a", launch=(10, 20, 1001))
    export.kernel(18, 101, "a", launch=(10, 20, 1001, "cuLaunchKernel"))
    table = nsightpy.stats(export.write(), report="cuda_kern_exec_sum")
    times = (f"{of} (ns)" for of in ("QMed", "TMax", "AMed", "KMed"))
    names = ("TID", "API Name", "Count", "QCount", *times)
    assert sorted(zip(*map(table.column, names), strict=True)) == [
        (1000, "cudaLaunchKernel", 3, 1, 5.0, 25, 10.0, 10.0),
        (1001, "cuLaunchKernel", 1, 0, None, 91, 10.0, 83.0),
        (1001, "cudaLaunchKernel", 1, 0, None, 90, 10.0, 82.0),
    ]


def test_mpi_by_time_and_size(tmp_path: Path) -> None:
    path = tmp_path / "mpi.sqlite"
    export = Export(path)
    export.mpi_collective(100, 200, "MPI_Allreduce", 4_096)
    export.mpi_collective(300, 500, "MPI_Allreduce", 1_024)
    export.mpi_collective(600, 610, "MPI_Bcast", 8, received=9)
    export.write()
    table = nsightpy.stats(path, report="mpi_event_sum")
    names = ("Source", "Name", "Total Time (ns)", "Instances")
    assert list(zip(*map(table.column, names), strict=True)) == [
        ("MPI_COLLECTIVES_EVENTS", "MPI_Allreduce", 300, 2),
        ("MPI_COLLECTIVES_EVENTS", "MPI_Bcast", 10, 1),
    ]
    table = nsightpy.stats(path, report="mpi_msg_size_sum")
    names = ("Source", "Name", "Total Message Volume (bytes)", "Avg (bytes)", "Min (bytes)")
    assert set(zip(*map(table.column, names), strict=True)) == {
        ("coll_send", "MPI_Allreduce", 5_120, 2_560.0, 1_024),
        ("coll_recv", "MPI_Allreduce", 5_120, 2_560.0, 1_024),
        ("coll_send", "MPI_Bcast", 8, 8.0, 8),
        ("coll_recv", "MPI_Bcast", 9, 9.0, 9),
    }
    assert set(table.column("Name")[:2]) == {"MPI_Allreduce"}


OPENMP = "OPENMP_EVENT_KIND_PARALLEL"
DIRECTIVES = f"""
CREATE TABLE {OPENMP} (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER, eventKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH (start INTEGER, end INTEGER, nameId INTEGER,
    globalTid INTEGER, eventKind INTEGER);
CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INTEGER, globalPid INTEGER, address INTEGER,
    originalFaultPc INTEGER);
CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INTEGER, end INTEGER, globalPid INTEGER,
    deviceId INTEGER, address INTEGER, numberOfPageFaults INTEGER);
INSERT INTO StringIds VALUES (900001, 'parallel'), (900002, 'launch kernel');
INSERT INTO {OPENMP} VALUES (10, 30, 1, 5, 0, 900001, 1), (40, 50, 1, 5, 0, 900001, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH VALUES (10, 17, 900002, 5, 1);
INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS VALUES (5, 16777216, 4096, 77), (6, 16777216, 8192, 77),
    (7, 16777216, 4096, 78);
INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (8, 9, 16777216, 0, 65536, 12);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, correlationId,
    globalPid, bytes, copyKind, virtualAddress) VALUES
    (100, 1100, 0, 1, 7, 0, 16777216, 2000000, 11, 4096),
    (1100, 2100, 0, 1, 7, 0, 16777216, 1000000, 12, 4096),
    (2100, 2600, 0, 1, 7, 0, 16777216, 500000, 11, 140000000000);
"""


def test_directives_and_unified_memory(tmp_path: Path) -> None:
    path = full(tmp_path / "full.sqlite").write()
    with closing(sqlite3.connect(path)) as file:
        file.executescript(DIRECTIVES)
    (parallel,) = nsightpy.stats(path, report="openmp_sum").records()
    assert (parallel["Count"], parallel["Total Time (ns)"], parallel["Name"]) == (2, 30, "parallel")
    (launch,) = nsightpy.stats(path, report="openacc_sum").records()
    assert (launch["Count"], launch["Total Time (ns)"]) == (1, 7)
    (total,) = nsightpy.stats(path, report="um_total_sum").rows
    assert total == (2.5, 1.0, 3, 12, "0x1000", f"0x{140_000_000_000:X}")
    pages = nsightpy.stats(path, report="um_sum").rows
    assert list(pages) == [
        ("0x1000", 2.0, 1.0, 2, None, 1_500_000.0, 1),
        (f"0x{140_000_000_000:X}", 0.5, None, None, None, 1_000_000.0, 1),
        ("0x2000", None, None, 1, None, None, 1),
        ("0x10000", None, None, None, 12, None, 1),
    ]
    faults = nsightpy.stats(path, report="um_cpu_page_faults_sum").rows
    assert list(faults) == [(2, "0x4D"), (1, "0x4E")]


def test_kernels_go_by_the_names_that_are_asked_for(tmp_path: Path) -> None:
    path = full(tmp_path / "full.sqlite").write()
    found = nsightpy.stats(path, report="cuda_gpu_sum:base").records()
    names = {row["Name"] for row in nsightpy.kernels(path, name="base").records()}
    assert {row["Operation"] for row in found if row["Category"] == "CUDA_KERNEL"} == names
    for report in ("cuda_kern_exec_sum", "nvtx_kern_sum"):
        base = nsightpy.stats(path, report=f"{report}:base").records()
        assert {row["Kernel Name"] for row in base} <= names
    for wrong, said in (("cuda_gpu_sum:short", "base"), ("nvtx_sums", "nvtx_sum")):
        with pytest.raises(UsageError, match=said):
            nsightpy.stats(path, report=wrong)


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_answers_on_a_rank_set_or_says_what_to_record(name: str) -> None:
    table = nsightpy.stats(TRAINING, report=name, top=3)
    assert table.rows or any(REPORTS[name].records in note for note in table.notes)
    assert name in nsightpy.stats.words


def test_sizes_of_memory_operations(tmp_path: Path) -> None:
    export = Export(tmp_path / "sizes.sqlite")
    export.memcpy(0, 10, 1_000_000, "HtoD", launch=(-9, -8))
    export.memcpy(20, 30, 3_000_000, "HtoD", launch=(11, 12))
    export.memset(40, 90, 9_000_000, launch=(31, 32))
    table = nsightpy.stats(export.write(), report="cuda_gpu_mem_size_sum")
    assert ",".join(table.columns) == (
        "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation"
    )
    assert table.rows == (
        (9.0, 1, 9.0, 9.0, 9.0, 9.0, 0.0, "[CUDA memset]"),
        (4.0, 2, 2.0, 2.0, 1.0, 3.0, 1.414, "[CUDA memcpy Host-to-Device]"),
    )
