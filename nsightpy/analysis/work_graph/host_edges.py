"""The edges of the host: from call to call, between threads, and out of blocking calls."""

from __future__ import annotations

import numpy as np

from nsightpy.analysis.launches import NO_TIME
from nsightpy.analysis.work_graph.edges import (
    ARRIVAL,
    BLOCKED,
    HANDED,
    HOST,
    ORIGIN,
    START,
    Edges,
    Host,
    Nodes,
    typical,
)
from nsightpy.analysis.work_graph.host_chain import changes, handed_over
from nsightpy.analysis.work_graph.joined import Joined
from nsightpy.frames import Ints


def host_of(work: Joined, nodes: Nodes) -> tuple[Host, Edges, Ints]:
    """The host's positions, the edges into its nodes, and the recorded time of each node."""
    calls = np.arange(len(work.call_start))
    first = np.flatnonzero(changes(work.segment))
    left = work.meeting_call[nodes.leaves]
    blocking = np.unique(np.concatenate([work.call, left]))
    before, after = handed_over(work.segment, work.process, work.call_start, work.call_end)
    roots = np.setdiff1d(first, after)
    goes_on = np.setdiff1d(after, first)
    at = np.concatenate([2 * roots, 2 * after, 2 * blocking + 1])
    at.sort()
    node_of = np.full(2 * len(calls), -1, dtype=np.int64)
    node_of[at] = nodes.host_at + np.arange(len(at))
    anchor = np.maximum.accumulate(np.where(node_of >= 0, np.arange(2 * len(calls)), 0))
    times = np.stack([work.call_start, work.call_end], axis=1).ravel()
    increments, beyond = _gaps(work, times, first)
    increments[2 * after] = beyond[2 * after] = 0
    own = _own_length(work, nodes)
    increments[2 * blocking + 1] = own[blocking]
    host = Host(at, anchor, node_of[anchor], increments, beyond)
    began = 2 * blocking
    parts = [
        Edges.of(
            START,
            np.full(len(roots), ORIGIN),
            node_of[2 * roots],
            lag=times[2 * roots] - increments[2 * roots],
            near=2 * roots - 1,
            far=2 * roots,
        ),
        Edges.of(HOST, host.node[began], node_of[began + 1], near=anchor[began], far=began + 1),
        _from_host(HOST, host, 2 * goes_on - 1, node_of[2 * goes_on]),
        _from_host(HANDED, host, 2 * before + 1, node_of[2 * after]),
        _blocked(work, nodes, node_of),
        *_met(work, nodes, host, node_of),
    ]
    return host, Edges.concatenate(parts), times[at]


def _gaps(work: Joined, times: Ints, first: Ints) -> tuple[Ints, Ints]:
    """What leads to each position of the host, and what of it lies after the block, in ns.

    What a thread did before its first call in a block counts from the begin of that on.
    """
    increments, beyond = np.diff(times, prepend=times[:1]), np.zeros_like(times)
    bounded = work.call_low != NO_TIME
    lead = np.maximum(work.call_start - work.call_low, 0)
    increments[2 * first] = np.where(bounded, lead, 0)[first]
    since = np.append(0, work.call_end[:-1])[: len(work.call_end)]
    since[first] = work.call_low[first]
    late = work.call_start - np.maximum(work.call_high, since)
    beyond[::2] = np.where(bounded, np.clip(late, 0, increments[::2]), 0)
    return increments, beyond


def _from_host(kind: int, host: Host, position: Ints, target: Ints) -> Edges:
    """Edges from positions of the host to nodes."""
    return Edges.of(kind, host.node[position], target, near=host.anchor[position], far=position)


def _met(work: Joined, nodes: Nodes, host: Host, node_of: Ints) -> list[Edges]:
    """From the begin of MPI calls to when all that are waited for are there, and to their ends."""
    enters, met = np.flatnonzero(work.enters), nodes.host_meetings_at + nodes.host_meeting
    arrival = _from_host(ARRIVAL, host, 2 * work.meeting_call[enters], met[enters])
    call = work.meeting_call[nodes.leaves]
    lag = work.call_end[call] - nodes.host_met[nodes.host_meeting[nodes.leaves]]
    return [arrival, Edges.of(BLOCKED, met[nodes.leaves], node_of[2 * call + 1], lag=lag)]


def _own_length(work: Joined, nodes: Nodes) -> Ints:
    """What each blocking call takes when it has nothing to wait for: as seen for its function."""
    length = work.call_end - work.call_start
    waited = np.zeros(len(length), dtype=np.bool_)
    waited[work.call[work.end[work.awaited] > work.call_start[work.call]]] = True
    left = work.meeting_call[nodes.leaves]
    met = nodes.host_met[nodes.host_meeting[nodes.leaves]]
    waited[left[met > work.call_start[left]]] = True
    blocking = np.zeros(len(length), dtype=np.bool_)
    blocking[work.call] = blocking[left] = True
    seen = typical(length, work.call_name, blocking & ~waited, np.zeros_like(length))
    return np.where(waited, np.minimum(length, seen), length)


def _blocked(work: Joined, nodes: Nodes, node_of: Ints) -> Edges:
    """From what a blocking call waited for to its return, after the usual time to wake up."""
    source, lasting = nodes.end_of(work.awaited)
    late = work.call_end[work.call] - work.end[work.awaited]
    latest = np.full(len(work.call_start), NO_TIME)
    np.maximum.at(latest, work.call, work.end[work.awaited])
    # the last of all that a call waits for is what it wakes up after
    waited = work.end[work.awaited] == latest[work.call]
    waited &= latest[work.call] > work.call_start[work.call]
    lag = typical(late, work.call_name[work.call], waited, np.zeros_like(late))
    return Edges.of(
        BLOCKED, source, node_of[2 * work.call + 1], lag=np.minimum(lag, late), lasting=lasting
    )
