"""One report's frame as a part of all ranks' frame: with its ranks, on a common clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nsightpy.frames import Frame, Ints, Labels, distinct
from nsightpy.reports.system import SystemReport

NOT_KNOWN = -1
MOMENTS = ("start_ns", "end_ns", "time_ns")


class ProcessClock(Protocol):
    """How the times of one process of one report become times on a clock common to all."""

    @property
    def report(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def to_aligned(self, times: Ints) -> Ints: ...


def ranked(report: SystemReport, frame: Frame) -> Frame:
    """Rows of a report's frame, before them rank (-1 where unknown) and report.

    What belongs to no process is of the report's rank, where it has only one.
    """
    pids = frame.ints("pid") if "pid" in frame else np.zeros(frame.rows, dtype=np.int64)
    known = [report.rank_of(pid)[0] for pid in report.pids]
    whole = known[0] if len(known) == 1 else None
    values, codes = distinct(pids)
    ranks = [report.rank_of(pid)[0] if pid else whole for pid in values.tolist()]
    numbers = np.asarray([NOT_KNOWN if r is None else r for r in ranks], dtype=np.int64)
    path = Labels.constant(str(report.path), frame.rows)
    return Frame({"rank": numbers[codes], "report": path, **frame})


def zero_of(clocks: Sequence[ProcessClock]) -> int:
    """Where the clock common to all begins: the zero of the first one, ns."""
    return int(clocks[0].to_aligned(np.zeros(1, dtype=np.int64))[0])


def clock_aligned(
    frame: Frame,
    report: SystemReport,
    clocks: Sequence[ProcessClock],
    *,
    unknown: int | None = None,
) -> Frame:
    """A report's frame with its times since the zero of the first clock.

    Processes share the clock of their capture: what has none of its own, and what is of no process
    (samples of a GPU, of a network), takes the report's first.
    Where the report has none, no rows are left. `unknown` stands for times that are not known.
    """
    zero = zero_of(clocks)
    report_clocks = [clock for clock in clocks if clock.report == str(report.path)]
    if not report_clocks:
        return frame.take(np.zeros(frame.rows, dtype=np.bool_))
    columns = dict(frame)
    for name in MOMENTS:
        if name in frame:
            times = frame.ints(name)
            moved = report_clocks[0].to_aligned(times) - zero
            for clock in report_clocks[1:] if "pid" in frame else ():
                rows = np.flatnonzero(frame.ints("pid") == clock.pid)
                moved[rows] = clock.to_aligned(times[rows]) - zero
            columns[name] = moved if unknown is None else np.where(times == unknown, times, moved)
    return Frame(columns)
