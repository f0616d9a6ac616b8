"""How well clocks are aligned, on jobs of many layouts with a known truth; and what it costs.

    python benchmarks/clock_alignment.py                 # every layout, 20 seeds, one line each
    python benchmarks/clock_alignment.py --seeds 3
    python benchmarks/clock_alignment.py --cost 64,256,1024   # seconds of processor time by ranks

A line tells the worst error within what a job's groups join (ns; the aim is 1,000), in how many
runs it was missed, and in how many the number of sets told of is not the job's.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from simulator.collective_logs import CollectiveJob, simulate_logs

from nsightpy.analysis.clock_alignment.alignment import Alignment, align

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


def sets_told(alignment: Alignment) -> int:
    """How many sets of ranks the notes tell of."""
    told = [int(note.split()[0]) for note in alignment.notes if "sets of ranks" in note]
    return told[0] if told else 1


def proof(seeds: int) -> int:
    """Print a line for every job; returns how many runs missed the aim."""
    missed = 0
    for name, job in jobs():
        for payload in (True, False):
            worst, far, other = 0.0, 0, 0
            for seed in range(1, seeds + 1):
                logs = simulate_logs(replace(job, payload=payload, seed=seed))
                alignment = align(logs.clocks, logs.logs)
                error = logs.worst_ns(alignment.fits)
                worst, far = max(worst, error), far + (error > 1_000)
                other += sets_told(alignment) != len(np.unique(logs.sets()))
            missed += far + other
            shown = "payload" if payload else "no payload"
            print(f"{name:50} {shown:10} {worst:9.0f} ns  far {far}  sets {other}", flush=True)
    return missed


def cost(ranks: int) -> None:
    """Print what a job of so many ranks takes, with and without payload."""
    for payload in (True, False):
        job = CollectiveJob(
            tensor=8, data=ranks // 8, ranks_per_host=8, world_sums=True, payload=payload
        )
        logs = simulate_logs(job)
        begin = time.process_time()
        alignment = align(logs.clocks, logs.logs)
        seconds, worst = time.process_time() - begin, logs.worst_ns(alignment.fits)
        shown = "payload" if payload else "no payload"
        count = len(alignment.ledger)
        print(
            f"{ranks:5} ranks, {count:,} collectives, {shown:10} {seconds:7.2f} s {worst:6.0f} ns"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cost", default="")
    given = parser.parse_args()
    if given.cost:
        for number in given.cost.split(","):
            cost(int(number))
        sys.exit(0)
    sys.exit(1 if proof(given.seeds) else 0)
