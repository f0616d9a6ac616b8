"""The processes that are measured, what is compared, and how far apart they have to be."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.measure import Command, Round, nothing
from harness.peers import FALLBACK_MESSAGE, HTA, HTA_CODE, NsysAi, install

BENCHMARKS = Path(__file__).resolve().parents[1]
PEERS = BENCHMARKS / "peers"
TINY_KERNELS, SCALE, RANKS = 1_000, 5, 8
FEW, MANY = 4, 128
# What is asked a second time, of the columns that the first time has stored.
AGAIN = ("kernels", "summarize", "findings", "breakdown", "nvtx", "iterations", "select")
# They take long: measured only where they are asked for.
ON_REQUEST = {"many ranks", "traces"}
NCU_CODE = (
    "import sys; from nsightpy.reports.one_file import NcuReport; "
    "print(sum(NcuReport(path).frame('metrics').rows for path in sys.argv[1:]), 'metrics')"
)


@dataclass(frozen=True)
class Comparison:
    """One claim: `value` of the measured commands against `target`."""

    section: str
    claim: str
    commands: tuple[Command, ...]
    value: Callable[[Round], float]
    target: float
    at_least: bool = False
    unit: str = "x"

    def met(self, value: float) -> bool:
        return value >= self.target if self.at_least else value <= self.target


def faster(section: str, ours: Command, peer: Command, factor: float) -> Comparison:
    """`ours` is at least `factor` times as fast as `peer`."""

    def value(samples: Round) -> float:
        return samples[peer.name].seconds / samples[ours.name].seconds

    claim = f"`{ours.name}` faster than `{peer.name}`"
    return Comparison(section, claim, (ours, peer), value, factor, at_least=True)


def within(section: str, ours: Command, base: Command, factor: float, times: int = 1) -> Comparison:
    """`ours` takes at most `factor` times as long as `base` so many times."""

    def value(samples: Round) -> float:
        return samples[ours.name].seconds / (times * samples[base.name].seconds)

    whole = f"{times} x `{base.name}`" if times > 1 else f"`{base.name}`"
    claim = f"time of `{ours.name}` / time of {whole}"
    return Comparison(section, claim, (ours, base), value, factor)


def memory(section: str, ours: Command, base: Command, kernels: int, limit: float) -> Comparison:
    """`ours` peaks at most `limit` bytes per kernel above `base`."""

    def value(samples: Round) -> float:
        return (samples[ours.name].peak_bytes - samples[base.name].peak_bytes) / kernels

    claim = f"peak memory of `{ours.name}` above `{base.name}`"
    return Comparison(section, claim, (ours, base), value, limit, unit=" B/kernel")


def written(ours: Command, export: Path | None, samples: Round) -> float:
    """What `ours` wrote, by the size of an export, or in MB."""
    return samples[ours.name].output_bytes / (export.stat().st_size if export else 1e6)


def ncu_reports() -> list[str]:
    """All .ncu-rep under NSIGHTPY_REPORTS, else beside the checkout; none without the library."""
    if importlib.util.find_spec("ncu_report") is None:
        return []
    beside = BENCHMARKS.parents[1] / "shared" / "reports"
    folder = Path(os.environ.get("NSIGHTPY_REPORTS") or beside)
    return [str(path) for path in sorted(folder.rglob("*.ncu-rep"))]


def python(name: str, *words: str) -> Command:
    return Command(name, (sys.executable, *words))


def importing(modules: str) -> Command:
    return python(f"import {modules}", "-c", f"import {modules}")


class Suite:
    """All comparisons on exports of so many kernels; each is generated when it is missing."""

    def __init__(self, folder: Path, kernels: int) -> None:
        self.folder, self.kernels, self.cache = folder, kernels, folder / "cache"

    def comparisons(self) -> Iterator[Comparison]:
        yield from self._one_export()
        yield from self._jobs()
        start = python("python -c pass", "-c", "pass")
        yield within("help", python("--help", "-m", "nsightpy", "--help"), start, 6.0)
        if paths := ncu_reports():
            ours = python("ncu metrics", "-c", NCU_CODE, *paths)
            loop = python("plain ncu_report loop", str(PEERS / "ncu_loop.py"), *paths)
            yield within("ncu", ours, loop, 1.5)
        yield from self._many_ranks()
        yield from self._traces()

    def _one_export(self) -> Iterator[Comparison]:
        """Commands on one export each, and what a user would write or run instead."""
        export, count = self.export(self.kernels), self.kernels
        ensure = self._ensure(export, "--kernels", count)
        top = ("kernels", "--top", "20")
        kernels, tiny = self._on("kernels", count, *top), self._on("kernels, tiny", 1_000, *top)
        summarize = self._on("summarize", count, "summarize")
        join = replace(
            python("pandas JOIN", str(PEERS / "pandas_join.py"), str(export)), setup=ensure
        )
        shell = ("sqlite3", "-readonly", "-bail", str(export))
        query = Command("sqlite3 GROUP BY", shell, stdin=PEERS / "group_by.sql", setup=ensure)
        yield within("first", kernels, query, 1.0)
        yield faster("first", kernels, join, 10.0)
        yield within("first", summarize, query, 4.0)
        yield within("first", tiny, importing("numpy, sqlalchemy, pyarrow"), 1.2)
        again = {name: self._again(self._on(name, count, name)) for name in AGAIN}
        yield within("again", again["kernels"], importing("numpy, pyarrow"), 3.0)
        yield within("again", again["summarize"], summarize, 0.5)
        for name in AGAIN[2:]:
            yield within("again", again[name], kernels, 2.0)
        for name in AGAIN:
            base = self._again(self._on(f"{name}, tiny", TINY_KERNELS, name), "tiny")
            yield memory("memory", again[name], base, count, 120.0)
        last = again[AGAIN[-1]]
        claim = f"size of the store after `{last.name}` / size of the export"
        yield Comparison("store", claim, (last,), partial(written, last, export), 0.5)
        peers = {name: self._nsys_ai(name, export, ensure) for name in ("first", "again")}
        yield faster("nsys-ai", summarize, peers["first"], 6.0)
        yield faster("nsys-ai", again["summarize"], peers["again"], 2.5)
        target = self.folder / "timeline.html"
        drawn = ("timeline", "-o", str(target), "--force", "-q")
        page = replace(self._on("timeline page", count // 2, *drawn), output=target)
        yield within("timeline", page, self._on("kernels, half", count // 2, *top), 10.0)
        claim, size = f"size of `{page.name}`", partial(written, page, None)
        yield Comparison("timeline", claim, (page,), size, 60.0, unit=" MB")
        yield within("scale", self._on(f"kernels, {SCALE} x", count * SCALE, *top), kernels, 6.0)

    def _jobs(self) -> Iterator[Comparison]:
        """Commands on jobs; the memory is that of the parent, without its workers."""
        quarter = self.kernels // 4
        few = [self._small(FEW, jobs) for jobs in (1, 2)]
        many = [self._small(MANY, jobs) for jobs in (1, 2)]
        summary = self._small(MANY, 1, "summarize")
        yield within("small ranks", summary, many[0], 3.4)
        again = self._again(summary, "ranks"), self._again(many[0], "ranks")
        yield within("small ranks", *again, 3.4)
        one, two = (self._of_job(f"ranks, {n}", quarter, RANKS, "ranks", n) for n in (1, 2))
        tiny = self._of_job("ranks, 2", TINY_KERNELS, RANKS, "ranks", 2)
        tiny = replace(tiny, name=f"{tiny.name}, tiny")
        yield faster("ranks", two, one, 1.7)
        yield memory("ranks", two, tiny, RANKS * quarter, 20.0)
        job, half = self._job(quarter, RANKS), RANKS // 2
        runs = [str(job / f"report_rank{n}.sqlite") for n in range(RANKS)]
        sides = ("compare", "--jobs", "2", *runs[:half], "--", *runs[half:])
        ensure = self._ensure(job, "--kernels", quarter, "--reports", RANKS)
        compare = self._ours(f"compare, {half} runs a side, 2 workers", sides, ensure)
        summary = self._on("summarize, quarter", quarter, "summarize")
        yield within("compare", compare, summary, 1.3, times=RANKS)
        yield within("workers", few[1], few[0], 1.6)
        yield within("workers", many[1], many[0], 1.0)

    def _many_ranks(self) -> Iterator[Comparison]:
        """Commands on the small reports of many ranks, with NCCL's payload and without."""
        ranks = 1024 if self.kernels >= 1_000_000 else 16
        asked = {"ranks": 2.0, "collectives": 2.0, "summarize": 5.0}
        for payload, factors in ((True, asked), (False, {"ranks": 4.0})):
            folder = self.folder / f"{ranks}_ranks_payload_{payload}"
            ensure = self._ensure(folder, "--ranks", ranks, *(["--payload"] * payload))
            about = ", many ranks" + ", payload" * payload
            base, *others = (
                self._ours(verb + about, (verb, "--jobs", "1", str(folder)), ensure)
                for verb in ("kernels", *factors)
            )
            for command, factor in zip(others, factors.values(), strict=True):
                yield within("many ranks", command, base, factor)

    def _traces(self) -> Iterator[Comparison]:
        """A PyTorch trace, the same job as an export, and HTA on the trace."""
        folder = self.folder / f"trace_{self.kernels}"
        file, export = (str(folder / f"trace_rank0.{end}") for end in ("pt.trace.json", "sqlite"))
        ensure = self._ensure(folder, "--events", self.kernels)
        trace = self._ours("summarize, PyTorch trace", ("summarize", file), ensure)
        exported = self._ours("summarize, its job's export", ("summarize", export), ensure)
        environment = BENCHMARKS / ".env-hta"

        def set_up() -> None:
            ensure()
            install(environment, HTA)

        line = (str(environment / "bin" / "python"), "-c", HTA_CODE, file, str(folder))
        yield faster("traces", trace, Command("HTA", line, setup=set_up), 8.0)
        again = self._again(trace, "trace"), self._again(exported, "trace")
        yield within("traces", *again, 2.0)

    def _nsys_ai(self, name: str, export: Path, ensure: Callable[[], None]) -> Command:
        peer = NsysAi(BENCHMARKS / ".env-nsys-ai", export)

        def set_up() -> None:
            ensure()
            peer.set_up()

        return Command(
            f"nsys-ai summary, {name}",
            peer.summary,
            environment=peer.environment,
            setup=set_up,
            prepare=peer.forget if name == "first" else peer.warm,
            voided_by=FALLBACK_MESSAGE,
        )

    def export(self, kernels: int) -> Path:
        for unit, name in ((1_000_000, "m"), (1_000, "k")):
            if kernels % unit == 0:
                return self.folder / f"kernels_{kernels // unit}{name}.sqlite"
        return self.folder / f"kernels_{kernels}.sqlite"

    def _job(self, kernels: int, reports: int) -> Path:
        return self.folder / f"ranks_{reports}x{self.export(kernels).stem.removeprefix('kernels_')}"

    def _ensure(self, path: Path, *options: object) -> Callable[[], None]:
        """What generates a file or folder unless it is there."""
        line = [sys.executable, str(BENCHMARKS / "generate.py"), *map(str, options), str(path)]

        def generate() -> None:
            if not path.exists():
                subprocess.run(line, check=True, stdout=sys.stderr)

        return generate

    def _on(self, name: str, kernels: int, verb: str, *options: str) -> Command:
        export = self.export(kernels)
        ensure = self._ensure(export, "--kernels", kernels)
        return self._ours(name, (verb, str(export), *options), ensure)

    def _of_job(self, name: str, kernels: int, reports: int, verb: str, jobs: int) -> Command:
        """A command on a job, with one worker or more."""
        job = self._job(kernels, reports)
        ensure = self._ensure(job, "--kernels", kernels, "--reports", reports)
        name = f"{name} {'worker' if jobs == 1 else 'workers'}"
        return self._ours(name, (verb, "--jobs", str(jobs), str(job)), ensure)

    def _small(self, reports: int, jobs: int, verb: str = "kernels") -> Command:
        name = f"{verb}, {reports} small reports, {jobs}"
        return self._of_job(name, TINY_KERNELS, reports, verb, jobs)

    def _ours(self, name: str, words: tuple[str, ...], setup: Callable[[], None]) -> Command:
        """A command of ours; what it cached in the user's cache is not there."""
        empty = self.cache / "empty"
        return replace(
            python(name, "-m", "nsightpy", *words),
            environment={"NSIGHTPY_CACHE_DIR": str(empty)},
            setup=setup,
            prepare=partial(shutil.rmtree, empty, ignore_errors=True),
        )

    def _again(self, command: Command, store: str = "store") -> Command:
        """The same with what was stored in the rounds before; the warm-up is its first time."""
        folder = self.cache / store

        def set_up() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            command.setup()

        return replace(
            command,
            name=f"{command.name}, again",
            environment={"NSIGHTPY_CACHE_DIR": str(folder)},
            setup=set_up,
            prepare=nothing,
            output=folder,
        )
