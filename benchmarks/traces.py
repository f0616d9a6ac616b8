"""What PyTorch traces cost: `summarize` against HTA and against the same job as an nsys export.

    python benchmarks/traces.py --hta ENVIRONMENT/bin/python      # 2,000,000 events; minutes
    python benchmarks/traces.py --events 100000 --rounds 1        # a quick trial

The jobs are those of scripts/simulator. Each measurement is a process of its own, in turn, and
counts processor seconds (user and system, with children), which other load on the machine changes
less than it changes elapsed time. HTA 0.5.0 lives in an environment of its own:
`python -m venv hta && hta/bin/pip install HolisticTraceAnalysis==0.5.0`. `--output FILE` writes the
table as a page.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.measure import Command, Round, Sample, measure, medians

ROOT = Path(__file__).resolve().parent.parent
RANKS = 8
# What HTA is asked: how the GPU's time divides, and the kernels by time.
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=sys.argv[2])
print(analysis.get_temporal_breakdown(visualize=False))
print(analysis.get_gpu_kernel_breakdown(visualize=False))
"""


def make(events: int, ranks: int, folder: Path) -> list[Path]:
    """Write a job of that many ranks, with about so many events a rank, as traces and exports.

    It is done in a process of its own: a child's memory is at least its parent's. Returns the
    traces; the exports are in `folder/exports`.
    """
    subprocess.run([sys.executable, __file__, "--make", f"{events},{ranks}", folder], check=True)
    return sorted(folder.glob("*.json"))


def write(events: int, ranks: int, folder: Path) -> None:
    """What `make` asks its process for."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from simulator.emit import write_reports
    from simulator.kineto import write_traces
    from simulator.presets import TORCH_2RANK

    job = replace(TORCH_2RANK, tensor=1, data=ranks, layers=12, straggler=None)
    probe = write_traces(replace(job, iterations=20).run(), folder, packed=False)[0]
    job = replace(job, iterations=max(4, round(20 * events / count(probe))))
    made = job.run()
    write_traces(made, folder, packed=False)
    write_reports(made, folder / "exports")


def count(path: Path) -> int:
    """How many events a trace of the simulator has: one a line."""
    with path.open("rb") as file:
        return sum(b'"ph"' in line for line in file)


def compare(rounds: int, cache: Path, trace: Path, hta: str | None) -> Round:
    """The medians of all commands about one trace, run in turn after one round."""
    export = next((trace.parent / "exports").glob("*.sqlite"))
    first, kept = str(cache / "first"), str(cache / "kept")
    commands = [
        summarize("summarize, first", trace, cache=first, forgets=True),
        summarize("summarize, again", trace, cache=kept),
        summarize("summarize, nsys export", export, cache=kept),
    ]
    if hta:
        commands.append(Command("HTA", (hta, "-c", HTA, str(trace), str(trace.parent))))
    return medians(measure(commands, rounds, ROOT, lambda line: print(line, file=sys.stderr)))


def workers(rounds: int, cache: Path, traces: Sequence[Path]) -> Round:
    """The medians of `summarize` over all ranks with one and with two workers; nothing is kept."""
    commands = [
        summarize(name, *traces, "--no-cache", "--jobs", jobs, cache=str(cache))
        for jobs in ("1", "2")
        for name in [f"{len(traces)} ranks, --jobs {jobs}"]
    ]
    return medians(measure(commands, rounds, ROOT, lambda line: print(line, file=sys.stderr)))


def summarize(name: str, *arguments: str | Path, cache: str, forgets: bool = False) -> Command:
    """One summary; `forgets` what was kept before each."""
    words = ("summarize", *map(str, arguments), "--format", "json")
    return Command(
        name,
        (sys.executable, "-m", "nsightpy", *words),
        environment={"NSIGHTPY_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)},
        prepare=partial(shutil.rmtree, cache, ignore_errors=True) if forgets else None,
    )


def page(costs: Round, lines: Sequence[str]) -> str:
    """The figures as Markdown."""
    rows = [
        f"| {name} | {c.cpu_seconds:.1f} | {c.seconds:.1f} | {c.peak_bytes / 1e6:,.0f} |"
        for name, c in costs.items()
    ]
    head = ["| command | CPU s | elapsed s | anonymous MB |", "| --- | ---: | ---: | ---: |"]
    return "\n".join([*head, *rows, "", *(f"- {line}" for line in lines), ""])


def ratios(costs: Round) -> list[str]:
    """What the targets are about."""
    first, again = costs["summarize, first"], costs["summarize, again"]
    times = again.cpu_seconds / costs["summarize, nsys export"].cpu_seconds
    found = [f"again / nsys export: {times:.2f} x the time (target: at most 2)"]
    if (hta := costs.get("HTA")) is not None:
        faster, part = hta.cpu_seconds / first.cpu_seconds, first.peak_bytes / hta.peak_bytes
        found.append(f"HTA / first: {faster:.1f} x the time (target: at least 8)")
        found.append(f"first / HTA: {part:.2f} x the memory (target: at most 0.5)")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=2_000_000, help="of the one trace")
    parser.add_argument("--ranks", type=int, default=RANKS, help="of the job for the workers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hta", help="the Python of an environment with HTA")
    parser.add_argument("--output", type=Path, help="write the page here")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("folder", nargs="?", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        events, ranks = map(int, given.make.split(","))
        write(events, ranks, given.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name), Path(name) / "cache"
        (trace,) = make(given.events, 1, folder / "one")
        costs: dict[str, Sample] = dict(compare(given.rounds, cache, trace, given.hta))
        lines = [f"{count(trace):,} events, {trace.stat().st_size / 1e6:,.0f} MB", *ratios(costs)]
        traces = make(given.events // 8, given.ranks, folder / "n")
        costs |= workers(given.rounds, cache, traces)
        one, two = (c.seconds for name, c in costs.items() if "--jobs" in name)
        lines.append(f"1 worker / 2 workers: {one / two:.2f} x elapsed (target: at least 1.7)")
    text = page(costs, lines)
    print(text)
    if given.output:
        given.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
