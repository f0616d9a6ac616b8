"""Why a device was idle, and what the host did meanwhile."""

from dataclasses import replace

import numpy as np

from nsightpy.analysis.findings.evidence import Evidence, Group, Place
from nsightpy.analysis.findings.thresholds import WARNING_SHARE
from nsightpy.analysis.intervals import measure_inside, spans_of, union
from nsightpy.analysis.work_graph.host_activity import HostEvents, described, most_in
from nsightpy.analysis.work_graph.host_chain import ALLOCATION, COPY, OTHER, WAIT, kinds_of_calls
from nsightpy.analysis.work_graph.idle_intervals import CAUSES, NO_ROW, Cause, IdleIntervals
from nsightpy.analysis.work_graph.launched_work import LaunchedWork
from nsightpy.analysis.work_graph.thresholds import HOST_GAP_NS
from nsightpy.frames import Frame

# What compiles, as ranges say.
COMPILERS = "compilers"


def with_idle(
    row: Evidence, launched: LaunchedWork, gaps: IdleIntervals, calls: Frame, events: HostEvents
) -> Evidence:
    """A device's row with why it was idle; `calls` are the notable ones of its process."""
    names, groups = _calls(gaps, calls), {}
    for number, (cause, time) in enumerate(gaps.totals.items()):
        worst = Place.worst(gaps.opened, gaps.closed, gaps.times[:, number]) if time else None
        groups[cause] = Group(alone_ns=time, name=names.get(cause, ""), worst=worst)
    overdue = gaps.times[gaps.length >= HOST_GAP_NS, Cause.QUEUED].sum()
    groups["queued"] = replace(groups["queued"], alone_ns=int(overdue))
    ended = gaps.times[gaps.after == NO_ROW, Cause.UNKNOWN].sum()
    groups["unknown"] = replace(groups["unknown"], alone_ns=gaps.totals["unknown"] - int(ended))
    # communication that ran alone is of the same finding
    alone, in_mpi = row["exposed-communication"], groups["exposed-communication"]
    groups["exposed-communication"] = replace(
        in_mpi,
        alone_ns=row.budget.exposed_communication_ns + in_mpi.alone_ns,
        worst=max(alone, in_mpi, key=lambda group: group.longest_ns).worst,
    )
    lost = gaps.times[:, Cause.HOST_GAP]
    beside = bool(2 * lost[gaps.times.argmax(axis=1) != Cause.HOST_GAP].sum() > lost.sum())
    # blocking calls bring about launches one by one, or else work that could be done beside them
    drained = {
        "sync-drain": gaps.totals["sync-drain"],
        "launch-bound": int(gaps.run_ahead_lost[1].sum()),
    }
    least = WARNING_SHARE * row.window_ns
    if sum(drained.values()) < least and not beside:
        put_off = _put_off(gaps, launched, calls)
        drained["host-gap"] = put_off if put_off >= least else 0
    groups["sync-drain"] = replace(
        groups["sync-drain"],
        alone_ns=sum(drained.values()),
        count=int(np.count_nonzero(gaps.held)),
        name=_draining(gaps, launched),
        by_name=drained,
    )
    host = _host(row, launched, gaps, events)
    return row.having(groups, causes=gaps.totals, beside=beside, host=host)


def _put_off(gaps: IdleIntervals, launched: LaunchedWork, calls: Frame) -> int:
    """Host-gap time after blocking calls that waited for as long since the one before, in ns.

    A bound: work that needs nothing of what the calls waited for could be done meanwhile.
    """
    put_off, drained = 0, gaps.held > 0
    blocking = calls.take(np.isin(kinds_of_calls(calls.labels("name")), (WAIT, COPY)))
    for thread in np.unique(gaps.thread[drained]):
        rows = np.flatnonzero((gaps.thread == thread) & (gaps.times[:, Cause.HOST_GAP] > 0))
        waits = spans_of(blocking.at(tid=int(launched.chain.tid(thread))))
        since = np.append(np.iinfo(np.int64).min, gaps.closed[rows])[:-1]
        waited = measure_inside(waits, since, gaps.opened[rows]) * drained[rows]
        put_off += int(np.minimum(gaps.times[rows, Cause.HOST_GAP], waited).sum())
    return put_off


def _calls(gaps: IdleIntervals, calls: Frame) -> dict[str, str]:
    """The function that most of the time of a cause was spent in, where one stands out."""
    names, kinds = {}, kinds_of_calls(calls.labels("name"))
    for cause, of_cause, least in (
        ("first-launch", kinds != ALLOCATION, 0.0),
        ("allocation", kinds == ALLOCATION, 0.0),
        ("host-gap", kinds == OTHER, 0.5),
    ):
        rows = gaps.times[:, CAUSES.index(cause)] > 0
        name, share = most_in(union(gaps.opened[rows], gaps.closed[rows]), calls.take(of_cause))
        if share > least:
            names[cause] = name
    if 2 * gaps.compiling.sum() > gaps.totals["first-launch"]:
        names["first-launch"] = COMPILERS
    return names


def _draining(gaps: IdleIntervals, launched: LaunchedWork) -> str:
    """The function whose calls drained the queue at the highest cost; empty where none did."""
    (rows, lost), chain = gaps.run_ahead_lost, launched.chain
    if not len(rows):
        return ""
    cost = gaps.times[rows, Cause.SYNC_DRAIN] + lost
    call = chain.last_begun(np.arange(len(chain)), gaps.thread[rows], gaps.opened[rows])
    names = chain.labels.take(call[call >= 0])
    if not len(names):
        return ""
    return names.values[int(np.argmax(np.bincount(names.codes, cost[call >= 0])))]


def _host(row: Evidence, launched: LaunchedWork, gaps: IdleIntervals, events: HostEvents) -> str:
    """What the thread with the longest host gaps did in them, for people; empty where unknown."""
    lost = gaps.times[:, Cause.HOST_GAP] > 0
    texts = []
    for thread in np.unique(gaps.thread[lost]):
        rows = lost & (gaps.thread == thread)
        time = union(gaps.opened[rows], gaps.closed[rows])
        own = events.of_thread(int(launched.chain.tid(thread)))
        texts.append((time.total, described(time, own, row.budget.window)))
    return max(texts)[1] if texts else ""
