"""What is concluded of captures as a whole: what the profiler said, and links."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulator import TrainingJob

from nsightpy.commands.findings.command import findings
from tests.support.launchers import MS, US, Machine
from tests.support.nccl_tests import nccl_tests
from tests.support.reports import ROOT

SAMPLE = ROOT / "sample_reports" / "training_4rank"
NO_UNIFIED = "Unified Memory cannot be traced on devices that don't support peer-to-peer transfers."
OLD_DRIVER = (
    "Installed CUDA driver version (12.0) is not supported by this build of Nsight Systems."
)
FAILED = "CuptiActivityFlush failed: CUPTI_ERROR_INVALID_DEVICE"


@pytest.mark.parametrize("worked", [True, False])
@pytest.mark.parametrize(
    ("severity", "text", "loses"),
    [
        (2, NO_UNIFIED, False),
        (3, NO_UNIFIED, False),
        (2, OLD_DRIVER, False),
        (3, FAILED, True),
        (3, "ActivityFlush: returned error 999", True),
        (2, "CUDA events were lost.", True),
    ],
)
def test_only_what_changes_a_conclusion_is_a_finding(
    worked: bool, severity: int, text: str, loses: bool, tmp_path: Path
) -> None:
    machine = Machine(tmp_path / "report.sqlite")
    thread = machine.thread()
    for place in range(50):
        if worked:
            thread.kernel(f"step_{place}", MS)
        else:
            thread.call("cudaLaunchKernel_v7000", 10 * US)
    machine.export.diagnostic(5, text, severity=severity)
    rows = {str(row["id"]): row for row in findings(machine.export.write()).records()}
    if worked:
        assert ("capture-incomplete" in rows) == loses
        return
    assert next(iter(rows)) == "no-gpu-work"
    explains = text.rstrip(".") in str(rows["no-gpu-work"]["evidence"])
    assert explains or text == NO_UNIFIED
    assert "CUDA API calls, but no GPU work" in str(rows["no-gpu-work"]["evidence"])
    assert "-t cuda" not in str(rows["no-gpu-work"]["evidence"])


def slow_network() -> TrainingJob:
    """The job of two nodes with a network that is 20 times slower."""
    return TrainingJob(tensor=2, data=2, ranks_per_node=2, bandwidth_between_nodes=2.4)


@pytest.mark.slow
def test_a_slow_network_is_slow_for_its_link(tmp_path: Path) -> None:
    slow_network().write(tmp_path)
    slow = next(row for row in findings(tmp_path).records() if row["id"] == "slow-link")
    assert slow["severity"] == "warning"
    assert "2.40 GB/s, where PCIe between nodes can carry 64" in str(slow["evidence"])
    assert "slow-link" not in findings(SAMPLE).column("id")


@pytest.mark.slow
@pytest.mark.parametrize(("busbw", "warns"), [("7.10", False), ("7.30", True)])
def test_links_by_nccl_tests(tmp_path: Path, busbw: str, warns: bool) -> None:
    """2.4 GB/s are slow where a test of the same network reached more than three times that."""
    slow_network().write(tmp_path)
    measured = tmp_path / "all_reduce.txt"
    measured.write_text(nccl_tests(hosts="ab", busbw=busbw))
    rows = findings(tmp_path, ceilings=[measured]).records()
    told = [str(row["evidence"]) for row in rows if row["id"] == "slow-link"]
    assert len(told) == warns
    assert all("2.40 GB/s, where nccl-tests between nodes reached 7.30" in text for text in told)
