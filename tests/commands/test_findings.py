"""Findings: each fires on a report built for it, and none of the bounded ones on a clean one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from simulator import PRESETS, Export

from nsightpy.analysis.ranks.collective_groups import beyond_usual, middle
from nsightpy.commands.findings.command import findings
from nsightpy.names import brief_kernel
from nsightpy.query.options import Common
from nsightpy.results import Value
from tests.support.reports import ROOT, ask

TRAINING = ROOT / "sample_reports" / "training_4rank"
US, MS = 1_000, 1_000_000
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
# What nothing stands against in a report whose kernels all have names of their own.
QUIET = {"no-steady-state", "healthy"}

Build = Callable[[Export], None]


def found(
    path: Path, build: Build, *, whole: bool = False, **export: object
) -> dict[str, dict[str, Value]]:
    """The findings by id; of the whole capture, or of its steady iterations where it has some."""
    made = Export(path / "report.sqlite", **export)  # type: ignore[arg-type]
    build(made)
    limits: Common = {"from_time": 0} if whole else {}
    return {str(row["id"]): row for row in findings(str(made.write()), **limits).records()}


def busy(export: Export, start: int, count: int = 10, length: int = MS, name: str = "k") -> int:
    """Kernels of their own names back to back, launched well ahead. Returns the last's end."""
    for number in range(count):
        launch = (start - 900 * US + number * 20 * US, start - 890 * US + number * 20 * US)
        export.kernel(start, start + length, f"{name}_{start}", launch=launch)
        start += length
    return start


def clean(export: Export) -> None:
    busy(export, MS)


def test_a_clean_report_is_healthy(tmp_path: Path) -> None:
    rows = found(tmp_path, clean)
    assert set(rows) == QUIET
    assert {row["severity"] for row in rows.values()} == {"info"}
    assert str(rows["healthy"]["next_command"]).startswith("nsightpy select ")


def test_help_page_and_guide_say_the_order_that_findings_have() -> None:
    gains = [row["gain_ns"] for row in findings(str(TRAINING)).records()]
    assert len(set(gains)) > 1
    assert gains == sorted(gains, reverse=True)
    package = ROOT / "nsightpy"
    guide = (package / "SKILL.md").read_text(encoding="utf-8")
    page = (package / "render/page/html/page.html").read_text(encoding="utf-8").lower()
    for text in (ask("findings", "--help").text, guide, page):
        assert "largest gain first" in " ".join(text.lower().split())


def test_nothing_stands_out_where_there_is_nothing(tmp_path: Path) -> None:
    """40 % idle without a cause that reaches 1 % would be a lie; 98 % busy steps are none."""
    rows = found(tmp_path, lambda export: (busy(export, MS, 3), None)[1])
    assert set(rows) <= {*QUIET, "dominating-kernel"}


def test_data_loading_is_a_host_gap(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS)
        # the host comes back 6 ms after the device ran dry
        export.nvtx_push_pop(end - MS, end + 6 * MS, "load_batch")
        export.nvtx_push_pop(0, end + 30 * MS, "epoch")
        busy(export, end + 6 * MS + 900 * US)

    row = found(tmp_path, build)["host-gap"]
    assert row["recoverable_ns"] == 6 * MS
    # of the whole interval of 6.9 ms
    assert "87 % inside range 'load_batch'" in str(row["evidence"])
    assert row["severity"] == "warning"
    assert str(row["next_command"]).startswith("nsightpy gaps ")
    assert (row["start_ns"], row["duration_ns"]) == (11 * MS, 6_900_000)


def test_a_blocking_call_drains_the_queue(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS)
        export.api(end - 2 * MS, end + 50 * US, "cudaDeviceSynchronize_v3020")
        launch = (end + 400 * US, end + 410 * US)
        export.kernel(end + 420 * US, end + 5 * MS, "next", launch=launch)

    rows = found(tmp_path, build)
    # in the call, then 350 us outside of CUDA, the launch, and what it takes to begin
    assert rows["sync-drain"]["recoverable_ns"] == 420 * US
    assert "mostly in cudaDeviceSynchronize" in str(rows["sync-drain"]["evidence"])
    assert "waited for the GPU once" in str(rows["sync-drain"]["evidence"])
    assert not {"host-gap", "launch-bound"} & set(rows)


def test_long_host_work_after_a_short_blocking_call_is_a_host_gap(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS)
        export.api(end - 450 * US, end + 50 * US, "cudaMemcpy_v3020")
        export.nvtx_push_pop(end + 50 * US, end + 6 * MS, "MPI_Recv")
        launch = (end + 6 * MS, end + 6 * MS + 10 * US)
        export.kernel(end + 6 * MS + 20 * US, end + 9 * MS, "next", launch=launch)

    rows = found(tmp_path, build)
    assert rows["host-gap"]["recoverable_ns"] == 6 * MS - 50 * US
    assert "inside range 'MPI_Recv'" in str(rows["host-gap"]["evidence"])
    assert "sync-drain" not in rows, "70 us of 19 ms"


def test_a_thread_that_only_waits_holds_nobody_up(tmp_path: Path) -> None:
    """One thread waits for results all the time, another one launches, and is late."""

    def build(export: Export) -> None:
        end = busy(export, MS)
        export.api(end - 5 * MS, end + 20 * MS, "cudaEventSynchronize_v3020", tid=77)
        busy(export, end + 2 * MS + 900 * US)

    rows = found(tmp_path, build)
    assert "sync-drain" not in rows
    assert rows["host-gap"]["recoverable_ns"] == 2 * MS


def test_a_launching_call_that_loads_code(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 4)
        # 1 us after the device ran dry, a call of 3 ms begins to launch a kernel never seen before
        export.kernel(
            end + 3 * MS - 10 * US,
            end + 4 * MS,
            "k_new",
            launch=(end + US, end + US + 3 * MS),
        )
        export.kernel(
            end + 4 * MS, end + 5 * MS, "k_new", launch=(end + 3500 * US, end + 3501 * US)
        )

    row = found(tmp_path, build)["first-launch"]
    assert row["recoverable_ns"] == 3 * MS - 11 * US
    assert "mostly in cudaLaunchKernel" in str(row["evidence"])
    assert str(row["next_command"]).startswith("nsightpy gaps ")


def test_usual_launching_calls_are_no_first_launches(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 4)
        for number in range(40):
            # each call takes 90 us, and the device waits for all of it
            start = end + number * 200 * US
            export.kernel(
                start + 90 * US, start + 200 * US, f"k{number}", launch=(start, start + 90_000)
            )

    rows = found(tmp_path, build)
    assert "first-launch" not in rows
    assert rows["launch-bound"]["recoverable_ns"] == 40 * 90 * US


def test_allocations_are_named(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS)
        export.api(end + US, end + US + 4500 * US, "cudaHostAlloc_v3020")
        export.api(end + 5 * MS, end + 5 * MS + 90 * US, "cudaMalloc_v3020")
        busy(export, end + 6 * MS + 900 * US)

    rows = found(tmp_path, build)
    # the rest of the 6 ms lies outside of CUDA, less than 1 ms at a time
    assert rows["allocation"]["recoverable_ns"] == 4590 * US
    assert "mostly in cudaHostAlloc" in str(rows["allocation"]["evidence"])
    assert "host-gap" not in rows


def test_a_synchronisation_that_costs_no_gpu_time_is_not_told(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 20)
        export.api(2 * MS, end - 2 * MS, "cudaEventSynchronize_v3020")

    assert set(found(tmp_path, build)) == QUIET


def test_launching_sets_the_pace(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        busy(export, MS, 4)
        for number in range(100):
            start = 6 * MS + number * 20 * US
            export.kernel(
                start + 12 * US, start + 14 * US, f"k_{start}", launch=(start, start + 10 * US)
            )

    rows = found(tmp_path, build)
    # 99 waits of 18 us, and for the first the launch and its 2 us of latency
    assert rows["launch-bound"]["recoverable_ns"] == 99 * 18 * US + 12 * US
    assert rows["host-gap"]["recoverable_ns"] == MS, "5 to 6 ms, before the first of them"
    assert "100 of 104 kernels" in str(rows["small-kernels"]["evidence"])


def test_exposed_and_slow_communication(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 20)
        for number in range(12):
            length = 5 * MS if number == 7 else 100 * US + number
            export.kernel(
                end, end + length, NCCL, stream=13, launch=(number * US, number * US + 500)
            )
            end += length

    rows = found(tmp_path, build)
    alone = 11 * 100 * US + sum(range(12)) - 7 + 5 * MS
    assert rows["exposed-communication"]["recoverable_ns"] == alone
    slow = rows["slow-collectives"]
    assert slow["recoverable_ns"] == 5 * MS - (100 * US + 6)
    assert "1 collective took 4.90 ms longer" in str(slow["evidence"])
    assert "took 5.00 ms, 50.0 times its median" in str(slow["evidence"])
    assert str(slow["next_command"]).startswith("nsightpy collectives ")


def test_hidden_and_even_communication_is_no_finding(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 20)
        for number in range(12):
            start = end - (number + 2) * MS
            export.kernel(start, start + 100 * US, NCCL, stream=13, launch=(number, number + 1))

    assert set(found(tmp_path, build)) == QUIET


@pytest.mark.parametrize(
    ("kind", "source", "names"),
    [
        ("HtoD", "Pinned", {"exposed-h2d"}),
        ("HtoD", "Pageable", {"exposed-h2d", "pageable-copies"}),
        ("DtoH", "Device", {"exposed-d2h"}),
        ("DtoD", "Device", {"exposed-d2d"}),
        ("UvmHtoD", "Managed", {"unified-memory"}),
    ],
)
def test_copies(kind: str, source: str, names: set[str], tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 10)
        half = end - MS
        export.memcpy(half, end + MS, 2_000_000, kind, source=source, stream=13, launch=(10, 20))
        export.kernel(end + MS, end + 2 * MS, "last", launch=(30, 40))

    rows = found(tmp_path, build)
    assert set(rows) - QUIET == names
    # half of the copy hides behind a kernel; migrated time counts whole
    (bound,) = {row["recoverable_ns"] for row in rows.values()} - {None}
    assert bound == (2 * MS if "unified-memory" in names else MS)
    if "pageable-copies" in names:
        # the same time is not told twice
        assert rows["pageable-copies"]["recoverable_ns"] is None
        assert "the same time as that of the copies" in str(rows["pageable-copies"]["evidence"])
        assert list(rows).index("exposed-h2d") < list(rows).index("pageable-copies")


def test_an_unbalanced_device(tmp_path: Path) -> None:
    for rank, kernels in enumerate((10, 10, 16)):
        export = Export(tmp_path / f"rank{rank}.sqlite")
        busy(export, MS, kernels)
        export.write()
    (row,) = (r for r in findings(str(tmp_path)).records() if r["id"] == "imbalance")
    assert (row["rank"], row["recoverable_ns"]) == (2, 4 * MS)


def test_a_device_that_only_holds_a_context_is_no_finding(
    tmp_path: Path,
) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 10)
        export.kernel(end - MS, end - MS + 2 * US, "touch", device=1, launch=(10, 20))
        export.kernel(MS, MS + 2 * US, "touch", device=1, launch=(30, 40))

    assert set(found(tmp_path, build)) == QUIET


def test_dominating_and_small_kernels(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 10)
        for number in range(1200):
            export.kernel(end, end + 4 * US, f"small{number % 7}", launch=(number, number + 1))
            end += 4 * US
        export.kernel(end, end + 20 * MS, "giant<int>(float *)", launch=(2000, 2001))

    rows = found(tmp_path, build, whole=True)
    assert "giant" in str(rows["dominating-kernel"]["evidence"])
    assert str(rows["dominating-kernel"]["next_command"]).startswith("nsightpy select ")
    assert "1,200 of 1,211 kernels" in str(rows["small-kernels"]["evidence"])
    assert rows["small-kernels"]["recoverable_ns"] == 1200 * 4 * US


def test_small_kernels_that_cost_little_are_not_shouted(tmp_path: Path) -> None:
    """Half of the launches, but 4 ms of 604: nothing that fusing them could give back."""

    def build(export: Export) -> None:
        end = busy(export, MS, 600)
        for number in range(1000):
            export.kernel(end, end + 4 * US, f"small{number}", launch=(number, number + 1))
            end += 4 * US

    assert set(found(tmp_path, build, whole=True)) == {"healthy"}


def test_waits_for_launches_of_small_kernels_count(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        busy(export, MS, 4)
        for number in range(200):
            start = 6 * MS + number * 100 * US
            export.kernel(
                start + 9 * US, start + 12 * US, f"k{number}", launch=(start, start + 2 * US)
            )

    rows = found(tmp_path, build, whole=True)
    # 3 us each; 97 us idle before each but the first, before which the host was away for 1 ms
    assert rows["small-kernels"]["recoverable_ns"] == 200 * 3 * US + 199 * 97 * US + 9 * US
    assert "up to" in str(rows["small-kernels"]["evidence"])


def test_communication_is_no_dominating_kernel(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 8)
        export.kernel(end, end + 90 * MS, NCCL, launch=(10, 20))

    assert "dominating-kernel" not in found(tmp_path, build)


def test_opaque_graphs_and_what_the_profiler_said(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 5)
        export.graph_trace(end, end + MS, launch=(10, 20))
        export.diagnostic(5, "CUDA events were lost.", severity=2)
        export.diagnostic(6, "Buffer overflow in CUPTI.", severity=3)

    rows = found(tmp_path, build)
    # 1 ms of 6 ms is hidden: all else is blind and comes after
    assert list(rows)[:2] == ["opaque-graphs", "capture-incomplete"]
    opaque = rows["opaque-graphs"]
    assert opaque["severity"] == "error"
    assert "1.00 ms, 17 % of the window" in str(opaque["evidence"])
    assert "--cuda-graph-trace=node" in str(opaque["evidence"])
    assert str(opaque["next_command"]).startswith("nsightpy breakdown ")
    said = rows["capture-incomplete"]
    assert said["severity"] == "warning"
    assert "Buffer overflow" in str(said["evidence"])
    assert "CUDA events were lost" in str(said["evidence"]), "a loss, if only a warning of nsys"


STOCK = (
    "Not all NVTX events might have been collected.",
    "Not all CUDA events might have been collected.",
    "CUDA device 0: Unified Memory trace is not supported on this device: no peer-to-peer access.",
    "Unified Memory cannot be traced on devices that don't support peer-to-peer transfers.",
    "The installed CUDA driver version 550.54 is not supported by this build of Nsight Systems.",
)


def test_stock_warnings_are_notes_and_a_few_opaque_graphs_come_last(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 50)
        export.graph_trace(end, end + MS, launch=(10, 20))
        for number, text in enumerate(STOCK):
            export.diagnostic(5 + number, text, severity=2)

    rows = found(tmp_path, build)
    assert set(rows) == {*QUIET, "opaque-graphs"}
    assert rows["opaque-graphs"]["severity"] == "info"
    notes = ask("findings", tmp_path / "report.sqlite").stderr
    assert all(text in notes for text in STOCK if "CUDA" in text), "what bears on figures is said"


def test_below_one_per_cent_nothing_is_shouted(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 200)
        busy(export, end + MS + 900 * US, 1)

    # 1.9 ms of 203 ms
    assert set(found(tmp_path, build)) == QUIET


def test_the_largest_share_comes_first_and_bounds_are_per_iteration(tmp_path: Path) -> None:
    paths, _ = replace(PRESETS["small"], iterations=8).write(tmp_path)
    table = findings([str(path) for path in paths])
    shares = [
        share
        for row in table.records()
        if row["severity"] == "warning" and isinstance(share := row["recoverable_share"], float)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares
    assert min(shares) >= 0.03
    first = next(row for row in table.records() if row["window"])
    assert "per iteration" in str(first["evidence"])
    assert "steady iterations" in str(first["evidence"])


def test_what_is_abnormal_and_how_long_an_instance_lasts() -> None:
    # median 100, median deviation 0: from twice the median on
    beyond, usual = beyond_usual(np.asarray([100] * 9 + [200, 201]), True)
    assert (np.flatnonzero(beyond).tolist(), usual) == ([10], 100.0)
    # median 100, deviations 10: 100 + 8 x 1.4826 x 10 = 218.6
    lengths = np.asarray([90, 90, 90, 100, 110, 110, 110, 218, 219])
    assert np.flatnonzero(beyond_usual(lengths, True)[0]).tolist() == []
    spread = np.asarray([80, 90, 90, 100, 100, 110, 110, 211, 225])
    assert np.flatnonzero(beyond_usual(spread, True)[0]).tolist() == [8]
    assert not beyond_usual(np.asarray([1, 1, 1, 1, 1, 1, 99]), True)[0].any(), "too few"
    sizes = np.asarray([100] * 20 + [900, 905, 910, 920, 930] + [5_000])
    assert np.flatnonzero(beyond_usual(sizes, False)[0]).tolist() == [25]
    assert [middle(np.asarray(v)) for v in ([7], [1, 9], [1, 5, 9], [1, 2, 8, 9])] == [7, 9, 5, 8]


@pytest.mark.parametrize("name", ["step{share}_kernel<{place}>", "{time}{loss}"])
def test_names_stay_as_they_are_in_sentences(name: str, tmp_path: Path) -> None:
    """Figures are no part of names, whatever those hold."""

    def build(export: Export) -> None:
        end = busy(export, MS)
        export.nvtx_push_pop(end - MS, end + 6 * MS, name)
        start = end + 6 * MS + 900 * US
        export.kernel(start, start + 20 * MS, name, block=(32, 1, 1), launch=(end + 6 * MS, start))

    rows = found(tmp_path, build)
    assert f"inside range '{name}'" in str(rows["host-gap"]["evidence"])
    assert brief_kernel(name) in str(rows["tiny-blocks"]["evidence"])
    assert brief_kernel(name) in str(rows["dominating-kernel"]["evidence"])


def test_an_allocation_counts_once_and_a_pool_is_not_told_to_be_one(tmp_path: Path) -> None:
    def build(first: str, second: str) -> Build:
        def build(export: Export) -> None:
            end = busy(export, MS)
            export.api(end, end + 3 * MS, f"{first}_v3020")
            export.api(end + 3 * MS, end + 5 * MS, f"{second}_v3020")
            busy(export, end + 6 * MS)

        return build

    row = found(tmp_path, build("cudaMallocPitch", "cudaFree"))["allocation"]
    assert "mostly in cudaMallocPitch" in str(row["evidence"])
    assert "or from a pool" in str(row["evidence"])
    row = found(tmp_path, build("cudaMallocAsync", "cudaFree"))["allocation"]
    assert "mostly in cudaMallocAsync" in str(row["evidence"])
    assert "from a pool" not in str(row["evidence"])
    assert "let the pool keep" in str(row["evidence"])
