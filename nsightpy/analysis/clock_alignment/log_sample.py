"""A sample of long logs: stretches of the same time of all ranks, whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsightpy.analysis.clock_alignment.clocks import Clock, level_zero
from nsightpy.analysis.collectives.log import CollectiveLog
from nsightpy.analysis.collectives.thresholds import LEAST_SHARE, PIECES


@dataclass(frozen=True)
class LogSample:
    """What is kept of logs, of which share of their time, and how many the longest had."""

    logs: list[CollectiveLog]
    share: float
    most: int


def sample_of(clocks: Sequence[Clock], logs: Sequence[CollectiveLog], enough: int) -> LogSample:
    """The logs, or where one is longer than `enough`, about as many of its collectives.

    logs[i] is that of clocks[i]'s process; a log stands there once for each of its processes.
    """
    most = max((len(log) for log in logs), default=0)
    if most <= enough:
        return LogSample(list(logs), 1.0, most)
    epochs = [fit.epoch_ns for fit in level_zero(clocks)]
    filled = [(log, epoch) for log, epoch in zip(logs, epochs, strict=True) if len(log)]
    firsts = [int(log.starts[0]) + epoch for log, epoch in filled]
    lasts = [int(log.starts[-1]) + epoch for log, epoch in filled]
    first, last = min(firsts), max(lasts)
    one_time = min(lasts) - max(firsts) >= LEAST_SHARE * (last - first)
    kept: dict[int, CollectiveLog] = {}
    for log, epoch in filled:
        begin, length = int(log.starts[0]), int(log.starts[-1] - log.starts[0])
        if one_time:
            begin, length = first - epoch, last - first
        # in one of the stretches that make the share of the time
        place = (log.starts - begin) / max(length, 1) * PIECES % 1.0
        kept.setdefault(id(log), log.take(np.abs(place - 0.5) <= enough / most / 2))
    return LogSample([kept.get(id(log), log) for log in logs], enough / most, most)
