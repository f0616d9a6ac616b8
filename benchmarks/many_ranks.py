"""What commands take on the small reports of many ranks, beside `kernels` on the same files.

    python benchmarks/many_ranks.py                       # 1,024 ranks, about ten minutes
    python benchmarks/many_ranks.py --ranks 4096 --commands kernels,ranks,summarize

Prints rows of RESULTS-ranks.md: processor seconds of the whole process (one worker), the ratio to
`kernels`, which opens and reads every report, and the highest anonymous memory. The job is the
preset "ranks_64" of the simulator, wider: 8 ranks on a node, tensor groups inside nodes, data
groups across them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from harness.measure import Command, Sample, run_once
from simulator.presets import PRESETS

TENSOR = 8
COMMANDS = "kernels,ranks,collectives,summarize,imbalance,timeline"
ALONE = {"OPENBLAS_NUM_THREADS": "1"}


def reports_of(ranks: int, payload: str | None, folder: Path) -> Path:
    """The reports of a job, written if they are not there."""
    if not folder.exists():
        job = replace(PRESETS["ranks_64"], data=ranks // TENSOR, payload=payload)
        with tempfile.TemporaryDirectory(dir=folder.parent) as partial:
            job.write(Path(partial) / "reports")
            (Path(partial) / "reports").rename(folder)
    return folder


def taken(command: str, reports: Path) -> Sample:
    """What a command on reports takes, with one worker; raises where it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        argv = [sys.executable, "-m", "nsightpy", command, str(reports), "--jobs", "1"]
        if command == "timeline":
            argv += ["-o", str(Path(scratch) / "timeline.html")]
        return run_once(Command(command, tuple(argv), environment=ALONE), Path.cwd())


def main() -> None:
    """Measure every command, with a payload and without."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--commands", default=COMMANDS)
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "data")
    given = parser.parse_args()
    given.data.mkdir(parents=True, exist_ok=True)
    print("| ranks | payload | command | CPU s | / kernels | peak MB |")
    print("| ---: | --- | --- | ---: | ---: | ---: |")
    for shown, payload in (("yes", "json"), ("no", None)):
        folder = given.data / f"ranks_{given.ranks}_payload_{shown}"
        reports = reports_of(given.ranks, payload, folder)
        base = 0.0
        for command in given.commands.split(","):
            sample = taken(command, reports)
            seconds, peak = sample.cpu_seconds, sample.peak_bytes / 1e6
            base = base or seconds
            print(
                f"| {given.ranks:,} | {shown} | `{command}` | {seconds:.1f} "
                f"| {seconds / base:.2f} | {peak:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
