"""The simulator: the true schema, a truth that is what the files say; samples and benchmarks."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS, Export, schema
from simulator.truth import COMMUNICATION, COMPUTE, GRAPH, MEMORY, budget

from nsightpy.commands.ranks.command import ranks
from nsightpy.reports.opening import open_report
from nsightpy.reports.profiles import NsysReport
from tests.support.full_export import columns
from tests.support.reports import DDP, NSYS, ROOT, needs_reports, select

# Documented tables that none of the public reports happens to contain.
DOCUMENTED = {
    *("CUDA_GRAPH_NODE_EVENTS", "GPU_METRICS", "TARGET_INFO_GPU_METRICS"),
    *("MPI_RANKS", "MPI_COMMUNICATORS", "MPI_P2P_EVENTS"),
    *("MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"),
}
DOCUMENTED_COLUMNS = {
    "CUDA_GPU_MEMORY_USAGE_EVENTS": {
        *("streamId", "localMemoryPoolAddress", "localMemoryPoolReleaseThreshold"),
        *("localMemoryPoolSize", "localMemoryPoolUtilizedSize", "importedMemoryPoolAddress"),
        "importedMemoryPoolProcessId",
    },
    # Exports of 2020 named it so.
    "CUPTI_ACTIVITY_KIND_MEMCPY": {"srcId"},
}


def ours(generation: str) -> dict[str, list[tuple[str, str, bool]]]:
    return {
        name: [(c.name, c.declared, c.not_null) for c in found]
        for name, found in schema.tables(generation).items()
    }


@needs_reports
@pytest.mark.parametrize("generation", schema.GENERATIONS)
def test_every_table_and_column_exists_in_a_real_export(generation: str) -> None:
    real: dict[str, set[str]] = {}
    for path in NSYS.glob("*.sqlite"):
        for name, layout in columns(path).items():
            real.setdefault(name, set()).update(column for column, _, _ in layout)
    for name, layout in ours(generation).items():
        if name in DOCUMENTED:
            assert name not in real, f"{name} is real: take it off the list"
            continue
        invented = {column for column, _, _ in layout} - real.get(name, set())
        assert invented <= DOCUMENTED_COLUMNS.get(name, set()), name


@needs_reports
def test_generations_are_column_for_column_the_real_ones(tmp_path: Path) -> None:
    """Those of the middle one with other types; enumerations hold what the real ones do."""
    newest, middle = columns(NSYS / DDP), columns(NSYS / "rodinia_rtx3090_2022.4.sqlite")
    new, mid = ours(schema.NEW), ours(schema.MID)
    shared = set(newest) & set(new)
    assert {f"CUPTI_ACTIVITY_KIND_{k}" for k in ("KERNEL", "RUNTIME", "MEMCPY")} <= shared
    assert {"NVTX_EVENTS", "TARGET_INFO_GPU", "META_DATA_CAPTURE"} <= shared
    assert {name: new[name] for name in shared} == {name: newest[name] for name in shared}
    for name in set(middle) & set(mid):
        assert [c[0] for c in mid[name]] == [c[0] for c in middle[name]], name
    made = Export(tmp_path / "a.sqlite").write()
    for every in (f"SELECT * FROM {name}" for name in new if name.startswith("ENUM_")):
        assert set(select(made, every)) <= set(select(NSYS / DDP, every)), every


def test_oldest_generation_is_declared_int_and_has_no_metadata(tmp_path: Path) -> None:
    export = Export(tmp_path / "old.sqlite", "old")
    export.gpu()
    export.kernel(10, 20, "saxpy", launch=(1, 2))
    found = columns(export.write())
    assert {kind for layout in found.values() for _, kind, _ in layout} == {"INT", "TEXT"}
    assert not {"META_DATA_EXPORT", "EXPORT_META_DATA", "PROCESSES"} & set(found)
    assert {"TARGET_INFO_CUDA_GPU", "TARGET_INFO_GPU"} <= set(found)
    kernels = {name for name, _, _ in found["CUPTI_ACTIVITY_KIND_KERNEL"]}
    assert not {"mangledName", "graphNodeId", "greenContextId"} & kernels
    assert "eventClass" not in [name for name, _, _ in found["CUPTI_ACTIVITY_KIND_RUNTIME"]]


def test_a_budget_worked_out_by_hand() -> None:
    events = [(0, 10, COMPUTE), (5, 20, COMMUNICATION), (18, 25, MEMORY), (30, 40, GRAPH)]
    expected = {"window": 40, "busy": 35, "idle": 5, "compute": 20, "communication": 15}
    expected |= {"overlap": 5, "exposed_communication": 8, "memory": 7, "copy_only": 5}
    expected |= {"opaque_graph": 10, "start": 0, "end": 40}
    assert budget(events) == {f"{name}_ns": ns for name, ns in expected.items()}


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"ranks_64"}))
def test_the_files_say_what_the_truth_says(name: str, tmp_path: Path) -> None:
    _, truth = PRESETS[name].write(tmp_path)
    assert json.loads(json.dumps(truth)) == truth
    ranks: Any = truth["ranks"]
    assert ranks
    for rank in ranks:
        pid, report = (1 << 48) | (rank["pid"] << 24), tmp_path / rank["report"]
        rows = select(
            report,
            'SELECT s.value, count(*), sum(k."end" - k.start) '
            "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName "
            f"WHERE k.globalPid = {pid} GROUP BY 1",
        )
        assert set(rows) == {(k["name"], k["instances"], k["total_ns"]) for k in rank["kernels"]}
        copies = select(
            report,
            f"SELECT count(*), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE globalPid = {pid}",
        )
        assert copies == [tuple(sum(c[key] for c in rank["copies"]) for key in ("count", "bytes"))]


@pytest.mark.slow
def test_samples_are_what_the_script_makes(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "make_sample_reports.py"
    subprocess.run([sys.executable, script, "--output", tmp_path], check=True)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert sum((tmp_path / name).stat().st_size for name in made) < 4_000_000
    for name in made:
        old, new = ROOT / "sample_reports" / name, tmp_path / name
        if name.suffix == ".sqlite":
            # The layout of pages may differ between SQLite libraries; what is in them may not.
            with closing(sqlite3.connect(old)) as a, closing(sqlite3.connect(new)) as b:
                assert list(a.iterdump()) == list(b.iterdump()), name
        else:
            assert old.read_bytes() == new.read_bytes(), name


BENCHMARKS = ROOT / "benchmarks"
MEASURED_KERNELS = 3_000


def test_what_the_reports_of_a_job_hold(tmp_path: Path) -> None:
    job, many = tmp_path / "job", str(MEASURED_KERNELS)
    line = [sys.executable, BENCHMARKS / "generate.py", "--kernels", many, "--reports", "4", job]
    subprocess.run(line, check=True, capture_output=True)
    report = open_report(job / "report_rank3.sqlite")
    assert isinstance(report, NsysReport)
    kernels = report.frame("kernels")
    assert kernels.rows == MEASURED_KERNELS
    sizes = report.frame("kernels", ("blocks", "threads"))
    for name, shape in (("blocks", "grid"), ("threads", "block")):
        x, y, z = (kernels.ints(f"{shape}_{axis}") for axis in "xyz")
        assert (sizes.ints(name) == x * y * z).all()
    calls = report.frame("api_calls").rows
    assert calls == 2 * MEASURED_KERNELS + 2, "two a kernel, one that ends an iteration"
    waits = report.frame("synchronizations").labels("kind")
    assert np.count_nonzero(waits.equals(["stream"])) == 2
    assert np.count_nonzero(waits.equals(["stream wait"])) > MEASURED_KERNELS / 10
    assert report.frame("cuda_events").rows > MEASURED_KERNELS / 10
    table = ranks(job)
    assert table.column("alignment") == ["collectives"] * 4
    assert all(abs(offset) < 1_000 for offset in table.column("offset_ns"))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone tells it")
def test_memory_is_what_a_process_has_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapped file is not counted, however large; what is written to is."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    from harness.measure import Command, run_once

    size = 64 << 20
    with (tmp_path / "mapped").open("wb") as file:
        file.truncate(size)
    begin, end = "import mmap, os, time; m = ", "; m[::4096]; time.sleep(0.1)"

    def peak(held: str) -> float:
        command = Command("it", (sys.executable, "-c", begin + held + end))
        return run_once(command, tmp_path).peak_bytes

    own = peak(f"bytearray(b'1') * {size}")
    mapped = peak(f"mmap.mmap(os.open('mapped', os.O_RDONLY), {size}, access=mmap.ACCESS_READ)")
    assert own > size > size / 2 > mapped > 0
