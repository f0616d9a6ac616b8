"""What is concluded of captures as a whole: what the profiler said, and where a process begins."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from simulator import TrainingJob

from nsightpy.analysis.findings.capture_rules import CAPTURE_RULES
from nsightpy.analysis.findings.engine import RULES
from nsightpy.commands.findings.command import findings
from nsightpy.results import Value
from tests.support.launchers import MS, US, Machine
from tests.support.nccl_tests import nccl_tests
from tests.support.reports import NSYS, ROOT, needs_reports

SAMPLE = ROOT / "sample_reports" / "training_4rank"
NO_UNIFIED = "Unified Memory cannot be traced on devices that don't support peer-to-peer transfers."
OLD_DRIVER = (
    "Installed CUDA driver version (12.0) is not supported by this build of Nsight Systems."
)
FAILED = "CuptiActivityFlush failed: CUPTI_ERROR_INVALID_DEVICE"


def concluded(machine: Machine) -> dict[str, dict[str, Value]]:
    return {str(row["id"]): row for row in findings(machine.export.write()).records()}


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
    rows = concluded(machine)
    if worked:
        assert ("capture-incomplete" in rows) == loses
        return
    assert next(iter(rows)) == "no-gpu-work"
    explains = text.rstrip(".") in str(rows["no-gpu-work"]["evidence"])
    assert explains or text == NO_UNIFIED
    assert "CUDA API calls, but no GPU work" in str(rows["no-gpu-work"]["evidence"])
    assert "-t cuda" not in str(rows["no-gpu-work"]["evidence"])


def test_a_model_that_is_loaded_for_most_of_the_capture(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "report.sqlite")
    thread = machine.thread()
    machine.export.nvtx_push_pop(0, 800 * MS, "load_model")
    thread.now = 800 * MS
    for _ in range(40):
        thread.kernel("step", 4 * MS)
        thread.wait()
    rows = concluded(machine)
    assert rows["startup-dominates"]["severity"] == "info"
    assert next(iter(rows)) != "startup-dominates"


def test_the_call_that_costs_most_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "report.sqlite")
    thread = machine.thread()
    for _ in range(30):
        for _ in range(3):
            thread.kernel("short", 100 * US)
            thread.wait(name="cudaEventSynchronize_v3020")
        thread.kernel("long", 2 * MS)
        thread.wait()
        thread.now += 600 * US
    assert "mostly in cudaStreamSynchronize" in str(concluded(machine)["sync-drain"]["evidence"])


def programs(folder: Path) -> Iterable[Machine]:
    """Small programs with conclusions that no real capture here has."""
    uneven, waits, pages, jobs = (Machine(folder / f"{name}.sqlite", 2) for name in "abcd")
    threads = [uneven.thread(2001), uneven.thread(2002)]
    for _ in range(20):
        for device, thread in enumerate(threads):
            thread.kernel("stencil", (2 + 4 * device) * MS, device=device)
            thread.wait(device)
        threads[0].now = threads[1].now = max(thread.now for thread in threads)
    thread = waits.thread()
    for _ in range(15):
        for device in range(2):
            thread.kernel("process", 5 * MS, device=device)
            thread.copy("DtoH", 1 << 20, 90 * US, device=device, blocks=True)
            thread.copy("DtoD", 1 << 20, 900 * US, device=device)
    thread = pages.thread()
    for _ in range(20):
        thread.copy(11, 65_536, 400 * US, source="Managed", target="Managed")
        thread.kernel("stencil", 500 * US)
    thread = jobs.thread()
    jobs.export.memory_usage(1, 80_000_000_000, process=jobs.process)
    thread.kernel("first", MS)
    machine = Machine(folder / "e.sqlite")
    machine.export.diagnostic(5, "CUDA events were lost.", severity=3)
    machine.thread().kernel("only", 9 * MS)
    silent = Machine(folder / "f.sqlite")
    for start in range(MS, 30 * MS, MS):
        silent.export.kernel(start, start + 600 * US, "step")
    return (uneven, waits, pages, jobs, machine, silent)


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


@needs_reports
def test_every_rule_is_true_of_some_capture(tmp_path: Path) -> None:
    """One that is true of none says nothing that anybody needs, and goes."""
    names = {rule.name for rule in (*RULES, *CAPTURE_RULES)}
    paths = [*sorted(NSYS.glob("*.sqlite")), SAMPLE]
    paths += [NSYS.parent / "kineto" / "sglang_decode_graphs.json.gz"]
    paths += [NSYS.parent / "kineto" / "rank3_of8_a100.json.gz", tmp_path / "network"]
    paths[-1].mkdir()
    slow_network().write(paths[-1])
    paths += [machine.export.write() for machine in programs(tmp_path)]
    for path in paths:
        names -= set(findings(path).column("finding"))
    several = [NSYS / f"{name}_a100_2024.6.sqlite" for name in ("gpt2.7b", "cudagraph")]
    names -= set(findings(several).column("finding"))
    assert names == set()
