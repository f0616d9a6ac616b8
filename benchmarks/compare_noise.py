"""How often `compare` calls a change where nothing changed: pairs of simulated jobs, end to end.

    python benchmarks/compare_noise.py                     # 100 pairs of five runs a side
    python benchmarks/compare_noise.py --pairs 10 --noise 0.01 --ranks 2

Each run is an export of its own with its own seed; GPUs differ by `--noise` from run to run. A line
for each noise: false verdicts on the step (the aim is at most 2 in 100), pairs that a gate of 3 %
fails (none), and false verdicts on parts, kernels and collectives, of how many. Exit code 3 where
an aim is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from simulator import TrainingJob

import nsightpy
from nsightpy.analysis.comparison.compare import with_p_value
from nsightpy.results.comparison import CANNOT_TELL, SAME, SLOWER, Comparison, Limits

RUNS = 5
GATE = Limits(0.03, 1_000)


def runs(folder: Path, first: int, noise: float, ranks: int) -> list[Path]:
    """The runs of one side, a folder each."""
    found = []
    for seed in range(first, first + RUNS):
        run = folder / str(seed)
        run.mkdir()
        TrainingJob(
            *("job", seed, ranks),
            iterations=8,
            warmup=1,
            layers=2,
            buckets=2,
            run_noise=noise,
            data_gap_ns=300_000,
            long_gap_every=0,
        ).write(run)
        found.append(run)
    return found


def pair(number: int, noise: float, ranks: int) -> tuple[Comparison, bool]:
    """Two sides of which none is faster, and whether a gate fails."""
    with TemporaryDirectory() as folder:
        first = 2 * RUNS * number
        sides = [runs(Path(folder), first + place, noise, ranks) for place in (0, RUNS)]
        found = nsightpy.compare(*sides, use_cache=False)
        return found, with_p_value(found.step, GATE).verdict == SLOWER


def tally(pairs: int, noise: float, ranks: int) -> Counter[str]:
    """What was called changed though nothing had."""
    count: Counter[str] = Counter()
    for number in range(pairs):
        found, failed = pair(number, noise, ranks)
        count["gate"] += failed
        for one in found.quantities:
            count[f"all {one.section}"] += 1
            count[one.section] += one.verdict not in (SAME, CANNOT_TELL)
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--noise", default="0.002,0.01,0.03")
    parser.add_argument("--ranks", type=int, default=1)
    asked = parser.parse_args()
    missed = False
    for noise in map(float, asked.noise.split(",")):
        count = tally(asked.pairs, noise, asked.ranks)
        others = ", ".join(
            f"{section} {count[section]} of {count[f'all {section}']}"
            for section in ("time", "kernel", "collective", "range")
        )
        print(
            f"noise {100 * noise:g} %: step {count['step']} of {asked.pairs}, "
            f"gate {count['gate']}; {others}",
            flush=True,
        )
        missed |= count["step"] > 0.02 * asked.pairs or count["gate"] > 0
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
