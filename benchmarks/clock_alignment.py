"""How well clocks are aligned, on jobs of many layouts with a known truth; and what it costs.

    python benchmarks/clock_alignment.py                 # every layout, 20 seeds, one line each
    python benchmarks/clock_alignment.py --seeds 20 --first 6 # seeds 6 to 20, all layouts of each
    python benchmarks/clock_alignment.py --cost 64,256,1024   # seconds of processor time by ranks

A line tells the runs, the worst error within what a job's groups join (the aim is 1,000 ns), in how
many runs it was missed, and in how many the number of sets that nothing joins is named wrongly.
"""

import argparse
import itertools
import math
import os
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line does

import numpy as np
from simulator.collective_logs import CollectiveJob, simulate_logs

from nsightpy.analysis.clock_alignment.alignment import align
from nsightpy.analysis.grouping import connected

AIM_NS = 1_000
LAYOUTS: dict[str, dict[str, Any]] = {
    "pairs in hosts": {},
    "pairs across hosts": {"order": "edtp"},
    "16 ranks": {"data": 8},
    "pipeline": {"data": 2, "pipeline": 2},
    "pipeline in hosts": {"data": 2, "pipeline": 2, "order": "petd"},
    "experts": {"expert": 2, "data": 2},
    "experts, 32 ranks": {"expert": 4},
    "data alone": {"tensor": 1, "data": 8},
    "32 ranks, pipeline": {"tensor": 8, "data": 2, "pipeline": 2},
}
PROGRAMS: dict[str, dict[str, Any]] = {
    "usual": {},
    "sharded": {"sharded": 3, "layers": 2},
    "data mostly": {"layers": 1, "buckets": 1, "iterations": 15, "microbatches": 1, "sharded": 6},
    "no tensor sums": {"tensor_sums": False, "layers": 1, "buckets": 1, "iterations": 10},
    "world": {"world_sums": True},
}


def jobs() -> Iterator[tuple[str, CollectiveJob]]:
    """Every layout, program and number of ranks on a host."""
    for (layout, shape), (program, work) in itertools.product(LAYOUTS.items(), PROGRAMS.items()):
        job = CollectiveJob(**{"iterations": 8, **shape, **work})
        for per_host in (2, 4, 8, 16):
            if per_host < job.ranks or per_host == 2:
                name = f"{layout}, {program}, {per_host} a host"
                yield name, replace(job, ranks_per_host=per_host)


def outcome(job: CollectiveJob) -> tuple[float, bool]:
    """The worst error of an aligned job, and whether the notes name as many sets as it has."""
    logs = simulate_logs(job)
    alignment = align(logs.clocks, logs.logs)
    counts = [int(note.split()[0]) for note in alignment.notes if "sets of ranks" in note]
    ranks = np.arange(len(logs.clocks))
    host = np.unique([clock.host for clock in logs.clocks], return_inverse=True)[1]
    # one host's clocks are microseconds apart, whether collectives tie them or not
    sets = connected(np.tile(ranks, 2), np.append(logs.sets(), len(ranks) + host), len(ranks))
    return logs.worst_ns(alignment.fits), [*counts, 1][0] == len(np.unique(sets))


def proof(first: int, last: int) -> int:
    """Print a line for every job; returns how many runs missed the aim.

    Seed by seed, so that what is interrupted has seen every layout equally often.
    """
    outcomes: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    try:
        for seed in range(first, last + 1):
            for (name, job), payload in itertools.product(jobs(), (True, False)):
                label = f"{name:50} {'payload' if payload else 'no payload':10}"
                outcomes[label].append(outcome(replace(job, payload=payload, seed=seed)))
            print(f"seed {seed} is through", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    missed = 0
    for label, found in outcomes.items():
        worst, far = max(found)[0], sum(error > AIM_NS for error, _ in found)
        others = sum(not same_sets for _, same_sets in found)
        missed += far + others
        print(f"{label} {len(found):3} runs {worst:9.0f} ns  far {far}  sets {others}")
    return missed


def cost(many: Sequence[int]) -> None:
    """Print what jobs of so many ranks take, with and without payload, as rows of a table.

    The last ratio is to the first number's seconds x ranks x log(ranks): 1 or less is the aim.
    """
    print("| ranks | collectives | payload | CPU s | growth / (n log n) | worst error | peak MB |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    usual = CollectiveJob(tensor=8, ranks_per_host=8, world_sums=True)
    for payload, shown in ((True, "yes"), (False, "no")):
        base = 0.0
        for ranks in many:
            logs = simulate_logs(replace(usual, data=ranks // 8, payload=payload))
            begin = time.process_time()
            alignment = align(logs.clocks, logs.logs)
            seconds, worst = time.process_time() - begin, logs.worst_ns(alignment.fits)
            each = seconds / (ranks * math.log(ranks))
            base = base or each
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            figures = f"{seconds:.2f} | {each / base:.2f} | {worst:.0f} ns | {peak:.0f}"
            print(f"| {ranks:,} | {len(alignment.ledger):,} | {shown} | {figures} |", flush=True)


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
