"""The processes that the comparisons name."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.measure import Command
from harness.peers import FALLBACK_MESSAGE, HTA, HTA_CODE, NsysAi, install

BENCHMARKS = Path(__file__).resolve().parents[1]
PEERS = BENCHMARKS / "peers"
TINY_KERNELS = 1_000
RANKS = 8
FEW, MANY = 4, 128
# What is asked a second time, of the columns that the first time has stored.
AGAIN = ("kernels", "summarize", "findings", "breakdown", "nvtx", "iterations", "select")
MAPPED_IMPORTS = "import numpy, pyarrow"
IMPORTS = "import numpy, sqlalchemy, pyarrow"
COMPARE = f"compare, {RANKS // 2} runs a side, 2 workers"
# What is asked of the small reports of many ranks.
MANY_ASKED = ("kernels", "ranks", "collectives", "summarize")
TRACE, TRACED_EXPORT = "summarize, PyTorch trace", "summarize, its job's export"
NCU, NCU_LOOP = "ncu metrics", "plain ncu_report loop"
NCU_CODE = (
    "import sys; from nsightpy.reports.one_file import NcuReport; "
    "print(sum(NcuReport(path).frame('metrics').rows for path in sys.argv[1:]), 'metrics')"
)


def small(reports: int, jobs: int, verb: str = "kernels") -> str:
    """The name of the command that reads so many small reports."""
    return f"{verb}, {reports} small reports, {jobs} {'worker' if jobs == 1 else 'workers'}"


def again(command: str) -> str:
    """The name of the same command a second time: its columns are stored."""
    return f"{command}, again"


def tiny(command: str) -> str:
    """The name of the same command on an export of TINY_KERNELS."""
    return f"{command}, tiny"


def many(verb: str, payload: bool) -> str:
    """The name of a command on the small reports of many ranks."""
    return f"{verb}, many ranks{', payload' if payload else ''}"


def ncu_reports() -> list[str]:
    """All .ncu-rep under NSIGHTPY_REPORTS, else beside the checkout; none without the library."""
    if importlib.util.find_spec("ncu_report") is None:
        return []
    beside = BENCHMARKS.parents[1] / "shared" / "reports"
    folder = Path(os.environ.get("NSIGHTPY_REPORTS") or beside)
    return [str(path) for path in sorted(folder.rglob("*.ncu-rep"))]


@dataclass(frozen=True)
class Inputs:
    """The reports that are measured on; each is generated when it is missing."""

    folder: Path
    kernels: int
    scale: int

    @property
    def trace(self) -> Path:
        """The folder of a PyTorch trace with as many events as an export has kernels."""
        return self.folder / f"trace_{self.kernels}"

    def export(self, kernels: int) -> Path:
        """One export of so many kernels."""
        for unit, name in ((1_000_000, "m"), (1_000, "k")):
            if kernels % unit == 0:
                return self.folder / f"kernels_{kernels // unit}{name}.sqlite"
        return self.folder / f"kernels_{kernels}.sqlite"

    def job(self, kernels: int, reports: int = RANKS) -> Path:
        """The folder of a job's reports, one per rank."""
        return self.folder / f"ranks_{reports}x{self.export(kernels).stem.removeprefix('kernels_')}"

    def ensure(self, path: Path, *options: object) -> Callable[[], None]:
        """What generates a file or folder unless it is there."""

        def generate() -> None:
            if not path.exists():
                line = [
                    sys.executable,
                    str(BENCHMARKS / "generate.py"),
                    *map(str, options),
                    str(path),
                ]
                subprocess.run(line, check=True, stdout=sys.stderr)

        return generate


class Catalogue:
    """Builds the commands, by name."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.cache = inputs.folder / "cache"

    def commands(self) -> dict[str, Command]:
        every = [*self._large(), *self._jobs(), *self._starts(), *self._peers()]
        every += [*self._many(), *self._traces()]
        return {command.name: command for command in every}

    def _large(self) -> Iterator[Command]:
        """Commands on one export each."""
        kernels, scale = self.inputs.kernels, self.inputs.scale
        sizes = {"kernels": kernels, tiny("kernels"): TINY_KERNELS, "kernels, half": kernels // 2}
        for name, count in (sizes | {f"kernels, {scale} x": kernels * scale}).items():
            yield self._of_export(name, count, "kernels", "--top", "20")
        yield self._of_export("summarize", kernels, "summarize")
        yield self._of_export("summarize, quarter", kernels // 4, "summarize")
        for name in AGAIN:
            yield self._again(self._of_export(name, kernels, name))
            yield self._again(self._of_export(tiny(name), TINY_KERNELS, name), "tiny")
        page = self.inputs.folder / "timeline.html"
        drawn = ("timeline", "-o", str(page), "--force", "-q")
        yield replace(self._of_export("timeline page", kernels // 2, *drawn), output=page)

    def _jobs(self) -> Iterator[Command]:
        """Commands on jobs; the memory is that of the parent, without its workers."""
        quarter = self.inputs.kernels // 4
        job = self.inputs.job(quarter)
        runs = [str(job / f"report_rank{n}.sqlite") for n in range(RANKS)]
        sides = (*runs[: RANKS // 2], "--", *runs[RANKS // 2 :])
        ensure = self.inputs.ensure(job, "--kernels", quarter, "--reports", RANKS)
        yield self._ours(COMPARE, ("compare", "--jobs", "2", *sides), ensure)
        yield self._of_job("ranks, 1 worker", quarter, RANKS, "ranks", 1)
        yield self._of_job("ranks, 2 workers", quarter, RANKS, "ranks", 2)
        yield self._of_job("ranks, 2 workers, tiny", TINY_KERNELS, RANKS, "ranks", 2)
        for reports, jobs in ((FEW, 1), (FEW, 2), (MANY, 1), (MANY, 2)):
            yield self._of_job(small(reports, jobs), TINY_KERNELS, reports, "kernels", jobs)
        for verb in ("kernels", "summarize"):
            command = self._of_job(small(MANY, 1, verb), TINY_KERNELS, MANY, verb, 1)
            yield command
            yield self._again(command, "ranks")

    def _starts(self) -> Iterator[Command]:
        """What starting costs, ours and Python's."""
        yield Command("--help", (sys.executable, "-m", "nsightpy", "--help"))
        yield Command("python -c pass", (sys.executable, "-c", "pass"))
        for line in (IMPORTS, MAPPED_IMPORTS):
            yield Command(line, (sys.executable, "-c", line))

    def _peers(self) -> Iterator[Command]:
        """What a user would write or run instead, and ours on the same .ncu-rep."""
        export = self.inputs.export(self.inputs.kernels)
        ensure = self.inputs.ensure(export, "--kernels", self.inputs.kernels)
        script = (sys.executable, str(PEERS / "pandas_join.py"), str(export))
        yield Command("pandas JOIN", script, setup=ensure)
        shell = ("sqlite3", "-readonly", "-bail", str(export))
        yield Command("sqlite3 GROUP BY", shell, stdin=PEERS / "group_by.sql", setup=ensure)
        paths = ncu_reports()
        yield Command(NCU, (sys.executable, "-c", NCU_CODE, *paths))
        yield Command(NCU_LOOP, (sys.executable, str(PEERS / "ncu_loop.py"), *paths))
        peer = NsysAi(BENCHMARKS / ".env-nsys-ai", export)

        def set_up() -> None:
            ensure()
            peer.set_up()

        for name, prepare in (("first", peer.forget), ("again", peer.warm)):
            yield Command(
                f"nsys-ai summary, {name}",
                peer.summary,
                environment=peer.environment,
                setup=set_up,
                prepare=prepare,
                voided_by=FALLBACK_MESSAGE,
            )

    def _many(self) -> Iterator[Command]:
        """Commands on the small reports of many ranks, with NCCL's payload and without."""
        ranks = 1024 if self.inputs.kernels >= 1_000_000 else 16
        for payload, options in ((True, ("--payload",)), (False, ())):
            folder = self.inputs.folder / f"{ranks}_ranks_payload_{payload}"
            ensure = self.inputs.ensure(folder, "--ranks", ranks, *options)
            for verb in MANY_ASKED:
                yield self._ours(many(verb, payload), (verb, "--jobs", "1", str(folder)), ensure)

    def _traces(self) -> Iterator[Command]:
        """A PyTorch trace, the same job as an export, and HTA on the trace."""
        folder = self.inputs.trace
        file = str(folder / "trace_rank0.pt.trace.json")
        ensure = self.inputs.ensure(folder, "--events", self.inputs.kernels)
        yield self._ours(TRACE, ("summarize", file), ensure)
        yield self._again(self._ours(TRACE, ("summarize", file), ensure), "trace")
        export = ("summarize", str(folder / "trace_rank0.sqlite"))
        yield self._again(self._ours(TRACED_EXPORT, export, ensure), "trace")
        environment = BENCHMARKS / ".env-hta"

        def set_up() -> None:
            ensure()
            install(environment, HTA)

        line = (str(environment / "bin" / "python"), "-c", HTA_CODE, file, str(folder))
        yield Command("HTA", line, setup=set_up)

    def _of_export(self, name: str, kernels: int, verb: str, *options: str) -> Command:
        export = self.inputs.export(kernels)
        ensure = self.inputs.ensure(export, "--kernels", kernels)
        return self._ours(name, (verb, str(export), *options), ensure)

    def _of_job(self, name: str, kernels: int, reports: int, verb: str, jobs: int) -> Command:
        job = self.inputs.job(kernels, reports)
        ensure = self.inputs.ensure(job, "--kernels", kernels, "--reports", reports)
        return self._ours(name, (verb, "--jobs", str(jobs), str(job)), ensure)

    def _ours(self, name: str, words: tuple[str, ...], setup: Callable[[], None]) -> Command:
        """A command of ours; what it cached in the user's cache is not there."""
        empty = self.cache / "empty"
        return Command(
            name,
            (sys.executable, "-m", "nsightpy", *words),
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

        return replace(
            command,
            name=again(command.name),
            environment={"NSIGHTPY_CACHE_DIR": str(folder)},
            setup=set_up,
            prepare=None,
            output=folder,
        )
