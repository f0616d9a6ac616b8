"""What the launching thread did in one idle interval, for people."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.idle.host_activity import HostEvents, described, most_in
from nsightpy.analysis.idle.host_calls import ALLOCATION, COPY, MODULE, OTHER, WAIT
from nsightpy.analysis.intervals import Spans
from nsightpy.analysis.work_graph.idle_intervals import ELSEWHERE, NO_ROW, IdleIntervals
from nsightpy.analysis.work_graph.launched_work import LaunchedWork
from nsightpy.units import format_time

LEAST_PART = 0.05


def activity(
    launched: LaunchedWork, idle: IdleIntervals, row: int, window: Spans, events: HostEvents
) -> str:
    """What the thread did in an interval (row) of a window; `events` are of its process."""
    if idle.after[row] == NO_ROW:
        return "nothing more was launched"
    thread = int(idle.thread[row])
    if thread < 0:
        return "not known: the next launch was not recorded"
    opened, begun, done, closed = (
        int(times[row]) for times in (idle.opened, idle.begun, idle.done, idle.closed)
    )
    chain, time = launched.chain, Spans.of(opened, closed)
    calls = chain.within(thread, opened, begun)
    length = np.minimum(chain.end[calls], begun) - np.maximum(chain.start[calls], opened)
    spent = np.bincount(chain.kind[calls], length, OTHER + 2).astype(np.int64).tolist()
    waiting = spent[WAIT] + spent[COPY]
    outside = begun - opened - waiting - spent[ALLOCATION] - spent[MODULE]
    name, share = most_in(time, chain.frame(calls[chain.kind[calls] == OTHER]))
    parts = (
        (int(idle.times[row, ELSEWHERE]), "waiting for another device"),
        (outside, f"in {name}" if share > 0.5 else "outside CUDA"),
        (waiting, "in blocking calls"),
        (spent[ALLOCATION], "allocating"),
        (spent[MODULE], "loading code"),
        (done - begun, "in the launching call"),
        (closed - done, "launched, not begun"),
    )
    least = LEAST_PART * (closed - opened)
    texts = [f"{format_time(lasted)} {what}" for lasted, what in parts if lasted > least]
    said = described(time, events.of_thread(int(chain.tid(idle.thread[row]))), window)
    return "; ".join([*texts, said] if said else texts)
