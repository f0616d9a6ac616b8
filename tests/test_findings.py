"""Findings: each fires on a report built for it, and none of the bounded ones on a clean one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reports import ask
from simulator import PRESETS, Export

from nsightpy.analysis.findings.outliers import slow_collectives
from nsightpy.analysis.idle.queues import launch_bound, queue_length
from nsightpy.results import Value
from nsightpy.verbs.findings import FIELDS, findings
from nsightpy.verbs.summarize import summarize

US, MS = 1_000, 1_000_000
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
HOST = "GPU starved: host busy elsewhere"
SYNC = "GPU starved: synchronisation"
LAUNCH = "GPU starved: launch overhead"

Build = Callable[[Export], None]


def found(path: Path, build: Build, **export: object) -> dict[str, dict[str, Value]]:
    made = Export(path / "report.sqlite", **export)  # type: ignore[arg-type]
    build(made)
    return {str(row["finding"]): row for row in findings(str(made.write())).records()}


def busy(export: Export, start: int, count: int = 10, length: int = MS, name: str = "k") -> int:
    """Kernels of their own names back to back, launched well ahead. Returns the last's end."""
    for number in range(count):
        launch = (start - 900 * US + number * 20 * US, start - 890 * US + number * 20 * US)
        export.kernel(start, start + length, f"{name}_{start}", launch=launch)
        start += length
    return start


def clean(export: Export) -> None:
    busy(export, MS)


def test_a_clean_report_has_no_findings(tmp_path: Path) -> None:
    assert found(tmp_path, clean) == {}


def test_data_loading_starves(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS)
        # the host comes back 6 ms after the device ran dry
        export.nvtx_push_pop(end - MS, end + 6 * MS, "load_batch")
        export.nvtx_push_pop(0, end + 30 * MS, "epoch")
        busy(export, end + 6 * MS + 900 * US)

    row = found(tmp_path, build)[HOST]
    assert row["recoverable_ns"] == 6 * MS
    assert "100 % of that inside NVTX range 'load_batch'" in str(row["evidence"])
    assert row["severity"] == "warning"
    assert str(row["next_command"]).startswith("nsightpy nvtx ")


def test_synchronising_starves(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS)
        export.api(end - 2 * MS, end + 50 * US, "cudaDeviceSynchronize_v3020")
        busy(export, end + 2 * MS + 900 * US)

    rows = found(tmp_path, build)
    assert rows[SYNC]["recoverable_ns"] == 2 * MS
    assert "waited 50.0 us on an idle GPU" in str(rows[SYNC]["evidence"])
    assert HOST not in rows


def test_a_synchronisation_that_costs_no_gpu_time_is_not_told(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 20)
        export.api(2 * MS, end - 2 * MS, "cudaEventSynchronize_v3020")

    assert found(tmp_path, build) == {}


def test_launching_sets_the_pace(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        busy(export, MS, 4)
        for number in range(100):
            start = 6 * MS + number * 20 * US
            export.kernel(
                start + 12 * US, start + 14 * US, f"k_{start}", launch=(start, start + 10 * US)
            )

    row = found(tmp_path, build)[LAUNCH]
    # 99 waits of 18 us, and the wait for the first
    assert row["recoverable_ns"] == 99 * 18 * US + 12 * US
    assert "100 kernels" in str(row["evidence"])


def test_without_api_calls_only_idleness_is_told(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        export.kernel(0, MS, "a", correlation=1)
        export.kernel(3 * MS, 4 * MS, "b", correlation=2)

    rows = found(tmp_path, build, drop_tables=["CUPTI_ACTIVITY_KIND_RUNTIME"])
    assert rows["GPU idle"]["recoverable_ns"] == 2 * MS
    assert "capture problems" in rows


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
    assert rows["communication exposed"]["recoverable_ns"] == alone
    slow = rows["communication abnormally long"]
    assert slow["recoverable_ns"] == 5 * MS - (100 * US + 6)
    assert "1 collectives took" in str(slow["evidence"])
    assert "50 times its median" in str(slow["evidence"])


@pytest.mark.parametrize(
    ("kind", "source", "name"),
    [
        ("HtoD", "Pinned", "input copies not overlapped"),
        ("HtoD", "Pageable", "pageable copies"),
        ("DtoH", "Device", "copies not overlapped"),
        ("UvmHtoD", "Managed", "unified memory migrates"),
    ],
)
def test_copies(kind: str, source: str, name: str, tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 10)
        half = end - MS
        export.memcpy(half, end + MS, 2_000_000, kind, source=source, stream=13, launch=(10, 20))
        export.kernel(end + MS, end + 2 * MS, "last", launch=(30, 40))

    row = found(tmp_path, build)[name]
    # half of the copy hides behind a kernel; pageable and migrated time counts whole
    whole = name in {"pageable copies", "unified memory migrates"}
    assert row["recoverable_ns"] == (2 * MS if whole else MS)


def test_an_unbalanced_device(tmp_path: Path) -> None:
    for rank, kernels in enumerate((10, 10, 16)):
        export = Export(tmp_path / f"rank{rank}.sqlite")
        busy(export, MS, kernels)
        export.write()
    (row,) = (r for r in findings(str(tmp_path)).records() if r["finding"] == "unbalanced devices")
    assert (row["rank"], row["recoverable_ns"]) == (2, 4 * MS)


def test_dominating_and_tiny_kernels(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 10)
        for number in range(1200):
            export.kernel(end, end + 4 * US, f"small{number % 7}", launch=(number, number + 1))
            end += 4 * US
        export.kernel(end, end + 20 * MS, "giant<int>(float *)", launch=(2000, 2001))

    rows = found(tmp_path, build)
    assert "giant" in str(rows["dominating kernel"]["evidence"])
    assert "1,200 of 1,211 kernels" in str(rows["tiny kernels"]["evidence"])
    assert rows["tiny kernels"]["recoverable_ns"] is None


def test_communication_is_no_dominating_kernel(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 8)
        export.kernel(end, end + 90 * MS, NCCL, launch=(10, 20))

    assert "dominating kernel" not in found(tmp_path, build)


def test_opaque_graphs_and_what_the_profiler_said(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 5)
        export.graph_trace(end, end + MS, launch=(10, 20))
        export.diagnostic(5, "CUDA events were lost.", severity=2)
        export.diagnostic(6, "Buffer overflow in CUPTI.", severity=3)

    rows = found(tmp_path, build)
    assert rows["opaque CUDA graphs"]["next_command"] == "nsys profile --cuda-graph-trace=node ..."
    said = str(rows["capture problems"]["evidence"])
    assert "events were lost" in said
    assert "Buffer overflow" in said


def test_below_one_per_cent_nothing_is_shouted(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        end = busy(export, MS, 200)
        busy(export, end + MS + 900 * US, 1)

    # 1.9 ms of 203 ms
    assert found(tmp_path, build) == {}


def test_the_largest_share_comes_first_and_bounds_are_per_iteration(tmp_path: Path) -> None:
    paths, _ = replace(PRESETS["small"], iterations=8).write(tmp_path)
    table = findings([str(path) for path in paths])
    shares = [s for s in table.column("recoverable_share") if isinstance(s, float)]
    assert shares == sorted(shares, reverse=True)
    assert shares
    assert min(shares) >= 0.01
    first = table.records()[0]
    assert "per iteration" in str(first["evidence"])
    assert "steady iterations" in str(first["evidence"])


def test_the_summary_shows_the_same_findings(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    end = busy(export, MS)
    busy(export, end + 6 * MS + 900 * US)
    path = str(export.write())
    names = [one.name for one in summarize(path).findings]
    assert names == findings(path).column("finding")


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown"])
def test_every_format(form: str, tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    end = busy(export, MS, name="\x1b[31mkernel|")
    export.nvtx_push_pop(end - MS, end + 6 * MS, "\x1b]0;evil\x07 {time} {place}")
    busy(export, end + 6 * MS + 900 * US)
    answer = ask("findings", export.write(), "--format", form)
    assert b"\x1b" not in answer.everything
    assert "starved" in answer.text
    if form == "json":
        assert list(answer.json["rows"][0]) == [field.name for field in FIELDS]


def test_queue_lengths_and_launch_bound_stretches() -> None:
    from test_idle import Action, placed

    from nsightpy.analysis.idle.gpu_work import gpu_work
    from nsightpy.frames import Frame, Labels

    # launched at 0, 2, 4; run 5-6, 6-7, 30-50: the third runs longer than its call
    ops = [
        Action(0, "op", 7, 0, 5, 6, "compute"),
        Action(2, "op", 7, 0, 6, 7, "compute"),
        Action(4, "op", 7, 0, 30, 50, "compute"),
    ]
    calls = Frame(
        {
            "start_ns": np.asarray([0, 2, 4]),
            "pid": np.asarray([1, 1, 1]),
            "correlation_id": np.asarray([1, 2, 3]),
        }
    )
    none = Frame({**placed([], 9), "operation": Labels.of([])})
    work = gpu_work(Frame(placed(ops, 1)), np.zeros(3, bool), none, Frame(placed([], 9)), calls)
    queue = queue_length(work, 0)
    assert list(zip(queue.times.tolist(), queue.counts.tolist(), strict=True)) == [
        (0, 1),
        (2, 2),
        (4, 3),
        (5, 2),
        (6, 1),
        (30, 0),
    ]
    bound = launch_bound(work, 0, np.asarray([2, 2, 2]), least=2)
    assert (bound.kernels, bound.stretches.total) == (2, 7)
    assert launch_bound(work, 0, np.asarray([2, 2, 2])).kernels == 0


def test_slow_collectives_are_judged_in_their_own_class() -> None:
    lengths = [100] * 9 + [1000] * 9 + [160, 1400]
    codes = [0] * 9 + [1] * 9 + [0, 1]
    slow = slow_collectives(np.asarray(lengths), np.asarray(codes, np.int32), [("a",), ("b",)])
    assert slow is not None
    assert (slow.instances, slow.lost_ns, slow.worst_class) == (1, 60, ("a",))
    few = slow_collectives(np.asarray([1, 1, 99]), np.zeros(3, np.int32), [("a",)])
    assert few is None
