"""What a thread did in a set of time, as far as calls, ranges, OS calls and CPU samples show."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple

import numpy as np

from nsightpy.analysis.intervals import Spans, measure_before, overlap_total, spans_of, union
from nsightpy.analysis.thresholds import MOST, NEARLY_ALL
from nsightpy.analysis.work_graph.idle_intervals import NO_ROW, IdleIntervals
from nsightpy.analysis.work_graph.launched_work import LaunchedWork
from nsightpy.analysis.work_graph.thresholds import LEAST_CALL, LEAST_PART, LEAST_SAMPLES
from nsightpy.frames import Floats, Frame, Labels
from nsightpy.units import format_time

# What a thread does in time of each Cause, in their order.
_DOING = (
    "launching; outside CUDA; in blocking calls; loading code; allocating; copying in; copying out;"
    " launched, not begun; not known; in MPI; waiting for another device; touching pages"
)
_NUMBER = re.compile(r"\d+")
ON_CPU = "thread on a CPU"
# What waits for files, consoles, sockets or a time, by its names in the C library; the driver
# itself polls and makes ioctls.
INS_AND_OUTS = re.compile(
    r"^[fpv]?(?:read|write|open|close|puts?|printf)v?(?:64|2|at|at64)?$|^f?(?:get|put)[cs]$"
    r"|^f(?:data)?sync$|^f?flush$|^getline$|^(?:recv|send)(?:from|to|msg|file)?$|^accept4?$"
    r"|^connect$|^(?:clock_)?(?:nano|u)?sleep$"
)
# What compiles, not what was compiled and runs: Torch-Compiled Region, CompiledFxGraph, jit(step).
COMPILING = re.compile(r"compil(?!ed)|nvrtc|\bjit\b(?!\()|autotun|dynamo_timed", re.IGNORECASE)


class HostEvents(NamedTuple):
    """Events of one process that say what its threads did; a frame may have no rows.

    ranges, os_calls and mpi_calls have start_ns, end_ns, tid and name, ranges that of their kind
    (`kinds_of`); samples time_ns, tid, name (the function on top of the stack) and module; cpu_runs
    start_ns, end_ns and tid.
    """

    ranges: Frame
    os_calls: Frame
    mpi_calls: Frame
    samples: Frame
    cpu_runs: Frame

    def of_thread(self, tid: int) -> HostEvents:
        """The events of one thread."""
        return HostEvents(*(frame.at(tid=tid) for frame in self))


def kinds_of(ranges: Frame) -> Frame:
    """Ranges by kind: those that differ in a number only, step 1 and step 2, are step *."""
    kinds = ranges.labels("name").renamed(partial(_NUMBER.sub, "*"))
    return Frame({**ranges, "name": kinds})


def activity(
    launched: LaunchedWork, idle: IdleIntervals, row: int, window: Spans, events: HostEvents
) -> str:
    """What the thread did in an interval (row) of a window; `events` are of its process."""
    if idle.after[row] == NO_ROW:
        return "nothing more was launched"
    if idle.thread[row] < 0:
        return "not known: the next launch was not recorded"
    time = Spans.of(int(idle.opened[row]), int(idle.closed[row]))
    texts = [
        f"{format_time(lasted)} {doing}"
        for doing, lasted in zip(_DOING.split("; "), idle.times[row].tolist(), strict=True)
        if lasted > LEAST_PART * time.total
    ]
    beside = described(time, events.of_thread(int(launched.chain.tid(idle.thread[row]))), window)
    return "; ".join([*texts, beside] if beside else texts)


def described(time: Spans, events: HostEvents, window: Spans) -> str:
    """What a thread did in a set of time, for people; empty where unknown.

    `events` are those of that thread, `window` is what the time is part of.
    """
    parts = []
    name, share = covering_range(time, events.ranges, window)
    if name and name not in events.mpi_calls.labels("name").values:
        parts.append(f"{_percent(share)} inside range {name!r}")
    for frame, where in ((events.mpi_calls, "in"), (events.os_calls, "in the OS call")):
        call, share = most_in(time, frame)
        if share >= LEAST_CALL:
            parts.append(f"{_percent(share)} {where} {call}")
    if sampled := most_sampled(time, events.samples):
        parts.append(f"CPU samples: {sampled}")
    if (running := _on_cpu(time, events.cpu_runs)) is not None:
        parts.append(f"{ON_CPU} for {_percent(running)}")
    return ", ".join(parts)


def covering_range(time: Spans, ranges: Frame, window: Spans) -> tuple[str, float]:
    """The shortest kind of range that covers at least half of a set of time, if any."""
    if not time.total or not ranges.rows:
        return "", 0.0
    names, covered = _covered(time, ranges)
    length = (ranges.ints("end_ns") - ranges.ints("start_ns")).astype(np.float64)
    lasted = np.bincount(names.codes, weights=length, minlength=len(names.values))
    explains = (covered >= MOST * time.total) & (lasted <= NEARLY_ALL * window.total)
    if not explains.any():
        return "", 0.0
    best = int(np.argmin(np.where(explains, lasted, np.inf)))
    return names.values[best], min(float(covered[best]) / time.total, 1.0)


def most_in(time: Spans, calls: Frame) -> tuple[str, float]:
    """The function that took the most of a set of time, and the share of all calls in it."""
    if not time.total or not calls.rows:
        return "", 0.0
    names, covered = _covered(time, calls)
    return names.values[int(np.argmax(covered))], overlap_total(spans_of(calls), time) / time.total


def _covered(time: Spans, events: Frame) -> tuple[Labels, Floats]:
    """How much of a set of time the events of each name take, added up, in ns."""
    names = events.labels("name").merged()
    start, end = events.ints("start_ns"), events.ints("end_ns")
    covered = (measure_before(time, end) - measure_before(time, start)).astype(np.float64)
    by_name = np.bincount(names.codes, weights=covered, minlength=len(names.values))
    return names, by_name.astype(np.float64)


def most_sampled(time: Spans, samples: Frame) -> str:
    """The functions that were on top of the stack most often in a set of time; two at most."""
    if not samples.rows or not time.total:
        return ""
    rows = np.flatnonzero(time.holds(samples.ints("time_ns")))
    if len(rows) < LEAST_SAMPLES:
        return ""
    names, modules = samples.labels("name"), samples.labels("module")
    kinds = [f"{names[row]} [{modules[row]}]" for row in rows.tolist()]
    labels = Labels.of(kinds)
    counts = np.bincount(labels.codes)
    order = np.argsort(-counts, kind="stable")[:2]
    return ", ".join(f"{labels.values[i]} {_percent(counts[i] / len(rows))}" for i in order)


def _on_cpu(time: Spans, runs: Frame) -> float | None:
    """The share of a set of time in which a thread ran; None where switches do not cover it."""
    if not time.total or not runs.rows:
        return None
    start, end = runs.ints("start_ns"), runs.ints("end_ns")
    known = Spans.of(int(start.min()), int(end.max()))
    if overlap_total(known, time) < time.total:
        return None
    return overlap_total(spans_of(runs), time) / time.total


def time_in(events: Frame, names: re.Pattern[str]) -> Spans:
    """The time inside events whose names match."""
    rows = events.labels("name").where(names.search)
    return union(events.ints("start_ns")[rows], events.ints("end_ns")[rows])


def _percent(share: float) -> str:
    return f"{100 * min(share, 1.0):.0f} %"
