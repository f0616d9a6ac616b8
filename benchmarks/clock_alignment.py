"""How well clocks are aligned, on jobs of many layouts with a known truth; and what it costs.

    python benchmarks/clock_alignment.py                 # every layout, 20 seeds, one line each
    python benchmarks/clock_alignment.py --seeds 3
    python benchmarks/clock_alignment.py --seeds 20 --first 6 # seeds 6 to 20, all layouts of each
    python benchmarks/clock_alignment.py --cost 64,256,1024   # seconds of processor time by ranks

A line tells the runs, the worst error within what a job's groups join (the aim is 1,000 ns), in how
many runs it was missed, and in how many the number of sets named is not the job's.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import numpy as np
from simulator.collective_logs import CollectiveJob, simulate_logs

from nsightpy.analysis.clock_alignment.alignment import Alignment, align

AIM_NS = 1_000
BASE = CollectiveJob(iterations=8)
LAYOUTS: dict[str, dict[str, Any]] = {
    "pairs in hosts": {"tensor": 2, "data": 4},
    "pairs across hosts": {"tensor": 2, "data": 4, "order": "edtp"},
    "16 ranks": {"tensor": 2, "data": 8},
    "pipeline": {"tensor": 2, "data": 2, "pipeline": 2},
    "pipeline in hosts": {"tensor": 2, "data": 2, "pipeline": 2, "order": "petd"},
    "experts": {"tensor": 2, "expert": 2, "data": 2},
    "experts, 32 ranks": {"tensor": 2, "expert": 4, "data": 4},
    "data alone": {"tensor": 1, "data": 8},
    "32 ranks, pipeline": {"tensor": 8, "data": 2, "pipeline": 2},
}
PROGRAMS: dict[str, dict[str, Any]] = {
    "": {},
    "sharded": {"sharded": 3, "layers": 2},
    "data mostly": {"layers": 1, "buckets": 1, "iterations": 15, "microbatches": 1, "sharded": 6},
    "no tensor sums": {"tensor_sums": False, "layers": 1, "buckets": 1, "iterations": 10},
    "world": {"world_sums": True},
}


def jobs() -> Iterator[tuple[str, CollectiveJob]]:
    """Every layout, program and number of ranks on a host."""
    for (layout, shape), (program, work) in itertools.product(LAYOUTS.items(), PROGRAMS.items()):
        job = replace(BASE, **{**shape, **work})
        for per_host in (2, 4, 8, 16):
            if per_host < job.ranks or per_host == 2:
                yield (
                    f"{layout}, {program or 'usual'}, {per_host} a host",
                    replace(job, ranks_per_host=per_host),
                )


def sets_named(alignment: Alignment) -> int:
    """How many sets of ranks the notes name."""
    counts = [int(note.split()[0]) for note in alignment.notes if "sets of ranks" in note]
    return counts[0] if counts else 1


@dataclass
class Outcome:
    """What the runs of one job showed."""

    worst_ns: float = 0.0
    runs: int = 0
    far: int = 0
    other_sets: int = 0

    def add(self, job: CollectiveJob) -> None:
        """Align a job and compare with the truth."""
        logs = simulate_logs(job)
        alignment = align(logs.clocks, logs.logs)
        error = logs.worst_ns(alignment.fits)
        self.worst_ns = max(self.worst_ns, error)
        self.runs += 1
        self.far += error > AIM_NS
        self.other_sets += sets_named(alignment) != len(np.unique(logs.sets()))


def proof(first: int, last: int) -> int:
    """Print a line for every job; returns how many runs missed the aim.

    Seed by seed, so that what is interrupted has seen every layout equally often.
    """
    outcomes: dict[tuple[str, bool], Outcome] = {}
    try:
        for seed in range(first, last + 1):
            for (name, job), payload in itertools.product(jobs(), (True, False)):
                outcome = outcomes.setdefault((name, payload), Outcome())
                outcome.add(replace(job, payload=payload, seed=seed))
            missed = sum(outcome.far + outcome.other_sets for outcome in outcomes.values())
            runs = sum(outcome.runs for outcome in outcomes.values())
            print(f"seed {seed}: {missed} of {runs:,} runs missed so far", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    for (name, payload), outcome in outcomes.items():
        shown = "payload" if payload else "no payload"
        print(
            f"{name:50} {shown:10} {outcome.runs:3} runs {outcome.worst_ns:9.0f} ns  "
            f"far {outcome.far}  sets {outcome.other_sets}"
        )
    return sum(outcome.far + outcome.other_sets for outcome in outcomes.values())


def cost(many: Sequence[int]) -> None:
    """Print what jobs of so many ranks take, with and without payload, as rows of a table.

    The last ratio is to the first number's seconds x ranks x log(ranks): 1 or less is the aim.
    """
    print("| ranks | collectives | payload | CPU s | growth / (n log n) | worst error | peak MB |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for payload in (True, False):
        base = 0.0
        for ranks in many:
            job = CollectiveJob(
                tensor=8, data=ranks // 8, ranks_per_host=8, world_sums=True, payload=payload
            )
            logs = simulate_logs(job)
            begin = time.process_time()
            alignment = align(logs.clocks, logs.logs)
            seconds, worst = time.process_time() - begin, logs.worst_ns(alignment.fits)
            each = seconds / (ranks * math.log(ranks))
            base = base or each
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"| {ranks:,} | {len(alignment.ledger):,} | {'yes' if payload else 'no'} "
                f"| {seconds:.2f} | {each / base:.2f} | {worst:.0f} ns | {peak:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--cost", default="")
    given = parser.parse_args()
    if given.cost:
        cost([int(number) for number in given.cost.split(",")])
        sys.exit(0)
    sys.exit(1 if proof(given.first, given.seeds) else 0)
