"""Calls that are missing, or HIP's: what is not known is empty, and one list says what launches."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.analysis.work_graph.host_chain import LAUNCH, kinds_of_calls
from nsightpy.commands.breakdown.command import CAUSES, WAITS
from nsightpy.frames import Labels
from tests.support.reports import ROOT, ask

SAMPLES = ROOT / "sample_reports"
CALLS = {"cuda_runtime", "cuda_driver"}


def trace_with(path: Path, **changes: object) -> str:
    """The sample trace without its calls, or with other GPUs."""
    sample = SAMPLES / "torch_2rank" / "train_rank0.pt.trace.json.gz"
    trace = json.loads(gzip.decompress(sample.read_bytes()))
    if "gpus" in changes:
        trace["deviceProperties"] = changes["gpus"]
    else:
        kept = [event for event in trace["traceEvents"] if event.get("cat") not in CALLS]
        trace["traceEvents"] = kept
    path.write_text(json.dumps(trace), encoding="utf-8")
    return str(path)


def export_without_calls(path: Path) -> str:
    shutil.copy(SAMPLES / "single_process.sqlite", path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME")
        file.commit()
    return str(path)


@pytest.fixture(params=["trace", "export"])
def silent(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A report with GPU work and no calls that launched it."""
    if request.param == "trace":
        return trace_with(tmp_path / "silent.json")
    return export_without_calls(tmp_path / "silent.sqlite")


def test_what_no_call_tells_is_not_known(silent: str) -> None:
    table, ranges = nsightpy.gaps(silent, top=0), nsightpy.nvtx(silent).records()
    (budget,) = nsightpy.breakdown(silent).records()
    assert {budget[field.name] for field in (*CAUSES, *WAITS)} == {None}
    assert sum(row["duration_ns"] for row in table.records()) == budget["idle_ns"] > 0
    assert {row["cause"] for row in table.records()} == {""}
    assert any("Idle time is not attributed" in note for note in table.notes)
    unknown = ("total_projected_ns", "gpu_ops", "share_of_busy", "attributed_ns")
    assert {row[name] for row in ranges for name in unknown} == {None}
    operators, modules = (nsightpy.operators(silent, by=by).records() for by in ("", "module"))
    assert bool(operators) == silent.endswith(".json")
    unknown = ("device_total_ns", "device_self_ns")
    assert {row[name] for row in (*operators, *modules) for name in unknown} == {None}
    assert all(row["host_total_ns"] is not None for row in operators)


def test_ncu_is_not_recommended_for_other_gpus(tmp_path: Path) -> None:
    gpu = {"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}
    theirs = trace_with(tmp_path / "theirs.json", gpus=[gpu])
    ours = trace_with(tmp_path / "ours.json", gpus=[{**gpu, "name": "NVIDIA H100"}])
    assert "ncu measures GPUs of NVIDIA only" in nsightpy.select(theirs).notes[0]
    assert not any("of NVIDIA only" in note for note in nsightpy.select(ours).notes)
    commands = [row["next_command"] for row in nsightpy.findings(theirs).records()]
    assert commands
    assert not any("select" in command for command in commands if command)


@pytest.mark.parametrize("second", ["NVIDIA A100", "Quadro P400"])
def test_gpus_without_ordinals_are_named_where_all_are_of_one_model(
    tmp_path: Path, second: str
) -> None:
    path = tmp_path / "two_gpus.sqlite"
    shutil.copy(SAMPLES / "single_process.sqlite", path)
    with closing(sqlite3.connect(path)) as file:
        for table in ("TARGET_INFO_CUDA_DEVICE", "TARGET_INFO_GPU"):
            file.execute(f"DROP TABLE IF EXISTS {table}")
        file.execute("CREATE TABLE TARGET_INFO_GPU (vmId, id, name, smCount, cuDevice)")
        rows = [(0, 3, "NVIDIA A100", 108, None), (0, 2, second, 108, None)]
        file.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?, ?, ?, ?, ?)", rows)
        file.commit()
    (row,) = nsightpy.info(str(path)).records()
    assert row["gpu"] == ("NVIDIA A100" if second == "NVIDIA A100" else None)


EXPORT = ROOT / "sample_reports" / "single_process.sqlite"
# What is found by launches: where a run repeats, and whose ranges other threads launch for.
BY_ORDER = "DELETE FROM NVTX_EVENTS"
OUT_OF_ORDER = (
    "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start + 2000000, end = end + 2000000 "
    "WHERE streamId % 2"
)
BY_OTHER_THREADS = (
    "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET globalTid = globalTid + 1 WHERE EXISTS (SELECT 1 FROM "
    "NVTX_EVENTS n WHERE n.text = 'backward' AND n.start <= CUPTI_ACTIVITY_KIND_RUNTIME.start "
    "AND CUPTI_ACTIVITY_KIND_RUNTIME.end <= n.end)"
)
REQUESTS = {
    BY_ORDER: ("iterations", "kernels --iteration steady", "select", "gaps", "findings"),
    BY_OTHER_THREADS: ("nvtx", "kernels --nvtx backward"),
}
# The functions of HIP for a kernel's launch; nsys adds the version of an entry point.
LAUNCHES = ("hipLaunchKernel", "hipModuleLaunchKernel", "hipExtModuleLaunchKernel_v9000")
CUDA_TO_HIP = (
    "UPDATE StringIds SET value = :launch WHERE value LIKE 'cu%LaunchKernel%'",
    "UPDATE StringIds SET value = 'hip' || substr(value, 5) WHERE value LIKE 'cuda%'",
)


def changed(report: Path, to: Path, *statements: str, **values: str) -> Path:
    """A copy of a report after some statements."""
    with closing(sqlite3.connect(shutil.copy(report, to))) as export, export:
        for statement in statements:
            export.execute(statement, values)
    return to


def answers(reports: Path, request: str) -> list[dict[str, Any]]:
    """The rows, without what names calls and files; usual times are those of a function's calls,
    so that gains differ by some ns.
    """
    document = ask(*request.split(), reports, "--format", "json", "--jobs", "1").json
    return [
        {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in row.items()
            if not any(word in str(value) for word in ("cuda", "hip", "nsightpy "))
        }
        for row in document["rows"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize("program", REQUESTS, ids=["repeats", "threads"])
def test_answers_do_not_depend_on_whose_functions_launch(
    program: str, launch: str, tmp_path: Path
) -> None:
    cuda = changed(EXPORT, tmp_path / "cuda.sqlite", program, OUT_OF_ORDER)
    hip = changed(cuda, tmp_path / "hip.sqlite", *CUDA_TO_HIP, launch=launch)
    for request in REQUESTS[program]:
        rows = answers(cuda, request)
        assert rows
        assert answers(hip, request) == rows, request


def test_no_launch_is_taken_for_loading_code() -> None:
    assert set(kinds_of_calls(Labels.of([*LAUNCHES, "cuLaunchKernelEx"])).tolist()) == {LAUNCH}
