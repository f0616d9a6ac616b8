"""A bench for tests of ncu commands: reports of scripted launches, and the stand-in ncu."""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from simulator import Export

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
        names = dict(zip(("mangled", "function", "demangled"), self.names, strict=True))
        same = {name: getattr(self, name) for name in ("grid", "block", "device", "nvtx", "ranges")}
        return {**names, **same, "smem": self.shared, "before_profiler_start": self.uncaptured}


STEP_NS = 1_000_000
CUDA_PROFILER_START = "Profiling started due to cudaProfilerStart API invoked in the application."


def write_export(
    path: Path,
    launches: Sequence[Scripted],
    *,
    mangled: bool = True,
    began: tuple[str, int] | None = None,
) -> Path:
    """An nsys export of these launches, each called in a step of 1 ms of its own.

    `began`: what nsys says of how the capture began, and how long after the program (ns). Where
    some launches are `uncaptured` it began after them, with cudaProfilerStart.
    """
    export = Export(path)
    if began is None and any(one.uncaptured for one in launches):
        began = (CUDA_PROFILER_START, 10**9)
    if began is not None:
        launched = "Process was launched by the profiler, see /tmp/stdout.log for program output"
        said = ((-began[1], launched), (0, "Profiling has started."), (5, began[0]))
        for at, text in said:
            export.diagnostic(at, text, source=1)
    domains: dict[tuple[int, str], int] = {}
    unnamed: dict[str, Any] = {} if mangled else {"mangledName": None}
    for number, one in enumerate(one for one in launches if not one.uncaptured):
        process, called = export.process(one.pid), number * STEP_NS
        start = called + 100 if one.gpu_start_ns is None else one.gpu_start_ns
        own, function, demangled = one.names
        export.kernel(
            start,
            start + one.duration_ns,
            demangled,
            short=function,
            mangled=own,
            device=one.device,
            grid=one.grid,
            block=one.block,
            shared=(0, one.shared),
            process=process,
            launch=(called, called + 50),
            **unnamed,
        )
        opened = [(export.nvtx_push_pop, *each) for each in one.nvtx]
        opened += [(export.nvtx_start_end, *each) for each in one.ranges]
        for write, domain, name in opened:
            if domain and (one.pid, domain) not in domains:
                domains[one.pid, domain] = export.nvtx_domain(domain, process=process)
            where = domains.get((one.pid, domain), 0)
            write(called - 10, called + 500, name, domain=where, process=process)
    return export.write()


def stand_in() -> SimpleNamespace:
    """The stand-in as a module: its parser and its filters, without a process."""
    return SimpleNamespace(**runpy.run_path(str(STAND_INS / "ncu")))


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
        launched = ("SLURM_", "OMPI_", "PMI", "PALS_", "STAND_IN_", "RANK")
        folders = [str(STAND_INS), str(Path(sys.executable).parent), os.environ["PATH"]]
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith(launched)},
            "PATH": os.pathsep.join(folders),
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
