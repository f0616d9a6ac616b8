"""Launches by other threads: whose range they belong to."""

from __future__ import annotations

import numpy as np
import pytest

from nsightpy.analysis.nvtx.attribution import NO_THREAD, as_launched_by, waiting_threads
from nsightpy.analysis.nvtx.projection import OPERATION_COLUMNS, RANGE_COLUMNS, launched, project
from nsightpy.analysis.nvtx.ranges import range_tallies
from nsightpy.frames import Frame, Labels
from nsightpy.reports.nsys import NsysReport
from tests.support.reports import NSYS, needs_reports

MAIN, AUTOGRAD, WORKER = 1, 2, 3


def frame_of(rows: list[tuple[int, ...]], *names: str) -> Frame:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    named = dict(zip(names, (np.asarray(c, dtype=np.int64) for c in columns), strict=True))
    return Frame({**named, "pid": np.full(len(rows), 7)})


def calls_of(*calls: tuple[int, int]) -> Frame:
    """Launching calls as (start, thread) of one process, in any order."""
    rows = [(start, start + 1, tid, n) for n, (start, tid) in enumerate(sorted(calls), 1)]
    return frame_of(rows, "start_ns", "end_ns", "tid", "correlation_id")


def ranges_of(*ranges: tuple[int, int, int, str]) -> Frame:
    """Push/pop ranges as (start, end, thread, name)."""
    rows = [(start, end, tid, tid) for start, end, tid, _ in ranges]
    return Frame(
        {
            **frame_of(rows, "start_ns", "end_ns", "tid", "end_tid"),
            "name": Labels.of(name for *_, name in ranges),
            "domain": Labels.constant("", len(rows)),
            "style": Labels.constant("PushPop", len(rows)),
        }
    )


def operations_of(calls: Frame, start: np.ndarray, length: np.ndarray) -> Frame:
    """What the calls launched."""
    at, device = calls.ints("start_ns") + start, np.zeros(calls.rows, dtype=np.int64)
    kept = {name: calls.ints(name) for name in ("pid", "correlation_id")}
    return Frame({"start_ns": at, "end_ns": at + length, "device": device, **kept})


STEP = ((0, 100, MAIN, "step"), (10, 40, MAIN, "forward"), (50, 90, MAIN, "backward"))


def test_a_backward_pass_belongs_to_the_range_that_waits_for_it() -> None:
    calls = calls_of((12, MAIN), (20, MAIN), (51, MAIN), *((at, AUTOGRAD) for at in (55, 60, 80)))
    waiting = waiting_threads(calls, ranges_of(*STEP))
    assert waiting.tolist() == [NO_THREAD] * 3 + [MAIN] * 3
    assert as_launched_by(calls, waiting).ints("tid").tolist() == [MAIN] * 3


@pytest.mark.parametrize(
    "calls",
    [
        # a thread that launches itself waits for nobody
        [(at, tid) for at in range(50, 90, 4) for at, tid in ((at, MAIN), (at + 2, WORKER))],
        [(120, WORKER), (130, WORKER)],  # outside of ranges
    ],
)
def test_launches_that_nobody_waits_for(calls: list[tuple[int, int]]) -> None:
    assert (waiting_threads(calls_of(*calls), ranges_of(*STEP)) == NO_THREAD).all()


def test_of_several_waiting_threads_the_last_range_counts() -> None:
    ranges = ranges_of((0, 100, MAIN, "serve"), (30, 60, WORKER, "request"))
    calls = calls_of((40, AUTOGRAD), (50, AUTOGRAD), (80, AUTOGRAD))
    assert waiting_threads(calls, ranges).tolist() == [WORKER, WORKER, MAIN]


@pytest.mark.parametrize("seed", range(20))
def test_a_range_was_busy_with_what_any_thread_launched_for_it(seed: int) -> None:
    """Against all moments; several streams and ranges of one name, on both sides of a launch."""
    rng = np.random.default_rng(seed)
    spans = [sorted(rng.integers(0, 200, 2).tolist()) for _ in range(8)]
    names = rng.choice(["step", "backward"], 8).tolist()
    tids = rng.integers(MAIN, AUTOGRAD + 1, 8).tolist()
    ranges = ranges_of(*((*at, t, n) for at, t, n in zip(spans, tids, names, strict=True)))
    launches = zip(rng.integers(0, 200, 25), rng.integers(MAIN, AUTOGRAD + 1, 25), strict=True)
    calls = calls_of(*((int(at), int(tid)) for at, tid in launches))
    operations = operations_of(calls, rng.integers(1, 40, 25), rng.integers(1, 60, 25))
    waiting, at = waiting_threads(calls, ranges), calls.ints("start_ns")
    done = launched(operations, calls)
    theirs = launched(operations, as_launched_by(calls, waiting))
    attributed = theirs, project(ranges, theirs)
    found = range_tallies(ranges, operations, done, project(ranges, done), attributed)
    for key, (_, _, attributed_ns, busy_ns) in found.work.items():
        own, others = np.zeros(25, dtype=np.bool_), np.zeros(25, dtype=np.bool_)
        for (low, high), tid, name in zip(spans, tids, names, strict=True):
            if name == key[0]:
                inside = (low <= at) & (at < high)
                own |= inside & (calls.ints("tid") == tid)
                others |= inside & (waiting == tid)
        assert busy_ns == moments(operations.take(own | others))
        assert attributed_ns == moments(operations.take(others))


def moments(operations: Frame) -> int:
    return len(
        {at for low, high in operations.tuples("start_ns", "end_ns") for at in range(low, high)}
    )


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
