"""What PyTorch traces cost: `summarize` against HTA and against the same job as an nsys export.

    python benchmarks/traces.py --hta ENVIRONMENT/bin/python      # 2,000,000 events; minutes
    python benchmarks/traces.py --events 100000 --rounds 1        # a quick trial
    python benchmarks/traces.py --large 10000000                  # one such trace, once

The jobs are those of scripts/simulator. Each measurement is a process of its own, in turn, and
counts processor seconds (user and system, with children), which other load on the machine changes
less than it changes elapsed time. HTA 0.5.0 lives in an environment of its own:
`python -m venv hta && hta/bin/pip install HolisticTraceAnalysis==0.5.0`. `--output FILE` writes the
table as a page.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
_PLATFORM = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Cost:
    """What one process took: processor seconds, elapsed seconds, highest memory in bytes."""

    cpu: float
    elapsed: float
    peak: int


def run(argv: Sequence[str | Path], cache: Path) -> Cost:
    """Run a process to its end; raises RuntimeError where it fails."""
    environment = os.environ | {"NSIGHTPY_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode("utf-8", "replace")
    if process.returncode:
        raise RuntimeError(f"{argv} ended with {process.returncode}: {said[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, elapsed, usage.ru_maxrss * _PLATFORM)


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


def compare(rounds: int, cache: Path, trace: Path, hta: str | None) -> dict[str, Cost]:
    """The medians of all commands about one trace, run in turn."""
    export = next((trace.parent / "exports").glob("*.sqlite"))
    found: dict[str, list[Cost]] = {}
    for number in range(rounds):
        kept = cache / f"{trace.stem}{number}"
        asked: dict[str, list[str | Path]] = {
            "summarize, first": summarize(trace),
            "summarize, again": summarize(trace),
            "summarize, nsys export": summarize(export),
        }
        if hta:
            asked["HTA"] = [hta, "-c", HTA, trace, trace.parent]
        for name, argv in asked.items():
            found.setdefault(name, []).append(run(argv, kept))
            print(f"{name:24} {found[name][-1]}", file=sys.stderr, flush=True)
    return {name: median(costs) for name, costs in found.items()}


def workers(rounds: int, cache: Path, traces: Sequence[Path]) -> dict[str, Cost]:
    """The medians of `summarize` over all ranks with one and with two workers; nothing is kept."""
    found: dict[str, list[Cost]] = {}
    for _ in range(rounds):
        for jobs in ("1", "2"):
            argv = summarize(*traces, "--no-cache", "--jobs", jobs)
            found.setdefault(f"{len(traces)} ranks, --jobs {jobs}", []).append(run(argv, cache))
    return {name: median(costs) for name, costs in found.items()}


def summarize(*arguments: str | Path) -> list[str | Path]:
    """The command line of one summary."""
    return [sys.executable, "-m", "nsightpy", "summarize", *arguments, "--format", "json"]


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.elapsed for cost in costs),
        int(statistics.median(cost.peak for cost in costs)),
    )


def page(costs: dict[str, Cost], lines: Sequence[str]) -> str:
    """The figures as Markdown."""
    rows = [
        f"| {name} | {cost.cpu:.1f} | {cost.elapsed:.1f} | {cost.peak / 1e6:,.0f} |"
        for name, cost in costs.items()
    ]
    head = ["| command | CPU s | elapsed s | peak MB |", "| --- | ---: | ---: | ---: |"]
    return "\n".join([*head, *rows, "", *(f"- {line}" for line in lines), ""])


def ratios(costs: dict[str, Cost]) -> list[str]:
    """What the targets are about."""
    first, again = costs["summarize, first"], costs["summarize, again"]
    export = costs["summarize, nsys export"]
    found = [f"again / nsys export: {again.cpu / export.cpu:.2f} x the time (target: at most 2)"]
    if (hta := costs.get("HTA")) is not None:
        found += [
            f"HTA / first: {hta.cpu / first.cpu:.1f} x the time (target: at least 8)",
            f"first / HTA: {first.peak / hta.peak:.2f} x the memory (target: at most 0.5)",
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=2_000_000, help="of the one trace")
    parser.add_argument("--ranks", type=int, default=RANKS, help="of the job for the workers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hta", help="the Python of an environment with HTA")
    parser.add_argument("--large", type=int, metavar="EVENTS", help="only one trace of so many")
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
        if given.large:
            (trace,) = make(given.large, 1, folder)
            costs = {f"summarize, first, {count(trace):,} events": run(summarize(trace), cache)}
            lines = [f"the trace has {trace.stat().st_size / 1e6:,.0f} MB"]
        else:
            (trace,) = make(given.events, 1, folder / "one")
            costs = compare(given.rounds, cache, trace, given.hta)
            lines = [f"{count(trace):,} events, {trace.stat().st_size / 1e6:,.0f} MB"]
            lines += ratios(costs)
            costs |= workers(
                given.rounds, cache, make(given.events // 8, given.ranks, folder / "n")
            )
            one, two = (c.elapsed for name, c in costs.items() if "--jobs" in name)
            lines.append(f"1 worker / 2 workers: {one / two:.2f} x elapsed (target: at least 1.7)")
    text = page(costs, lines)
    print(text)
    if given.output:
        given.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
