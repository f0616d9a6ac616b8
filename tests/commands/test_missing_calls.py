"""Captures without API calls, and of other makers' GPUs: what is not known is empty, never zero."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import nsightpy
from tests.support.reports import ROOT

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


def test_idle_intervals_are_listed_without_a_cause(silent: str) -> None:
    table = nsightpy.gaps(silent, top=1_000_000)
    (budget,) = nsightpy.breakdown(silent).records()
    assert sum(row["duration_ns"] for row in table.records()) == budget["idle_ns"] > 0
    assert {row["cause"] for row in table.records()} == {""}
    assert any("Idle time is not attributed" in note for note in table.notes)


def test_ranges_have_no_share_of_what_nobody_knows(silent: str) -> None:
    rows = nsightpy.nvtx(silent).records()
    assert rows
    unknown = ("total_projected_ns", "gpu_ops", "share_of_busy", "attributed_ns")
    assert {row[name] for row in rows for name in unknown} == {None}


def test_operators_and_modules_have_no_device_time(silent: str) -> None:
    operators = nsightpy.operators(silent).records()
    modules = nsightpy.operators(silent, by="module").records()
    assert bool(operators) == silent.endswith(".json")
    assert operators or modules
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
