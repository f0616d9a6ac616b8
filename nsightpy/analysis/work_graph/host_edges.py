"""The edges of the host: from call to call, between threads, and out of blocking calls."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.edges import (
    BLOCKED,
    HOST,
    MET,
    ORIGIN,
    START,
    Edges,
    Host,
    Nodes,
    typical,
)
from nsightpy.analysis.work_graph.host_chain import changes, handed_over
from nsightpy.analysis.work_graph.job_work import JobWork
from nsightpy.frames import Ints


def host_of(work: JobWork, nodes: Nodes) -> tuple[Host, Edges, Ints]:
    """The host's positions, the edges into its nodes, and the recorded time of each node."""
    chain, rows = work.chain, work.meetings
    positions = np.arange(2 * len(chain))
    first = np.flatnonzero(changes(chain.thread))
    left = rows.ints("call")[nodes.leaves]
    blocking = np.unique(np.append(work.awaited[0], left))
    before, after = handed_over(chain)
    roots, goes_on = np.setdiff1d(first, after), np.setdiff1d(after, first)
    at = np.sort(np.concatenate([2 * roots, 2 * after, 2 * blocking + 1]))
    node_of = np.full(len(positions), -1, dtype=np.int64)
    node_of[at] = nodes.host_at + np.arange(len(at))
    anchor = np.maximum.accumulate(np.where(node_of >= 0, positions, 0))
    times = np.stack([chain.start, chain.end], axis=1).ravel()
    increments, beyond = _gaps(work, times, first)
    increments[2 * after] = beyond[2 * after] = 0
    increments[2 * blocking + 1] = _own_length(work, nodes)[blocking]
    host = Host(at, anchor, node_of[anchor], increments, beyond)
    met, enters = nodes.meetings_at + nodes.meeting[len(nodes.members) :], rows.ints("enters") > 0
    arrived = 2 * rows.ints("call")[enters]
    late = chain.end[left] - nodes.met[met[nodes.leaves] - nodes.meetings_at]
    parts = [
        Edges.of(
            START,
            np.full(len(roots), ORIGIN),
            node_of[2 * roots],
            lag=times[2 * roots] - increments[2 * roots],
            near=2 * roots - 1,
            far=2 * roots,
        ),
        host.edges(HOST, 2 * blocking, 2 * blocking + 1, node_of[2 * blocking + 1]),
        host.edges(HOST, 2 * goes_on - 1, 2 * goes_on - 1, node_of[2 * goes_on]),
        host.edges(HOST, 2 * before + 1, 2 * before + 1, node_of[2 * after]),
        _blocked(work, nodes, node_of),
        host.edges(HOST, arrived, arrived, met[enters]),
        Edges.of(MET, met[nodes.leaves], node_of[2 * left + 1], lag=late),
    ]
    return host, Edges.concatenate(parts), times[at]


def _gaps(work: JobWork, times: Ints, first: Ints) -> tuple[Ints, Ints]:
    """What leads to each position of the host, and what of it lies after the block, in ns.

    What a thread did before its first call in a block counts from the begin of that on.
    """
    increments, beyond = np.diff(times, prepend=times[:1]), np.zeros_like(times)
    bounded, start = work.call_low != NO_TIME, work.chain.start
    lead = np.maximum(start - work.call_low, 0)
    increments[2 * first] = np.where(bounded, lead, 0)[first]
    since = np.append(0, work.chain.end[:-1])[: len(start)]
    since[first] = work.call_low[first]
    late = start - np.maximum(work.call_high, since)
    beyond[::2] = np.where(bounded, np.clip(late, 0, increments[::2]), 0)
    return increments, beyond


def _own_length(work: JobWork, nodes: Nodes) -> Ints:
    """What each blocking call takes when it has nothing to wait for: as seen for its function."""
    chain, (call, row) = work.chain, work.awaited
    left = work.meetings.ints("call")[nodes.leaves]
    met = nodes.met[nodes.meeting[len(nodes.members) :][nodes.leaves]]
    length = chain.end - chain.start
    waited, blocking = (np.zeros(len(length), dtype=np.bool_) for _ in range(2))
    waited[call[work.end[row] > chain.start[call]]] = True
    waited[left[met > chain.start[left]]] = True
    blocking[call] = blocking[left] = True
    seen = typical(length, chain.labels.codes, blocking & ~waited, np.zeros_like(length))
    return np.where(waited, np.minimum(length, seen), length)


def _blocked(work: JobWork, nodes: Nodes, node_of: Ints) -> Edges:
    """From what a blocking call waited for to its return, after the usual time to wake up."""
    chain, (call, row) = work.chain, work.awaited
    source, lasting = nodes.end_of(row)
    ended = work.end[row]
    late = chain.end[call] - ended
    latest = np.full(len(chain), NO_TIME)
    np.maximum.at(latest, call, ended)
    # the last of all that a call waits for is what it wakes up after
    waited = (ended == latest[call]) & (ended > chain.start[call])
    lag = np.minimum(typical(late, chain.labels.codes[call], waited, np.zeros_like(late)), late)
    return Edges.of(BLOCKED, source, node_of[2 * call + 1], lag=lag, lasting=lasting)
