"""What the streams of a device waited for, as HTA names it: hand cases, numbers in sight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from simulator import Export

import nsightpy
from nsightpy.commands.breakdown.command import CAUSES
from nsightpy.results import Value

NAMES = ("host_wait_ns", "kernel_wait_ns", "other_wait_ns")
Build = Callable[[Export], None]


def waits(path: Path, build: Build, **options: object) -> list[Value]:
    export = Export(path / "report.sqlite")
    build(export)
    (row,) = nsightpy.breakdown(str(export.write()), **options).records()
    return [row[name] for name in NAMES]


def launched_late(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(300, 400, "b", launch=(260, 270))


def launched_early(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.memcpy(210, 280, 1000, launch=(61, 70))
    export.kernel(290, 400, "b", launch=(71, 80))


def long_behind_an_early_launch(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(40_200, 40_300, "b", launch=(70, 80))


def inside_another(export: Export) -> None:
    # the second kernel ends inside the first: HTA would see a gap from 120 on
    export.kernel(0, 200, "a", launch=(-50, -40))
    export.kernel(110, 120, "b", launch=(-30, -20))
    export.kernel(250, 300, "c", launch=(210, 220))


def not_launched(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(230, 400, "b", correlation=77)


def launched_by_another_process(export: Export) -> None:
    one, two = export.process(1000), export.process(2000)
    export.kernel(100, 200, "a", process=one, correlation=1, launch=(50, 60))
    export.kernel(300, 400, "b", process=one, correlation=2, launch=(260, 270))
    export.api(5, 6, "cudaLaunchKernel_v7000", process=two, correlation=2)


def launched_by_an_unusual_call(export: Export) -> None:
    export.kernel(100, 200, "a", launch=(50, 60))
    export.kernel(300, 400, "b", launch=(260, 270, 1000, "hipModuleRun_v1"))


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (launched_late, [100, 0, 0]),
        (launched_early, [0, 20, 0]),
        (long_behind_an_early_launch, [0, 0, 40_000]),
        (inside_another, [50, 0, 0]),
        (not_launched, [0, 30, 0]),
        (launched_by_another_process, [100, 0, 0]),
        (launched_by_an_unusual_call, [100, 0, 0]),
    ],
)
def test_gaps_of_a_stream(build: Build, expected: list[Value], tmp_path: Path) -> None:
    assert waits(tmp_path, build) == expected


def test_a_window_clips_them(tmp_path: Path) -> None:
    assert waits(tmp_path, launched_late, from_time=240, to_time=280) == [40, 0, 0]


def test_without_api_calls_nothing_is_known(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.sql("DROP TABLE IF EXISTS CUPTI_ACTIVITY_KIND_RUNTIME")
    export.kernel(100, 200, "a", correlation=1)
    export.kernel(300, 400, "b", correlation=2)
    table = nsightpy.breakdown(str(export.write()))
    (row,) = table.records()
    assert {row[name] for name in (*NAMES, *(cause.name for cause in CAUSES))} == {None}
    assert any("no CUDA API calls" in note for note in table.notes)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_devices_of_several_reports_are_told_apart(tmp_path: Path, jobs: int) -> None:
    for rank in range(2):
        export = Export(tmp_path / f"rank{rank}.sqlite")
        for device in range(2):
            export.kernel(100, 200, "a", device=device, context=device + 1, launch=(50, 60))
            launch = (210 + 10 * device, 280)
            start = 300 + 50 * device
            export.kernel(start, 400, "b", device=device, context=device + 1, launch=launch)
        export.write()
    rows = nsightpy.breakdown(str(tmp_path), jobs=jobs).records()
    assert [[row[name] for name in NAMES] for row in rows] == [[100, 0, 0], [150, 0, 0]] * 2
