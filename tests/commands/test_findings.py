"""What findings say of reports built for them: which, in which order, with which figures."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulator import Export

from nsightpy.names import brief_kernel
from tests.support.launchers import MS, US
from tests.support.reports import findings_of
from tests.support.samples import TRAINING

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
# What nothing stands against in a report whose kernels all have names of their own.
QUIET = {"no-steady-state", "healthy"}

Build = Callable[[Export], object]


def found(path: Path, build: Build, **options: Any) -> dict[str, dict[str, Any]]:
    """The findings by id."""
    made = Export(path / "report.sqlite")
    build(made)
    return findings_of(made.write(), **options)


def busy(export: Export, start: int = MS, count: int = 10, name: str = "k") -> int:
    """Kernels of 1 ms and own names, back to back, launched well ahead. Returns the last's end."""
    for number in range(count):
        launch = (start - 900 * US + number * 20 * US, start - 890 * US + number * 20 * US)
        export.kernel(start, start + MS, f"{name}_{start}", launch=launch)
        start += MS
    return start


def test_a_clean_report_is_healthy(tmp_path: Path) -> None:
    rows = found(tmp_path, busy)
    assert set(rows) == QUIET
    assert {row["severity"] for row in rows.values()} == {"info"}
    assert rows["healthy"]["next_command"].startswith("nsightpy select ")


def test_the_largest_gain_comes_first() -> None:
    gains = [row["gain_ns"] for row in findings_of(TRAINING).values()]
    assert len(set(gains)) > 1
    assert gains == sorted(gains, reverse=True)


# Bounds to the nanosecond, next to what planted causes cost (test_findings_of_captures.py).


def data_loading(export: Export) -> None:
    """The host comes back 6 ms after the device ran dry; of the whole interval of 6.9 ms."""
    end = busy(export)
    export.nvtx_push_pop(end - MS, end + 6 * MS, "load_batch")
    export.nvtx_push_pop(0, end + 30 * MS, "epoch")
    busy(export, end + 6 * MS + 900 * US)


def waiting_thread(export: Export) -> None:
    """One thread waits for results all the time, another one launches, and is late."""
    end = busy(export)
    export.api(end - 5 * MS, end + 20 * MS, "cudaEventSynchronize_v3020", tid=77)
    busy(export, end + 2 * MS + 900 * US)


def allocating(first: str, second: str) -> Build:
    def build(export: Export) -> None:
        end = busy(export)
        export.api(end, end + 3 * MS, f"{first}_v3020")
        export.api(end + 3 * MS, end + 5 * MS, f"{second}_v3020")
        busy(export, end + 6 * MS)

    return build


def hidden_communication(export: Export) -> None:
    end = busy(export, count=20)
    for number in range(12):
        start = end - (number + 2) * MS
        export.kernel(start, start + 100 * US, NCCL, stream=13, launch=(number, number + 1))


def abnormal_communication(export: Export) -> None:
    end = busy(export, count=20)
    for number in range(12):
        length = 5 * MS if number == 7 else 100 * US + number
        call = (number * US, number * US + 500)
        export.kernel(end, end + length, NCCL, stream=13, launch=call)
        end += length


def small_kernels(count: int, large: int, length: int = 4 * US) -> Build:
    def build(export: Export) -> None:
        end = busy(export, count=large)
        for number in range(count):
            export.kernel(end, end + length, f"small{number % 7}", launch=(number, number + 1))
            end += length
        if count > 1_000:
            export.kernel(end, end + 20 * MS, "giant<int>(float *)", launch=(2000, 2001))

    return build


def waits_of_small_kernels(export: Export) -> None:
    """3 us each; 97 us idle before each but the first, before which the host was away for 1 ms."""
    busy(export, count=4)
    for number in range(200):
        start = 6 * MS + number * 100 * US
        call = (start, start + 2 * US)
        export.kernel(start + 9 * US, start + 12 * US, f"k{number}", launch=call)


def dominating_communication(export: Export) -> None:
    end = busy(export, count=8)
    export.kernel(end, end + 90 * MS, NCCL, launch=(10, 20))


def little_idle(export: Export) -> None:
    """1.9 ms of 203 ms."""
    busy(export, busy(export, count=200) + MS + 900 * US, 1)


COMMUNICATION = 11 * 100 * US + sum(range(12)) - 7 + 5 * MS
# What is found, with the time that it costs or what is said; what is not found (*: anything).
BUILT: dict[str, tuple[Build, dict[str, int | str], str]] = {
    "data loading": (data_loading, {"host-gap": 6 * MS}, ""),
    "a thread that only waits": (waiting_thread, {"host-gap": 2 * MS}, "sync-drain"),
    "allocations": (allocating("cudaMalloc", "cudaFree"), {"allocation": 5 * MS}, "host-gap"),
    **{
        call: (allocating(call, "cudaFree"), {"allocation": said}, "")
        for call, said in (
            *(("cudaHostAlloc", "or from a pool"), ("cudaMallocAsync", "or from a pool")),
            ("cudaMallocPitch", "mostly in cudaMallocPitch"),
        )
    },
    "hidden communication": (hidden_communication, {}, "*"),
    "abnormal communication": (
        abnormal_communication,
        {"exposed-communication": COMMUNICATION, "slow-collectives": 5 * MS - (100 * US + 6)},
        "",
    ),
    "its worst": (
        abnormal_communication,
        {"slow-collectives": "1 collective took 4.90 ms longer .* took 5.00 ms, 50.0 times its"},
        "",
    ),
    "small and dominating kernels": (
        small_kernels(1_200, 10),
        {"small-kernels": 1_200 * 4 * US, "dominating-kernel": "giant"},
        "",
    ),
    "small kernels that cost little": (small_kernels(1_000, 600), {}, "*"),
    "waits of small kernels": (
        waits_of_small_kernels,
        {"small-kernels": 200 * 3 * US + 199 * 97 * US + 9 * US},
        "",
    ),
    "communication dominates": (dominating_communication, {}, "dominating-kernel"),
    "below one per cent": (little_idle, {}, "*"),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_is_found_in_reports_built_for_it(name: str, tmp_path: Path) -> None:
    build, there, absent = BUILT[name]
    rows = found(tmp_path, build, **({"from_time": 0} if "kernels" in name else {}))
    for one, known in there.items():
        if isinstance(known, int):
            assert rows[one]["recoverable_ns"] == known
        else:
            assert re.search(known, rows[one]["evidence"])
    assert not set(absent.split()) & set(rows)
    if absent == "*":
        assert set(rows) <= QUIET


def test_a_finding_says_where_and_what_to_type_next(tmp_path: Path) -> None:
    row = found(tmp_path, data_loading)["host-gap"]
    assert (row["severity"], row["start_ns"], row["duration_ns"]) == ("warning", 11 * MS, 6_900_000)
    assert row["next_command"].startswith("nsightpy gaps ")


@pytest.mark.parametrize(("kernels", "severity"), [(5, "error"), (50, "info")])
def test_opaque_graphs_hide_what_they_hold(kernels: int, severity: str, tmp_path: Path) -> None:
    """1 ms of 6 ms is hidden: all else is blind and comes after; 1 ms of 51 is not."""
    export = Export(tmp_path / "report.sqlite")
    end = busy(export, count=kernels)
    export.graph_trace(end, end + MS, launch=(10, 20))
    export.diagnostic(5, "CUDA events were lost.", severity=2)
    rows = findings_of(export.write())
    opaque = rows["opaque-graphs"]
    assert opaque["severity"] == severity
    assert "--cuda-graph-trace=node" in opaque["evidence"]
    if severity == "error":
        assert list(rows)[:2] == ["opaque-graphs", "capture-incomplete"]
        assert "1.00 ms, 17 % of the window" in opaque["evidence"]


def test_a_device_with_graphs_alone_waits_for_their_launches(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    for call in range(0, 10 * MS, 100 * US):
        export.graph_trace(call + 10 * US, call + 40 * US, launch=(call, call + 5 * US))
    assert findings_of(export.write())["launch-bound"]["severity"] == "warning"


@pytest.mark.parametrize("name", ["step{share}_kernel<{place}>", "{time}{loss}"])
def test_names_stay_as_they_are_in_sentences(name: str, tmp_path: Path) -> None:
    """Figures are no part of names, whatever those hold."""
    export = Export(tmp_path / "report.sqlite")
    end = busy(export)
    export.nvtx_push_pop(end - MS, end + 6 * MS, name)
    start = end + 6 * MS + 900 * US
    export.kernel(start, start + 20 * MS, name, block=(32, 1, 1), launch=(end + 6 * MS, start))
    rows = findings_of(export.write())
    assert f"inside range '{name}'" in rows["host-gap"]["evidence"]
    assert brief_kernel(name) in rows["tiny-blocks"]["evidence"]
    assert brief_kernel(name) in rows["dominating-kernel"]["evidence"]


@pytest.mark.parametrize(
    ("name", "threads", "there", "absent"),
    [
        ("ampere_sgemm_64x32_nn", 0, "fp32-gemm", ""),
        ("sgemm_nn", 0, "dominating-kernel", "fp32-gemm"),
        ("few", 64, "small-grid", ""),
        ("few", 256, "dominating-kernel", "small-grid"),
    ],
)
def test_names_and_shapes_of_kernels(
    name: str, threads: int, there: str, absent: str, tmp_path: Path
) -> None:
    shape: dict[str, Any] = {"grid": (140, 1, 1), "block": (threads, 1, 1)} if threads else {}
    export = Export(tmp_path / "report.sqlite")
    if shape:
        export.gpu()
        export.cuda_device(process=export.process())
    for start in range(MS, 40 * MS, MS):
        launch = (start - 50 * US, start - 40 * US)
        export.kernel(start, start + 900 * US, name, launch=launch, **shape)
    rows = findings_of(export.write())
    assert there in rows
    assert absent not in rows


def test_without_api_calls_no_cause_is_named(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    for start in range(MS, 100 * MS, MS):
        export.kernel(start, start + 600 * US, "step", grid=(4_000, 1, 1))
    rows = findings_of(export.write())
    incomplete = rows["capture-incomplete"]
    assert "no API calls were recorded" in incomplete["evidence"]
    assert (incomplete["start_ns"], incomplete["duration_ns"]) == (1_600_000, 400 * US)
    assert not {"launch-bound", "host-gap", "sync-drain"} & set(rows)


@pytest.mark.parametrize(("lasts", "severity"), [(2 * US, "info"), (20 * MS, "warning")])
def test_a_moment_without_calls_is_no_warning(lasts: int, severity: str, tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.gpu()
    export.cuda_device(process=export.process())
    export.kernel(590 * MS, 590 * MS + lasts, "add_arrays", grid=(8, 1, 1))
    rows = findings_of(export.write())
    assert rows["small-grid"]["severity"] == severity
    assert ("dominating-kernel" in rows) == (severity == "warning")
    assert "healthy" not in rows
