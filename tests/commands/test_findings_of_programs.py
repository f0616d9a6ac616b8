"""What is concluded from small programs of kinds whose causes are known; and what is not said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from simulator import Export

from nsightpy.commands.compare.command import compare
from nsightpy.commands.findings.command import findings
from nsightpy.commands.gaps import gaps
from nsightpy.commands.iterations import iterations

US, MS = 1_000, 1_000_000
WIDE = (4_000, 1, 1)


class Program:
    """One thread that launches work on one stream: `now` is its time, `free` the stream's."""

    def __init__(self, path: Path) -> None:
        self.export = Export(path)
        self.process = self.export.process()
        self.export.gpu()
        self.export.cuda_device(process=self.process)
        self.now, self.free = MS, 0

    def _placed(self, lasts: int, launch: int) -> tuple[int, int, tuple[int, int]]:
        called = self.now
        self.now += launch
        begin = max(self.now + 2 * US, self.free)
        self.free = begin + lasts
        return begin, self.free, (called, self.now)

    def kernel(self, name: str, lasts: int, launch: int = 5 * US) -> None:
        begin, end, call = self._placed(lasts, launch)
        self.export.kernel(begin, end, name, launch=call, grid=WIDE)

    def copy(self, size: int, lasts: int, kind: str | int, **memory: str) -> None:
        begin, end, call = self._placed(lasts, 5 * US)
        self.export.memcpy(begin, end, size, kind, launch=call, **memory)  # type: ignore[arg-type]

    def call(self, name: str, lasts: int) -> None:
        self.export.api(self.now, self.now + lasts, name)
        self.now += lasts

    def wait(self, name: str = "cudaStreamSynchronize_v3020") -> None:
        self.call(name, max(self.free - self.now, 0) + 3 * US)


def mpi_solver(program: Program, waits: int = 350 * US) -> None:
    for _ in range(100):
        program.kernel("flux_141_gpu", 300 * US)
        program.copy(80_000, 9 * US, "DtoH")
        program.wait("cuStreamSynchronize")
        begin, program.now = program.now, program.now + waits
        program.export.mpi_collective(begin, program.now, "MPI_Waitall", 8)


def async_allocations(program: Program) -> None:
    for _ in range(200):
        program.call("cudaMallocAsync_v1102", 60 * US)
        program.kernel("fusion", 40 * US)
        program.call("cudaFreeAsync_v1102", 25 * US)


def migrating_pages(program: Program) -> None:
    for _ in range(50):
        for _ in range(20):
            program.copy(65_536, 12 * US, 11, source="Managed", target="Managed")
        program.kernel("stencil", 500 * US)
        program.wait()


def pages_that_the_host_touches(program: Program, works: int = 40 * US) -> None:
    """No call launches the migrations: the host touches pages after it worked for a while."""
    for _ in range(50):
        program.kernel("stencil", 2 * MS)
        program.wait("cudaDeviceSynchronize_v3020")
        begin = program.free + works
        for _ in range(40):
            memory = {"source": "Managed", "target": "Managed"}
            program.export.memcpy(begin, begin + 8 * US, 65_536, 12, **memory)
            begin += 30 * US
        program.now = program.free = begin


def results_that_the_host_works_on(program: Program) -> None:
    pages_that_the_host_touches(program, 5 * MS)


def mapped_regions(program: Program) -> None:
    for _ in range(50):
        program.copy(4_000_000, 700 * US, "HtoD", source="Pageable")
        program.wait()
        program.kernel("__omp_offloading_fd02_1a_main_l42", 300 * US)
        program.copy(4_000_000, 700 * US, "DtoH", target="Pageable")
        program.wait()


def staged_copies(program: Program) -> None:
    """As pageable memory is copied: short calls in which the driver stages, the GPU idle."""
    for _ in range(50):
        program.kernel("stencil", 300 * US)
        program.wait()
        for _ in range(4):
            begin, end, call = program._placed(20 * US, 40 * US)
            program.export.memcpy(begin, end, 400_000, "HtoD", source="Pageable", launch=call)
            program.wait("cudaMemcpy_v3020")


def short_blocking_copy(program: Program) -> None:
    """As `.item()` after little work: a call under 100 us that returns when the copy is done."""
    called, begin = program.now, max(program.now + 4 * US, program.free)
    program.free, program.now = begin + 2 * US, begin + 6 * US
    call = (called, program.now)
    program.export.memcpy(begin, program.free, 8, "DtoH", target="Pageable", launch=call)


def items(program: Program) -> None:
    for _ in range(100):
        program.kernel("step", 60 * US)
        short_blocking_copy(program)
        program.now += 30 * US


def inputs_that_nothing_waits_for(program: Program) -> None:
    """A blocking copy with an empty queue: the host is behind the GPU before and after it."""
    for _ in range(100):
        program.now += 600 * US
        short_blocking_copy(program)
        program.now += 600 * US
        program.call("cudaFuncGetAttributes_v3020", 20 * US)
        program.kernel("step", 60 * US)


def three_kernels(program: Program) -> None:
    for place in range(3):
        program.kernel(f"different_{place}", 200 * US)
        program.now += 300 * US


def checkpoints(program: Program) -> None:
    for _ in range(50):
        program.kernel("step", 60 * US)
        short_blocking_copy(program)
        program.now += 5 * MS


def questions(program: Program) -> None:
    for _ in range(50):
        program.call("cudaGetDeviceProperties_v3020", 1500 * US)
        program.kernel("step", 500 * US)
        program.wait()


def memory_sets(program: Program) -> None:
    for _ in range(50):
        begin, end, call = program._placed(400 * US, 5 * US)
        program.export.memset(begin, end, 512 << 20, launch=call)
        program.kernel("scatter", 250 * US)


def one_kernel(program: Program) -> None:
    for _ in range(100):
        program.kernel("matrixMul", 60 * US)


def tiny_kernels_in_graphs(program: Program) -> None:
    for _ in range(30):
        graph_launch(program, 60, 5 * US)


def graph_launch(program: Program, nodes: int, apart: int) -> None:
    called, program.now = program.now, program.now + 40 * US
    call = program.export.api(called, program.now, "cudaGraphLaunch_v10000")
    begin = max(program.now, program.free)
    for node in range(nodes):
        names = {"correlation": call, "graph_node": node + 1, "graph": 1}
        at = begin + node * apart
        program.export.kernel(at, at + 3 * US, f"tiny_{node % 6}", grid=WIDE, **names)
    program.free = begin + nodes * apart


def sizes_that_nobody_knows(program: Program) -> None:
    """As nccl-tests: some sizes, several times each."""
    for size in range(8):
        for _ in range(10):
            program.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", (20 << size) * US)


def waits_of_others(program: Program) -> None:
    for place in range(20):
        program.free = program.now + 5 * MS
        program.kernel(f"other_{place}", 2 * MS)
        program.wait()


def busy(program: Program) -> None:
    for _ in range(50):
        program.kernel("scatter", 250 * US)


def launched_behind_work_of_before(program: Program) -> None:
    """The capture begins while the GPU does what was launched before it."""
    program.free = 300 * MS
    busy(program)


@pytest.mark.parametrize(
    ("write", "share", "there", "absent"),
    [
        (mpi_solver, 0.52, "exposed-communication", {"host-gap", "launch-bound"}),
        (async_allocations, 0.5, "allocation", {"host-gap", "sync-drain"}),
        (migrating_pages, 0.32, "unified-memory", {"exposed-h2d", "pageable-copies"}),
        (pages_that_the_host_touches, 0.37, "unified-memory", {"capture-incomplete", "host-gap"}),
        (results_that_the_host_works_on, 0.61, "host-gap", {"capture-incomplete"}),
        (mapped_regions, 0.41, "exposed-h2d", {"host-gap", "launch-bound"}),
        (staged_copies, 0.39, "exposed-h2d", {"launch-bound", "host-gap"}),
        (items, 0.4, "sync-drain", {"launch-bound", "host-gap"}),
        (inputs_that_nothing_waits_for, 0.94, "launch-bound", {"sync-drain", "first-launch"}),
        (three_kernels, None, "", {"launch-bound"}),
        (checkpoints, 0.98, "host-gap", {"launch-bound", "sync-drain"}),
        (questions, 0.74, "host-gap", {"launch-bound"}),
        (memory_sets, 0.61, "exposed-d2d", {"healthy"}),
        (one_kernel, None, "dominating-kernel", {"exposed-h2d", "launch-bound"}),
        (tiny_kernels_in_graphs, 1.0, "small-kernels", {"sync-drain", "healthy"}),
        (sizes_that_nobody_knows, 1.0, "exposed-communication", {"slow-collectives"}),
        (waits_of_others, 0.72, "capture-incomplete", {"launch-bound", "host-gap"}),
        (launched_behind_work_of_before, None, "", {"startup-dominates"}),
        (busy, None, "healthy", {"exposed-h2d", "launch-bound"}),
    ],
)
def test_causes_of_programs(
    write: Any, share: float | None, there: str, absent: set[str], tmp_path: Path
) -> None:
    program = Program(tmp_path / "report.sqlite")
    write(program)
    rows = {str(row["id"]): row for row in findings(program.export.write()).records()}
    assert not there or there in rows
    assert not {one for one in absent if one in rows}
    if share is not None:
        assert rows[there]["recoverable_share"] == pytest.approx(share, abs=0.05)
    assert not any("data loading" in str(row["evidence"]).lower() for row in rows.values())
    if write is questions:
        assert "thread was in calls of cudaGetDevice" in str(rows["host-gap"]["evidence"])
        assert "in cudaGetDevicePropert" in str(gaps(program.export.path).records()[0])


def test_gaps_in_mpi_calls_are_said_to_be(tmp_path: Path) -> None:
    program = Program(tmp_path / "report.sqlite")
    mpi_solver(program)
    path = program.export.write()
    worst = gaps(path).records()[0]
    assert worst["cause"] == "exposed-communication"
    assert "MPI_Waitall" in str(worst["host_activity"])
    (row,) = (row for row in findings(path).records() if row["id"] == "exposed-communication")
    assert row["next_command"] == f"nsightpy gaps {path} --iteration steady"
    assert row["start_ns"] == worst["start_ns"]
    named = findings(path, rank_regex="job--iteration(\\d+)").records()
    (row,) = (row for row in named if row["id"] == "exposed-communication")
    assert row["next_command"].endswith(" --iteration steady")


def test_a_comparison_tells_longer_waits_in_mpi(tmp_path: Path) -> None:
    sides = []
    for name, waits in (("before", 350 * US), ("after", 450 * US)):
        program = Program(tmp_path / f"{name}.sqlite")
        mpi_solver(program, waits)
        sides.append(program.export.write())
    found = compare(*sides)
    (part,) = (one for one in found.parts if one.name == "idle: exposed-communication")
    assert (part.before_ns, part.delta_ns) == (350 * US, 100 * US)
    assert part.delta_ns == found.step.delta_ns


def test_a_start_up_before_steady_iterations_is_a_note(tmp_path: Path) -> None:
    def severities(different: bool) -> dict[str, str]:
        program = Program(tmp_path / f"{different}.sqlite")
        program.call("cuModuleLoadData", 300 * MS)
        for place in range(40):
            program.kernel(f"stencil_{place}" if different else "stencil", 250 * US)
        found = findings(program.export.write()).records()
        return {str(row["id"]): str(row["severity"]) for row in found}

    repeats, once = severities(False), severities(True)
    assert (repeats["startup-dominates"], once["startup-dominates"]) == ("info", "info")
    assert repeats["first-launch"] == once["first-launch"] == "info"


def test_calls_that_last_beyond_the_capture_are_cut(tmp_path: Path) -> None:
    program = Program(tmp_path / "report.sqlite")
    program.call("cuModuleLoadData", 300 * MS)
    busy(program)
    program.export.duration_ns = 400 * MS
    program.export.library("OSRT_API", 0, 2_000 * MS, "sem_wait")
    rows = {str(row["id"]): row for row in findings(program.export.write()).records()}
    assert "of the 400 ms in which device 0 was captured" in str(
        rows["startup-dominates"]["evidence"]
    )


def test_without_api_calls_no_cause_is_named(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    for start in range(MS, 100 * MS, MS):
        export.kernel(start, start + 600 * US, "step", grid=WIDE)
    rows = {str(row["id"]): row for row in findings(export.write()).records()}
    incomplete = rows["capture-incomplete"]
    assert "no API calls were recorded" in str(incomplete["evidence"])
    assert (incomplete["start_ns"], incomplete["duration_ns"]) == (1_600_000, 400 * US)
    assert not {"launch-bound", "host-gap", "sync-drain"} & set(rows)


@pytest.mark.parametrize(("lasts", "severity"), [(2 * US, "info"), (20 * MS, "warning")])
def test_a_moment_without_api_calls_is_no_warning(
    lasts: int, severity: str, tmp_path: Path
) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.gpu()
    export.cuda_device(process=export.process())
    export.kernel(590 * MS, 590 * MS + lasts, "add_arrays", grid=(8, 1, 1))
    rows = {str(row["id"]): str(row["severity"]) for row in findings(export.write()).records()}
    assert rows["small-grid"] == severity
    assert ("dominating-kernel" in rows) == (severity == "warning")
    assert "healthy" not in rows


@pytest.mark.parametrize(("lasts", "said"), [(180 * MS, True), (100 * US, False)])
def test_the_first_call_makes_the_context(lasts: int, said: bool, tmp_path: Path) -> None:
    program = Program(tmp_path / "report.sqlite")
    program.call("cudaMallocManaged_v6000", lasts)
    program.kernel("add", 50 * US)
    rows = {
        str(row["id"]): str(row["evidence"]) for row in findings(program.export.write()).records()
    }
    assert ("cudaMallocManaged first made the context" in rows.get("first-launch", "")) == said


@pytest.mark.parametrize(("name", "said"), [("ampere_sgemm_64x32_nn", True), ("sgemm_nn", False)])
def test_names_of_kernels_tell_of_tensor_cores(name: str, said: bool, tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    for start in range(MS, 50 * MS, MS):
        export.kernel(start, start + 900 * US, name, launch=(start - 50 * US, start - 40 * US))
    assert any(row["id"] == "fp32-gemm" for row in findings(export.write()).records()) == said


@pytest.mark.parametrize(("threads", "said"), [(64, True), (256, False)])
def test_too_few_threads_are_a_small_grid(threads: int, said: bool, tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    export.gpu()
    export.cuda_device(process=export.process())
    for begin in range(MS, 30 * MS, MS):
        call = (begin - 50 * US, begin - 45 * US)
        block = {"grid": (140, 1, 1), "block": (threads, 1, 1)}
        export.kernel(begin, begin + 900 * US, "few", launch=call, **block)
    assert any(row["id"] == "small-grid" for row in findings(export.write()).records()) == said


def test_what_repeats_inside_a_graph_launch_is_no_iteration(tmp_path: Path) -> None:
    program = Program(tmp_path / "report.sqlite")
    for _ in range(30):
        graph_launch(program, 60, 4 * US)
    found = iterations(program.export.write())
    assert len(found) == 30
    assert "by repeated kernel sequence, 1 launch each" in " ".join(found.notes)


def test_processes_that_share_a_gpu_are_said_to(tmp_path: Path) -> None:
    program = Program(tmp_path / "report.sqlite")
    other = program.export.process(2_000, "worker")
    program.export.cuda_device(process=other)
    for start in range(MS, 20 * MS, MS):
        for process in (program.process, other):
            call = (start - 20 * US, start - 10 * US)
            program.export.kernel(start, start + 400 * US, "op", launch=call, process=process)
    said = findings(program.export.write()).notes
    assert sum("2 processes share one NVIDIA H100" in note for note in said) == 1


def test_a_call_that_stages_a_copy_goes_with_it(tmp_path: Path) -> None:
    """Uploads of pageable memory return a moment before the copy is done."""
    program = Program(tmp_path / "report.sqlite")
    for _ in range(50):
        begin, program.free = program.now + 20 * US, program.now + 720 * US
        call = (program.now, program.free - 10 * US)
        program.export.memcpy(
            begin, program.free, 4_000_000, "HtoD", source="Pageable", launch=call
        )
        program.now = call[1]
        program.kernel("stencil", 300 * US)
        program.wait()
    rows = {str(row["id"]): row for row in findings(program.export.write()).records()}
    gain, most = (float(str(rows["exposed-h2d"][f"{of}_share"])) for of in ("gain", "recoverable"))
    assert 0.6 < 0.95 * most < gain <= most


def stepping(program: Program, name: str = "flux") -> None:
    """Steps with a blocking copy, work of the host, and kernels of which one dominates."""
    for _ in range(20):
        program.copy(4_000_000, 700 * US, "HtoD", source="Pinned")
        program.kernel(f"{name}_a", 3 * MS)
        program.kernel(f"{name}_b", 300 * US)
        program.wait()
        program.now += 2 * MS


def little_more(program: Program, **where: Any) -> None:
    """A kernel of a few microseconds, in the middle, on another device or of another process."""
    begin, call = 40 * MS, (39 * MS, 39 * MS + 5 * US)
    program.export.kernel(begin, begin + 2 * US, "probe", launch=call, **where)


@pytest.mark.parametrize("change", ["later", "other names", "device", "process", "no ranges"])
def test_conclusions_do_not_depend_on_what_does_not_matter(change: str, tmp_path: Path) -> None:
    def concluded(name: str, changed: bool) -> tuple[set[tuple[object, ...]], int]:
        program = Program(tmp_path / f"{name}.sqlite")
        if changed and change == "later":
            program.now += 7_000 * MS
        begin = program.now
        stepping(program, "f" if changed and change == "other names" else "flux")
        if changed and change == "device":
            little_more(program, device=3, context=9)
        if changed and change == "process":
            little_more(program, process=program.export.process(2_000, "probe"))
        if not (changed and change == "no ranges"):
            program.export.nvtx_push_pop(begin, program.now, "main")
        path = program.export.write()
        rows = findings(path).records()
        first = [row for row in iterations(path).records() if row["device"] == 0]
        kept = ("id", "severity", "recoverable_ns")
        return {tuple(row[column] for column in kept) for row in rows}, len(first)

    assert concluded("before", False) == concluded("after", True)
