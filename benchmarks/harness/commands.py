"""The processes that the comparisons name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness import ncu
from harness.measure import Command
from harness.nsys_ai import FALLBACK_MESSAGE, NsysAi

BENCHMARKS = Path(__file__).resolve().parents[1]
TINY_KERNELS = 1_000
RANKS = 8
FEW, MANY = 4, 128
# What is asked a second time, of the columns that the first time has stored.
AGAIN = ("kernels", "summarize", "findings", "breakdown", "nvtx", "iterations", "select")
MAPPED_IMPORTS = "import numpy, pyarrow"
IMPORTS = "import numpy, sqlalchemy, pyarrow"
COMPARE = f"compare, {RANKS // 2} runs a side, 2 workers"


@dataclass(frozen=True)
class Inputs:
    """The exports that are measured on; each is generated when it is missing."""

    folder: Path
    kernels: int
    scale: int

    def export(self, kernels: int) -> Path:
        for unit, name in ((1_000_000, "m"), (1_000, "k")):
            if kernels % unit == 0:
                return self.folder / f"kernels_{kernels // unit}{name}.sqlite"
        return self.folder / f"kernels_{kernels}.sqlite"

    def job(self, kernels: int, reports: int = RANKS) -> Path:
        """The folder of a job's reports, one per rank."""
        return self.folder / f"ranks_{reports}x{self.export(kernels).stem.removeprefix('kernels_')}"

    def ensure(self, kernels: int) -> None:
        path = self.export(kernels)
        if not path.exists():
            _generate(path, kernels)

    def ensure_job(self, kernels: int, reports: int = RANKS) -> None:
        path = self.job(kernels, reports)
        if not (path / f"report_rank{reports - 1}.sqlite").exists():
            _generate(path, kernels, "--reports", str(reports))


def _generate(path: Path, kernels: int, *options: str) -> None:
    script = str(BENCHMARKS / "generate.py")
    line = [sys.executable, script, "--kernels", str(kernels), *options, str(path)]
    subprocess.run(line, check=True, stdout=sys.stderr)


def small(reports: int, jobs: int, verb: str = "kernels") -> str:
    """The name of the command that reads so many small reports."""
    return f"{verb}, {reports} small reports, {jobs} {'worker' if jobs == 1 else 'workers'}"


def again(command: str) -> str:
    """The name of the same command a second time: its columns are stored."""
    return f"{command}, again"


def tiny(command: str) -> str:
    """The name of the same command on an export of TINY_KERNELS."""
    return f"{command}, tiny"


class Catalogue:
    """Builds the commands, by name."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.cache = inputs.folder / "cache"

    def commands(self) -> dict[str, Command]:
        kernels, scale = self.inputs.kernels, self.inputs.scale
        top = ("--top", "20")
        every = [
            self._nsightpy("kernels", kernels, "kernels", *top),
            self._nsightpy(tiny("kernels"), TINY_KERNELS, "kernels", *top),
            self._nsightpy(f"kernels, {scale} x", kernels * scale, "kernels", *top),
            self._nsightpy("summarize", kernels, "summarize"),
            *(self._again(self._nsightpy(name, kernels, name)) for name in AGAIN),
            *(self._again(self._nsightpy(tiny(n), TINY_KERNELS, n), "tiny") for n in AGAIN),
            self._nsightpy("kernels, half", kernels // 2, "kernels", *top),
            self._page(kernels // 2),
            self._compare(kernels // 4),
            self._nsightpy("summarize, quarter", kernels // 4, "summarize"),
            self._ranks("ranks, 1 worker", kernels // 4, 1),
            self._ranks("ranks, 2 workers", kernels // 4, 2),
            self._ranks("ranks, 2 workers, tiny", TINY_KERNELS, 2),
            *(self._small(reports, jobs) for reports in (FEW, MANY) for jobs in (1, 2)),
            self._small(MANY, 1, "summarize"),
            *(self._again(self._small(MANY, 1, v), "ranks") for v in ("kernels", "summarize")),
            Command("--help", (sys.executable, "-m", "nsightpy", "--help")),
            Command("python -c pass", (sys.executable, "-c", "pass")),
            *(Command(line, (sys.executable, "-c", line)) for line in (IMPORTS, MAPPED_IMPORTS)),
            *self._without_nsightpy(kernels),
            *self._nsys_ai(kernels),
            *ncu.commands(),
        ]
        return {command.name: command for command in every}

    def _nsightpy(self, name: str, kernels: int, verb: str, *options: str) -> Command:
        """A nsightpy command on an export."""
        path = str(self.inputs.export(kernels))
        line = (sys.executable, "-m", "nsightpy", verb, path, *options)
        return self._ours(name, line, partial(self.inputs.ensure, kernels))

    def _ours(self, name: str, line: tuple[str, ...], setup: Callable[[], None]) -> Command:
        """A command of ours; what it cached in the user's cache is not there."""
        empty = self.cache / "empty"
        return Command(
            name,
            line,
            environment={"NSIGHTPY_CACHE_DIR": str(empty)},
            setup=setup,
            prepare=partial(shutil.rmtree, empty, ignore_errors=True),
        )

    def _again(self, command: Command, store: str = "store") -> Command:
        """The same with what was stored in the rounds before; the warm-up is its first time."""
        folder = self.cache / store

        def set_up() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            if command.setup:
                command.setup()

        environment = {"NSIGHTPY_CACHE_DIR": str(folder)}
        return replace(
            command,
            name=again(command.name),
            environment=environment,
            setup=set_up,
            prepare=None,
            output=folder,
        )

    def _page(self, kernels: int) -> Command:
        """A timeline's page, with its API calls: 3.5 events per kernel."""
        page = self.inputs.folder / "timeline.html"
        command = self._nsightpy(
            "timeline page", kernels, "timeline", "-o", str(page), "--force", "-q"
        )
        return replace(command, output=page)

    def _compare(self, kernels: int) -> Command:
        """`compare` of half of a job's reports against the others, each as a run."""
        job = self.inputs.job(kernels)
        runs = [str(job / f"report_rank{rank}.sqlite") for rank in range(RANKS)]
        sides = (*runs[: RANKS // 2], "--", *runs[RANKS // 2 :])
        line = (sys.executable, "-m", "nsightpy", "compare", "--jobs", "2", *sides)
        return self._ours(COMPARE, line, partial(self.inputs.ensure_job, kernels))

    def _ranks(self, name: str, kernels: int, jobs: int) -> Command:
        """`ranks` on a job; its memory is that of the parent, without its workers."""
        line = (sys.executable, "-m", "nsightpy", "ranks", "--jobs", str(jobs))
        setup = partial(self.inputs.ensure_job, kernels)
        return self._ours(name, (*line, str(self.inputs.job(kernels))), setup)

    def _small(self, reports: int, jobs: int, verb: str = "kernels") -> Command:
        """A command on small reports: what starting workers and handing out work costs."""
        line = (sys.executable, "-m", "nsightpy", verb, "--jobs", str(jobs))
        setup = partial(self.inputs.ensure_job, TINY_KERNELS, reports)
        job = str(self.inputs.job(TINY_KERNELS, reports))
        return self._ours(small(reports, jobs, verb), (*line, job), setup)

    def _without_nsightpy(self, kernels: int) -> list[Command]:
        """What a user would write instead."""
        path = str(self.inputs.export(kernels))
        peers = BENCHMARKS / "peers"
        ensure = partial(self.inputs.ensure, kernels)
        script = (sys.executable, str(peers / "pandas_join.py"), path)
        shell = ("sqlite3", "-readonly", "-bail", path)
        return [
            Command("pandas JOIN", script, setup=ensure),
            Command("sqlite3 GROUP BY", shell, stdin=peers / "group_by.sql", setup=ensure),
        ]

    def _nsys_ai(self, kernels: int) -> list[Command]:
        peer = NsysAi(BENCHMARKS / ".env-nsys-ai", self.inputs.export(kernels))

        def set_up() -> None:
            self.inputs.ensure(kernels)
            peer.set_up()

        names = {"nsys-ai summary, first": peer.forget, "nsys-ai summary, again": peer.warm}
        return [
            Command(
                name,
                peer.summary,
                environment=peer.environment,
                setup=set_up,
                prepare=prepare,
                voided_by=FALLBACK_MESSAGE,
            )
            for name, prepare in names.items()
        ]
