"""Splits by numbers that every process counts anew: equal ones of several reports stay apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.reports import ROOT, rows_of

SINGLE = ROOT / "sample_reports" / "single_process.sqlite"
TRACE = ROOT / "sample_reports" / "torch_2rank"
SPLITS = (
    *((command, split) for command in ("kernels", "memory") for split in ("device", "stream")),
    *((command, "process") for command in ("kernels", "memory", "api")),
    ("operators", "thread"),
    ("operators", "process"),
)


def copied(command: str, folder: Path) -> tuple[Path, Path]:
    """The same report twice under one name, as nodes write them that know nothing of each other."""
    report = sorted(TRACE.glob("*.json*"))[0] if command == "operators" else SINGLE
    for node in ("a", "b"):
        (folder / node).mkdir()
        shutil.copy(report, folder / node / f"run{''.join(report.suffixes)}")
    return report, folder / "*" / "run*"


@pytest.mark.parametrize(("command", "split"), SPLITS)
def test_equal_numbers_of_different_reports_stay_apart(
    command: str, split: str, tmp_path: Path
) -> None:
    report, both = copied(command, tmp_path)
    alone = rows_of(command, report, "--by", split)
    of_both = rows_of(command, both, "--by", split)
    of_all = ("Time (%)", "process", "mfu", "device_self_share", "host_self_share")
    figures = [name for name in alone[0] if name not in of_all]
    assert len(of_both) == 2 * len(alone)
    for node in ("a/", "b/"):
        mine = [row for row in of_both if row["process"].startswith(node)]
        for shown, wanted in zip(mine, alone, strict=True):
            assert [shown[name] for name in figures] == [wanted[name] for name in figures]


def test_processes_of_one_report_are_named_by_their_number_alone() -> None:
    (process,) = {row["process"] for row in rows_of("api", SINGLE, "--by", "process")}
    assert process.isdigit()


def test_summaries_of_nsys_keep_processes_of_reports_apart(tmp_path: Path) -> None:
    report, both = copied("stats", tmp_path)
    alone = rows_of("stats", report, "-r", "cuda_kern_exec_sum")
    assert rows_of("stats", both, "-r", "cuda_kern_exec_sum") == [
        row for row in alone for _ in "ab"
    ]
