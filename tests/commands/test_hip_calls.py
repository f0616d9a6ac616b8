"""Programs that call HIP are answered as those that call CUDA: one list of what launches work."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nsightpy.analysis.work_graph.host_chain import LAUNCH, kinds_of_calls
from nsightpy.frames import Labels
from tests.support.reports import ROOT, ask

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "sample_reports" / "single_process.sqlite"
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
    BY_ORDER: (
        ("iterations",),
        ("kernels", "--iteration", "steady"),
        ("select",),
        ("breakdown",),
        ("gaps",),
        ("findings",),
    ),
    BY_OTHER_THREADS: (("nvtx",), ("kernels", "--nvtx", "backward")),
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


def answers(reports: Path, request: tuple[str, ...]) -> list[dict[str, Any]]:
    """The rows, without what names calls and files; usual times are those of a function's calls,
    so that gains differ by some ns.
    """
    rows: list[dict[str, Any]] = ask(*request, reports, "--format", "json", "--jobs", "1").json[
        "rows"
    ]
    return [
        {
            name: round(value, 6) if isinstance(value, float) else value
            for name, value in row.items()
            if not _names_calls(value)
        }
        for row in rows
    ]


def _names_calls(value: object) -> bool:
    return isinstance(value, str) and any(word in value for word in ("cuda", "hip", "nsightpy "))


@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize("program", REQUESTS, ids=["repeats", "threads"])
def test_answers_do_not_depend_on_whose_functions_launch(
    program: str, launch: str, tmp_path: Path
) -> None:
    cuda = changed(SAMPLE, tmp_path / "cuda.sqlite", program, OUT_OF_ORDER)
    hip = changed(cuda, tmp_path / "hip.sqlite", *CUDA_TO_HIP, launch=launch)
    for request in REQUESTS[program]:
        rows = answers(cuda, request)
        assert rows
        assert answers(hip, request) == rows, request


def test_no_launch_is_taken_for_loading_code() -> None:
    assert set(kinds_of_calls(Labels.of([*LAUNCHES, "cuLaunchKernelEx"])).tolist()) == {LAUNCH}
