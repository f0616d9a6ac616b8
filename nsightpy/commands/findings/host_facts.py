"""What the host did while a device was idle, as facts that checks can use."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.findings.facts import IdleFacts, LongestGap, Place
from nsightpy.analysis.idle.gap_activity import activity, others
from nsightpy.analysis.idle.gap_causes import (
    ALL_CAUSES,
    HOST_GAP,
    HOST_GAP_NS,
    QUEUED,
    UNKNOWN,
    IdleGaps,
)
from nsightpy.analysis.idle.host_activity import HostEvents, described, most_in
from nsightpy.analysis.idle.host_calls import ALLOCATION, COPY, WAIT, kinds_of_calls
from nsightpy.analysis.idle.idle_time import NO_ROW
from nsightpy.analysis.intervals import Spans, measure_inside, union
from nsightpy.frames import Frame

# The name of calls that are not read one by one: those of less than 100 us.
SHORT_COPY = "a copy to pageable memory"
# What compiles, as ranges or CPU samples say.
COMPILERS = "compilers"
LEAST_NAMED = 0.5


def idle_facts(gaps: IdleGaps, calls: Frame, window: Spans, events: HostEvents | None) -> IdleFacts:
    """Why a device was idle; `calls` are the blocking and long calls of its process."""
    causes, rest = gaps.totals, others(calls)
    worst = {}
    for number, cause in enumerate(ALL_CAUSES):
        if causes[cause]:
            row = int(np.argmax(gaps.causes[:, number]))
            worst[cause] = Place(int(gaps.opened[row]), int(gaps.length[row]))
    return IdleFacts(
        causes,
        worst,
        run_ahead_lost_ns=gaps.run_ahead_lost_ns,
        put_off_ns=_put_off(gaps, calls),
        before_loading_ns=int(gaps.causes[(gaps.loading > 0) & gaps.first, HOST_GAP].sum()),
        overdue_ns=int(gaps.causes[gaps.length >= HOST_GAP_NS, QUEUED].sum()),
        ended_ns=int(gaps.causes[gaps.after == NO_ROW, UNKNOWN].sum()),
        beside=_beside(gaps),
        drained=int(np.count_nonzero(gaps.drained)),
        longest=_longest_gap(gaps, rest, window, events),
        host="" if events is None else _host(gaps, window, events),
        calls=_calls(gaps, calls, rest),
        blocked_by=_blocked_by(gaps, calls),
    )


def without_causes(idle: Spans) -> IdleFacts:
    """The same where no calls were recorded: when the device was idle longest."""
    if not len(idle):
        return IdleFacts()
    row = int(np.argmax(idle.ends - idle.starts))
    place = Place(int(idle.starts[row]), int(idle.ends[row] - idle.starts[row]))
    return IdleFacts(
        worst={"unknown": place},
        longest=LongestGap(place, "unknown", "not known: no API calls were recorded"),
    )


def _beside(gaps: IdleGaps) -> bool:
    """Whether most of the host gaps' time lies in intervals that are mostly something else."""
    causes = gaps.causes[np.flatnonzero(gaps.causes[:, HOST_GAP])]
    lost = causes[:, HOST_GAP]
    return bool(len(lost) and lost[causes.argmax(axis=1) != HOST_GAP].sum() > lost.sum() / 2)


def _put_off(gaps: IdleGaps, calls: Frame) -> int:
    """Host-gap time after blocking calls that waited for as long since the one before, in ns.

    A bound: work that needs nothing of what the calls waited for could be done meanwhile.
    """
    blocks = np.isin(kinds_of_calls(calls.labels("name")), (WAIT, COPY))
    calls, put_off = calls.take(blocks), 0
    for tid in np.unique(gaps.thread[gaps.drained]).tolist():
        mine = np.flatnonzero((gaps.thread == tid) & (gaps.causes[:, HOST_GAP] > 0))
        made = calls.at(tid=tid)
        waits = union(made.ints("start_ns"), made.ints("end_ns"))
        since = np.append(np.iinfo(np.int64).min, gaps.closed[mine])[:-1]
        waited = measure_inside(waits, since, gaps.opened[mine]) * gaps.drained[mine]
        put_off += int(np.minimum(gaps.causes[mine, HOST_GAP], waited).sum())
    return put_off


def _calls(gaps: IdleGaps, calls: Frame, rest: Frame) -> dict[str, str]:
    """The function that most of the time of a cause was spent in, where one stands out."""
    names = {}
    allocates = kinds_of_calls(calls.labels("name")) == ALLOCATION
    for cause, some, least in (
        ("sync-drain", calls.take(~allocates), 0.0),
        ("first-launch", calls.take(~allocates), 0.0),
        ("allocation", calls.take(allocates), 0.0),
        ("host-gap", rest, LEAST_NAMED),
    ):
        rows = gaps.causes[:, ALL_CAUSES.index(cause)] > 0
        time = union(gaps.opened[rows], gaps.closed[rows])
        name, share = most_in(time, some)
        if share > least:
            names[cause] = name
    if 2 * np.sum(gaps.compiling) > gaps.totals["first-launch"]:
        names["first-launch"] = COMPILERS
    return names


def _blocked_by(gaps: IdleGaps, calls: Frame) -> str:
    """The blocking call in which most of the host gaps opened; empty where most did not."""
    lost = gaps.causes[:, HOST_GAP]
    drained = gaps.drained & (lost > 0)
    if 2 * lost[drained].sum() <= lost.sum():
        return ""
    opened = gaps.opened[drained]
    name, share = most_in(union(opened - 1, opened), calls)
    return name if share >= LEAST_NAMED else SHORT_COPY


def _host(gaps: IdleGaps, window: Spans, events: HostEvents) -> str:
    """What the thread with the longest host gaps did in them, for people; empty where unknown."""
    lost = gaps.causes[:, HOST_GAP] > 0
    texts = []
    for tid in np.unique(gaps.thread[lost]).tolist():
        mine = lost & (gaps.thread == tid)
        time = union(gaps.opened[mine], gaps.closed[mine])
        texts.append((time.total, described(time, events.of_thread(tid), window)))
    return max(texts)[1] if texts else ""


def _longest_gap(
    gaps: IdleGaps, calls: Frame, window: Spans, events: HostEvents | None
) -> LongestGap | None:
    """The longest idle interval, and what the host did in it; None without any."""
    if not len(gaps):
        return None
    row = int(np.argmax(gaps.length))
    cause = ALL_CAUSES[int(np.argmax(gaps.causes[row]))]
    place = Place(int(gaps.opened[row]), int(gaps.length[row]))
    return LongestGap(place, cause, activity(gaps, row, window, events, calls))
