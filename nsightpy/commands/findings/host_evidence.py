"""What the host did while a device was idle, as evidence."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.findings.evidence import Idle, LongestGap
from nsightpy.analysis.findings.groups import Place
from nsightpy.analysis.findings.thresholds import LEAST_NAMED
from nsightpy.analysis.idle.host_activity import HostEvents, described, most_in
from nsightpy.analysis.idle.host_calls import ALLOCATION, COPY, MODULE, OTHER, WAIT, kinds_of_calls
from nsightpy.analysis.intervals import Spans, measure_inside, spans_of, union
from nsightpy.analysis.work_graph.activity import activity
from nsightpy.analysis.work_graph.idle_intervals import (
    CAUSES,
    HOST_GAP,
    LAUNCH_BOUND,
    NO_ROW,
    QUEUED,
    SYNC_DRAIN,
    UNKNOWN,
    IdleIntervals,
)
from nsightpy.analysis.work_graph.launched_work import LaunchedWork
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS
from nsightpy.frames import Frame

# The name of calls that are not read one by one: those of less than 100 us.
SHORT_COPY = "a copy to pageable memory"
# What compiles, as ranges or CPU samples say.
COMPILERS = "compilers"


def idle_evidence(
    launched: LaunchedWork, gaps: IdleIntervals, calls: Frame, window: Spans, events: HostEvents
) -> Idle:
    """Why a device was idle; `calls` are the notable ones of its process."""
    causes, kinds = gaps.totals, kinds_of_calls(calls.labels("name"))
    worst = {}
    for number, cause in enumerate(CAUSES):
        if causes[cause]:
            row = int(np.argmax(gaps.times[:, number]))
            worst[cause] = Place(int(gaps.opened[row]), int(gaps.length[row]))
    loads = calls.take(kinds == MODULE)
    loaded = measure_inside(spans_of(loads), gaps.opened, gaps.begun) > 0
    first = loaded & (gaps.after != NO_ROW) & launched.first[gaps.after]
    return Idle(
        causes,
        worst,
        run_ahead_lost_ns=gaps.run_ahead_lost_ns,
        put_off_ns=_put_off(gaps, launched, calls.take(np.isin(kinds, (WAIT, COPY)))),
        before_loading_ns=int(gaps.times[first, HOST_GAP].sum()),
        overdue_ns=int(gaps.times[gaps.length >= HOST_GAP_NS, QUEUED].sum()),
        ended_ns=int(gaps.times[gaps.after == NO_ROW, UNKNOWN].sum()),
        beside=_beside(gaps),
        drained=int(np.count_nonzero(gaps.held)),
        longest=_longest_gap(launched, gaps, window, events),
        host=_host(gaps, launched, window, events),
        calls={"sync-drain": _draining(gaps, launched), **_calls(gaps, calls)},
        blocked_by=_blocked_by(gaps, calls),
    )


def without_causes(idle: Spans) -> Idle:
    """The same where no calls were recorded: when the device was idle longest."""
    if not len(idle):
        return Idle()
    row = int(np.argmax(idle.ends - idle.starts))
    place = Place(int(idle.starts[row]), int(idle.ends[row] - idle.starts[row]))
    return Idle(
        worst={"unknown": place},
        longest=LongestGap(place, "unknown", "not known: no API calls were recorded"),
    )


def _beside(gaps: IdleIntervals) -> bool:
    """Whether most of the host gaps' time lies in intervals that are mostly something else."""
    causes = gaps.times[np.flatnonzero(gaps.times[:, HOST_GAP])]
    lost = causes[:, HOST_GAP]
    return bool(len(lost) and lost[causes.argmax(axis=1) != HOST_GAP].sum() > lost.sum() / 2)


def _put_off(gaps: IdleIntervals, launched: LaunchedWork, calls: Frame) -> int:
    """Host-gap time after blocking `calls` that waited for as long since the one before, in ns.

    A bound: work that needs nothing of what the calls waited for could be done meanwhile.
    """
    put_off, drained = 0, gaps.held > 0
    for thread in np.unique(gaps.thread[drained]):
        mine = np.flatnonzero((gaps.thread == thread) & (gaps.times[:, HOST_GAP] > 0))
        waits = spans_of(calls.at(tid=int(launched.chain.tid(thread))))
        since = np.append(np.iinfo(np.int64).min, gaps.closed[mine])[:-1]
        waited = measure_inside(waits, since, gaps.opened[mine]) * drained[mine]
        put_off += int(np.minimum(gaps.times[mine, HOST_GAP], waited).sum())
    return put_off


def _calls(gaps: IdleIntervals, calls: Frame) -> dict[str, str]:
    """The function that most of the time of a cause was spent in, where one stands out."""
    names, kinds = {}, kinds_of_calls(calls.labels("name"))
    waits, rest = calls.take(kinds != ALLOCATION), calls.take(kinds == OTHER)
    for cause, some, least in (
        ("first-launch", waits, 0.0),
        ("allocation", calls.take(kinds == ALLOCATION), 0.0),
        ("host-gap", rest, LEAST_NAMED),
    ):
        rows = gaps.times[:, CAUSES.index(cause)] > 0
        time = union(gaps.opened[rows], gaps.closed[rows])
        name, share = most_in(time, some)
        if share > least:
            names[cause] = name
    if 2 * gaps.compiling.sum() > gaps.totals["first-launch"]:
        names["first-launch"] = COMPILERS
    return names


def _draining(gaps: IdleIntervals, launched: LaunchedWork) -> str:
    """The function whose calls drained the queue at the highest cost; empty where none did."""
    rows, chain = np.flatnonzero(gaps.held), launched.chain
    if not len(rows):
        return ""
    direct = gaps.times[rows, SYNC_DRAIN]
    lead = np.maximum(gaps.held[rows] - direct, 0)
    cost = direct + np.minimum(np.add.reduceat(gaps.times[:, LAUNCH_BOUND], rows), lead)
    call = chain.last_begun(np.arange(len(chain)), gaps.thread[rows], gaps.opened[rows])
    names = chain.labels.take(call[call >= 0])
    if not len(names):
        return ""
    return names.values[int(np.argmax(np.bincount(names.codes, cost[call >= 0])))]


def _blocked_by(gaps: IdleIntervals, calls: Frame) -> str:
    """The blocking call in which most of the host gaps opened; empty where most did not."""
    lost = gaps.times[:, HOST_GAP]
    drained = (gaps.held > 0) & (lost > 0)
    if 2 * lost[drained].sum() <= lost.sum():
        return ""
    opened = gaps.opened[drained]
    name, share = most_in(union(opened - 1, opened), calls)
    return name if share >= LEAST_NAMED else SHORT_COPY


def _host(gaps: IdleIntervals, launched: LaunchedWork, window: Spans, events: HostEvents) -> str:
    """What the thread with the longest host gaps did in them, for people; empty where unknown."""
    lost = gaps.times[:, HOST_GAP] > 0
    texts = []
    for thread in np.unique(gaps.thread[lost]):
        mine = lost & (gaps.thread == thread)
        time = union(gaps.opened[mine], gaps.closed[mine])
        own = events.of_thread(int(launched.chain.tid(thread)))
        texts.append((time.total, described(time, own, window)))
    return max(texts)[1] if texts else ""


def _longest_gap(
    launched: LaunchedWork, gaps: IdleIntervals, window: Spans, events: HostEvents
) -> LongestGap | None:
    """The longest idle interval, and what the host did in it; None without any."""
    if not len(gaps):
        return None
    row = int(np.argmax(gaps.length))
    cause = CAUSES[int(np.argmax(gaps.times[row]))]
    place = Place(int(gaps.opened[row]), int(gaps.length[row]))
    return LongestGap(place, cause, activity(launched, gaps, row, window, events))
