"""The simulator: true schema, same bytes, and a truth that adds up and is what the files say."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulator import PRESETS, Export, TrainingJob, schema
from simulator.names import mangled_name, short_name
from simulator.presets import SINGLE_PROCESS, SMALL, TRAINING_4RANK
from simulator.truth import COMMUNICATION, COMPUTE, GRAPH, MEMORY, budget

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "sample_reports"
REPORTS = Path(os.environ.get("NSIGHTPY_REPORTS", ROOT.parent / "shared" / "reports")) / "nsys"
NEWEST = "ddp_2rank_nccl_rtx3090_2026.3.sqlite"
MIDDLE = "rodinia_rtx3090_2022.4.sqlite"

# Documented tables that none of the public reports happens to contain.
DOCUMENTED = {
    "CUDA_GRAPH_NODE_EVENTS",
    "GPU_METRICS",
    "TARGET_INFO_GPU_METRICS",
    "NET_NIC_METRIC",
    "TARGET_INFO_NETWORK_METRICS",
    "MPI_RANKS",
    "MPI_COMMUNICATORS",
    "MPI_P2P_EVENTS",
    "MPI_COLLECTIVES_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
}
DOCUMENTED_COLUMNS = {
    "CUDA_GPU_MEMORY_USAGE_EVENTS": {
        "streamId",
        "localMemoryPoolAddress",
        "localMemoryPoolReleaseThreshold",
        "localMemoryPoolSize",
        "localMemoryPoolUtilizedSize",
        "importedMemoryPoolAddress",
        "importedMemoryPoolProcessId",
    },
    # Exports of 2020 named it so.
    "CUPTI_ACTIVITY_KIND_MEMCPY": {"srcId"},
}

Layout = dict[str, list[tuple[str, str, bool]]]

Written = tuple[TrainingJob, list[Path], dict[str, Any]]

needs_reports = pytest.mark.skipif(not REPORTS.is_dir(), reason="the real reports are not here")


def layout(path: Path) -> Layout:
    """Table -> (column, declared type, NOT NULL) in order."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        return {
            name: [
                (row[1], row[2], bool(row[3]))
                for row in connection.execute(f'PRAGMA table_info("{name}")')
            ]
            for name in names
        }


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        return connection.execute(sql).fetchall()


def ours(generation: str) -> Layout:
    return {
        name: [(c.name, c.declared, c.not_null) for c in columns]
        for name, columns in schema.tables(generation).items()
    }


def union_of_reports() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted(REPORTS.glob("*.sqlite")):
        for name, columns in layout(path).items():
            found.setdefault(name, set()).update(column for column, _, _ in columns)
    return found


# The schema is the true one


@needs_reports
@pytest.mark.parametrize("generation", schema.GENERATIONS)
def test_every_table_and_column_exists_in_a_real_export(generation: str) -> None:
    real = union_of_reports()
    for name, columns in ours(generation).items():
        if name in DOCUMENTED:
            assert name not in real, f"{name} is real: take it off the list"
            continue
        invented = {column for column, _, _ in columns} - real.get(name, set())
        assert invented <= DOCUMENTED_COLUMNS.get(name, set()), name


@needs_reports
def test_newest_generation_is_column_for_column_the_real_one() -> None:
    real, mine = layout(REPORTS / NEWEST), ours(schema.NEW)
    shared = set(real) & set(mine)
    assert {f"CUPTI_ACTIVITY_KIND_{k}" for k in ("KERNEL", "RUNTIME", "MEMCPY")} <= shared
    assert {"NVTX_EVENTS", "TARGET_INFO_GPU", "META_DATA_CAPTURE"} <= shared
    for name in sorted(shared):
        assert mine[name] == real[name], name


@needs_reports
def test_middle_generation_has_the_columns_of_2022() -> None:
    real, mine = layout(REPORTS / MIDDLE), ours(schema.MID)
    for name in sorted(set(real) & set(mine)):
        assert [c[0] for c in mine[name]] == [c[0] for c in real[name]], name


@needs_reports
def test_enumerations_are_the_real_ones(tmp_path: Path) -> None:
    made = Export(tmp_path / "a.sqlite").write()
    for name in schema.tables(schema.NEW):
        if name.startswith("ENUM_"):
            every = query(REPORTS / NEWEST, f"SELECT * FROM {name}")
            assert set(query(made, f"SELECT * FROM {name}")) <= set(every), name


def test_oldest_generation_is_declared_int_and_has_no_metadata(tmp_path: Path) -> None:
    export = Export(tmp_path / "old.sqlite", "old")
    export.gpu()
    export.kernel(10, 20, "saxpy", launch=(1, 2))
    found = layout(export.write())
    assert {kind for columns in found.values() for _, kind, _ in columns} == {"INT", "TEXT"}
    assert not {"META_DATA_EXPORT", "EXPORT_META_DATA", "PROCESSES"} & set(found)
    assert {"TARGET_INFO_CUDA_GPU", "TARGET_INFO_GPU"} <= set(found)
    columns = [name for name, _, _ in found["CUPTI_ACTIVITY_KIND_KERNEL"]]
    assert not {"mangledName", "graphNodeId", "greenContextId"} & set(columns)
    assert "eventClass" not in [c[0] for c in found["CUPTI_ACTIVITY_KIND_RUNTIME"]]


# The builder


def test_tables_are_lazy_and_can_be_dropped_or_left_empty(tmp_path: Path) -> None:
    plain = layout(Export(tmp_path / "a.sqlite").write())
    assert "CUPTI_ACTIVITY_KIND_KERNEL" not in plain
    assert {"StringIds", "META_DATA_EXPORT", "PROCESSES", "ENUM_CUDA_MEMCPY_OPER"} <= set(plain)
    export = Export(
        tmp_path / "b.sqlite",
        drop_tables=["StringIds"],
        empty_tables=["OSRT_API"],
        extra_sql=["CREATE TABLE EXTRA (a)"],
    )
    found = layout(export.write())
    assert "StringIds" not in found
    assert {"OSRT_API", "EXTRA"} <= set(found)


def test_a_launch_is_joined_by_process_and_correlation(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    one, two = export.process(100), export.process(200)
    first = export.kernel(50, 60, "k", process=one, launch=(10, 20, 7, "cudaLaunchKernel_v7000"))
    second = export.kernel(50, 60, "k", process=two, launch=(11, 21))
    assert first == second == 1
    rows = query(
        export.write(),
        "SELECT r.start, r.globalTid & 0xFFFFFF FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId "
        "AND (r.globalTid & -16777216) = k.globalPid ORDER BY 1",
    )
    assert rows == [(10, 7), (11, 200)]


def test_any_bytes_survive_in_texts(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 2, b"bad\xff\x00name")
    export.mark(3, b"\xfe")
    path = export.write()
    assert (b"bad\xff\x00name",) in query(path, "SELECT value FROM StringIds")
    assert query(path, "SELECT text, typeof(text), end FROM NVTX_EVENTS") == [
        (b"\xfe", b"text", None)
    ]


def test_columns_override_and_unknown_ones_are_refused(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.kernel(1, 2, "k", globalPid=None, graphNodeId=9)
    with pytest.raises(ValueError, match="no column colour"):
        export.kernel(1, 2, "k", colour=1)
    rows = query(export.write(), "SELECT globalPid, graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL")
    assert rows == [(None, 9)]


def test_bulk_takes_arrays_and_single_values(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    name = export.string("cudaMalloc_v3020")
    start = np.arange(5) * 10
    columns = {"start": start, "end": start + 3, "nameId": name, "globalTid": [1, 2, 3, 4, 5]}
    assert export.bulk("CUPTI_ACTIVITY_KIND_RUNTIME", columns) == 5
    with pytest.raises(ValueError, match="lengths"):
        export.bulk("CUPTI_ACTIVITY_KIND_RUNTIME", columns | {"end": start[:2]})
    rows = query(export.write(), 'SELECT start, "end", globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME')
    assert rows[-1] == (40, 43, 5)


@pytest.mark.parametrize(
    "demangled, short",
    [
        ("void a::b<(int)4, std::array<char *, (unsigned long)2>>(int, T2)", "b"),
        ("void at::native::<unnamed>::norm<float>(const T1 *)", "norm"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)",
         "ncclDevKernel_SendRecv"),
        ("void k<a::f(int)::[lambda() (instance 1)]::operator ()() const::g>(int)", "k"),
    ],
)  # fmt: skip
def test_short_names(demangled: str, short: str) -> None:
    assert short_name(demangled) == short
    assert mangled_name(demangled) == short or mangled_name(demangled).startswith("_Z")


def test_kernels_of_a_job_keep_their_names_apart() -> None:
    specs = {op.spec for rank in SMALL.run().ranks for op in rank.operations if op.spec}
    names = {spec.name for spec in specs}
    assert len(names) > 20
    assert len({mangled_name(name) for name in names}) == len(names)
    assert any(len(name) > 300 for name in names)


# The same arguments give the same bytes


def test_reports_are_reproducible_byte_for_byte(tmp_path: Path) -> None:
    first, truth = SMALL.write(tmp_path / "a")
    second, again = SMALL.write(tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert truth == again
    other, _ = replace(SMALL, seed=99).write(tmp_path / "c")
    assert first[0].read_bytes() != other[0].read_bytes()


# The truth


def test_a_budget_worked_out_by_hand() -> None:
    events = [(0, 10, COMPUTE), (5, 20, COMMUNICATION), (18, 25, MEMORY), (30, 40, GRAPH)]
    found = budget(events)
    assert found["window_ns"] == 40
    assert found["busy_ns"] == 35
    assert found["idle_ns"] == 5
    assert found["compute_ns"] == 20
    assert found["communication_ns"] == 15
    assert found["overlap_ns"] == 5
    assert found["exposed_communication_ns"] == 8
    assert found["memory_ns"] == 7
    assert found["copy_only_ns"] == 5
    assert found["opaque_graph_ns"] == 10
    assert found["partition"] == {
        "compute": 15,
        "communication": 8,
        "compute+communication": 5,
        "memory": 5,
        "communication+memory": 2,
    }


@pytest.fixture(scope="module", params=sorted(set(PRESETS) - {"ranks_64"}))
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    job = PRESETS[request.param]
    paths, truth = job.write(tmp_path_factory.mktemp(request.param))
    return job, paths, truth


def test_budgets_add_up(written: Written) -> None:
    _, _, truth = written
    assert truth["ranks"]
    for rank in truth["ranks"]:
        b = rank["budget"]
        assert b["busy_ns"] + b["idle_ns"] == b["window_ns"] == b["end_ns"] - b["start_ns"]
        assert sum(b["partition"].values()) == b["busy_ns"]
        assert b["exposed_communication_ns"] == b["partition"].get("communication", 0)
        assert b["copy_only_ns"] == b["partition"].get("memory", 0)
        assert b["overlap_ns"] + b["exposed_communication_ns"] <= b["communication_ns"]
        assert 0 < b["compute_ns"] <= b["busy_ns"] <= b["window_ns"]
    assert json.loads(json.dumps(truth)) == truth


def test_the_files_say_what_the_truth_says(written: Written) -> None:
    _, paths, truth = written
    folder = paths[0].parent
    for rank in truth["ranks"]:
        pid = (1 << 48) | (rank["pid"] << 24)
        rows = query(
            folder / rank["report"],
            'SELECT s.value, count(*), sum(k."end" - k.start), min(k.start) '
            "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName "
            f"WHERE k.globalPid = {pid} GROUP BY 1",
        )
        told = {(k["name"].encode(), k["instances"], k["total_ns"]) for k in rank["kernels"]}
        assert {row[:3] for row in rows} == told
        copies = query(
            folder / rank["report"],
            f"SELECT count(*), sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE globalPid = {pid}",
        )
        assert copies == [
            (sum(c["count"] for c in rank["copies"]), sum(c["bytes"] for c in rank["copies"]))
        ]


def test_streams_run_in_order_and_launches_come_first(written: Written) -> None:
    _, paths, _ = written
    for path in paths:
        overlapping = query(
            path,
            'SELECT count(*) FROM (SELECT start, lag("end") OVER (PARTITION BY globalPid, '
            "streamId ORDER BY start) AS before FROM CUPTI_ACTIVITY_KIND_KERNEL) "
            "WHERE start < before",
        )
        early = query(
            path,
            "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
            "ON r.correlationId = k.correlationId AND (r.globalTid & -16777216) = k.globalPid "
            "WHERE k.start <= r.start",
        )
        assert overlapping == early == [(0,)]


def test_collectives_end_together_on_the_true_clock() -> None:
    run = TRAINING_4RANK.run()
    assert {group.kind for group in run.groups} == {"world", "tensor", "data"}
    assert any(group.number >= 1 << 63 for group in run.groups)
    for instance in run.instances:
        ends = instance.ends.values()
        assert max(ends) - min(ends) < 6 * TRAINING_4RANK.jitter_ns
        assert min(ends) > max(instance.starts.values())


def test_the_straggler_arrives_last_once_warm() -> None:
    run = TRAINING_4RANK.run()
    warm = max(r.end for r in run.ranks[2].ranges if r.text == "iteration") - 60_000_000
    steady = [i for i in run.instances if 2 in i.starts and i.starts[2] > warm]
    last = [i for i in steady if max(i.starts, key=lambda rank: i.starts[rank]) == 2]
    assert len(steady) > 50
    assert len(last) / len(steady) > 0.8


def test_clock_errors_are_in_the_reports_as_told(tmp_path: Path) -> None:
    paths, truth = TRAINING_4RANK.write(tmp_path)
    ((epoch,),) = query(paths[2], "SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
    clock = truth["ranks"][2]["clock"]  # type: ignore[index]
    assert epoch == clock["session_start_true_ns"] + clock["utc_error_ns"]
    assert clock["offset_ns"] == 3_400_250
    assert clock["drift_ppm"] == 6.0
    starts = [
        query(path, "SELECT systemClockNs FROM TARGET_INFO_SESSION_START_TIME")[0][0]
        for path in paths
    ]
    assert starts[1] - starts[0] == 31_000_000  # same node, same monotonic clock


def test_graphs_are_opaque_or_opened() -> None:
    opaque, opened = SINGLE_PROCESS.run(), replace(SINGLE_PROCESS, graph_mode="node").run()
    launches = [op for op in opaque.ranks[0].operations if op.role == "graph"]
    nodes = [op for op in opened.ranks[0].operations if op.node is not None]
    assert len(launches) == SINGLE_PROCESS.graph_replays
    assert len({op.correlation for op in nodes}) == SINGLE_PROCESS.graph_replays
    assert len(nodes) > 10 * len(launches)


def test_old_generations_refuse_what_they_cannot_show() -> None:
    with pytest.raises(ValueError, match="whole graph launches"):
        replace(SINGLE_PROCESS, generation="mid")


def test_one_report_holds_two_processes_with_equal_correlation_ids(tmp_path: Path) -> None:
    (path,), _ = PRESETS["one_report_2rank"].write(tmp_path)
    ((wrong,),) = query(
        path,
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId",
    )
    ((kernels,),) = query(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    assert wrong > kernels


def test_environment_modes(tmp_path: Path) -> None:
    def environment(name: str) -> bytes:
        paths, _ = PRESETS[name].write(tmp_path / name)
        sql = "SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%ENVIRONMENT%'"
        return b" ".join(value for (value,) in query(paths[-1], sql))

    assert b'RANK="1"' in environment("small")
    assert b'SLURM_PROCID="0" ' in environment("slurm_zero")
    assert b'OMPI_COMM_WORLD_RANK="1"' in environment("slurm_zero")
    assert b'SECRET_TOKEN="do-not-print"' in environment("small")
    assert environment("stripped") == b""
    sql = "SELECT text FROM NVTX_EVENTS WHERE eventType = 39"
    mpi = tmp_path / "mpi"
    environment("mpi")
    assert query(mpi / "mpi_rank1.sqlite", sql) == [(b"MPI Rank 1",)]
    assert query(mpi / "mpi_rank1.sqlite", "SELECT rank FROM MPI_RANKS") == [(1,)]


def test_binary_payloads_hold_what_the_json_says(tmp_path: Path) -> None:
    blobs, _ = PRESETS["blob"].write(tmp_path)
    texts, _ = SMALL.write(tmp_path)
    sql = "SELECT {} FROM NVTX_EVENTS WHERE domainId = 1 AND {} LIKE '%' ORDER BY start, end"
    raw = query(blobs[0], sql.format("binaryData", "binaryData"))
    plain = query(texts[0], sql.format("jsonText", "jsonText"))
    assert len(raw) == len(plain) > 10
    for (blob,), (text,) in zip(raw, plain, strict=True):
        told = json.loads(text)
        assert int.from_bytes(blob[32:40], "little") == told["NCCL communicator ID"]
        if "Message size [bytes]" in told:
            assert int.from_bytes(blob[40:48], "little") == told["Message size [bytes]"]


def test_orphan_kernels_have_no_launch(tmp_path: Path) -> None:
    paths, _ = PRESETS["edges"].write(tmp_path)
    rows = query(
        paths[0],
        "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k LEFT JOIN "
        "CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId "
        "WHERE r.start IS NULL",
    )
    assert rows == [(12,)]


# The samples


def test_samples_are_what_the_script_makes(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "make_sample_reports.py"
    subprocess.run([sys.executable, script, "--output", tmp_path], check=True)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert sum((tmp_path / name).stat().st_size for name in made) < 4_000_000
    for name in made:
        old, new = SAMPLES / name, tmp_path / name
        if name.suffix == ".sqlite":
            # The layout of pages may differ between SQLite libraries; what is in them may not.
            with closing(sqlite3.connect(old)) as a, closing(sqlite3.connect(new)) as b:
                assert list(a.iterdump()) == list(b.iterdump()), name
        else:
            assert old.read_bytes() == new.read_bytes(), name


def test_samples_keep_their_story() -> None:
    truth = json.loads((SAMPLES / "training_4rank" / "truth.json").read_text())
    assert truth["straggler"] == 2
    for rank in truth["ranks"]:
        budget = rank["budget"]
        share = budget["exposed_communication_ns"] / budget["window_ns"]
        assert 0.1 < share < 0.2
        assert budget["copy_only_ns"] > 0
        assert budget["idle_ns"] > 0.1 * budget["window_ns"]
        assert len(rank["kernels"]) > 20
        lengths = [i["end_ns"] - i["start_ns"] for i in rank["iterations"]]
        assert min(lengths[:2]) > max(lengths[2:])
