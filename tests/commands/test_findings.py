"""What findings say of reports built for them: which, in which order, with which figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from simulator import Export

from nsightpy.analysis.ranks.collective_groups import beyond_usual, middle
from nsightpy.commands.findings.command import findings
from nsightpy.names import brief_kernel
from nsightpy.query.options import Common
from nsightpy.results import Value
from tests.support.launchers import MS, US
from tests.support.reports import ROOT, ask

TRAINING = ROOT / "sample_reports" / "training_4rank"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
# What nothing stands against in a report whose kernels all have names of their own.
QUIET = {"no-steady-state", "healthy"}

Build = Callable[[Export], object]


def found(
    path: Path, build: Build, *, whole: bool = False, **export: object
) -> dict[str, dict[str, Value]]:
    """The findings by id; of the whole capture, or of its steady iterations where it has some."""
    made = Export(path / "report.sqlite", **export)  # type: ignore[arg-type]
    build(made)
    limits: Common = {"from_time": 0} if whole else {}
    return {str(row["id"]): row for row in findings(str(made.write()), **limits).records()}


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


# Each has bounds to the nanosecond, next to what planted causes cost (test_planted_causes.py).


def data_loading(export: Export) -> None:
    """The host comes back 6 ms after the device ran dry; of the whole interval of 6.9 ms."""
    end = busy(export)
    export.nvtx_push_pop(end - MS, end + 6 * MS, "load_batch")
    export.nvtx_push_pop(0, end + 30 * MS, "epoch")
    busy(export, end + 6 * MS + 900 * US)


def blocking_call(export: Export) -> None:
    """In the call, then 350 us outside of CUDA, the launch, and what it takes to begin."""
    end = busy(export)
    export.api(end - 2 * MS, end + 50 * US, "cudaDeviceSynchronize_v3020")
    launch = (end + 400 * US, end + 410 * US)
    export.kernel(end + 420 * US, end + 5 * MS, "next", launch=launch)


def waiting_thread(export: Export) -> None:
    """One thread waits for results all the time, another one launches, and is late."""
    end = busy(export)
    export.api(end - 5 * MS, end + 20 * MS, "cudaEventSynchronize_v3020", tid=77)
    busy(export, end + 2 * MS + 900 * US)


def usual_launching_calls(export: Export) -> None:
    """Each call takes 90 us, and the device waits for all of it."""
    end = busy(export, count=4)
    for number in range(40):
        start = end + number * 200 * US
        call = (start, start + 90_000)
        export.kernel(start + 90 * US, start + 200 * US, f"k{number}", launch=call)


def allocating(first: str, second: str) -> Build:
    def build(export: Export) -> None:
        end = busy(export)
        export.api(end, end + 3 * MS, f"{first}_v3020")
        export.api(end + 3 * MS, end + 5 * MS, f"{second}_v3020")
        busy(export, end + 6 * MS)

    return build


def free_synchronisation(export: Export) -> None:
    end = busy(export, count=20)
    export.api(2 * MS, end - 2 * MS, "cudaEventSynchronize_v3020")


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
BUILT: dict[str, tuple[Build, dict[str, int | str | None], str]] = {
    "data loading": (data_loading, {"host-gap": 6 * MS}, ""),
    "a blocking call": (blocking_call, {"sync-drain": 420 * US}, "host-gap launch-bound"),
    "a thread that only waits": (waiting_thread, {"host-gap": 2 * MS}, "sync-drain"),
    "usual calls": (usual_launching_calls, {"launch-bound": 40 * 90 * US}, "first-launch"),
    "allocations": (allocating("cudaMalloc", "cudaFree"), {"allocation": 5 * MS}, "host-gap"),
    "no pool": (allocating("cudaHostAlloc", "cudaFree"), {"allocation": "or from a pool"}, ""),
    "a pool": (allocating("cudaMallocAsync", "cudaFree"), {"allocation": "let the pool keep"}, ""),
    "the longer call": (
        allocating("cudaMallocPitch", "cudaFree"),
        {"allocation": "mostly in cudaMallocPitch"},
        "",
    ),
    "a free synchronisation": (free_synchronisation, {}, "*"),
    "hidden communication": (hidden_communication, {}, "*"),
    "abnormal communication": (
        abnormal_communication,
        {"exposed-communication": COMMUNICATION, "slow-collectives": 5 * MS - (100 * US + 6)},
        "",
    ),
    "and what is said of it": (
        abnormal_communication,
        {"slow-collectives": "1 collective took 4.90 ms longer than the median"},
        "",
    ),
    "its worst": (
        abnormal_communication,
        {"slow-collectives": "took 5.00 ms, 50.0 times its median"},
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
    rows = found(tmp_path, build, whole="kernels" in name)
    for one, known in there.items():
        if isinstance(known, int):
            assert rows[one]["recoverable_ns"] == known
        elif known:
            assert known in str(rows[one]["evidence"])
    assert not set(absent.split()) & set(rows)
    if absent == "*":
        assert set(rows) <= QUIET


def test_a_finding_says_where_and_what_to_type_next(tmp_path: Path) -> None:
    row = found(tmp_path, data_loading)["host-gap"]
    assert (row["severity"], row["start_ns"], row["duration_ns"]) == ("warning", 11 * MS, 6_900_000)
    assert str(row["next_command"]).startswith("nsightpy gaps ")


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
        end = busy(export)
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
        assert list(rows).index("exposed-h2d") < list(rows).index("pageable-copies")


def test_what_is_abnormal_and_how_long_an_instance_lasts() -> None:
    # median 100, median deviation 0: from twice the median on
    beyond, usual = beyond_usual(np.asarray([100] * 9 + [200, 201]), True)
    assert (np.flatnonzero(beyond).tolist(), usual) == ([10], 100.0)
    # median 100, deviations 10: 100 + 8 x 1.4826 x 10 = 218.6
    for lengths, sized, rows in (
        ([90, 90, 90, 100, 110, 110, 110, 218, 219], True, []),
        ([80, 90, 90, 100, 100, 110, 110, 211, 225], True, [8]),
        ([1, 1, 1, 1, 1, 1, 99], True, []),
        ([100] * 20 + [900, 905, 910, 920, 930] + [5_000], False, [25]),
    ):
        assert np.flatnonzero(beyond_usual(np.asarray(lengths), sized)[0]).tolist() == rows
    assert [middle(np.asarray(v)) for v in ([7], [1, 9], [1, 5, 9], [1, 2, 8, 9])] == [7, 9, 5, 8]


@pytest.mark.parametrize(("kernels", "severity"), [(5, "error"), (50, "info")])
def test_opaque_graphs_hide_what_they_hold(kernels: int, severity: str, tmp_path: Path) -> None:
    """1 ms of 6 ms is hidden: all else is blind and comes after; 1 ms of 51 is not."""

    def build(export: Export) -> None:
        end = busy(export, count=kernels)
        export.graph_trace(end, end + MS, launch=(10, 20))
        export.diagnostic(5, "CUDA events were lost.", severity=2)

    rows = found(tmp_path, build)
    opaque = rows["opaque-graphs"]
    assert opaque["severity"] == severity
    assert "--cuda-graph-trace=node" in str(opaque["evidence"])
    if severity == "error":
        assert list(rows)[:2] == ["opaque-graphs", "capture-incomplete"]
        assert "1.00 ms, 17 % of the window" in str(opaque["evidence"])


@pytest.mark.parametrize("name", ["step{share}_kernel<{place}>", "{time}{loss}"])
def test_names_stay_as_they_are_in_sentences(name: str, tmp_path: Path) -> None:
    """Figures are no part of names, whatever those hold."""

    def build(export: Export) -> None:
        end = busy(export)
        export.nvtx_push_pop(end - MS, end + 6 * MS, name)
        start = end + 6 * MS + 900 * US
        export.kernel(start, start + 20 * MS, name, block=(32, 1, 1), launch=(end + 6 * MS, start))

    rows = found(tmp_path, build)
    assert f"inside range '{name}'" in str(rows["host-gap"]["evidence"])
    assert brief_kernel(name) in str(rows["tiny-blocks"]["evidence"])
    assert brief_kernel(name) in str(rows["dominating-kernel"]["evidence"])


@pytest.mark.parametrize(
    ("kernel", "there", "absent"),
    [
        ({"name": "ampere_sgemm_64x32_nn"}, "fp32-gemm", ""),
        ({"name": "sgemm_nn"}, "", "fp32-gemm"),
        ({"name": "few", "grid": (140, 1, 1), "block": (64, 1, 1)}, "small-grid", ""),
        ({"name": "few", "grid": (140, 1, 1), "block": (256, 1, 1)}, "", "small-grid"),
    ],
)
def test_names_and_shapes_of_kernels(
    kernel: dict[str, object], there: str, absent: str, tmp_path: Path
) -> None:
    def build(export: Export) -> None:
        if "grid" in kernel:
            export.gpu()
            export.cuda_device(process=export.process())
        for start in range(MS, 40 * MS, MS):
            call = (start - 50 * US, start - 40 * US)
            export.kernel(start, start + 900 * US, launch=call, **kernel)  # type: ignore[arg-type]

    rows = found(tmp_path, build)
    assert not there or there in rows
    assert absent not in rows


def test_without_api_calls_no_cause_is_named(tmp_path: Path) -> None:
    def build(export: Export) -> None:
        for start in range(MS, 100 * MS, MS):
            export.kernel(start, start + 600 * US, "step", grid=(4_000, 1, 1))

    rows = found(tmp_path, build)
    incomplete = rows["capture-incomplete"]
    assert "no API calls were recorded" in str(incomplete["evidence"])
    assert (incomplete["start_ns"], incomplete["duration_ns"]) == (1_600_000, 400 * US)
    assert not {"launch-bound", "host-gap", "sync-drain"} & set(rows)


@pytest.mark.parametrize(("lasts", "severity"), [(2 * US, "info"), (20 * MS, "warning")])
def test_a_moment_without_api_calls_is_no_warning(
    lasts: int, severity: str, tmp_path: Path
) -> None:
    def build(export: Export) -> None:
        export.gpu()
        export.cuda_device(process=export.process())
        export.kernel(590 * MS, 590 * MS + lasts, "add_arrays", grid=(8, 1, 1))

    rows = found(tmp_path, build)
    assert rows["small-grid"]["severity"] == severity
    assert ("dominating-kernel" in rows) == (severity == "warning")
    assert "healthy" not in rows
