"""A bench for tests of ncu commands: reports of scripted launches, and the stand-in ncu."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

STAND_INS = Path(__file__).parent.parent / "stand_ins"
Range = tuple[str, str]


@dataclass(frozen=True)
class Scripted:
    """One launch, in the order of the API calls; the GPU may begin with them in another order."""

    mangled: str
    function: str = ""
    demangled: str = ""
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (32, 1, 1)
    shared: int = 0
    duration_ns: int = 1000
    device: int = 0
    pid: int = 1
    gpu_start_ns: int | None = None
    nvtx: tuple[Range, ...] = ()
    ranges: tuple[Range, ...] = ()
    uncaptured: bool = False

    @property
    def names(self) -> tuple[str, str, str]:
        return self.mangled, self.function or self.mangled, self.demangled or self.mangled

    def for_ncu(self) -> dict[str, Any]:
        mangled, function, demangled = self.names
        return {
            "mangled": mangled,
            "function": function,
            "demangled": demangled,
            "grid": self.grid,
            "block": self.block,
            "smem": self.shared,
            "device": self.device,
            "nvtx": self.nvtx,
            "ranges": self.ranges,
            "before_profiler_start": self.uncaptured,
        }


KERNEL_COLUMNS = (
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"),
    *("demangledName", "shortName", "mangledName", "gridX", "gridY", "gridZ"),
    *("blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"),
)
CALL_COLUMNS = ("start", "end", "globalTid", "correlationId", "nameId", "eventClass")
NVTX_COLUMNS = ("start", "end", "eventType", "text", "globalTid", "endGlobalTid", "domainId")
STEP_NS = 1_000_000
CUDA_PROFILER_START = "Profiling started due to cudaProfilerStart API invoked in the application."


def write_export(path: Path, launches: Sequence[Scripted], *, mangled: bool = True) -> Path:
    """An nsys export of these launches, each called in a step of 1 ms of its own.

    Where some are `uncaptured`, the capture began after them, with cudaProfilerStart.
    """
    strings: dict[str, int] = {}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings) + 1)

    with closing(sqlite3.connect(path)) as connection:
        for table, columns in (
            ("CUPTI_ACTIVITY_KIND_KERNEL", KERNEL_COLUMNS),
            ("CUPTI_ACTIVITY_KIND_RUNTIME", CALL_COLUMNS),
            ("NVTX_EVENTS", NVTX_COLUMNS),
        ):
            typed = ", ".join(f"{c} {'TEXT' if c == 'text' else 'INTEGER'}" for c in columns)
            connection.execute(f"CREATE TABLE {table} ({typed})")
        connection.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        domains: dict[str, int] = {"": 0}
        if any(one.uncaptured for one in launches):
            say_capture_began(connection, CUDA_PROFILER_START)
        for number, one in enumerate(one for one in launches if not one.uncaptured):
            called = number * STEP_NS
            process = one.pid << 24
            start = called + 100 if one.gpu_start_ns is None else one.gpu_start_ns
            own, function, demangled = one.names
            names = (text(demangled), text(function), text(own) if mangled else None)
            when = (start, start + one.duration_ns, one.device, 1, 7, number + 1, process)
            kernel = (*when, *names, *one.grid, *one.block, 0, one.shared)
            _insert(connection, "CUPTI_ACTIVITY_KIND_KERNEL", kernel)
            call = (called, called + 50, process | 1, number + 1, text("cudaLaunchKernel"), 0)
            _insert(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", call)
            for kind, opened in ((59, one.nvtx), (60, one.ranges)):
                for domain, name in opened:
                    domains.setdefault(domain, len(domains))
                    span = (called - 10, called + 500, kind, name, process | 1, None)
                    _insert(connection, "NVTX_EVENTS", (*span, domains[domain]))
        for pid in {one.pid for one in launches}:
            for domain, number in domains.items():
                if number:
                    named = (0, None, 75, domain, pid << 24 | 1, None, number)
                    _insert(connection, "NVTX_EVENTS", named)
        connection.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(i, s) for s, i in strings.items()]
        )
        connection.commit()
    return path


def say_capture_began(connection: sqlite3.Connection, how: str, late_ns: int = 10**9) -> None:
    """What nsys says when a capture begins that long after its program, and why."""
    connection.execute(
        "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, severity INTEGER, source INTEGER,"
        " text TEXT)"
    )
    launched = "Process was launched by the profiler, see /tmp/stdout.log for program output"
    for at, text in ((-late_ns, launched), (0, "Profiling has started."), (5, how)):
        _insert(connection, "DIAGNOSTIC_EVENT", (at, 1, 1, text))


def _insert(connection: sqlite3.Connection, table: str, row: Sequence[object]) -> None:
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def stand_in() -> ModuleType:
    """The stand-in as a module: its parser and its filters, without a process."""
    loader = importlib.machinery.SourceFileLoader("stand_in_ncu", str(STAND_INS / "ncu"))
    spec = importlib.util.spec_from_loader("stand_in_ncu", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@dataclass
class Bench:
    """A folder in which shell lines run with the stand-ins first on PATH."""

    folder: Path
    launches: Sequence[Scripted] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.folder / "ncu.log"

    def application(self) -> tuple[str, ...]:
        """An application that notes its rank and arguments in a log of its own."""
        path = self.folder / "application"
        if not path.exists():
            path.write_text(
                "#!/bin/bash\n"
                "rank=${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-${PALS_RANKID:-${RANK:-}}}}\n"
                f'{{ printf "%s" "$rank"; printf "|%q" "$@"; echo; }} >> {self.folder}/app.log\n'
            )
            path.chmod(0o755)
        return (str(path),)

    def shell(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a text with bash."""
        scripted = self.folder / "launches.json"
        scripted.write_text(json.dumps([one.for_ncu() for one in self.launches]))
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "OMPI_", "PMI", "PALS_", "STAND_IN_", "RANK"))
        }
        environment = {
            **clean,
            "PATH": os.pathsep.join(
                [str(STAND_INS), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "STAND_IN_NCU_LAUNCHES": str(scripted),
            "STAND_IN_NCU_LOG": str(self.log),
            **self.environment,
        }
        return subprocess.run(
            ["bash", "-c", script, "bash", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def profiled(self) -> list[list[int]]:
        """The launches profiled by each run of ncu so far, as places in the script."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line)["profiled"] for line in lines]

    def applications(self) -> list[str]:
        """What each start of the application noted: rank and arguments."""
        path = self.folder / "app.log"
        return path.read_text().splitlines() if path.exists() else []
