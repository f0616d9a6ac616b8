"""Clocks and sets of ranks of whole jobs, at the level of their collective logs.

A few of the jobs of benchmarks/clock_alignment.py, which has them all.
"""

from dataclasses import replace

import numpy as np
import pytest
from simulator.collective_logs import CollectiveJob, simulate_logs

from nsightpy.analysis.clock_alignment.alignment import align
from nsightpy.analysis.clock_alignment.clocks import COLLECTIVES, SYSTEM_CLOCK, WALL_CLOCK

MOSTLY_DATA = {"layers": 1, "buckets": 1, "iterations": 15, "microbatches": 1, "sharded": 6}
JOBS = {
    "pairs in hosts": CollectiveJob(),
    "pairs in hosts, mostly data": CollectiveJob(**MOSTLY_DATA),
    "pairs across hosts": CollectiveJob(order="edtp"),
    "16 ranks on 4 hosts": CollectiveJob(data=8),
    "experts across hosts": CollectiveJob(expert=2, data=2, ranks_per_host=2),
    "one stage a host, and all together": CollectiveJob(
        data=2, pipeline=2, world_sums=True, iterations=8
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("payload", [True, False])
@pytest.mark.parametrize("name", JOBS)
def test_what_a_job_joins_is_one_within_a_microsecond(name: str, payload: bool, seed: int) -> None:
    logs = simulate_logs(replace(JOBS[name], payload=payload, seed=seed))
    alignment = align(logs.clocks, logs.logs)
    assert {fit.method for fit in alignment.fits} == {COLLECTIVES}
    assert not alignment.notes
    assert logs.worst_ns(alignment.fits) < 1_000


FEW_SUMS = CollectiveJob(tensor=1, data=8, world_sums=True, iterations=8, ranks_per_host=2)


@pytest.mark.parametrize(
    ("job", "seed"),
    [
        *((CollectiveJob(**MOSTLY_DATA), seed) for seed in (4, 7)),
        # hosts 44 us apart, gathers each 59 us
        *((CollectiveJob(**MOSTLY_DATA), seed) for seed in (10, 19)),
        pytest.param(FEW_SUMS, 4, id="sums that follow others"),
    ],
)
def test_a_shift_by_one_collective_is_no_alignment(job: CollectiveJob, seed: int) -> None:
    """Near the wall clock all but the last of each run agree as well, of two groups even all.

    A sum of both data groups ends as one would; the gathers beside it show them.
    """
    logs = simulate_logs(replace(job, payload=False, seed=seed))
    alignment = align(logs.clocks, logs.logs)
    assert not alignment.notes
    assert logs.worst_ns(alignment.fits) < 1_000
    found = alignment.ledger.communicators
    assert {one.ranks for one in found} == logs.groups
    assert job is FEW_SUMS or not any(one.doubtful for one in found)


@pytest.mark.slow
def test_groups_that_nothing_tells_are_said_to_be_doubtful() -> None:
    """Three layouts of sums alone, with few iterations: whatever is wrong is doubtful."""
    wrong = 0
    for pipeline, data in ((1, 8), (2, 2), (1, 4)):
        job = CollectiveJob(
            tensor_sums=False, layers=1, buckets=1, data=data, pipeline=pipeline, payload=False
        )
        for seed in range(1, 5):
            logs = simulate_logs(replace(job, seed=seed))
            alignment = align(logs.clocks, logs.logs)
            found = alignment.ledger.communicators
            bad = [one for one in found if one.ranks not in logs.groups]
            assert all(one.doubtful for one in bad)
            wrong += len(bad)
    assert wrong


def test_sends_alone_are_no_group() -> None:
    logs = simulate_logs(CollectiveJob(data=2, pipeline=2, iterations=8, payload=False))
    ledger = align(logs.clocks, logs.logs).ledger
    sends = [place for place, one in enumerate(ledger.signatures) if one.operation == "Send"]
    assert len(sends) == 1
    assert (ledger.communicator[ledger.signature == sends[0]] == -1).all()


@pytest.mark.parametrize("payload", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_stages_that_share_no_synchronising_collective(shared: bool, payload: bool) -> None:
    """Two on each host stay within what the hosts allow, on hosts of their own the wall clock."""
    order = "petd" if shared else "tedp"
    job = CollectiveJob(data=2, pipeline=2, order=order, iterations=8, payload=payload)
    logs = simulate_logs(job)
    assert len(np.unique(logs.sets())) == 2
    alignment = align(logs.clocks, logs.logs)
    said = [] if shared else ["2 sets of ranks share no synchronising collective"]
    assert [note.split(":")[0] for note in alignment.notes] == said
    assert logs.worst_ns(alignment.fits) < 1_000
    if shared:
        assert logs.errors_ns(alignment.fits).max() < 4 * job.process_error_ns


def test_a_rank_without_collectives_goes_with_its_host() -> None:
    logs = simulate_logs(CollectiveJob())
    empty = replace(logs.logs[6], kinds=(), codes=logs.logs[6].codes[:0])
    empty = replace(empty, starts=empty.starts[:0], ends=empty.ends[:0], shown=empty.shown[:0])
    given = [*logs.logs[:6], replace(empty, sequences=None), logs.logs[7]]
    alignment = align(logs.clocks, given)
    assert alignment.fits[6].method in (SYSTEM_CLOCK, WALL_CLOCK)
    assert logs.errors_ns(alignment.fits)[6] < 4 * CollectiveJob.process_error_ns
