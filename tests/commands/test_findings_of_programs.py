"""What is concluded from small programs of kinds whose causes are known; and what is not said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from simulator import Export

from nsightpy.commands.findings.command import findings
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


def mpi_solver(program: Program) -> None:
    for _ in range(100):
        program.kernel("flux_141_gpu", 300 * US)
        program.copy(80_000, 9 * US, "DtoH")
        program.wait("cuStreamSynchronize")
        begin, program.now = program.now, program.now + 350 * US
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


def mapped_regions(program: Program) -> None:
    for _ in range(50):
        program.copy(4_000_000, 700 * US, "HtoD", source="Pageable")
        program.wait()
        program.kernel("__omp_offloading_fd02_1a_main_l42", 300 * US)
        program.copy(4_000_000, 700 * US, "DtoH", target="Pageable")
        program.wait()


def memory_sets(program: Program) -> None:
    for _ in range(50):
        begin, end, call = program._placed(400 * US, 5 * US)
        program.export.memset(begin, end, 512 << 20, launch=call)
        program.kernel("scatter", 250 * US)


def busy(program: Program) -> None:
    for _ in range(50):
        program.kernel("scatter", 250 * US)


@pytest.mark.parametrize(
    ("write", "share", "there", "absent"),
    [
        (mpi_solver, 0.52, "exposed-communication", {"host-gap", "launch-bound"}),
        (async_allocations, 0.5, "allocation", {"host-gap", "sync-drain"}),
        (migrating_pages, 0.32, "unified-memory", {"exposed-h2d", "pageable-copies"}),
        (mapped_regions, 0.41, "exposed-h2d", {"host-gap", "launch-bound"}),
        (memory_sets, None, "", {"healthy"}),
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
    if write is mapped_regions:
        assert "keep the data mapped across regions" in str(rows["exposed-h2d"]["evidence"])


def test_without_api_calls_no_cause_is_named(tmp_path: Path) -> None:
    export = Export(tmp_path / "report.sqlite")
    for start in range(MS, 100 * MS, MS):
        export.kernel(start, start + 600 * US, "step", grid=WIDE)
    rows = {str(row["id"]): str(row["evidence"]) for row in findings(export.write()).records()}
    assert "No CUDA API calls were recorded" in rows["capture-incomplete"]
    assert not {"launch-bound", "host-gap", "sync-drain"} & set(rows)


def test_what_repeats_inside_a_graph_launch_is_no_iteration(tmp_path: Path) -> None:
    program = Program(tmp_path / "report.sqlite")
    for _ in range(30):
        called, program.now = program.now, program.now + 40 * US
        call = program.export.api(called, program.now, "cudaGraphLaunch_v10000")
        begin = max(program.now, program.free)
        for node in range(60):
            at = begin + node * 4 * US
            names = {"correlation": call, "graph_node": node + 1, "graph": 1}
            program.export.kernel(at, at + 3 * US, f"tiny_{node % 6}", grid=WIDE, **names)
        program.free = begin + 240 * US
    found = iterations(program.export.write())
    assert len(found) == 30
    assert "by CUDA graph launches, 60 launches each" in " ".join(found.notes)


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
