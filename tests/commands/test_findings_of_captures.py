"""Causes of lost time planted with a known cost; what is concluded of whole captures."""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from simulator import PRESETS, Export, TrainingJob

from nsightpy.analysis.memory.copies import SMALL_BYTES
from tests.support.jobs import simulate
from tests.support.launchers import MS, US, WIDE, Machine
from tests.support.nccl_tests import nccl_tests
from tests.support.reports import findings_of
from tests.support.samples import TRAINING

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"
# Adds its cause at a moment at which the device runs dry; gives back when it ends, and the cost.
Plant = Callable[[Export, int], tuple[int, int]]


class Wide(Export):
    """Kernels that fill the GPU where nothing else is said."""

    def kernel(self, *times: Any, grid: tuple[int, int, int] = WIDE, **rest: Any) -> int:
        return super().kernel(*times, grid=grid, **rest)


def host_gap(export: Export, at: int) -> tuple[int, int]:
    return launched(export, at + 5 * MS, at + 6 * MS), 5 * MS


def launched(export: Export, at: int, end: int) -> int:
    """A kernel that begins 5 us after its launch, which takes 5 us."""
    export.kernel(at + 10 * US, end, f"kernel_{at}", launch=(at, at + 5 * US))
    return end


def sync_drain(export: Export, at: int) -> tuple[int, int]:
    export.api(at - MS, at + 20 * US, "cudaStreamSynchronize_v3020")
    return launched(export, at + 700 * US, at + MS), 710 * US


def launch_bound(export: Export, at: int) -> tuple[int, int]:
    for number in range(200):
        start = at + number * 25 * US
        launch = (start + 15 * US, start + 20 * US)
        export.kernel(start + 22 * US, start + 25 * US, f"small_{number % 9}", launch=launch)
    return at + 200 * 25 * US, 200 * 22 * US


def first_launch(export: Export, at: int) -> tuple[int, int]:
    launch = (at + US, at + 4 * MS)
    export.kernel(at + 4 * MS, at + 5 * MS, f"new_{at}", launch=launch)
    return at + 5 * MS, 4 * MS


def call(name: str) -> Plant:
    """A call that takes 4 ms."""

    def plant(export: Export, at: int) -> tuple[int, int]:
        export.api(at + US, at + 4 * MS, name)
        return launched(export, at + 4 * MS + 2 * US, at + 5 * MS), 4 * MS

    return plant


def copy(direction: str, **memory: str) -> Plant:
    """A copy of 4 ms of pinned memory that was launched in time."""

    def plant(export: Export, at: int) -> tuple[int, int]:
        launch = (at - 300 * US, at - 295 * US)
        export.memcpy(at, at + 4 * MS, 80_000_000, direction, launch=launch, **memory)
        return at + 4 * MS, 4 * MS

    return plant


def kernel(name: str, **more: Any) -> Plant:
    """A kernel of 4 ms that was launched in time."""

    def plant(export: Export, at: int) -> tuple[int, int]:
        launch = (at - 300 * US, at - 295 * US)
        export.kernel(at, at + 4 * MS, name.format(at), launch=launch, **more)
        return at + 4 * MS, 4 * MS

    return plant


def pageable_copies(export: Export, at: int) -> tuple[int, int]:
    launch = (at - 5 * US, at + 4 * MS + 3 * US, 1000, "cudaMemcpy_v3020")
    export.memcpy(at, at + 4 * MS, 30_000_000, "HtoD", source="Pageable", launch=launch)
    # the copy is what the host waits for, and more is launched before it is done
    return at + 4 * MS, 4 * MS


def unified_memory(export: Export, at: int) -> tuple[int, int]:
    for number in range(20):
        begin = at + number * 100 * US
        managed = {"source": "Managed", "target": "Managed"}
        export.memcpy(begin, begin + 100 * US, 1_000_000, 11, **managed)  # type: ignore[arg-type]
    return at + 2 * MS, 2 * MS


PLANTS: dict[str, Plant] = {
    "host-gap": host_gap,
    "sync-drain": sync_drain,
    "launch-bound": launch_bound,
    "first-launch": first_launch,
    "allocation": call("cudaMalloc_v3020"),
    "exposed-h2d": copy("HtoD", source="Pinned"),
    "exposed-d2h": copy("DtoH", target="Pinned"),
    "exposed-communication": kernel(ALL_REDUCE, stream=9),
    "unified-memory": unified_memory,
    "first-launch by loading": call("cuModuleLoadData"),
    "pageable-copies": pageable_copies,
    "small-grid": kernel("narrow_{}", grid=(4, 1, 1)),
}
# What the planted kernels are, too.
BESIDE = {"small-kernels", "no-steady-state", "dominating-kernel", "healthy"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted", [*((one,) for one in PLANTS), *combinations(PLANTS, 2)], ids="+".join
)
def test_planted_causes_cost_what_they_cost(planted: tuple[str, ...], tmp_path: Path) -> None:
    export = Wide(tmp_path / "report.sqlite")
    export.gpu()
    export.cuda_device()
    cost = dict.fromkeys((cause.split()[0] for cause in planted), 0)
    at = 2 * MS
    for round_ in range(4):
        for cause in planted:
            # a kernel that was launched in time, then the cause
            ahead = (at - 400 * US + US * round_, at - 395 * US + US * round_)
            export.kernel(at, at + 3 * MS, f"busy_{at}", launch=ahead)
            at, lost = PLANTS[cause](export, at + 3 * MS)
            cost[cause.split()[0]] += lost
            if cause == "pageable-copies":  # which are copies that nothing hides, too
                cost["exposed-h2d"] = cost.get("exposed-h2d", 0) + lost
    export.kernel(at, at + 3 * MS, "last", launch=(at - 400 * US, at - 395 * US))
    window = at + MS
    rows = findings_of(export.write(), from_time=2 * MS)
    if set(planted) == {"sync-drain", "launch-bound"}:
        # without the calls the host had been ahead by as long as they took: this is what they cost
        cost["sync-drain"] = 4 * (MS + 20 * US)
    for cause in cost:
        told = rows[cause]["recoverable_ns"] or in_text(rows[cause]["evidence"], window)
        assert told == pytest.approx(cost[cause], rel=0.1), cause
    warned = {name for name, row in rows.items() if row["severity"] != "info"}
    assert warned - BESIDE <= set(cost)


def in_text(evidence: str, window: int) -> float:
    """A time as the share of a window that a finding tells in words."""
    found = re.search(r"([\d.]+) % of device 0's window", evidence)
    return float(found[1]) * window / 100 if found else 0.0


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
    rows = findings_of(machine.export.write())
    if worked:
        assert ("capture-incomplete" in rows) == loses
        return
    assert next(iter(rows)) == "no-gpu-work"
    said = rows["no-gpu-work"]["evidence"]
    assert text.rstrip(".") in said or text == NO_UNIFIED
    assert "CUDA API calls, but no GPU work" in said
    assert "-t cuda" not in said


@pytest.mark.slow
def test_a_slow_network_is_slow_for_its_link(tmp_path: Path) -> None:
    """Also where a test of the same network reached more than three times its 2.4 GB/s."""
    job = TrainingJob(tensor=2, data=2, ranks_per_node=2, bandwidth_between_nodes=2.4)
    job.write(tmp_path)
    slow = findings_of(tmp_path)["slow-link"]
    assert slow["severity"] == "warning"
    assert "2.40 GB/s, where PCIe between nodes can carry 64" in slow["evidence"]
    assert "slow-link" not in findings_of(TRAINING)
    measured = tmp_path / "all_reduce.txt"
    for busbw, warns in (("7.10", False), ("7.30", True)):
        measured.write_text(nccl_tests(hosts="ab", busbw=busbw))
        rows = findings_of(tmp_path, ceilings=[measured])
        assert ("slow-link" in rows) == warns
    assert "2.40 GB/s, where nccl-tests between nodes reached 7.30" in rows["slow-link"]["evidence"]


# Whole simulated jobs, against what the simulator knows, to the nanosecond


@pytest.mark.slow
@pytest.mark.parametrize("pageable", [True, False])
def test_copies_that_nothing_hides(pageable: bool, tmp_path: Path) -> None:
    single = replace(PRESETS["single_process"], graph_mode=None, graph_replays=0)
    (rank,) = simulate(replace(single, pageable=pageable), tmp_path).truth["ranks"]
    rows = findings_of(tmp_path, from_time=0)
    assert not rows.keys() & {"exposed-communication", "slow-collectives", "straggler"}
    assert ("pageable-copies" in rows) == pageable
    if pageable:
        names = ("exposed-h2d", "exposed-d2h", "exposed-d2d", "many-small-copies")
        lost = sum(rows[name]["recoverable_ns"] for name in names if name in rows)
        # and the time in which the driver stages pageable memory, before they begin
        budget = rank["budget"]
        assert abs(lost - budget["copy_only_ns"]) <= 0.01 * budget["window_ns"]
        copies = [one for one in rank["copies"] if "Pageable" in (one["source"], one["target"])]
        copies = [one for one in copies if one["bytes"] >= SMALL_BYTES * one["count"]]
        size, count = (sum(copy[of] for copy in copies) for of in ("bytes", "count"))
        told = rows["pageable-copies"]
        assert f"{size / 1e6:.3g} MB in {count} copies" in told["evidence"]
        # the same time is not told twice
        assert told["recoverable_ns"] is None
        assert list(rows).index("exposed-h2d") < list(rows).index("pageable-copies")
