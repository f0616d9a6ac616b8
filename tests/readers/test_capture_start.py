"""Captures that begin after their program: what ncu must be told so that it counts the same."""

from pathlib import Path

import pytest

from nsightpy.commands.select.command import select
from nsightpy.readers.nsys.capture import CaptureStart
from nsightpy.reports.opening import open_report
from tests.support.ncu_stand_in import (
    CUDA_PROFILER_START,
    Bench,
    Scripted,
    write_export,
)
from tests.support.reports import NSYS, needs_reports

NVTX_TRIGGER = "Starting the profiling session using NVTX trigger."


def started(path: Path, how: str, late_ns: int) -> Path:
    launches = [Scripted("k", nvtx=(("", "step"),))] * 3
    return write_export(path, launches, began=(how, late_ns))


@pytest.mark.parametrize(
    ("how", "late_ns", "expected"),
    [
        (CUDA_PROFILER_START, 5 * 10**9, CaptureStart("cudaProfilerApi", 5 * 10**9)),
        (NVTX_TRIGGER, 10**9, CaptureStart("nvtx", 10**9)),
        ("Something else.", 2 * 10**9, CaptureStart("", 2 * 10**9)),
        ("Something else.", 3_000_000, CaptureStart()),
        # a program may call cudaProfilerStart in a capture that had begun with it
        (CUDA_PROFILER_START, -20_000, CaptureStart()),
    ],
)
def test_what_the_profiler_says_of_the_start(
    tmp_path: Path, how: str, late_ns: int, expected: CaptureStart
) -> None:
    assert open_report(started(tmp_path / "r.sqlite", how, late_ns)).capture.start == expected


@needs_reports
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt2.7b_a100_2024.6", CaptureStart("cudaProfilerApi", 45_406_392_931)),
        ("trixi_v100_2023.1", CaptureStart("cudaProfilerApi")),
        ("train_nvtx_a100_2026.3", CaptureStart("nvtx", 6_856_611_166)),
        ("exgpu_a100_2021", CaptureStart()),
    ],
)
def test_starts_of_real_captures(name: str, expected: CaptureStart) -> None:
    assert open_report(NSYS / f"{name}.sqlite").capture.start == expected


def test_ncu_counts_from_where_the_capture_began(tmp_path: Path) -> None:
    """Five launches were made before cudaProfilerStart; the report holds only those after it."""
    warm = [Scripted("k", duration_ns=7000, uncaptured=True)] * 5
    launches = [*warm, *(Scripted("k", duration_ns=time) for time in (900, 100, 110, 120))]
    bench = Bench(tmp_path, launches)
    report = write_export(tmp_path / "r.sqlite", launches)
    plan = select(report, application=bench.application())
    (line,) = map(str, plan.column("command"))
    bench.shell(line)
    assert bench.profiled() == [[7]]
    assert any("called cudaProfilerStart" in note for note in plan.notes)
    bench.shell(line.replace("--profile-from-start off", "-f"))
    assert bench.profiled()[1] == [2], "without it, a launch of the warm-up"


def test_unknown_launches_before_the_capture_are_told(tmp_path: Path) -> None:
    report = started(tmp_path / "r.sqlite", NVTX_TRIGGER, 6 * 10**9)
    (said,) = (note for note in select(report).notes if "The capture began" in note)
    assert "--nvtx" in said
    assert not any("The capture began" in note for note in select(report, nvtx="step").notes)
    assert "--profile-from-start" not in str(select(report).column("command"))
