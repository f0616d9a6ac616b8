"""Launches by other threads: whose range they belong to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from nsightpy.analysis.nvtx.attribution import NO_THREAD, as_launched_by, waiting_threads
from nsightpy.analysis.nvtx.projection import OPERATION_COLUMNS, RANGE_COLUMNS, launched, project
from nsightpy.analysis.nvtx.ranges import range_tallies
from nsightpy.frames import Frame, Labels
from nsightpy.reports.nsys import NsysReport
from tests.support.reports import NSYS, needs_reports

MAIN, AUTOGRAD, WORKER = 1, 2, 3


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, dtype=np.int64)


def calls_of(*calls: tuple[int, int]) -> Frame:
    """Launching calls as (start, thread) of one process, in any order."""
    ordered = sorted(calls)
    start = ints(*(start for start, _ in ordered))
    return Frame(
        {
            "start_ns": start,
            "end_ns": start + 1,
            "pid": np.full(len(start), 7),
            "tid": ints(*(tid for _, tid in ordered)),
            "correlation_id": np.arange(1, len(start) + 1),
        }
    )


def ranges_of(*ranges: tuple[int, int, int, str]) -> Frame:
    """Push/pop ranges as (start, end, thread, name)."""
    tid = ints(*(tid for _, _, tid, _ in ranges))
    return Frame(
        {
            "start_ns": ints(*(start for start, _, _, _ in ranges)),
            "end_ns": ints(*(end for _, end, _, _ in ranges)),
            "pid": np.full(len(tid), 7),
            "tid": tid,
            "end_tid": tid,
            "name": Labels.of(name for *_, name in ranges),
            "domain": Labels.constant("", len(tid)),
            "style": Labels.constant("PushPop", len(tid)),
        }
    )


STEP = ((0, 100, MAIN, "step"), (10, 40, MAIN, "forward"), (50, 90, MAIN, "backward"))


def test_a_backward_pass_belongs_to_the_range_that_waits_for_it() -> None:
    calls = calls_of((12, MAIN), (20, MAIN), (51, MAIN), *((at, AUTOGRAD) for at in (55, 60, 80)))
    waiting = waiting_threads(calls, ranges_of(*STEP))
    assert waiting.tolist() == [NO_THREAD] * 3 + [MAIN] * 3
    assert as_launched_by(calls, waiting).ints("tid").tolist() == [MAIN] * 3


def test_a_thread_that_launches_itself_waits_for_nobody() -> None:
    busy = [(at, MAIN) for at in range(50, 90, 4)]
    calls = calls_of(*busy, *((at + 2, WORKER) for at in range(50, 90, 4)))
    assert (waiting_threads(calls, ranges_of(*STEP)) == NO_THREAD).all()


def test_launches_outside_of_ranges_belong_to_none() -> None:
    calls = calls_of((120, WORKER), (130, WORKER))
    assert (waiting_threads(calls, ranges_of(*STEP)) == NO_THREAD).all()


def test_of_several_waiting_threads_the_last_range_counts() -> None:
    ranges = ranges_of((0, 100, MAIN, "serve"), (30, 60, WORKER, "request"))
    calls = calls_of((40, AUTOGRAD), (50, AUTOGRAD), (80, AUTOGRAD))
    assert waiting_threads(calls, ranges).tolist() == [WORKER, WORKER, MAIN]


def test_siblings_never_share_an_operation() -> None:
    rng = np.random.default_rng(5)
    cuts = np.sort(rng.choice(10_000, 40, replace=False)).tolist()
    siblings = [(low, high, MAIN, f"part {i}") for i, (low, high) in enumerate(pairwise(cuts))]
    calls = calls_of(
        *(
            (int(at), int(tid))
            for at, tid in zip(rng.integers(0, 10_000, 500), rng.integers(2, 5, 500), strict=True)
        )
    )
    ranges = ranges_of(*siblings)
    launches = as_launched_by(calls, waiting_threads(calls, ranges))
    operations = Frame(
        {
            "start_ns": calls.ints("start_ns") + 5,
            "end_ns": calls.ints("start_ns") + 6,
            "pid": calls.ints("pid"),
            "device": np.zeros(calls.rows, dtype=np.int64),
            "correlation_id": calls.ints("correlation_id"),
        }
    )
    done = launched(operations, launches)
    found = range_tallies(ranges, operations, done, project(ranges, done))
    assert 0 < sum(operations for operations, *_ in found.work.values()) <= launches.rows


@pytest.mark.parametrize("seed", range(20))
def test_a_range_was_busy_with_what_any_thread_launched_for_it(seed: int) -> None:
    """Against all moments; several streams and ranges of one name, on both sides of a launch."""
    rng = np.random.default_rng(seed)
    places = [tuple(sorted(rng.integers(0, 200, 2).tolist())) for _ in range(8)]
    names = rng.choice(["step", "backward"], 8).tolist()
    tids = rng.integers(MAIN, AUTOGRAD + 1, 8).tolist()
    ranges = ranges_of(*((*at, t, n) for at, t, n in zip(places, tids, names, strict=True)))
    launches = zip(rng.integers(0, 200, 25), rng.integers(MAIN, AUTOGRAD + 1, 25), strict=True)
    calls = calls_of(*((int(at), int(tid)) for at, tid in launches))
    at = calls.ints("start_ns")
    start = at + rng.integers(1, 40, 25)
    operations = Frame(
        {
            "start_ns": start,
            "end_ns": start + rng.integers(1, 60, 25),
            "pid": calls.ints("pid"),
            "device": np.zeros(25, dtype=np.int64),
            "correlation_id": calls.ints("correlation_id"),
        }
    )
    waiting = waiting_threads(calls, ranges)
    done = launched(operations, calls)
    theirs = launched(operations, as_launched_by(calls, waiting))
    attributed = theirs, project(ranges, theirs)
    found = range_tallies(ranges, operations, done, project(ranges, done), attributed)
    for key, (_, _, attributed_ns, busy_ns) in found.work.items():
        mine, others = set[int](), set[int]()
        for (low, high), tid, name in zip(places, tids, names, strict=True):
            inside = (low <= at) & (at < high)
            if name == key[0]:
                mine |= set(np.flatnonzero(inside & (calls.ints("tid") == tid)).tolist())
                others |= set(np.flatnonzero(inside & (waiting == tid)).tolist())
        assert busy_ns == moments(operations, mine | others)
        assert attributed_ns == moments(operations, others)


def moments(operations: Frame, rows: set[int]) -> int:
    start, end = operations.ints("start_ns"), operations.ints("end_ns")
    return len({at for row in rows for at in range(int(start[row]), int(end[row]))})


@needs_reports
def test_the_backward_pass_of_real_captures() -> None:
    """The figures of reference/verdicts.json, worked out in SQL."""
    wanted = {"train_nvtx_a100_2026.3": 91_967_403, "ddp_2rank_nccl_rtx3090_2026.3": 93_185_374}
    for name, total in wanted.items():
        report = NsysReport(NSYS / f"{name}.sqlite")
        kernels = report.frame("kernels", OPERATION_COLUMNS)
        calls = report.calls.launching(whole=True)
        ranges = report.frame("nvtx_ranges", RANGE_COLUMNS)
        backward = ranges.take(ranges.labels("name").equals(["backward pass"]))
        done = launched(kernels, as_launched_by(calls, waiting_threads(calls, backward)))
        lengths = kernels.ints("end_ns") - kernels.ints("start_ns")
        assert int(lengths[done.rows].sum()) == total
