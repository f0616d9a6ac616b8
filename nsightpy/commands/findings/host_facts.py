"""What the host did while a device was idle, as facts that checks can use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nsightpy.analysis.findings.facts import IdleFacts, LongestGap, Place
from nsightpy.analysis.idle.gap_activity import activity, outside_in
from nsightpy.analysis.idle.host_activity import HostEvents, compiling, described
from nsightpy.analysis.idle.idle_gaps import CAUSES, HOST_GAP, IdleGaps
from nsightpy.analysis.intervals import Spans, overlap_total, union


def with_host(facts: IdleFacts, gaps: IdleGaps, window: Spans, events: HostEvents) -> IdleFacts:
    """The facts with what the threads did in host gaps; MPI and compilation counted apart."""
    lost = gaps.causes[:, HOST_GAP] > 0
    causes = dict(facts.causes)
    texts, mpi, compiled = [], 0, 0
    for tid in np.unique(gaps.thread[gaps.thread >= 0]).tolist():
        mine = gaps.thread == tid
        thread = events.of_thread(tid)
        calls = union(thread.mpi_calls.ints("start_ns"), thread.mpi_calls.ints("end_ns"))
        for cause, spent in outside_in(gaps, mine, calls).items() if len(calls) else ():
            mpi += spent
            causes[cause] -= spent
        own = lost & mine
        if own.any():
            time = union(gaps.opened[own], gaps.closed[own])
            compiled += overlap_total(compiling(thread.ranges) - calls, time)
            texts.append((time.total, described(time, thread, window)))
    compiled = min(compiled, causes["host-gap"])
    causes["host-gap"] -= compiled
    return replace(
        facts,
        causes=causes,
        run_ahead_lost_ns=min(facts.run_ahead_lost_ns, causes["launch-bound"]),
        mpi_ns=mpi,
        compiling_ns=compiled,
        host=max(texts)[1] if texts else "",
    )


def longest_gap(gaps: IdleGaps, window: Spans, events: HostEvents | None) -> LongestGap | None:
    """The longest idle interval, and what the host did in it; None without any."""
    if not len(gaps):
        return None
    row = int(np.argmax(gaps.length))
    cause = CAUSES[int(np.argmax(gaps.causes[row]))]
    place = Place(int(gaps.opened[row]), int(gaps.length[row]))
    return LongestGap(place, cause, activity(gaps, row, window, events))
